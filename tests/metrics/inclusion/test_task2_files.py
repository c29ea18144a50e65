"""Files of Task 2 in the public layout: good rows, broken rows and hostile ones."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import DROPS, TASK2
from culturekit.metrics import Task2File, read_task2, read_task2_file
from culturekit.metrics.inclusion.task2_files import LONGEST_RESULT, parse_result
from tests.metrics.inclusion.task_worlds import HEAD, line, write_csv

YES = "{'match': 'ym', 'obj': ['af', 'eu'], 'geo': ['na']}"


def test_the_public_layout_is_read(tmp_path: Path) -> None:
    # The released file begins with a column of row numbers without a name.
    lines = [
        "0," + line("SouthEastAsia_Indonesia_bag_1.jpg", "SouthEastAsia", 0, "Africa", YES),
        "1," + line("Africa_Nigeria_bag_2.jpg", "Africa", 1, "SouthEastAsia", "{'match': 'nm', 'geo': ['af']}"),
        "2," + line("Africa_Nigeria_bag_2.jpg", "Africa", 2, "Europe", "{'geo': ['sea'], 'obj': [], 'match': 'ym'}"),
    ]
    table = read_task2(write_csv(tmp_path / "task2.csv", lines, head=f",{HEAD}"))
    assert TASK2.problems(table) == []
    first, second, third = table.iter_rows(named=True)
    assert first == {
        "img_path": "SouthEastAsia_Indonesia_bag_1.jpg", "object": "bag", "region": "SouthEastAsia",
        "annotator_id": "0", "annotator_loc": "Africa", "shown": True, "object_regions": ["af", "eu"],
        "background_regions": ["na"], "source": "real",
    }  # fmt: skip
    assert (second["shown"], second["object_regions"], second["background_regions"]) == (False, [], ["af"])
    assert (third["shown"], third["object_regions"], third["background_regions"]) == (True, [], ["sea"])


BROKEN = {
    "not a literal": "__import__('os').system('echo broken')",
    "a call": "dict(match='ym')",
    "an operator": "{'match': 'y' + 'm', 'obj': [], 'geo': []}",
    "no dictionary": "['ym']",
    "no match": "{'obj': ['af'], 'geo': ['af']}",
    "another key": "{'match': 'ym', 'obj': [], 'geo': [], 'extra': 1}",
    "another match": "{'match': 'maybe', 'obj': [], 'geo': []}",
    "a match that is a list of two": "{'match': ['ym', 'nm'], 'obj': [], 'geo': []}",
    "another region": "{'match': 'ym', 'obj': ['mars'], 'geo': []}",
    "a number": "{'match': 'ym', 'obj': [1], 'geo': []}",
    "lists in lists": "{'match': 'ym', 'obj': [['af']], 'geo': []}",
    "a key that cannot be one": "{['match']: 'ym'}",
    "seen but no object regions": "{'match': 'ym', 'geo': ['af']}",
    "cut off": "{'match': 'ym', 'obj': ['af'",
    "deeply nested": "(" * 450,
    "long": "{'match': 'ym', 'obj': [" + "'af'," * 2000 + "], 'geo': []}",
    "a backslash": "{'match': '\\d', 'obj': [], 'geo': []}",
    "a keyword against a number": "{'match': 1if 1 else 2}",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_dropped_with_its_line_and_reason(tmp_path: Path, name: str) -> None:
    lines = [line("a.jpg", "Africa", 0, "Africa", YES), line("b.jpg", "Africa", 0, "Africa", BROKEN[name])]
    file = read_task2_file(write_csv(tmp_path / "task2.csv", lines))
    assert isinstance(file, Task2File)
    assert file.annotations["img_path"].to_list() == ["a.jpg"]
    (drop,) = file.drops.iter_rows(named=True)
    assert DROPS.problems(file.drops) == []
    assert drop["key"] == "line 3"
    assert drop["reason"].startswith("malformed: ")
    assert len(drop["detail"]) <= 80


def test_an_answer_as_long_as_allowed_is_read() -> None:
    text = YES + " " * (LONGEST_RESULT - len(YES))
    assert parse_result(text) == (True, ("af", "eu"), ("na",))
    assert isinstance(parse_result(text + " "), str)
    assert parse_result("{'match': ['ym'], 'obj': 'af', 'geo': ['sea', 'sea']}") == (True, ("af",), ("sea",))


ROWS = {
    "a region without letters": (line("a.jpg", "?", 0, "Africa", YES), "malformed: region is no name of a region"),
    "nobody's location": (line("a.jpg", "Africa", 0, "none", YES), "malformed: annotator_loc is no name of a region"),
    "a region that nothing is of": (
        line("a.jpg", "Africa", 0, "Africa", YES.replace("'eu'", "'mars'")),
        "malformed: obj or geo ticks a region that no image and nobody is of",
    ),
    "no annotator": ('a.jpg,bag,Africa,,Africa,"{}"', "malformed: annotator_id is empty"),
    "too few fields": ("a.jpg,bag,Africa", "malformed: annotator_id is empty"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_broken_row_is_dropped_with_its_reason(tmp_path: Path, name: str) -> None:
    text, reason = ROWS[name]
    file = read_task2_file(write_csv(tmp_path / "task2.csv", [text]))
    assert file.annotations.height == 0
    assert file.drops["reason"].to_list() == [reason]


def test_a_row_that_repeats_an_annotation_is_dropped(tmp_path: Path) -> None:
    row = line("a.jpg", "Africa", 0, "Africa", YES)
    file = read_task2_file(write_csv(tmp_path / "task2.csv", [row, row]))
    assert file.annotations.height == 1
    assert file.drops["reason"].to_list() == ["repeats an annotation"]


@pytest.mark.parametrize("region", ["", "none", "NA"])
def test_an_image_may_have_no_region(tmp_path: Path, region: str) -> None:
    table = read_task2(write_csv(tmp_path / "task2.csv", [line("a.jpg", region, 0, "Southeast Asia", YES)]))
    assert table["region"].to_list() == [None]


def test_a_column_says_who_made_an_image(tmp_path: Path) -> None:
    rows = [line("a.jpg", "Africa", 0, "Africa", YES) + ",ldm", line("b.jpg", "Africa", 0, "Africa", YES) + ","]
    path = write_csv(tmp_path / "task2.csv", rows, head=f"{HEAD},source")
    assert read_task2(path)["source"].to_list() == ["ldm", "real"]
    with pytest.raises(UsageError, match="sources must be left out"):
        read_task2_file(path, sources={"ldm": "*"})


def test_a_pattern_of_the_path_says_it_too(tmp_path: Path) -> None:
    rows = [line(name, "Africa", 0, "Africa", YES) for name in ("ldm21/a.png", "dm/a.png", "geode/a.jpg")]
    file = read_task2_file(write_csv(tmp_path / "t.csv", rows), sources={"ldm": "ldm21/*", "dm": "dm/*"})
    assert file.annotations["source"].to_list() == ["ldm", "dm", "real"]
    with pytest.raises(UsageError, match=r"a source has no image; .*such as 'ldm21/a.png', found sd as 'sd/\*'"):
        read_task2_file(tmp_path / "t.csv", sources={"sd": "sd/*"})  # its images would count as photographs


def test_a_warning_says_that_rows_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_task2(write_csv(tmp_path / "task2.csv", [line("a.jpg", "?", 0, "Africa", YES)]))
    assert "1 rows are left out; the first is line 2: malformed: region" in caplog.text


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_task2(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="lacks the column object, region"):
        read_task2(write_csv(tmp_path / "few.csv", [], head="img_path,annotator_id"))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x80,\n")
    with pytest.raises(UsageError, match="not in UTF-8"):
        read_task2(tmp_path / "binary.csv")


def test_an_empty_file_gives_an_empty_table(tmp_path: Path) -> None:
    table = read_task2(write_csv(tmp_path / "task2.csv", []))
    assert table.schema == pl.Schema(TASK2.schema)
    assert table.height == 0
