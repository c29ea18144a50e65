"""The same candidates from an endpoint as from a dump of the same facts."""

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import RDFS, Graph, Literal, URIRef
from rdflib.plugins.sparql import prepareQuery

from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.stage import Outcome
from culturekit.kg.concepts import Concept, Exclusions, Root, load_concept
from culturekit.kg.dump.ingest import IngestOptions, ingest
from culturekit.kg.exchange import sparql
from culturekit.kg.exchange.sparql import SparqlClient, extract_from_endpoint
from culturekit.kg.extract import extract
from culturekit.kg.polite_source import _AT_ONCE
from tests.builders.answering import slept
from tests.effort import THOROUGH
from tests.kg.sparql_server import Answer, Endpoint, as_rdf, serving
from tests.kg.worlds import work_in

SAMPLE = shipped("kg/sample/wikidata-sample.json.gz")
FACTS = ("P31", "P279", "P495", "P17", "P2012", "P361")


@pytest.fixture(scope="module", params=["rdflib", "oxigraph"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """An endpoint on each of two engines that share no code, so that nothing is asked in the words of one."""
    with serving(Graph(), oxigraph=request.param == "oxigraph") as running:
        yield running


def from_dump(dump: Path, concepts: Sequence[Concept], folder: Path, languages: tuple[str, ...] = ("en",)) -> Path:
    graph, rows = work_in(folder / "graph/out"), work_in(folder / "rows/out")
    ingest(graph, [dump], IngestOptions(languages))
    extract(rows, graph.out, concepts)
    return rows.out


def from_endpoint(endpoint: Endpoint, concepts: Sequence[Concept], folder: Path) -> tuple[Path, Outcome]:
    work = work_in(folder / "sparql/out")
    with SparqlClient(endpoint.url, "test@example.org", work.scratch / "replies", pace=slept(1e6, [])) as client:
        outcome = extract_from_endpoint(work, client, concepts)
    return work.out, outcome


def unordered(path: Path) -> pl.DataFrame:
    """Read a table; the order of an item's statements and aliases is not in RDF, that of a path is."""
    rows = pl.read_parquet(path)
    lists = [name for name, kind in rows.schema.items() if isinstance(kind, pl.List) and name != "path"]
    rows = rows.with_columns(pl.col(name).list.sort() for name in lists)
    return rows.with_columns(pl.col("detail").str.split(" ").list.sort()) if "detail" in rows.columns else rows


def assert_same(dump: Path, endpoint: Path) -> None:
    for table in ("candidates", "drops"):
        ours, theirs = unordered(endpoint / f"{table}.parquet"), unordered(dump / f"{table}.parquet")
        assert ours.to_dicts() == theirs.to_dicts(), table
    known = pl.read_parquet(endpoint / "graph/items.parquet")["number"]
    assert stated(endpoint / "graph", known) == stated(dump.parent.parent / "graph/out", known)


def stated(graph: Path, numbers: pl.Series) -> list[tuple[object, ...]]:
    """List the statements of items with rank, snak and qualifiers, which other rules than the default could ask for."""
    rows = pl.read_parquet(graph / "statements.parquet").filter(pl.col("number").is_in(numbers.implode()))
    return sorted(rows.drop("position").rows(), key=str)


def documents() -> list[dict[str, Any]]:
    text = gzip.decompress(SAMPLE.read_bytes()).decode("utf-8")
    return [json.loads(line.rstrip(",")) for line in text.splitlines() if line not in "[]"]


@pytest.mark.endtoend
def test_the_bundled_sample_gives_the_same_candidates(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.graph = as_rdf(documents())
    endpoint.connections.clear()
    concepts = [load_concept("art")]
    out, outcome = from_endpoint(endpoint, concepts, tmp_path)
    assert_same(from_dump(SAMPLE, concepts, tmp_path), out)
    assert outcome.counts["candidates"] == 69
    assert len(endpoint.connections) <= _AT_ONCE
    assert set(endpoint.agents) == {endpoint.agents[0]}
    assert re.fullmatch(r"culturekit/\S+ \(test@example\.org\)", endpoint.agents[0])


@pytest.mark.slow
def test_the_other_concepts_give_the_same_candidates(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.graph = as_rdf(documents(), munged=False)
    concepts = [load_concept("cuisine"), load_concept("landmarks")]
    out, outcome = from_endpoint(endpoint, concepts, tmp_path)
    assert_same(from_dump(SAMPLE, concepts, tmp_path), out)
    assert outcome.counts["candidates"] == 452


def test_no_query_leaves_sparql_1_1() -> None:
    asked = (
        sparql._children_query([1, 2], ["P31", "P279"]), sparql._statements_query([1, 2], ["P31", "P17"]),
        sparql._terms_query([1, 2], ["en", "mul"]), sparql._counts_query([1, 2]), sparql._titles_query([1, 2], "en"),
    )  # fmt: skip
    for query in asked:
        prepareQuery(f"{query}0")
        for word in ("SERVICE", "wikibase:label", "hint:", "bd:", "ql:", "GROUP_CONCAT"):
            assert word not in query


QIDS = st.integers(1, 9).map(lambda number: f"Q{number}")
SCHEMA_SNAK = {"snaktype": "value", "datavalue": {"value": {"id": "E123", "entity-type": "entity-schema"}}}
SNAKS = st.one_of(
    st.just(SCHEMA_SNAK),
    QIDS.map(lambda qid: {"snaktype": "value", "datavalue": {"value": {"id": qid, "entity-type": "item"}}}),
    QIDS.map(
        lambda q: {"snaktype": "value", "datavalue": {"value": {"numeric-id": int(q[1:]), "entity-type": "item"}}}
    ),
    st.just({"snaktype": "value", "datavalue": {"value": {"id": "P31", "entity-type": "property"}}}),
    st.just({"snaktype": "somevalue"}),
    st.just({"snaktype": "novalue"}),
)
TIME = {"snaktype": "value", "datavalue": {"value": {"time": "+1900-00-00T00:00:00Z"}}}
ENDS = [
    {}, {"P582": [TIME]}, {"P580": [TIME]}, {"P582": [{"snaktype": "somevalue"}]}, {"P582": [{"snaktype": "novalue"}]},
]  # fmt: skip
QUALIFIERS = st.sampled_from([{}, *ENDS])
RANKS = ("preferred", "normal", "deprecated")
CLAIMS = st.fixed_dictionaries({"mainsnak": SNAKS, "rank": st.sampled_from(RANKS), "qualifiers": QUALIFIERS})
WORDS = st.text("abü\"\\'{} <&", min_size=1, max_size=6).filter(str.strip)
TEXTS = st.dictionaries(st.sampled_from(["en", "mul", "de", "pt-br", "fr"]), WORDS, max_size=3)


@st.composite
def entities(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """An item with everything that both RDF and a dump can carry, the order of statements left aside."""
    claims: dict[str, list[Any]] = {}
    for name in FACTS if draw(st.integers(0, 4)) else ():
        claims[name] = draw(st.lists(CLAIMS, max_size=3 if name in {"P31", "P279"} else 1))
    for rank in draw(st.lists(st.sampled_from(RANKS), max_size=3, unique=True)):
        snak = {"snaktype": "value", "datavalue": {"value": f"Ä {rank}, 1.jpg"}}
        claims.setdefault("P18", []).append({"mainsnak": snak, "rank": rank})
        globe = "http://www.wikidata.org/entity/Q405"
        place = {"latitude": draw(st.floats(-90, 90)), "longitude": -1.5, "globe": globe}
        claims.setdefault("P625", []).append(
            {"mainsnak": {"snaktype": "value", "datavalue": {"value": place}}, "rank": rank}
        )
    texts = {
        field: {code: {"language": code, "value": text} for code, text in draw(TEXTS).items()}
        for field in ("labels", "descriptions")
    }
    aliases = {code: [{"language": code, "value": text}] for code, text in draw(TEXTS).items()}
    sites = draw(st.lists(st.sampled_from(["enwiki", "dewiki", "frwiki"]), unique=True))
    sitelinks = {site: {"site": site, "title": f"T {site} ü"} for site in sites}
    return {"id": f"Q{number}", "type": "item", **texts, "aliases": aliases, "claims": claims, "sitelinks": sitelinks}


WORLDS = st.tuples(*(entities(number) for number in range(1, 9))).map(list)
PROPERTIES = st.sampled_from([("P31", "P279"), ("P279",), ("P31",)])
PLAIN_CONCEPTS = st.builds(
    lambda name, roots, hops, own, follow, stated, classes, items, countries: Concept(
        concept=name, hops=hops,
        roots=tuple(Root(qid=qid, label="", hops=own if int(qid[1:]) % 2 else None, expect=(0, 1)) for qid in roots),
        follow=follow, country_properties=stated, exclude=Exclusions(classes=classes, items=items), countries=countries,
        languages=("en", "de"),
    ),
    st.sampled_from(["one", "two"]),
    st.lists(QIDS, min_size=1, max_size=3, unique=True),
    st.integers(1, 4),
    st.integers(1, 3),
    PROPERTIES,
    st.sampled_from([("P495", "P17"), ("P17",), ("P495",)]),
    st.lists(QIDS, max_size=1).map(tuple),
    st.lists(QIDS, max_size=1).map(tuple),
    st.just("all"),
).filter(lambda concept: "P279" in concept.follow or all(root.qid != "Q9" for root in concept.roots))  # fmt: skip
"""Q9 is only mentioned; an endpoint knows of it by what is below it."""

CONCEPTS = st.builds(
    lambda concept, ranks, ended, expand: concept.model_copy(
        update={"ranks": ranks, "ended": ended, "expand_artifacts": expand}
    ),
    PLAIN_CONCEPTS,
    st.sampled_from(["not-deprecated", "not-deprecated", "truthy", "all"]),
    st.sampled_from(["keep", "drop"]),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=100 if THOROUGH else 6, deadline=None)
@given(
    world=WORLDS,
    concepts=st.lists(CONCEPTS, min_size=1, max_size=2, unique_by=lambda concept: concept.concept),
    munged=st.booleans(),
    limits=st.sampled_from([(5_000, 100), (4, 2), (3, 1)]),  # rows of a page, and items of a batch
)
def test_any_world_gives_the_same_candidates(
    world: list[dict[str, Any]],
    concepts: list[Concept],
    munged: bool,
    limits: tuple[int, int],
    endpoint: Endpoint,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("world")
    mentions = [mention(root.qid) for concept in concepts for root in concept.roots]
    world = [*world, {"id": "Q10", "type": "item", "claims": {"P279": mentions}}]
    dump = folder / "dump.json"
    dump.write_text("\n".join(json.dumps(document) for document in world), encoding="utf-8")
    endpoint.graph = as_rdf(world, munged=munged)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparql, "_PAGE_ROWS", limits[0])
        patch.setattr(sparql, "_BATCH", limits[1])
        out, _ = from_endpoint(endpoint, concepts, folder)
    assert_same(from_dump(dump, concepts, folder, ("en", "de")), out)


def mention(qid: str) -> dict[str, Any]:
    return {"mainsnak": {"snaktype": "value", "datavalue": {"value": {"id": qid}}}, "rank": "normal"}


def test_only_what_the_walk_can_reach_is_asked_for(endpoint: Endpoint, tmp_path: Path) -> None:
    claims = {"P279": [mention("Q1")], "P17": [mention("Q155")]}
    world = [
        {"id": "Q1", "type": "item", "labels": {"en": {"language": "en", "value": "root"}}},
        {"id": "Q2", "type": "item", "claims": claims},
        {"id": "Q3", "type": "item", "claims": {"P279": [mention("Q2")], "P17": [mention("Q155")]}},
        {"id": "Q4", "type": "item", "claims": {"P279": [mention("Q1")]}},
        {"id": "Q5", "type": "item", "claims": {"P31": [mention("Q4")], "P17": [mention("Q142")]}},
    ]
    endpoint.graph = as_rdf(world)
    concept = Concept(concept="any", hops=2, roots=(Root(qid="Q1", label="root"),), countries=("BR",))
    out, outcome = from_endpoint(endpoint, [concept], tmp_path)
    assert pl.read_parquet(out / "candidates.parquet")["qid"].to_list() == ["Q2"]
    assert pl.read_parquet(out / "drops.parquet")["key"].to_list() == ["Q5"]
    assert outcome.counts["items"] == 4, "below an artifact nobody walks"
    assert set(pl.read_parquet(out / "graph/items.parquet")["qid"]) == {"Q1", "Q2", "Q4", "Q5"}


def test_every_kind_of_statement_is_the_dumps(endpoint: Endpoint, tmp_path: Path) -> None:
    snaks = [mention("Q9")["mainsnak"], {"snaktype": "somevalue"}, {"snaktype": "novalue"}, SCHEMA_SNAK]
    every = [{"mainsnak": snak, "rank": rank, "qualifiers": end} for snak in snaks for rank in RANKS for end in ENDS]
    world: list[dict[str, Any]] = [
        {"id": "Q1", "type": "item", "claims": {"P31": every, "P17": every}},
        {"id": "Q2", "type": "item", "claims": {"P279": [*every, mention("Q1")], "P495": every, "P361": every}},
    ]
    dump = tmp_path / "dump.json"
    dump.write_text("\n".join(map(json.dumps, world)), encoding="utf-8")
    endpoint.graph = as_rdf(world)
    concept = Concept(concept="any", hops=2, roots=(Root(qid="Q1", label=""),))
    out, outcome = from_endpoint(endpoint, [concept], tmp_path)
    assert_same(from_dump(dump, [concept], tmp_path), out)
    assert outcome.counts["items"] == 2
    assert pl.read_parquet(out / "graph/statements.parquet").height == 5 * len(every) + 1


def test_roots_that_the_endpoint_does_not_know_are_an_error(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.graph = Graph()
    with pytest.raises(UsageError, match="mentions no root of any"):
        from_endpoint(endpoint, [Concept(concept="any", hops=2, roots=(Root(qid="Q1", label=""),))], tmp_path)


def test_a_language_is_a_code_and_nothing_else(endpoint: Endpoint, tmp_path: Path) -> None:
    concept = Concept(concept="any", hops=1, roots=(Root(qid="Q1", label=""),), languages=('en") } #',))
    with pytest.raises(UsageError, match="not a language code"):
        from_endpoint(endpoint, [concept], tmp_path)


QUERY = "SELECT ?label WHERE { ?item <http://www.w3.org/2000/01/rdf-schema#label> ?label }"
CONTACT = "mail:somebody@example.org"


@pytest.fixture
def busy() -> Iterator[Endpoint]:
    graph = Graph()
    graph.add((URIRef("http://www.wikidata.org/entity/Q1"), RDFS.label, Literal("univers", lang="fr")))
    with serving(graph) as running:
        yield running


def client(busy: Endpoint, folder: Path, waits: list[float]) -> SparqlClient:
    return SparqlClient(busy.url, CONTACT, folder / "replies", timeout=20, pace=slept(1e6, waits))


def kept(folder: Path) -> list[Path]:
    return list((folder / "replies").rglob("*.json"))


def test_an_answer_is_kept_and_not_asked_for_again(busy: Endpoint, tmp_path: Path) -> None:
    for _ in range(2):
        with client(busy, tmp_path, []) as asking:
            rows = asking.select(QUERY)
            assert [(row["label"].value, row["label"].language) for row in rows] == [("univers", "fr")]
    assert len(busy.queries) == 1
    assert CONTACT in busy.agents[0]
    assert json.loads(kept(tmp_path)[0].read_bytes())[0] == [busy.url, QUERY]


def test_a_damaged_kept_answer_is_asked_for_again(busy: Endpoint, tmp_path: Path) -> None:
    with client(busy, tmp_path, []) as asking:
        asking.select(QUERY)
        (whole,) = kept(tmp_path)
        whole.write_bytes(whole.read_bytes()[:-20])
        assert len(asking.select(QUERY)) == 1
    assert len(busy.queries) == 2


@pytest.mark.parametrize(
    "fault",
    [Answer(500, (), b"java.util.concurrent.TimeoutException"), Answer(200, (), b'{"head": {}, "boolean": true}')],
)
def test_what_passes_is_tried_again_and_what_does_not_leaves_nothing_behind(
    busy: Endpoint, tmp_path: Path, fault: Answer
) -> None:
    busy.faults = [fault] * 5
    with client(busy, tmp_path, []) as asking:
        with pytest.raises(UpstreamUnavailable, match=r"in 5 tries.*goes on from there"):
            asking.select(QUERY)
        assert kept(tmp_path) == []
        busy.faults = [fault, fault]
        assert len(asking.select(QUERY)) == 1


def test_a_move_on_the_same_machine_is_followed(busy: Endpoint, tmp_path: Path) -> None:
    busy.faults = [Answer(307, (("Location", "/elsewhere"),))]
    with client(busy, tmp_path, []) as asking:
        assert len(asking.select(QUERY)) == 1


@pytest.mark.parametrize("contact", ["", "me", "@", "a b@example.org", "me@example.org\r\nX-Evil: 1", "ü@example.org"])
def test_a_contact_is_required(contact: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--contact"):
        SparqlClient("https://example.org/sparql", contact, tmp_path)
