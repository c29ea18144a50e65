"""A preview is held against a naive walk, and against what the real class hierarchy is known to do."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.kg.concepts import Concept, Exclusions, load_concept, with_hops
from culturekit.kg.inspection.explain import explain
from culturekit.kg.inspection.preview import Preview, PreviewOptions, preview, preview_lines
from tests.effort import examples
from tests.kg.worlds import Naive, Said, concept_of, make_graph, worlds

BRAZIL, FRANCE = 155, 142


statements = worlds(
    ["P31", "P279", "P279", "P495", "P17"], st.one_of(st.integers(-1, 9), st.sampled_from([BRAZIL, FRANCE])),
    items=range(1, 10), ended=False, least=5,
)  # fmt: skip


@settings(max_examples=examples(50), deadline=None)
@given(world=statements, roots=st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True), scoped=st.booleans())
def test_counts_are_those_of_a_naive_walk(
    world: list[Said], roots: list[int], scoped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = make_graph(tmp_path_factory.mktemp("world") / "w", world, items=range(1, 10))
    concept = concept_of(
        dict.fromkeys(roots), hops=4, classes=[3], items=[6], countries=["BR", "FR"] if scoped else None
    )
    found = preview(graph, concept, wording="words", options=PreviewOptions(samples=100))
    wanted = {BRAZIL: "BR", FRANCE: "FR"}
    everything: set[int] = set()
    inside: set[int] = set()
    for root in found.roots:
        below = Naive(world, concept).from_root(int(root.qid[1:]), 4)
        for hop in root.hops:
            artifacts = sorted(n for n, path in below.items() if len(path) == hop.hop + 1 and n != 6)
            expected: dict[str, list[int]] = {}
            for number in artifacts:
                said = (s for s in world if s.counts and s.number == number and s.name in {"P495", "P17"})
                stated = {s.value for s in said}
                keys = {wanted.get(v, f"Q{v}") for v in stated if not scoped or v in wanted} or {"out of scope"}
                inside |= {number} if keys != {"out of scope"} else set()
                for key in keys:
                    expected.setdefault(key, []).append(number)
            everything |= set(artifacts)
            assert hop.artifacts == len(artifacts)
            assert {c.country: [int(q[1:]) for q, _ in c.sample] for c in hop.cells} == expected
            assert all(cell.count == len(cell.sample) for cell in hop.cells)
    assert (found.candidates, found.candidates + found.out_of_scope) == (len(inside), len(everything))
    assert found.cost.requests == len(inside)


def explosive(size: int) -> list[Said]:
    """Hop 2 brings one artifact, hop 3 many: all but two by way of class 3."""
    world = [Said(2, "P279", 1), Said(3, "P279", 2), Said(4, "P279", 2), Said(5, "P31", 2), Said(5, "P17", BRAZIL)]
    for number in range(100, 100 + size):
        world += [Said(number, "P31", 4 if number < 102 else 3), Said(number, "P17", FRANCE)]
    return world


def test_an_explosion_names_the_classes_most_of_it_comes_through(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(20), items=[1])
    options = PreviewOptions(samples=3, factor=5, least=10)
    found = preview(graph, concept_of({1: None}), wording="", options=options)
    (explosion,) = found.roots[0].explosions
    assert (explosion.hop, explosion.before, explosion.artifacts) == (3, 1, 20)
    assert [(share.qid, share.artifacts) for share in explosion.by] == [("Q2", 20), ("Q3", 18)]
    assert "EXPLODES at hop 3: from 1 to 21 artifacts, through Q2 (item 2) 100% > Q3 (item 3) 90%" in "\n".join(
        preview_lines(found)
    )
    for calmer in (PreviewOptions(factor=21, least=10), PreviewOptions(factor=5, least=21)):
        assert preview(graph, concept_of({1: None}), wording="", options=calmer).roots[0].explosions == ()


def test_samples_follow_the_seed_and_nothing_else(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(60), items=[1])

    def drawn(concept: Concept, seed: int) -> object:
        found = preview(graph, concept, wording="", options=PreviewOptions(samples=5, seed=seed))
        return found.roots[0].hops[-1].cells[-1].sample

    assert drawn(concept_of({1: None}), 0) == drawn(concept_of({1: None, 2: None}), 0)
    assert drawn(concept_of({1: None}), 0) != drawn(concept_of({1: None}), 1)


def test_the_cost_is_tokens_from_the_wording_and_labels_and_money_only_at_given_prices(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(8), items=[1])
    plain = preview(graph, concept_of({1: None}), wording="").cost
    worded = preview(graph, concept_of({1: None}), wording="w" * 400).cost
    assert (plain.requests, plain.price) == (9, None)
    assert worded.input_tokens - plain.input_tokens == pytest.approx(100 * 9, abs=1)
    priced = preview(graph, concept_of({1: None}), wording="", prices=(2.0, 8.0)).cost
    assert priced.price == pytest.approx((2 * priced.input_tokens + 8 * priced.output_tokens) / 1e6)
    longer = make_graph(tmp_path / "v", explosive(8), items=[1], labels={107: {"en": "x" * 4007}})
    grown = preview(longer, concept_of({1: None}), wording="").cost
    assert grown.input_tokens - plain.input_tokens == pytest.approx(1000, abs=1)


def test_a_root_that_the_graph_lacks_is_said(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", explosive(3), items=[1])
    found = preview(graph, concept_of({1: None, 77: None}), wording="")
    assert [root.found for root in found.roots] == [True, False]
    assert "Q77: the graph never mentions it" in "\n".join(preview_lines(found))
    with pytest.raises(UsageError, match="mentions no root"):
        preview(graph, concept_of({77: None}), wording="")


@pytest.fixture(scope="module")
def real_graph(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real class hierarchy as a graph, with the countries that its items state."""
    said = []
    with gzip.open(shared_data / "wikidata/real_graph_edges.tsv.gz", "rt", encoding="utf-8") as lines:
        for child, name, value in (line.rstrip("\n").split("\t") for line in lines):
            if child[0] == "Q" and value[0] == "Q" and value != "Q0":
                said.append(Said(int(child[1:]), name, int(value[1:])))
    labels = {}
    with gzip.open(shared_data / "wikidata/real_graph_labels_en.tsv.gz", "rt", encoding="utf-8") as lines:
        for qid, label in (line.rstrip("\n").split("\t", 1) for line in lines):
            if qid[0] == "Q":
                labels[int(qid[1:])] = {"en": label}
    return make_graph(tmp_path_factory.mktemp("real") / "w", said, labels=labels)


