import csv
import gzip
import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from culturekit.core.package_data import shipped
from culturekit.core.schemas import CANDIDATES
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.kg.concepts import load_concept, shipped_concepts
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.extract import extract
from tests.conftest import HeardProgress, HereEngine

SAMPLE = shipped("kg/sample/wikidata-sample.json.gz")
BUILDER = Path(__file__).resolve().parents[2] / "data_cards/wikidata-sample"


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
    for oddity in (
        "deprecated",
        "preferred",
        "novalue",
        "somevalue",
        "qualifiers",
        '"mul"',
        '"type":"property"',
        "lexeme",
    ):
        assert oddity in text, oddity
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
