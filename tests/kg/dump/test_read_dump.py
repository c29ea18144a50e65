"""Runs of a dump spliced together: the same entities, places and complaints however a file is cut and compressed."""

import gzip
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.atomic import clear_folder
from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import STARTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.kg.dump import read_dump as read_line
from culturekit.kg.dump import runs
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.dump.members import Chunk
from culturekit.kg.dump.runs import CutLines
from tests.conftest import HeardProgress, HereEngine
from tests.kg.dump.dumps import FORMS, array, cut, cut_small, entity, ingested, packed


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)
    monkeypatch.setattr(read_line, "_STRETCH", 600)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(suffix=st.sampled_from(FORMS), places=st.lists(st.integers(0, 10**6), max_size=9), seed=st.integers(0, 99))
def test_members_may_be_cut_anywhere_and_every_line_knows_its_place(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, places: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    content = array(60, seed=seed)
    pieces = [content] if suffix == ".json" else cut(content, places)
    path = folder / f"dump{suffix}"
    path.write_bytes(packed(suffix, pieces))
    items, outcome = ingested(folder, path)
    assert outcome.counts["lines"] == items.height == 60
    lines = content.split(b"\n")
    for row in items.iter_rows(named=True):
        assert f'"id": "{row["qid"]}"'.encode() in lines[row["line"] - 1]
        after = pieces[row["member"]][row["offset"] :] + b"".join(pieces[row["member"] + 1 :])
        assert after.startswith(lines[row["line"] - 1].rstrip(b","))


@pytest.mark.parametrize("suffix", FORMS)
def test_every_form_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    content = array(200)
    plain = tmp_path / "plain.json"
    plain.write_bytes(content)
    expected, _ = ingested(tmp_path / "a", plain)
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(packed(suffix, cut(content, [3000, 9000, 9001])))
    found, _ = ingested(tmp_path / "b", path)
    places = ["member", "offset"]
    assert found.drop(places).equals(expected.drop(places))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize(
    ("content", "lines", "malformed"),
    [
        (b'[\n{"id":"Q1","type":"item"},\n\n  {"id":"Q2","type":"item"} ,\r\n]\n\n', 2, 0),
        (b'[{"id":"Q1","type":"item"},\n{"id":"Q2","type":"item"}\n]', 2, 0),
        (b'{"id":"Q1","type":"item"}\n{"id":"Q2","type":"item"}', 2, 0),
        (b'[\n{"id":"Q1","type":"item"},\n[\n{"id":"Q2"},\nnull\n]\n', 4, 3),
        (b'{"id":"Q1","type":"item"}\n]\n{"id":"Q2","type":"item"}\n', 3, 1),
    ],
)
def test_arrays_and_lines_of_json(tmp_path: Path, suffix: str, content: bytes, lines: int, malformed: int) -> None:
    for places in ([], [1], [len(content) - 2], list(range(1, len(content)))):
        path = tmp_path / f"dump{suffix}"
        path.write_bytes(packed(suffix, [content] if suffix == ".json" else cut(content, places)))
        _, outcome = ingested(tmp_path, path)
        assert outcome.counts["lines"] == lines
        assert sum(count for reason, count in outcome.drops.items() if "malformed" in reason) == malformed


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("content", [array(40)[:-3], array(40) + b'{"id":"Q9","type":"item"}\n', array(40) + b"x"])
def test_an_array_that_is_cut_or_goes_on_is_an_error(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(packed(suffix, [content]))
    with pytest.raises(IntegrityError, match="array"):
        ingested(tmp_path, path)


def test_what_only_looks_like_a_member_is_passed_over(tmp_path: Path) -> None:
    rng = random.Random(4)
    decoys = [gzip.compress(bytes(rng.choices(range(256), k=40)), mtime=0) for _ in range(60)]
    lines = [entity(number, rng) for number in range(1, 30)]
    lines.insert(15, b"".join(decoy for decoy in decoys if b"\n" not in decoy))
    stored = b"[\n" + b",\n".join(lines) + b"\n]\n"
    path = tmp_path / "dump.json.gz"
    path.write_bytes(gzip.compress(stored[:900], mtime=0) + gzip.compress(stored[900:], compresslevel=0, mtime=0))
    assert path.read_bytes().count(gzip.compress(b"", mtime=0)[:3]) > 20
    items, outcome = ingested(tmp_path, path)
    assert items.height == 29
    assert outcome.drops == {"malformed: not-an-entity": 1}


def test_what_is_malformed_is_said_with_its_place_in_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = array(150).replace(b'{"id": "Q120"', b'{"id": "X120"').replace(b'{"id": "Q121"', b'{"id": "X121"')
    (tmp_path / "dump.json").write_bytes(content)
    ingested(tmp_path, tmp_path / "dump.json")
    for number in (120, 121):  # one of them lies wholly in a run
        begin = content.index(b'{"id": "X%d"' % number)
        assert f"line {number + 1} (member 0, byte {begin}): not-a-qid" in caplog.text


def test_a_run_that_is_done_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.json.gz"
    path.write_bytes(packed(".json.gz", cut(array(300), [4000, 9000, 20_000])))
    work = Work({}, tmp_path / "out", tmp_path / "scratch", HereEngine(), HeardProgress())
    clear_folder(work.out)
    clear_folder(work.scratch)
    calls = []
    fresh = runs.fresh_report

    def counted(run: runs.Run) -> runs.RunReport:
        calls.append(run.folder.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fresh(run)

    monkeypatch.setattr(runs, "fresh_report", counted)
    with pytest.raises(KeyboardInterrupt):
        ingest(work, [path], IngestOptions())
    outcome = ingest(work, [path], IngestOptions())
    assert outcome.counts["items"] == 300
    assert len(calls) == len(set(calls)) + 1


@given(st.binary(max_size=60).map(lambda b: b.replace(b"x", b"\n")), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_where_chunks_end(content: bytes, places: list[int]) -> None:
    pieces = cut(content, places) if content else []
    offsets = [sum(map(len, pieces[:number])) for number in range(len(pieces))]
    lines = CutLines([Chunk(0, o, p) for o, p in zip(offsets, pieces, strict=True)], name="t")
    middle = [bytes(line.content) for line in lines]
    first, *rest = content.split(b"\n")
    assert lines.head.content.rstrip(b",") == first.rstrip(b",")
    assert [line.rstrip(b",") for line in [*middle, lines.tail.content]] == [
        line.rstrip(b",") for line in rest or [b""]
    ]
    assert lines.ends == content.count(b"\n")


def test_how_rows_are_shuffled_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.json"
    rng = random.Random(5)
    stated = b'{"P279": [{"mainsnak": {"datavalue": {"value": {"id": "Q%d"}}}}]}'
    lines = [entity(rng.randrange(1, 10**6), rng).replace(b"[]", stated % rng.randrange(1, 9), 1) for _ in range(300)]
    path.write_bytes(b"\n".join(lines))
    ingested(tmp_path, path)
    expected = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    monkeypatch.setattr("culturekit.kg.dump.ingest._ROWS_PER_RANGE", 40)
    monkeypatch.setattr("culturekit.kg.dump.ingest._WAITING_BYTES", 5_000)
    ingested(tmp_path, path)
    assert len(list((tmp_path / "scratch/shuffled-items").iterdir())) > 5
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == expected


PLACES = [3_000, 9_001, 15_000]


def dump(folder: Path, suffix: str, places: list[int]) -> tuple[Path, list[bytes]]:
    path, pieces = folder / f"dump{suffix}", [packed(suffix, [piece]) for piece in cut(array(150), places)]
    path.write_bytes(b"".join(pieces))
    return path, pieces


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("places", [[], PLACES], ids=["one member", "four members"])
def test_each_line_is_found_with_and_without_the_starts(tmp_path: Path, suffix: str, places: list[int]) -> None:
    path, pieces = dump(tmp_path, suffix, places)
    items, _ = ingested(tmp_path, path)
    starts = read_table(tmp_path / "out/starts.parquet", STARTS)
    assert starts["member"].n_unique() == (1 if suffix == ".json" else len(places) + 1)
    for row in items.iter_rows(named=True):
        place = {"member": row["member"], "offset": row["offset"]}
        text = read_line.read_line(path, **place, starts=starts)
        assert json.loads(text)["id"] == row["qid"]
        assert text == read_line.read_line(path, **place)
    with path.open("r+b") as file:
        file.write(b"\xff" * sum(map(len, pieces[:-1])))
    assert read_line.read_line(path, **place, starts=starts) == text, "what stands before the start is not read"


def test_a_long_way_through_one_member_is_said_and_a_place_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = dump(tmp_path, ".json.gz", [])
    last = ingested(tmp_path, path)[0].row(-1, named=True)
    monkeypatch.setattr(read_line, "_FAR", 10_000)
    starts = read_table(tmp_path / "out/starts.parquet", STARTS)
    read_line.read_line(path, member=0, offset=last["offset"], starts=starts)
    assert "is one member" in caplog.text
    with pytest.raises(IntegrityError, match="no such line"):
        read_line.read_line(path, member=9, offset=0)
