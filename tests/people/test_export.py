"""What is handed out tells nothing, asks everybody what they are to be asked, and is the same every time."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from PIL import Image, PngImagePlugin

from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import write_table
from culturekit.people.stages import ExportFiles
from culturekit.people.tasks import Quotas
from tests.people.projects import (
    export,
    form_tasks,
    image_row,
    key_of,
    pictured,
    prompt_row,
    studio_tasks,
    write_images,
    write_prompts,
)

MODELS = ("imagen-2", "sdxl-base")
COUNTRIES = ("IN", "JP", "NG")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ExportFiles:
    folder = tmp_path_factory.mktemp("files")
    rows = [image_row(f"{m}/{c}/{n}", m, f"p-{c}") for m in MODELS for c in COUNTRIES for n in range(5)]
    prompts = [prompt_row(f"p-{c}", f"Image of food, {c}", "cuisine", c) for c in COUNTRIES]
    return ExportFiles([write_images(folder / "images", rows)], write_prompts(folder / "prompts", prompts))


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_pictures_lose_what_their_files_say(tmp_path: Path) -> None:
    files = pictured(tmp_path, ["x"])
    images = files.images[0]
    table = pl.read_parquet(images)
    path = images.parent / table["path"][0]
    info = PngImagePlugin.PngInfo()
    info.add_text("parameters", "made by sdxl-base")
    Image.open(path).save(path, pnginfo=info)
    write_table(images.parent, IMAGES, table.with_columns(sha256=pl.lit(digest_bytes(path.read_bytes()))))
    export(tmp_path / "out", files)
    (picture,) = (tmp_path / "out/hand-out/pictures").iterdir()
    assert b"sdxl" not in picture.read_bytes()
    assert Image.open(picture).convert("RGB").tobytes() == Image.open(path).convert("RGB").tobytes()


def test_the_same_seed_gives_the_same_bytes_and_another_other_names(tmp_path: Path, files: ExportFiles) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export(tmp_path / name, files, seed=seed)
    a, b, c = (all_bytes(tmp_path / name / "hand-out") for name in "abc")
    assert a == b
    assert {name for name in a if "pictures" in name}.isdisjoint(c)


def test_label_studio_and_the_form_have_the_same_tasks(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files)
    content = form_tasks(tmp_path / "out")
    for task in content["tasks"]:
        task["picture_1"] = "/data/local-files/?d=pictures/" + task["picture_1"]
    plain = sorted(content["tasks"], key=lambda task: task["task"])
    assert sorted((task["data"] for task in studio_tasks(tmp_path / "out")), key=lambda data: data["task"]) == plain
    assert {task["task"] for task in plain} == set(key_of(tmp_path / "out"))


def judged(folder: Path) -> Counter[tuple[str, str, bool]]:
    """Count for each item the sheets that ask for it, by the region of the annotator."""
    key = key_of(folder)
    content = form_tasks(folder)
    seen: Counter[tuple[str, str, bool]] = Counter()
    for sheet in content["sheets"]:
        for number in sheet["tasks"]:
            row = key[content["tasks"][number]["task"]]
            if row["kind"] == "item":
                seen[row["item_id"], row["annotator_region"], row["in_region"]] += 1
    return seen


def test_quotas_in_and_out_of_region(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files, quotas=Quotas(2, 1), per_sheet=4)
    seen = judged(tmp_path / "out")
    inside = {item: count for (item, _, home), count in seen.items() if home}
    outside: Counter[str] = Counter()
    for (item, region, home), count in seen.items():
        assert home == (item.split("/")[1] == region)
        if not home:
            outside[region] += count
    assert set(inside.values()) == {2}
    assert len(inside) == 30
    assert outside.total() == 30
    assert max(outside.values()) - min(outside.values()) <= 6


def test_sheets_hold_checks_and_repeats_far_from_the_first_time(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files, repeats=2, checks=2)
    key = key_of(tmp_path / "out")
    content = form_tasks(tmp_path / "out")
    orders = []
    for sheet in content["sheets"]:
        names = [content["tasks"][number]["task"] for number in sheet["tasks"]]
        kinds = Counter(key[name]["kind"] for name in names)
        assert kinds == {"item": 10, "check": 2, "repeat": 2}
        assert key[names[0]]["kind"] != "check"
        for name in names:
            if key[name]["kind"] == "repeat":
                assert names.index(name) - names.index(key[name]["repeat_of"]) > 3
        orders.append(tuple(names))
    assert len(set(orders)) == len(orders), "every slot has an order of its own"


def test_a_picture_that_cannot_be_read_takes_its_item_with_it(tmp_path: Path) -> None:
    files = pictured(tmp_path, ["x0", "x1", "x2"])
    broken = files.images[0].parent / pl.read_parquet(files.images[0])["path"][1]
    broken.write_bytes(broken.read_bytes()[:40])
    done = export(tmp_path / "out", files)
    assert sum(done.manifest.drops.values()) == 1
    assert pl.read_parquet(tmp_path / "out/drops.parquet")["key"].to_list() == ["x1"]
    assert {row["item_id"] for row in key_of(tmp_path / "out").values()} == {"x0", "x2"}
    assert len(list((tmp_path / "out/hand-out/pictures").iterdir())) == 2


def test_links_carry_what_prolific_fills_in(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files, form_at="https://example.org/form.html?x=1")
    lines = (tmp_path / "out/hand-out/prolific.csv").read_text(encoding="utf-8").splitlines()
    sheets = form_tasks(tmp_path / "out")["sheets"]
    assert len(lines) == 1 + len(sheets)
    for line, sheet in zip(lines[1:], sheets, strict=True):
        assert line.startswith(f"{sheet['name']},")
        assert line.endswith(
            f"https://example.org/form.html?x=1&sheet={sheet['name']}&PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}"
            "&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
        )


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "\u2028<!--", '"]};alert(1)//', "𝒻‮gnp"])
def test_hostile_prompts_are_data_in_json_and_html(tmp_path: Path, text: str) -> None:
    export(tmp_path / "out", pictured(tmp_path, ["x"], text=text, country=text), form_at="https://example.org/f")
    page = (tmp_path / "out/hand-out/form.html").read_text(encoding="utf-8")
    assert len(re.findall(r"<script", page)) == 2
    assert form_tasks(tmp_path / "out")["tasks"][0]["prompt"] == text
    assert studio_tasks(tmp_path / "out")[0]["data"]["prompt"] == text
    names = [path.name for path in (tmp_path / "out/hand-out").rglob("*")]
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in names)


@pytest.mark.parametrize(("changes", "words"), [
    ({"quotas": Quotas(0, 0)}, "nobody is to judge anything"),
    ({"quotas": Quotas(3, 0, ("FR",))}, "no annotators are found in the region"),
    ({"quotas": Quotas(0, 1, ("IN",))}, "no other region"),
    ({"quotas": Quotas(3, 0, (" ", "IN"))}, "a region of annotators has no name"),
])  # fmt: skip
def test_impossible_quotas_are_refused(tmp_path: Path, files: ExportFiles, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        export(tmp_path / "out", files, **changes)


def test_matches_that_a_form_does_not_take_and_missing_prompts_are_refused(tmp_path: Path, files: ExportFiles) -> None:
    with pytest.raises(UsageError, match="which artifacts a form offers, and cube offers none"):
        export(tmp_path / "out", replace(files, matches=files.images))
    with pytest.raises(UsageError, match="--prompts"):
        export(tmp_path / "out", ExportFiles(files.images))


def test_the_key_stays_out_of_what_is_handed_out(tmp_path: Path, files: ExportFiles) -> None:
    export(tmp_path / "out", files)
    handed_out = sorted(path.name for path in (tmp_path / "out/hand-out").iterdir())
    assert handed_out == ["form.html", "label-studio", "pictures"]
    projects = orjson.loads((tmp_path / "out/hand-out/label-studio/projects.json").read_bytes())
    assert [(one["annotator_region"], one["maximum_annotations"]) for one in projects] == [(c, 3) for c in COUNTRIES]


@pytest.mark.parametrize("queues", [False, True])
def test_in_queues_a_sheet_is_of_one_concept_and_region(tmp_path: Path, files: ExportFiles, queues: bool) -> None:
    export(tmp_path / "out", files, queues=queues, per_sheet=4, quotas=Quotas(1, 1))
    key = pl.read_parquet(tmp_path / "out/annotation_key.parquet").filter(kind="item")
    sheets = key.group_by("part").agg(pl.col("country").n_unique(), pl.len())
    assert (sheets["country"].max() == 1) is queues
    assert sheets["len"].max() == 4
    assert key.group_by("item_id").agg(pl.col("slots").sum())["slots"].unique().to_list() == [2]
