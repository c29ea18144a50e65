import json
import re
import unicodedata
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import ConfigError, UsageError
from culturekit.generation.folder import folder_listing
from culturekit.generation.folder.folder_detection import naming_of
from culturekit.generation.folder.folder_list import name_problem, read_list
from tests.generation.folder.folder_worlds import clean, fill, prompts, take

ROWS = [
    {"file_name": "a.png", "prompt_id": "p1", "seed": 7, "model": "m", "repeat": 0, "slot": 3, "rewriter": "on"},
    {"file_name": "b/c.png", "prompt_id": "p2", "seed": 8, "model": "m", "repeat": 1, "slot": 0, "rewriter": "off"},
]


def written(folder: Path, form: str) -> Path:
    path = folder / f"metadata.{form}"
    frame = pl.DataFrame(ROWS)
    if form == "parquet":
        frame.write_parquet(path)
    elif form in ("csv", "tsv"):
        frame.write_csv(path, separator="\t" if form == "tsv" else ",")
    elif form == "jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    else:
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_a_list_says_the_same_in_every_form(tmp_path: Path, form: str) -> None:
    root = fill(tmp_path / "pics", ["a.png", "b/c.png"])
    written(root, form)
    run, rows = take(f"folder:{root}", tmp_path / "out", prompts(tmp_path))
    assert rows.select("source", "prompt_id", "seed", "model", "repeat", "slot", "rewriter").rows() == [
        ("a.png", "p1", 7, "m", 0, 3, "on"),
        ("b/c.png", "p2", 8, "m", 1, 0, "off"),
    ]
    assert clean(run)
    assert run.manifest.inputs["list"].name == f"metadata.{form}"


def test_a_list_may_hold_prompts_by_their_text_and_come_from_excel(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["a.png", "b.png"])
    lines = [
        "\ufefffile;prompt;notes", "a.png;a photo of jollof rice, from nigeria;x",
        '.\\b.png;"A photo of Crème brûlée, from France";y', "",
    ]  # fmt: skip
    text = "\r\n".join(lines)
    (tmp_path / "list.csv").write_text(text, encoding="utf-8", newline="")
    run, rows = take(f"folder:{root}?manifest={tmp_path / 'list.csv'}", tmp_path / "out", prompts(tmp_path))
    assert rows["prompt_id"].to_list() == ["p1", "p2"]
    assert run.manifest.notes["columns_not_used"] == ["notes"]


def test_an_object_of_file_names_is_a_list_too(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["a.png", "b.png"])
    (root / "metadata.json").write_text(json.dumps({"a.png": "one dish", "b.png": {"prompt": "two", "seed": 4}}))
    _, rows = take(f"folder:{root}", tmp_path / "out")
    assert rows.select("prompt_sent", "prompt_id", "seed").rows() == [("one dish", "one-dish", None), ("two", "two", 4)]


def test_files_that_are_not_there_or_not_listed_are_rows(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["a.png", "extra.png", "data.bin"])
    lines = ["path,prompt_id,status,reason", "a.png,p1,,", "gone.png,p2,,", "data.bin,p3,,", ",p4,refused,unsafe", ""]
    (root / "metadata.csv").write_text("\n".join(lines))
    run, rows = take(f"folder:{root}", tmp_path / "out", prompts(tmp_path))
    assert rows.select("source", "status", "reason").rows() == [
        ("(row 5)", "refused", "unsafe"),
        ("a.png", "ok", None),
        ("data.bin", "ok", None),
        ("extra.png", "unmatched", "not in the list"),
        ("gone.png", "missing", "listed in metadata.csv, row 3, but there is no such file"),
    ]
    assert run.manifest.notes["findings"] == ["1 file found no prompt", "1 file in the list is not in the folder"]


