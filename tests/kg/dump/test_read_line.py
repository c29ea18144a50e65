"""A line of a dump by its place: read from the nearest start, without what stands before it."""

import json
from pathlib import Path

import pytest

from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import STARTS
from culturekit.core.tables import read_table
from culturekit.kg.dump import read_dump as read_line
from tests.kg.dump.dumps import FORMS, array, cut, cut_small, ingested, packed

PLACES = [3_000, 9_001, 15_000]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)
    monkeypatch.setattr(read_line, "_STRETCH", 600)


def dump(folder: Path, suffix: str, places: list[int]) -> tuple[Path, list[bytes]]:
    path, pieces = folder / f"dump{suffix}", [packed(suffix, [piece]) for piece in cut(array(150), places)]
    path.write_bytes(b"".join(pieces))
    return path, pieces


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("places", [[], PLACES], ids=["one member", "four members"])
def test_each_line_is_found_with_and_without_the_starts(tmp_path: Path, suffix: str, places: list[int]) -> None:
    path, _ = dump(tmp_path, suffix, places)
    items, _ = ingested(tmp_path, path)
    starts = read_table(tmp_path / "out/starts.parquet", STARTS)
    assert starts["member"].n_unique() == (1 if suffix == ".json" else len(places) + 1)
    for row in items.iter_rows(named=True):
        place = {"member": row["member"], "offset": row["offset"]}
        text = read_line.read_line(path, **place, starts=starts)
        assert json.loads(text)["id"] == row["qid"]
        assert text == read_line.read_line(path, **place)


@pytest.mark.parametrize("suffix", FORMS)
def test_what_stands_before_the_start_is_not_read(tmp_path: Path, suffix: str) -> None:
    path, pieces = dump(tmp_path, suffix, PLACES)
    last = ingested(tmp_path, path)[0].row(-1, named=True)
    before = sum(map(len, pieces[:-1]))
    with path.open("r+b") as file:
        file.write(b"\xff" * before)
    starts = read_table(tmp_path / "out/starts.parquet", STARTS)
    text = read_line.read_line(path, member=last["member"], offset=last["offset"], starts=starts)
    assert json.loads(text)["id"] == last["qid"]


def test_a_long_way_through_one_member_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = dump(tmp_path, ".json.gz", [])
    last = ingested(tmp_path, path)[0].row(-1, named=True)
    monkeypatch.setattr(read_line, "_FAR", 10_000)
    starts = read_table(tmp_path / "out/starts.parquet", STARTS)
    read_line.read_line(path, member=0, offset=last["offset"], starts=starts)
    assert "is one member" in caplog.text


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path, _ = dump(tmp_path, ".json.gz", PLACES)
    with pytest.raises(IntegrityError, match="no such line"):
        read_line.read_line(path, member=9, offset=0)
