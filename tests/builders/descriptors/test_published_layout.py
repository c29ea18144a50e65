"""The published layout read and written: byte for byte where nothing changed."""

import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.descriptors.published_layout import LaidOut, read_published
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import DESCRIPTORS, DROPS, PROMPTS, PUBLISHED_DESCRIPTORS
from culturekit.core.tables import read_table, write_table
from tests.builders.descriptors.test_descriptor_proposals import prompts_table
from tests.command_line import culturekit

RUG = {"token": "Persian rug", "style": "traditional|modern", "necessity": "optional"}
LAYOUT = {
    "eating": {
        "home": {"setting": [RUG, {**RUG, "token": "Tapis à motifs"}, RUG], "people": [], "attire": [RUG]},
        "eating": {"objects": []},
    },
    "wedding": {"wedding": {"spatial": [{**RUG, "token": "People seated on low stools or mats"}]}},
}


def taken(folder: Path, *more: str) -> tuple[int, str]:
    done = culturekit("descriptors", "import", "--files", "iran.json", "--out", "in", *more, cwd=folder)
    return done.returncode, done.stderr


def given(folder: Path) -> int:
    words = ("--descriptors", "in/descriptors.parquet", "--prompts", "in/prompts.parquet", "--out", "out")
    return culturekit("descriptors", "export", *words, cwd=folder).returncode


@pytest.mark.parametrize("way", [LaidOut(), LaidOut(4, ascii=True, newline=True), LaidOut(None)])
def test_a_file_comes_out_as_it_went_in(tmp_path: Path, way: LaidOut) -> None:
    (tmp_path / "iran.json").write_text(way.write(LAYOUT), encoding="utf-8")  # type: ignore[arg-type]
    assert taken(tmp_path) == (0, "")
    descriptors = read_table(tmp_path / "in/descriptors.parquet", DESCRIPTORS)
    assert descriptors.select("prompt_id", "dimension", "token", "proposers").rows() == [
        ("ir-eating-home", "attire", "Persian rug", ["published"]),
        ("ir-eating-home", "background", "Persian rug", ["published"]),
        ("ir-eating-home", "background", "Tapis à motifs", ["published"]),
        ("ir-wedding-wedding", "spatial", "People seated on low stools or mats", ["published"]),
    ]
    texts = dict(read_table(tmp_path / "in/prompts.parquet", PROMPTS).select("prompt_id", "text").rows())
    assert texts["ir-eating-home"] == "A photorealistic photo of eating at home in Iran."
    assert given(tmp_path) == 0
    assert (tmp_path / "out/iran.json").read_bytes() == (tmp_path / "iran.json").read_bytes()


def test_published_descriptors_come_out_as_they_were_published(tmp_path: Path, shared_data: Path) -> None:
    content = (shared_data / "ahead/iran_descriptors.json").read_bytes()
    (tmp_path / "iran.json").write_bytes(content)
    assert taken(tmp_path) == (0, "")
    assert set(read_table(tmp_path / "in/descriptors.parquet", DESCRIPTORS)["dimension"]) == {
        "attire", "background", "interaction", "objects", "people", "spatial",
    }  # fmt: skip
    assert given(tmp_path) == 0
    assert (tmp_path / "out/iran.json").read_bytes() == content