def landmarks(*, excluding: tuple[str, ...]) -> Concept:
    """The shipped concept with six hops and other exclusions, for every country."""
    concept = with_hops(load_concept("landmarks"), 6)
    return concept.model_copy(update={"exclude": Exclusions(classes=excluding), "countries": "all"})


def artifacts(found: Preview) -> dict[str, str | None]:
    return {qid: label for root in found.roots for hop in root.hops for cell in hop.cells for qid, label in cell.sample}


def test_cities_of_the_real_hierarchy_become_landmarks_where_human_settlement_is_not_excluded(real_graph: Path) -> None:
    options = PreviewOptions(samples=1000, factor=2, least=10)
    closed = preview(real_graph, landmarks(excluding=("Q486972",)), wording="", options=options)
    opened = preview(real_graph, landmarks(excluding=()), wording="", options=options)
    assert "Q1297" not in artifacts(closed)
    assert artifacts(opened)["Q1297"] == "Chicago"
    assert {"Lyon", "Lisbon", "Helsinki", "New York City"} <= set(artifacts(opened).values())
    assert opened.candidates - closed.candidates >= 30
    (structure,) = (root for root in opened.roots if root.qid == "Q811979")
    (explosion,) = structure.explosions
    assert explosion.hop == 5
    assert "Q486972" in {share.qid for share in explosion.by}
    assert [root.explosions for root in closed.roots if root.qid == "Q811979"] == [()]


def test_the_explanation_of_chicago_names_the_exclusion(real_graph: Path) -> None:
    told = explain(real_graph, "Q1297", landmarks(excluding=("Q486972",)))
    assert told.verdict == "out"
    assert told.reasons[0].code == "cut-by-exclusion"
    assert told.reasons[0].text.startswith("Q486972")
    assert "Q811979 > " in told.reasons[0].text
    opened = explain(real_graph, "Q1297", landmarks(excluding=()))
    assert opened.verdict == "in"
    assert [(root.qid, root.hop) for root in opened.roots] == [("Q811979", 6)]
