"""Dumps become graphs: rows, members, archives, and the shipped sample."""

import csv
import gzip
import importlib.util
import io
import json
import random
import tarfile
import zlib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.config.checks import dump_files
from culturekit.core.atomic import clear_folder
from culturekit.core.errors import IntegrityError, MissingDependency, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import CANDIDATES, ITEMS, STATEMENTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.kg.concepts import (
    COUNTRY_PROPERTIES,
    EDGE_PROPERTIES,
    load_concept,
    mask_of,
    read_redirects,
    shipped_concepts,
)
from culturekit.kg.dump import entities as item_batches
from culturekit.kg.dump import read_dump, runs
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.dump.members import read_chunks
from culturekit.kg.dump.read_dump import read_line
from culturekit.kg.extract import extract
from culturekit.kg.store import load_graph
from tests.conftest import HeardProgress, HereEngine
from tests.kg.dump.dumps import packed

SAMPLE = shipped("kg/sample/wikidata-sample.json.gz")


def entity(number: int, **claims: list[int]) -> str:
    statements = {
        name: [{"mainsnak": {"snaktype": "value", "datavalue": {"value": {"id": f"Q{value}"}}}} for value in values]
        for name, values in claims.items()
    }
    return json.dumps({"id": f"Q{number}", "type": "item", "claims": statements})


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return path


def test_rows_stand_in_qid_order_whatever_the_order_of_lines_and_files(work: Work, tmp_path: Path) -> None:
    first = write(tmp_path / "b.json", [entity(30), entity(2), entity(7, P31=[30])])
    second = write(tmp_path / "a.json", [entity(9, P31=[2]), entity(7, P31=[2])])
    outcome = ingest(work, [first, second], IngestOptions())
    items = read_table(work.out / "items.parquet", ITEMS)
    assert items.select("qid", "file", "line").rows() == [("Q2", 0, 3), ("Q7", 0, 4), ("Q9", 1, 2), ("Q30", 0, 2)]
    assert outcome.drops == {"item given twice": 1}, "and the first of its two lines stands"
    stated = read_table(work.out / "statements.parquet", STATEMENTS)
    assert stated.select("number", "value").rows() == [(7, 30), (9, 2)]


def test_the_arrays_hold_each_edge_once_and_mark_countries(work: Work, tmp_path: Path) -> None:
    lines = [entity(5, P31=[2, 2], P279=[2]), entity(2, P17=[9]), entity(4, P279=[2], P495=[9])]
    ingest(work, [write(tmp_path / "d.json", lines)], IngestOptions())
    graph = load_graph(work.out)
    assert graph.nodes.tolist() == [2, 4, 5, 9]
    start, end = graph.children_offsets[0], graph.children_offsets[1]
    assert graph.nodes[graph.children[start:end]].tolist() == [4, 5]
    p31, p279 = mask_of(["P31"], EDGE_PROPERTIES), mask_of(["P279"], EDGE_PROPERTIES)
    assert [bool(flags & p31) for flags in graph.edge_flags[start:end]] == [False, True]
    assert [bool(flags & p279) for flags in graph.edge_flags[start:end]] == [True, True]
    p495, p17 = mask_of(["P495"], COUNTRY_PROPERTIES), mask_of(["P17"], COUNTRY_PROPERTIES)
    assert [(bool(flags & p495), bool(flags & p17)) for flags in graph.country_flags] == [
        (False, True), (True, False), (False, False), (False, False),
    ]  # fmt: skip
    assert graph.find(9) == 3
    assert graph.find(3) is None
    assert isinstance(graph.nodes, np.memmap)


def test_redirected_targets_are_followed_and_dangling_ones_counted(work: Work, tmp_path: Path) -> None:
    lines = [entity(5, P31=[8], P17=[9]), entity(6, P31=[7]), entity(2)]
    (tmp_path / "redirects.csv").write_text("Q8,Q7\nQ7,Q2\n", encoding="utf-8")
    dump = [write(tmp_path / "d.json", lines)]
    outcome = ingest(work, dump, IngestOptions(), redirects=tmp_path / "redirects.csv")
    assert read_table(work.out / "statements.parquet", STATEMENTS)["value"].to_list() == [9, 2, 2]
    assert outcome.notes["redirected targets"] == 2
    assert outcome.notes["dangling targets"] == 1
    graph = load_graph(work.out)
    assert graph.nodes.tolist() == [2, 5, 6, 9]