def test_what_was_changed_in_between_is_changed_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "iran.json").write_text(LaidOut().write(LAYOUT), encoding="utf-8")  # type: ignore[arg-type]
    taken(tmp_path)
    descriptors = read_table(tmp_path / "in/descriptors.parquet", DESCRIPTORS)
    rows = descriptors.filter(pl.col("token") != "Tapis à motifs").to_dicts()
    rows[0]["style"] = "modern"
    rows.append({**rows[0], "token": "Samovar", "dimension": "objects"})
    rows.append({**rows[0], "token": "Chador"})
    changed = tmp_path / "changed"
    changed.mkdir()
    write_table(changed, DESCRIPTORS, pl.DataFrame(rows, schema=DESCRIPTORS.schema))
    words = ("--descriptors", "changed/descriptors.parquet", "--prompts", "in/prompts.parquet")
    done = culturekit(
        "descriptors", "export", *words, "--published", "in/published_descriptors.parquet", "--out", "out", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    home = json.loads((tmp_path / "out/iran.json").read_text(encoding="utf-8"))["eating"]["home"]
    assert home["setting"] == [RUG, RUG]
    assert [(each["token"], each["style"]) for each in home["attire"]] == [
        ("Persian rug", "modern"),
        ("Chador", "modern"),
    ]
    assert [each["token"] for each in home["objects"]] == ["Samovar"]
    assert list(home) == ["setting", "people", "attire", "objects"]


def test_descriptors_of_ones_own_are_written_in_the_published_order(tmp_path: Path) -> None:
    prompts_table(tmp_path / "in", ("ZA", "eating", "eating at home"))
    rows = [
        {"prompt_id": "za-eating at home", "dimension": dimension, "proposers": ["gpt"], **RUG}
        for dimension in ("attire", "background", "objects")
    ]
    write_table(tmp_path / "in", DESCRIPTORS, pl.DataFrame(rows, schema=DESCRIPTORS.schema))
    assert given(tmp_path) == 0
    text = (tmp_path / "out/south_africa.json").read_text(encoding="utf-8")
    assert list(json.loads(text)["eating"]["eating at home"]) == ["setting", "objects", "attire"]


def test_activities_are_matched_with_prompts_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "iran.json").write_text(LaidOut().write(LAYOUT), encoding="utf-8")  # type: ignore[arg-type]
    prompts_table(tmp_path / "own", ("IR", "wedding", "wedding"), ("IT", "eating", "home"))
    assert taken(tmp_path, "--prompts", "own/prompts.parquet") == (0, "")
    assert read_table(tmp_path / "in/descriptors.parquet", DESCRIPTORS)["prompt_id"].to_list() == ["ir-wedding"]
    drops = read_table(tmp_path / "in/drops.parquet", DROPS)
    assert drops.select("key", "reason").rows() == [
        ("IR/eating", "no prompt asks for it"),
        ("IR/home", "no prompt asks for it"),
    ]
    words = ("--descriptors", "in/descriptors.parquet", "--prompts", "own/prompts.parquet", "--out", "out")
    assert culturekit("descriptors", "export", *words, cwd=tmp_path).returncode == 0
    written = json.loads((tmp_path / "out/iran.json").read_text(encoding="utf-8"))
    assert written == {"wedding": LAYOUT["wedding"]}, "and no activity of none is written as an empty one"


def test_a_file_that_cannot_be_repeated_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "iran.json").write_text(json.dumps(LAYOUT, indent=3).replace("\n", "\r\n"), newline="")
    code, said = taken(tmp_path)
    assert code == 1
    assert "iran.json is written in a way that `export` cannot repeat byte for byte" in said


WRONG = [
    ('{"a": {"b": {"setting": [], "background": []}}}', "setting and background are one dimension"),
    ('{"a": {"b": {"setting": [{"token": "x"}]}}}', r"a\.b\.setting\[0\]: expected token, style, necessity"),
    ('{"a": {"b": {"setting": "x"}}}', "expected a list of descriptors"),
    ('{"a": {"b": []}}', "expected dimensions"),
    ('{"a": 1}', "expected activities"),
    ("[]", "expected categories"),
    ('{"a": {}, "a": {}}', "the key 'a' stands twice"),
    ("{", "not JSON"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_file_of_another_form_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "iran.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_published([path])


def test_a_file_is_named_after_its_country(tmp_path: Path) -> None:
    for name, iso in (("USA_descriptors", "US"), ("south_africa", "ZA"), ("IR", "IR")):
        (tmp_path / f"{name}.json").write_text(LaidOut().write(LAYOUT), encoding="utf-8")  # type: ignore[arg-type]
        assert set(read_published([tmp_path / f"{name}.json"])[0]["country"]) == {iso}
    (tmp_path / "atlantis.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="no country is called like this file"):
        read_published([tmp_path / "atlantis.json"])
    assert PUBLISHED_DESCRIPTORS.problems(read_published([tmp_path / "IR.json"])[0]) == []
