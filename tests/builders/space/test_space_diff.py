"""Changes of a cultural space, held against comparing dictionaries in plain Python."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.country_names import folded
from culturekit.builders.space.space_diff import space_changes, untold_changes
from tests.builders.spaces import artifact, cspace

Row = Mapping[str, object]
Key = tuple[str, str, str]
PARTS = ("name", "artifact_id", "concept", "subconcept", "country", "continent", "source", "path")

row_of = st.builds(
    lambda artifact_id, concept, country, name, subconcept, path: artifact(
        1, artifact_id=artifact_id, qid=None, concept=concept, country=country, name=name, subconcept=subconcept,
        path=path, source="llm" if artifact_id.startswith("LLM") else "wikidata",
    ),
    st.sampled_from(["Q1", "Q2", "LLM:a", "LLM:b"]),
    st.sampled_from(["art", "cuisine"]),
    st.sampled_from(["BR", "JP", "IT"]),
    st.sampled_from(["Feijoada", "feijoada", "Moqueca"]),
    st.sampled_from([None, "stew"]),
    st.sampled_from([["Q5"], ["Q5", "Q1"]]),
)  # fmt: skip
space_of = st.lists(row_of, max_size=9, unique_by=lambda row: (row["concept"], row["country"], row["artifact_id"]))


def naive(before: Sequence[Row], after: Sequence[Row]) -> set[tuple[object, ...]]:
    a, b = ({key(row): row for row in rows} for rows in (before, after))
    pairs = [(a[k], b[k]) for k in a.keys() & b.keys()]
    gone, came = [a[k] for k in a.keys() - b.keys()], [b[k] for k in b.keys() - a.keys()]
    ways: list[Callable[[Row], object]] = [
        lambda row: (row["artifact_id"], row["country"]),
        lambda row: (row["artifact_id"], row["concept"]),
        lambda row: row["artifact_id"],
        lambda row: (row["concept"], row["country"], folded(str(row["name"]))),
    ]
    for number, way in enumerate(ways):
        left, right = grouped(gone, way), grouped(came, way)
        for group in left.keys() & right.keys():
            if len(left[group]) == len(right[group]) == 1:
                x, y = left[group][0], right[group][0]
                if number < 3 or "LLM" in f"{x['artifact_id']}{y['artifact_id']}":
                    pairs.append((x, y))
                    gone.remove(x)
                    came.remove(y)
    found: set[tuple[object, ...]] = {(*key(row), *key(row), "artifact", "removed", row["name"], None) for row in gone}
    found |= {(*key(row), *key(row), "artifact", "added", None, row["name"]) for row in came}
    for x, y in pairs:
        for part in PARTS:
            if x[part] != y[part]:
                change = "renamed" if part == "name" else "reclassified"
                found.add((*key(x), *key(y), part, change, text(x[part]), text(y[part])))
    return found


def key(row: Row) -> Key:
    return str(row["concept"]), str(row["country"]), str(row["artifact_id"])


def grouped(rows: Iterable[Row], way: Callable[[Row], object]) -> dict[object, list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[way(row)].append(row)
    return groups


def text(value: object) -> object:
    return " ".join(value) if isinstance(value, list) else value


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(before=space_of, after=space_of, order=st.randoms())
def test_rows_differ_as_dictionaries_do(before: list[Row], after: list[Row], order: object) -> None:
    found = space_changes(cspace(*before), cspace(*after))
    assert set(found.iter_rows()) == naive(before, after)
    assert found.is_unique().all()
    order.shuffle(before)  # type: ignore[attr-defined]
    order.shuffle(after)  # type: ignore[attr-defined]
    assert space_changes(cspace(*before), cspace(*after)).equals(found)


def test_a_completed_artifact_that_has_an_item_now_is_the_same_artifact() -> None:
    before = cspace(artifact(1, artifact_id="LLM:pao-de-queijo", qid=None, source="llm", name="Pão de queijo"))
    after = cspace(artifact(7, name="pão de  queijo"))
    parts = space_changes(before, after).select("part", "change", "before", "after")
    assert set(parts.iter_rows()) == {
        ("artifact_id", "reclassified", "LLM:pao-de-queijo", "Q7"),
        ("name", "renamed", "Pão de queijo", "pão de  queijo"),
        ("path", "reclassified", "Q2095 Q1", "Q2095 Q7"),
        ("source", "reclassified", "llm", "wikidata"),
    }


def test_popularity_is_counted_and_not_told() -> None:
    before = cspace(artifact(1, popularity=0.5), artifact(2), artifact(3))
    after = cspace(artifact(1, popularity=0.6), artifact(2), artifact(4))
    assert untold_changes(before, after) == {"popularity": 1}
    assert space_changes(before, after)["part"].to_list() == ["artifact", "artifact"]
    with_order = after.with_columns(country_order=pl.lit(0, pl.UInt16))
    assert untold_changes(after, with_order) == {"country_order": 3}
