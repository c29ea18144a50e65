"""`culturekit kg ingest` as it is typed: standard input, files that do not tell whether they are whole, progress."""

import bz2
import gzip
import json
import subprocess
from pathlib import Path

import pytest
import zstandard

from culturekit.core.schemas import CANDIDATES, ITEMS
from culturekit.core.tables import read_table
from tests.command_line import culturekit

DUMP = b"[\n" + b",\n".join(json.dumps({"id": f"Q{n}", "type": "item"}).encode() for n in range(1, 40)) + b"\n]\n"


def run(*arguments: str, given: bytes = b"", cwd: Path) -> "subprocess.CompletedProcess[str]":
    return culturekit("kg", "ingest", *arguments, given=given, cwd=cwd)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress])
def test_standard_input_may_be_compressed(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    done = run("-", "--out", "graph", given=pack(DUMP), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_table(tmp_path / "graph/items.parquet", ITEMS).height == 39


ROOTS = """
concept: food
hops: 2
roots: [{qid: Q1, label: food}]
countries: [BR]
"""


def test_truthy_triples_are_told_from_json_and_what_they_lack_is_said(tmp_path: Path) -> None:
    entity, direct = "http://www.wikidata.org/entity/Q", "http://www.wikidata.org/prop/direct/P"
    triples = [(1, 279, 3), (2, 31, 1), (2, 495, 155)]
    lines = "".join(f"<{entity}{one}> <{direct}{name}> <{entity}{other}> .\n" for one, name, other in triples)
    done = run("-", "--out", "graph", given=gzip.compress(lines.encode()), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "triples say nothing of ranks, qualifiers, sitelinks, titles" in done.stderr
    (tmp_path / "food.yaml").write_text(ROOTS)
    extract = ("kg", "extract", "--graph", "graph", "--roots", "food.yaml", "--out", "candidates")
    done = culturekit(*extract, cwd=tmp_path)
    assert "ranks: not-deprecated is as truthy" in done.stderr
    assert read_table(tmp_path / "candidates/candidates.parquet", CANDIDATES)["qid"].to_list() == ["Q2"]
    (tmp_path / "food.yaml").write_text(ROOTS + "ended: drop")
    assert "does not say which statements have ended" in culturekit(*extract, "--replace", cwd=tmp_path, ends=2).stderr


def test_standard_input_is_read_anew_every_time(tmp_path: Path) -> None:
    run("-", "--out", "graph", given=DUMP, cwd=tmp_path)
    other = DUMP.replace(b"Q7", b"Q7000")
    assert run("-", "--out", "graph", given=other, cwd=tmp_path).returncode == 2
    done = run("-", "--out", "graph", "--replace", given=other, cwd=tmp_path)
    assert "built" in done.stdout
    assert "Q7000" in read_table(tmp_path / "graph/items.parquet", ITEMS)["qid"].to_list()


def test_a_cut_stream_and_a_dump_without_its_closing_bracket_publish_nothing(tmp_path: Path) -> None:
    done = run("-", "--out", "graph", given=gzip.compress(DUMP)[:-5], cwd=tmp_path)
    assert done.returncode == 4
    assert "the file ends inside the member" in done.stderr
    assert not (tmp_path / "graph").exists()
    cut = DUMP.rstrip().removesuffix(b"]")
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(cut))
    done = run("d.json.gz", "--out", "graph", cwd=tmp_path)
    assert done.returncode == 4
    assert f"its end at byte {len(cut):,} of the JSON, in member 0" in done.stderr
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize(("name", "pack", "warns"), [
    ("d.json", bytes, True), ("d.json.gz", gzip.compress, False),
    ("d.json.zst", zstandard.ZstdCompressor(write_checksum=False).compress, True),
    ("d.json.zst", zstandard.ZstdCompressor(write_checksum=True).compress, False),
])  # fmt: skip
def test_a_file_that_cannot_tell_if_it_is_whole_warns(name: str, pack: object, warns: bool, tmp_path: Path) -> None:
    assert callable(pack)
    (tmp_path / name).write_bytes(pack(DUMP))
    done = run(name, "--out", "graph", cwd=tmp_path)
    assert done.returncode == 0
    assert ("--sha256" in done.stderr) == warns


@pytest.mark.parametrize("arguments", [("-", "d.json"), ("-", "--sha256", "0" * 64)])
def test_standard_input_stands_alone_and_has_no_checksum(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*arguments, "--out", "graph", cwd=tmp_path)
    assert done.returncode == 2
    assert "standard input" in done.stderr


def test_what_is_no_checksum_is_a_mistake_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_bytes(DUMP)
    done = run("d.json", "--sha256", "abc", "--out", "graph", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected 64 hexadecimal digits, found 'abc'" in done.stderr
