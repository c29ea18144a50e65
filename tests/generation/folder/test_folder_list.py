import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import ConfigError, UsageError
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
