"""The numbers of a graph, held against counting by hand and cycles found by networkx."""

from collections import Counter
from pathlib import Path

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.kg.inspection.graph_stats import graph_stats, stats_lines
from tests.kg.worlds import Said, make_graph

statements = st.lists(
    st.builds(
        Said,
        st.integers(1, 9),
        st.sampled_from(["P31", "P279", "P279", "P17", "P361"]),
        st.integers(-1, 12),
        st.sampled_from(["preferred", "normal", "normal", "deprecated"]),
        st.booleans(),
    ),
    max_size=30,
)


@settings(max_examples=50, deadline=None)
@given(world=statements)
def test_the_numbers_are_those_of_counting_by_hand(world: list[Said], tmp_path_factory: pytest.TempPathFactory) -> None:
    stats = graph_stats(make_graph(tmp_path_factory.mktemp("world") / "w", world, items=range(1, 10)))
    assert stats.items == 9
    assert stats.statements == len(world)
    assert stats.dangling_targets == len({s.value for s in world if s.value > 9})
    assert {each.property for each in stats.properties} == {s.name for s in world}
    for each in stats.properties:
        own = [s for s in world if s.name == each.property]
        ranks = Counter(s.rank for s in own)
        assert (each.preferred, each.normal, each.deprecated) == tuple(
            ranks[rank] for rank in ("preferred", "normal", "deprecated")
        )
        assert (each.novalue, each.somevalue) == (sum(s.value == 0 for s in own), sum(s.value == -1 for s in own))
        assert each.qualified == each.ended == sum(s.ended for s in own)
        assert each.dangling == sum(s.value > 9 for s in own)
    edges = {(s.number, s.value) for s in world if s.value > 0 and s.name in {"P31", "P279"}}
    assert stats.edges == len(edges)
    children, parents = Counter(parent for _, parent in edges), Counter(child for child, _ in edges)
    assert [e.degree for e in stats.most_children] == sorted(children.values(), reverse=True)[:10]
    assert [e.degree for e in stats.most_parents] == sorted(parents.values(), reverse=True)[:10]
    classes = networkx.DiGraph((s.number, s.value) for s in world if s.counts and s.name == "P279")
    large = [each for each in networkx.strongly_connected_components(classes) if len(each) > 1]
    assert stats.cycles.components == len(large)
    assert stats.cycles.classes == sum(map(len, large))
    assert stats.cycles.self_loops == networkx.number_of_selfloops(classes)
    assert sorted(cycle.classes for cycle in stats.cycles.largest) == sorted(map(len, large))
    assert list(stats_lines(stats))


def test_labels_are_counted_by_language_with_the_share_of_mul(tmp_path: Path) -> None:
    labels = {1: {"en": "one"}, 2: {"mul": "two"}, 3: {"de": "drei"}, 4: {"fr": "quatre"}}
    stats = graph_stats(make_graph(tmp_path / "w", [], items=[1, 2, 3, 4], labels=labels))
    assert {each.language: each.items for each in stats.languages} == {"en": 1, "mul": 1, "de": 1, None: 1}
    assert stats.mul_share == 0.25
    assert "labels that fall back to mul: 25.0%" in list(stats_lines(stats))