@pytest.mark.parametrize(("name", "words"), [
    ("/etc/passwd.png", "full path"), ("~/x.png", "full path"), ("C:\\x.png", "full path"),
    ("\\\\host\\x.png", "full path"), ("../x.png", ".."), ("a/../../x.png", ".."), ("a\\..\\x.png", ".."),
    ("https://host/x.png", "address"), ("a\0.png", "zero byte"), ("a/b..png", ""), ("...png", ""),
])  # fmt: skip
def test_names_that_lead_out_are_refused(name: str, words: str) -> None:
    assert words in name_problem(name)
    assert bool(name_problem(name)) == bool(words)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "metadata.csv"
    path.write_text(
        "path,prompt_id,seed,repeat,rewriter\n../a.png,p,x,,\n,p,1,70000,\nb.png,p,1,0,maybe\nb.png,p,1,0,on\n"
    )
    with pytest.raises(ConfigError) as error:
        read_list(path, label="metadata.csv")
    assert str(error.value).splitlines() == [
        "metadata.csv:2: path: '../a.png' leads out of the folder with '..'",
        "metadata.csv:2: seed: expected a whole number, found 'x'",
        "metadata.csv:3: path: names no file",
        "metadata.csv:3: repeat: expected a whole number from 0 to 65535, found '70000'",
        "metadata.csv:4: rewriter: expected on or off or unknown, found 'maybe'",
    ]


def test_a_list_without_a_column_of_files_says_which_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "metadata.csv"
    path.write_text("paht,prompt_id\na.png,p\n")
    with pytest.raises(UsageError, match="Did you mean 'paht'"):
        read_list(path, label="metadata.csv")


@pytest.mark.parametrize(("form", "text", "words"), [
    ("csv", "path,prompt_id\na.png\n", "metadata.csv:2: 1 cells under 2 columns"),
    ("csv", 'path\n"a.png\n', "metadata.csv:2: not a CSV file"),
    ("jsonl", '{"path": "a.png"}\n[1]\n', "metadata.jsonl:2: expected an object"), ("jsonl", "{\n", "not JSON"),
    ("json", "3", "no known shape"), ("json", "{", "is not JSON"), ("parquet", "x", "not readable Parquet"),
])  # fmt: skip
def test_a_broken_list_is_refused(tmp_path: Path, form: str, text: str, words: str) -> None:
    path = tmp_path / f"metadata.{form}"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        read_list(path, label=path.name)
    assert words in str(error.value)


def test_an_images_table_of_ours_is_a_list(tmp_path: Path) -> None:
    root = fill(tmp_path / "pics", ["p1_0.png", "p2_0.png"])
    table = prompts(tmp_path)
    _, before = take(f"folder:{root}?pattern={{prompt_id}}_{{slot}}", tmp_path / "one", table)
    run, after = take(f"folder:{tmp_path / 'one'}", tmp_path / "two", table)
    columns = ["prompt_id", "repeat", "slot", "sha256", "status"]
    assert after.select(columns).sort("prompt_id").equals(before.select(columns).sort("prompt_id"))
    assert clean(run)


TEXT = st.text(st.characters(categories=["L", "N"], include_characters=" ,.()'"), min_size=1, max_size=20)

NUMBER = st.integers(0, 10**18).map(str)

NAMED = [field for field in folder_listing.FIELDS if field != "_"]


@st.composite
def names(draw: st.DrawFn) -> tuple[str, dict[str, str], str]:
    """A pattern, the fields of a name, and the name that they make."""
    fields = draw(st.lists(st.sampled_from(NAMED), min_size=1, max_size=5, unique=True))
    between = draw(st.lists(st.sampled_from(["__", "-_-", "/", "=="]), min_size=len(fields), max_size=len(fields)))
    values = {}
    for field in fields:
        value = draw(NUMBER if field in {"repeat", "slot", "seed"} else TEXT)
        values[field] = unicodedata.normalize("NFC", value)
    text = name = ""
    for field, separator in zip(fields, ["", *between], strict=False):
        text += separator + "{" + field + "}"
        name += separator + values[field]
    return f"{text}.*", values, f"{name}.png"


@given(names())
def test_what_a_pattern_was_filled_with_is_read_back(case: tuple[str, dict[str, str], str]) -> None:
    pattern, values, name = case
    assert folder_listing.parse_pattern(pattern).fields(name) == values
    assert folder_listing.parse_pattern(pattern).fields(f"deeper/folder/{name}") == values


