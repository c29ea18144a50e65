import gzip
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.config.checks import dump_files
from culturekit.core.atomic import clear_folder
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of, read_redirects
from culturekit.kg.dump import entities as item_batches
from culturekit.kg.dump import read_dump, runs
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.dump.read_dump import read_line
from culturekit.kg.store import load_graph

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
    first = write(tmp_path / "b.json", [entity(30), entity(2)])
    second = write(tmp_path / "a.json", [entity(7, P31=[2])])
    ingest(work, [first, second], IngestOptions())
    items = read_table(work.out / "items.parquet", ITEMS)
    assert items["qid"].to_list() == ["Q2", "Q7", "Q30"]
    assert items["file"].to_list() == [0, 1, 0]
    assert items["line"].to_list() == [3, 2, 2]


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


def test_the_first_of_two_lines_of_an_item_stands_and_the_other_is_counted(work: Work, tmp_path: Path) -> None:
    lines = [entity(5, P31=[2]), entity(5, P31=[3])]
    outcome = ingest(work, [write(tmp_path / "d.json", lines)], IngestOptions())
    assert outcome.drops == {"item given twice": 1}
    assert read_table(work.out / "statements.parquet", STATEMENTS)["value"].to_list() == [2]


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
    assert "1 of 20 lines are not entities" in str(stopped.value)
    assert "line 21 (member 0, byte" in str(stopped.value)


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


def test_statements_keep_rank_kind_and_qualifiers(work: Work) -> None:
    ingest(work, [SAMPLE], IngestOptions())
    rows = read_table(work.out / "statements.parquet", STATEMENTS).filter(pl.col("number") >= 2_000_000_000)
    assert set(rows["rank"]) == {"normal", "preferred", "deprecated"}
    assert set(rows["snak"]) == {"value", "somevalue", "novalue"}
    assert rows["qualified"].sum() == 2
    assert rows["ended"].sum() == 1
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