def test_a_few_malformed_lines_are_counted_and_many_stop_the_run(work: Work, tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", [*(entity(n) for n in range(1, 20)), '{"id":"Q1"}'])
    outcome = ingest(work, [path], IngestOptions(max_malformed=0.05))
    assert outcome.drops == {"malformed: not-an-entity": 1}
    with pytest.raises(IntegrityError) as stopped:
        ingest(work, [path], IngestOptions(max_malformed=0.04))
    for words in ("1 of 20 lines are not entities", "line 21 (member 0, byte"):
        assert words in str(stopped.value)


def test_a_dump_without_entities_is_an_error(work: Work, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="holds no entity"):
        ingest(work, [write(tmp_path / "d.json", [])], IngestOptions())


def archive(path: Path, lines: list[str], *, name: str = "chunk.ndjson") -> Path:
    content = "".join(f"{line}\n" for line in lines).encode()
    with tarfile.open(path, "w:gz") as file:
        file.addfile(tarfile.TarInfo("folder/"))  # of no size: what is no file is passed over
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        file.addfile(entry, io.BytesIO(content))
    return path


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_chunks_of_a_snapshot_become_the_graph_of_one_file_also_after_a_kill(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [entity(n, P31=[n % 7 + 1], P17=[30]) for n in range(1, 400)]
    one = Work({}, tmp_path / "one", tmp_path / "one-scratch", work.engine, work.progress)
    for folder in (one.out, one.scratch, tmp_path / "snapshot"):
        folder.mkdir()
    whole = tmp_path / "whole.ndjson"
    whole.write_text("\n".join(lines))
    ingest(one, [whole], IngestOptions())
    for number in (10, 2, 0):  # with 400 lines in the order of the numbers of the chunks
        part = lines[{0: 0, 2: 150, 10: 300}[number] :][: 150 if number < 10 else None]
        archive(tmp_path / f"snapshot/wikidatawiki_namespace_0_chunk_{number}.tar.gz", part)
    chunks = dump_files(str(tmp_path / "snapshot"))
    assert [path.name.split("_")[-1] for path in chunks] == ["0.tar.gz", "2.tar.gz", "10.tar.gz"]

    def killed(run: runs.Run) -> runs.RunReport:
        if run.file == 1:
            raise KeyboardInterrupt
        return runs.read_run(run)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(read_dump, "read_run", killed)
        ingest(work, chunks, IngestOptions())
    sealed = {path: path.stat().st_mtime_ns for path in work.scratch.glob("file-00000/run-*/done.json")}
    ingest(work, chunks, IngestOptions())
    assert sealed, "the first chunk was read before the kill"
    assert all(path.stat().st_mtime_ns == then for path, then in sealed.items()), "and is not read again"
    resumed = bytes_in(work.out)
    clear_folder(work.out)
    clear_folder(work.scratch)
    ingest(work, chunks, IngestOptions())
    assert bytes_in(work.out) == resumed
    places = ("file", "member", "line", "offset")
    for name, content in bytes_in(one.out).items():
        if name.endswith(".npy") or name == "statements.parquet":
            assert resumed[name] == content, name
    items = pl.read_parquet(work.out / "items.parquet")
    assert items.drop(places).equals(pl.read_parquet(one.out / "items.parquet").drop(places))
    for row in items.sample(20, seed=1).iter_rows(named=True):
        text = read_line(chunks[row["file"]], member=row["member"], offset=row["offset"])
        assert json.loads(text)["id"] == row["qid"]


def test_an_archive_that_is_cut_or_none_is_refused(work: Work, tmp_path: Path) -> None:
    good = archive(tmp_path / "good.tar.gz", [entity(n) for n in range(1, 90)])
    plain = gzip.decompress(good.read_bytes())
    wrong = {"cut": plain[:3000], "none": entity(1).encode() * 20, "head": plain[:100]}
    for name, content in wrong.items():
        path = tmp_path / f"{name}.tar.gz"
        path.write_bytes(gzip.compress(content))
        with pytest.raises(IntegrityError, match="not an archive" if name == "none" else "ends within a file"):
            ingest(work, [path], IngestOptions())
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="a folder without dump files"):
        dump_files(str(tmp_path / "empty"))


@pytest.mark.parametrize("break_at", [100, 1000, 40_000])
def test_a_cut_dump_publishes_nothing(work: Work, tmp_path: Path, break_at: int) -> None:
    (tmp_path / "cut.json.gz").write_bytes(SAMPLE.read_bytes()[:break_at])
    with pytest.raises(IntegrityError):
        ingest(work, [tmp_path / "cut.json.gz"], IngestOptions())
    assert list(work.out.iterdir()) == []


def test_a_real_file_ingests_whole(work: Work, shared_data: Path) -> None:
    outcome = ingest(work, [shared_data / "wikidata/real_entities.jsonl.gz"], IngestOptions())
    assert outcome.counts["lines"] == 742
    assert outcome.counts["items"] + sum(outcome.drops.values()) == 742


def test_every_item_of_the_sample_is_found_at_the_place_that_its_row_names(work: Work) -> None:
    ingest(work, [SAMPLE], IngestOptions())
    items = read_table(work.out / "items.parquet", ITEMS)
    lines = gzip.decompress(SAMPLE.read_bytes()).decode().split("\n")
    for row in items.iter_rows(named=True):
        assert f'"id":"{row["qid"]}"' in lines[row["line"] - 1]
    for row in items.sample(40, seed=3).iter_rows(named=True):
        text = read_line(SAMPLE, member=row["member"], offset=row["offset"])
        assert json.loads(text)["id"] == row["qid"]
    assert items["member"].n_unique() == 12
    rows = read_table(work.out / "statements.parquet", STATEMENTS).filter(pl.col("number") >= 2_000_000_000)
    assert set(rows["rank"]) == {"normal", "preferred", "deprecated"}
    assert set(rows["snak"]) == {"value", "somevalue", "novalue"}
    assert (rows["qualified"].sum(), rows["ended"].sum()) == (2, 1)
    assert rows.filter(pl.col("value").is_null())["snak"].sort().to_list() == ["novalue", "somevalue"]


def test_what_the_store_has_no_number_for_is_left_out_and_counted(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_batches, "LARGEST", 20)
    many = json.loads(entity(5, P31=list(range(100, 130)), P17=[9]))
    many["sitelinks"] = {f"{number}wiki": {"title": "T"} for number in range(25)}
    lines = [json.dumps(many), entity(6, P31=[100])]
    outcome = ingest(work, [write(tmp_path / "d.json", lines)], IngestOptions())
    assert outcome.drops == {
        "sitelink beyond the first 20 of its item": 5,
        "statement beyond the first 21 of its property": 9,
    }
    items = read_table(work.out / "items.parquet", ITEMS)
    assert items["sitelinks"].to_list() == [20, 0]
    statements = read_table(work.out / "statements.parquet", STATEMENTS)
    assert statements.group_by("number", "property").len().sort("number", "property")["len"].to_list() == [1, 21, 1]
    assert statements.filter(number=5, property="P31")["position"].to_list() == list(range(21))


@pytest.mark.slow
def test_an_item_with_300_000_statements_does_not_end_the_ingest(work: Work, tmp_path: Path) -> None:
    lines = [entity(5, P31=list(range(1, 300_001))), entity(6, P31=[100])]
    outcome = ingest(work, [write(tmp_path / "d.json", lines)], IngestOptions())
    assert outcome.drops == {"statement beyond the first 65,536 of its property": 300_000 - 65_536}
    assert read_table(work.out / "statements.parquet", STATEMENTS).height == 65_536 + 1


@pytest.mark.parametrize("languages", [(), ("",), ("en;fr",), ("english",), ("pt br",)])
def test_what_is_no_code_of_a_language_is_refused(languages: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="languages must be codes of Wikidata"):
        IngestOptions(languages)
    IngestOptions(("en", "pt-br", "zh-min-nan", "simple", "be-tarask"))


def test_a_file_without_redirects_is_refused(tmp_path: Path) -> None:
    (tmp_path / "redirects.csv").write_text("qid,target\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"redirects.csv: the file has no redirects"):
        read_redirects(tmp_path / "redirects.csv")


PLAIN = b"".join(b'{"id":"Q%d"},\n' % number for number in range(4000))
PIECES = [PLAIN[:20_000], PLAIN[20_000:20_001], PLAIN[20_001:]]


def content(path: Path) -> bytes:
    return b"".join(chunk.content for chunk in read_chunks(path))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst", ".json"])
def test_chunks_know_their_member_and_their_offset_in_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(packed(suffix, PIECES))
    members: dict[int, bytes] = {}
    for chunk in read_chunks(path):
        assert chunk.offset == len(members.get(chunk.member, b""))
        members[chunk.member] = members.get(chunk.member, b"") + chunk.content
    assert list(members.values()) == ([PLAIN] if suffix == ".json" else PIECES)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_cut_is_always_an_error_unless_it_falls_between_members(tmp_path: Path, suffix: str) -> None:
    whole = packed(suffix, PIECES)
    starts, position = set(), 0
    for piece in PIECES:
        position += len(gzip.compress(piece, mtime=0)) if suffix == ".gz" else 0
        starts.add(position)
    path = tmp_path / f"dump{suffix}"
    places = sorted({*random.Random(1).sample(range(len(whole)), 60), 0, 1, len(whole) - 1})
    for cut in places:
        if suffix == ".gz" and cut in starts:
            continue
        path.write_bytes(whole[:cut])
        with pytest.raises(IntegrityError, match="damaged"):
            content(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path: Path, suffix: str) -> None:
    whole = packed(suffix, PIECES)
    path = tmp_path / f"dump{suffix}"
    chance = random.Random(2)
    noticed = 0
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        try:
            assert content(path) == PLAIN
        except IntegrityError:
            noticed += 1
    assert noticed > 120


def test_what_is_no_member_or_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.gz"
    path.write_bytes(packed(".gz", PIECES) + b"rubbish")
    with pytest.raises(IntegrityError, match="member 3"):
        content(path)
    path.write_bytes(zlib.compress(PLAIN))
    with pytest.raises(IntegrityError):
        content(path)
    with pytest.raises(UsageError, match="no such dump file"):
        content(tmp_path / "none.gz")


def test_zst_without_its_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    path = tmp_path / "dump.zst"
    path.write_bytes(packed(".zst", PIECES))
    with pytest.raises(MissingDependency, match=r"culturekit\[kg\]"):
        content(path)


BUILDER = Path(__file__).resolve().parents[3] / "data_cards/wikidata-sample"


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    text = gzip.decompress(SAMPLE.read_bytes()).decode("utf-8")
    return [json.loads(line.rstrip(",")) for line in text.splitlines() if line not in "[]"]


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BUILDER))
    spec = importlib.util.spec_from_file_location(name, BUILDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sample_is_what_its_builder_makes_of_the_facts(
    shared_data: Path, documents: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = load("build_sample", monkeypatch)
    facts = shared_data / "wikidata"
    assert list(builder.entities(facts / "facts.jsonl", facts / "assumed.tsv")) == documents


def test_no_item_and_no_statement_is_there_that_is_neither_a_fact_nor_invented(
    shared_data: Path, documents: list[dict[str, Any]]
) -> None:
    with (shared_data / "wikidata/facts.jsonl").open(encoding="utf-8") as lines:
        facts = {fact["qid"]: fact for fact in map(json.loads, lines)}
    with (shared_data / "wikidata/assumed.tsv").open(encoding="utf-8") as lines:
        assumed = {(row["qid"], row["property"], row["value"]) for row in csv.DictReader(lines, delimiter="\t")}
    marked = set()
    for document in documents:
        if document["type"] != "item" or int(document["id"][1:]) > 2_000_000_000:
            assert document["type"] == "property" or "invented" in json.dumps(document).casefold()
            continue
        fact = facts[document["id"]]
        for name, claims in (document["claims"] or {}).items():
            values = [claim["mainsnak"]["datavalue"]["value"]["id"] for claim in claims]
            assert values == fact["statements"][name]
            marked |= {(document["id"], name, v) for v, c in zip(values, claims, strict=True) if "ASSUMED" in c["id"]}
        labels = [term["value"] for term in (document["labels"] or {}).values()]
        assert labels == ([fact["label"]] if fact["label"] else [])
    assert marked == assumed


def test_the_sample_holds_every_oddity(documents: list[dict[str, Any]]) -> None:
    text = gzip.decompress(SAMPLE.read_bytes()).decode("utf-8")
    words = ("deprecated", "preferred", "novalue", "somevalue", "qualifiers", '"mul"', '"type":"property"', "lexeme")
    assert [oddity for oddity in words if oddity not in text] == []
    ids = Counter(document["id"] for document in documents)
    assert [qid for qid, count in ids.items() if count > 1] == ["Q2000000018"]
    assert SAMPLE.read_bytes().count(b"\x1f\x8b\x08\x00") >= 12


def test_the_shipped_concepts_find_over_three_hundred_artifacts_in_eight_countries(work: Work, tmp_path: Path) -> None:
    ingest(work, [SAMPLE], IngestOptions())
    out = tmp_path / "candidates"
    out.mkdir()
    extract(
        Work({}, out, work.scratch, HereEngine(), HeardProgress()),
        work.out,
        [load_concept(name) for name in shipped_concepts()],
    )
    candidates = read_table(out / "candidates.parquet", CANDIDATES)
    assert Counter(candidates["concept"].to_list()) == {"cuisine": 340, "art": 69, "landmarks": 112}
    assert candidates["qid"].n_unique() >= 300
    assert all(int(qid[1:]) < 2_000_000_000 for qid in candidates["qid"])