@given(st.text(max_size=60))
def test_any_text_is_a_pattern_or_is_refused_in_words(text: str) -> None:
    try:
        folder_listing.parse_pattern(text)
    except ValueError as error:
        assert "pattern" in str(error)


@given(
    st.text(min_size=1, max_size=80), st.sampled_from(["{prompt}__{id}.png", "{id}_{_}/{prompt_id}-{slot}", "{seed}"])
)
def test_no_name_breaks_a_pattern(name: str, pattern: str) -> None:
    fields = folder_listing.parse_pattern(pattern).fields(name)
    assert fields is None or all(value in re.sub(r"\s", " ", name) or value for value in fields.values())


@pytest.mark.parametrize(("pattern", "name", "fields"), [
    ("{prompt}__{id}.png", "a__b__7.png", {"prompt": "a__b", "id": "7"}),
    ("{prompt}__{id}.png", "a__7.PNG", {"prompt": "a", "id": "7"}),
    ("{prompt}__{id}.png", "a__7.jpg", None),
    ("{prompt}__{id}.*", "a__7.jpg", {"prompt": "a", "id": "7"}),
    ("{prompt}__{id}", "a__7.webp", {"prompt": "a", "id": "7"}),
    ("{prompt}__{id}", "a__v1.5", {"prompt": "a", "id": "v1.5"}),
    ("{model}/{prompt_id}/{repeat}-{slot}", "x/sdxl/p/0003-07.png",
     {"model": "sdxl", "prompt_id": "p", "repeat": "0003", "slot": "07"}),
    ("/{model}/{id}", "x/sdxl/1.png", None),
    ("/{model}/{id}", "sdxl/1.png", {"model": "sdxl", "id": "1"}),
    ("{prompt_id}/{prompt_id}_{slot}", "p/p_1.png", {"prompt_id": "p", "slot": "1"}),
    ("{prompt_id}/{prompt_id}_{slot}", "p/q_1.png", None),
    ("{_}-{seed}-{prompt}", "00012-77-a cat-and-dog.png", {"seed": "77", "prompt": "a cat-and-dog"}),
    ("{{x}}{id}.png", "{x}7.png", {"id": "7"}),
    ("é{id}", "e\u03017.png", {"id": "7"}),
    ("{slot}", "x.png", None),
])  # fmt: skip
def test_patterns_by_example(pattern: str, name: str, fields: dict[str, str] | None) -> None:
    assert folder_listing.parse_pattern(pattern).fields(name) == fields


@pytest.mark.parametrize(("pattern", "words"), [
    ("{promt}.png", "{promt}"), ("{prompt}{id}", "nothing between {prompt} and {id}"), ("{prompt", "brace"),
    ("image.png", "no field"), ("../{id}", ".."), ("{prompt}/", "name of a file"),
])  # fmt: skip
def test_a_wrong_pattern_is_refused_with_the_reason(tmp_path: Path, pattern: str, words: str) -> None:
    with pytest.raises(UsageError, match=rf"{re.escape(words)}.*expected such as"):
        naming_of(tmp_path, pattern=pattern, manifest="")


def test_patterns_have_a_bar_between_them() -> None:
    assert [one.text for one in folder_listing.parse_patterns("{prompt_id}.png|{prompt}__{id}")] == [
        "{prompt_id}.png",
        "{prompt}__{id}",
    ]
    assert folder_listing.parse_patterns("") == ()


def test_texts_are_folded_until_only_what_they_say_is_left() -> None:
    assert (
        folder_listing.folded("A photo of Crème brûlée!")
        == folder_listing.folded("a_photo-of_CRE\u0300ME_bru\u0302le\u0301e")
        == "aphotoofcrèmebrûlée"
    )
    assert folder_listing.bare("A photo of Crème brûlée!") == "aphotoofcremebrulee"
    assert folder_listing.folded("写真:抹茶") == "写真抹茶"
    assert folder_listing.folded("ＡＢＣ") == "abc"


def test_numbers_in_names_count() -> None:
    assert sorted(["img10.png", "img2.png", "a", "img02b"], key=folder_listing.natural_order) == [
        "a", "img2.png", "img02b", "img10.png",
    ]  # fmt: skip
