"""Explanations held against a walk that anybody can check by reading it, and each reason by itself."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.kg.concepts import Concept, load_concept
from culturekit.kg.inspection.explain import Explanation, explain, explain_lines
from tests.kg.worlds import Said, concept_of, make_graph, worlds

BRAZIL, FRANCE = 155, 142


def naive_paths(world: list[Said], concept: Concept, item: int) -> set[tuple[int, ...]]:
    """Try every way down from every root, by the rules of Algorithm 1, with no item twice."""
    good = [s for s in world if s.counts]
    has_country = {s.number for s in good if s.name in concept.country_properties}
    roots = {int(root.qid[1:]) for root in concept.roots}
    excluded = {int(qid[1:]) for qid in concept.exclude.classes}
    found = set()

    def down(path: tuple[int, ...], limit: int) -> None:
        if path[-1] == item and len(path) > 1:
            found.add(path)
            return
        if len(path) > 1 and path[-1] in has_country - roots:
            return
        if len(path) <= limit:
            for s in good:
                fresh = s.number not in path and s.number not in excluded
                if s.name in concept.follow and s.value == path[-1] and fresh:
                    down((*path, s.number), limit)

    for root in concept.roots:
        down((int(root.qid[1:]),), concept.hops_of(root))
    return found


statements = worlds(["P31", "P279", "P495", "P17"], st.integers(-1, 9), ended=False, most=26)
concepts = st.builds(
    lambda roots, hops, own, classes, items, follow, by: concept_of(
        {n: own if n % 2 else None for n in roots}, hops=hops, classes=classes, items=items
    ).model_copy(update={"follow": follow, "country_properties": by}),
    st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.integers(3, 5), max_size=2, unique=True),
    st.lists(st.integers(5, 6), max_size=1),
    st.sampled_from([("P31", "P279"), ("P279",)]),
    st.sampled_from([("P495", "P17"), ("P17",)]),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(world=statements, concept=concepts)
def test_verdicts_hops_and_paths_are_those_of_a_naive_search(
    world: list[Said], concept: Concept, tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = make_graph(tmp_path_factory.mktemp("world") / "w", world, items=range(1, 9))
    roots = {int(root.qid[1:]) for root in concept.roots}
    excluded = {int(qid[1:]) for qid in concept.exclude.items}
    for item in (1, 4, 5, 8):
        paths = naive_paths(world, concept, item)
        told = explain(graph, f"Q{item}", concept, show=10_000)
        ours = {tuple(int(step.qid[1:]) for step in path.steps) for path in told.paths if path.open}
        assert ours == paths
        assert told.open_paths == len(paths)
        assert told.cut_paths == sum(not path.open for path in told.paths)
        hops = {root: min(len(p) - 1 for p in paths if p[0] == root) for root in {p[0] for p in paths}}
        assert {int(root.qid[1:]): root.hop for root in told.roots} == hops
        country = any(s.counts and s.number == item and s.name in concept.country_properties for s in world)
        expected = bool(paths) and country and item not in roots and item not in excluded
        assert (told.verdict == "in") == expected
        assert [path.hop for path in told.paths if path.open] == sorted(len(path) - 1 for path in paths)
        assert list(explain_lines(told))


def codes(told: Explanation) -> set[str]:
    return {reason.code for reason in told.reasons}


CHAIN = [Said(2, "P279", 1), Said(3, "P279", 2), Said(4, "P31", 3), Said(4, "P495", BRAZIL)]


@pytest.mark.parametrize(
    ("world", "concept", "expected"),
    [
        (CHAIN, concept_of({1: None}), {"artifact"}),
        (CHAIN, concept_of({1: None}, hops=2), {"beyond-the-limit"}),
        (CHAIN, concept_of({1: None}, classes=[2]), {"cut-by-exclusion"}),
        (CHAIN, concept_of({1: None}, hops=2, classes=[2]), {"beyond-the-limit"}),
        (CHAIN, concept_of({1: None}, items=[4]), {"excluded-item"}),
        (CHAIN, concept_of({1: None, 4: None}), {"is-a-root"}),
        (CHAIN, concept_of({9: None}), {"no-path"}),
        (CHAIN, concept_of({1: None}, countries=["FR"]), {"country-out-of-scope"}),
        ([*CHAIN, Said(3, "P17", FRANCE)], concept_of({1: None}), {"below-an-artifact"}),
        ([*CHAIN[:2], Said(4, "P31", 3, "deprecated"), CHAIN[3]], concept_of({1: None}), {"statement-does-not-count"}),
        (CHAIN[:3], concept_of({1: None}), {"no-country"}),
        ([*CHAIN[:3], Said(4, "P17", BRAZIL, "deprecated")], concept_of({1: None}), {"country-deprecated"}),
        ([*CHAIN[:3], Said(4, "P17", 0), Said(4, "P495", -1)], concept_of({1: None}), {"country-without-value"}),
        ([Said(4, "P31", -1), CHAIN[3]], concept_of({1: None}), {"no-path"}),
    ],
)
def test_every_reason_is_told_by_itself(
    tmp_path: Path, world: list[Said], concept: Concept, expected: set[str]
) -> None:
    told = explain(make_graph(tmp_path / "w", world, items=[1]), "Q4", concept)
    assert codes(told) == expected
    assert told.verdict == ("in" if expected == {"artifact"} else "out")


def test_an_item_that_is_only_mentioned_or_unknown_is_said_to_be_so(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", CHAIN)
    assert "only-mentioned" in codes(explain(graph, "Q155", concept_of({1: None})))
    assert "not-in-the-dump" in codes(explain(graph, "Q77", concept_of({1: None})))
    with pytest.raises(UsageError, match="a QID such as Q42"):
        explain(graph, "P31", concept_of({1: None}))
    with pytest.raises(UsageError, match="a QID such as Q42"):
        explain(graph, "Q99999999999", concept_of({1: None}))
    with pytest.raises(UsageError, match="not a graph store"):
        explain(tmp_path, "Q4", concept_of({1: None}))


def test_the_cut_names_the_class_and_the_path(tmp_path: Path) -> None:
    told = explain(make_graph(tmp_path / "w", CHAIN, items=[1]), "Q4", concept_of({1: None}, classes=[2]))
    assert told.reasons[0].text == "Q2 (item 2) cuts Q1 > Q2 > Q3 > Q4: excluded class"
    assert [step.cut for step in told.paths[0].steps] == [None, "excluded class", None, None]
    assert (told.open_paths, told.cut_paths) == (0, 1)


def test_the_smallest_hop_without_a_limit_is_said(tmp_path: Path) -> None:
    told = explain(make_graph(tmp_path / "w", CHAIN, items=[1]), "Q4", concept_of({1: None}, hops=1))
    assert "the nearest root, Q1 (item 1), needs 3 hops" in told.reasons[0].text


def test_ended_statements_count_unless_dropped_and_truthy_hears_only_the_best(tmp_path: Path) -> None:
    world = [Said(4, "P31", 1, ended=True), Said(4, "P17", BRAZIL), Said(4, "P17", FRANCE, "preferred")]
    graph = make_graph(tmp_path / "w", world, items=[1])
    concept = concept_of({1: None}, countries=["BR"])
    assert explain(graph, "Q4", concept).verdict == "in"
    assert codes(explain(graph, "Q4", concept.model_copy(update={"ended": "drop"}))) == {"statement-does-not-count"}
    assert codes(explain(graph, "Q4", concept.model_copy(update={"ranks": "truthy"}))) == {"country-out-of-scope"}


def test_steps_carry_their_line_of_the_dump(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "w", CHAIN, items=[1])
    lines = (tmp_path / "w/dump.json").read_bytes().split(b"\n")
    told = explain(graph, "Q4", concept_of({1: None}))
    assert len(told.paths[0].steps) > 1
    for step in told.paths[0].steps:
        assert step.place is not None
        assert f'"id": "{step.qid}"'.encode() in lines[step.place.line - 1]


def test_more_paths_than_are_shown_are_counted_and_more_than_can_be_counted_are_said(tmp_path: Path) -> None:
    layers = [range(10, 20), range(20, 30), range(30, 40), range(40, 50), range(50, 60)]
    world = [Said(n, "P279", 1) for n in layers[0]]
    for above, below in pairwise(layers):
        world += [Said(child, "P279", parent) for child in below for parent in above]
    world += [Said(99, "P31", parent) for parent in layers[-1]] + [Said(99, "P17", BRAZIL)]
    world += [Said(98, "P31", parent) for parent in layers[1]] + [Said(98, "P17", BRAZIL)]
    graph = make_graph(tmp_path / "w", world, items=[1])
    few = explain(graph, "Q98", concept_of({1: None}, hops=6), show=5)
    assert (few.open_paths, few.more_open_paths, len(few.paths)) == (100, False, 5)
    many = explain(graph, "Q99", concept_of({1: None}, hops=6), show=5)
    assert (many.open_paths, many.more_open_paths, len(many.paths)) == (10_000, True, 5)
    assert "at least 10,000 open" in "\n".join(explain_lines(many))


def test_a_path_of_the_shipped_sample_is_found(small_run: Path) -> None:
    told = explain(small_run / "graph", "Q2065278", load_concept("cuisine"))
    assert told.verdict == "in"
    assert [(root.qid, root.hop) for root in told.roots] == [("Q746549", 1), ("Q2095", 2)]
    assert told.place is not None
    assert told.place.file == "wikidata-sample.json.gz"
