from collections import Counter
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from culturekit.builders.prompting.prompts import PLACE, in_draw_order
from culturekit.core.errors import IntegrityError
from tests.builders.spaces import artifact, cspace

WEIGHTS = (1.0, 2.0, 3.0, 6.0)


def weighted(*weights: float | None) -> pl.DataFrame:
    return cspace(*(artifact(n, popularity=weight) for n, weight in enumerate(weights, 1)))


def drawn(space: pl.DataFrame, *, per: int, seed: int) -> pl.DataFrame:
    return in_draw_order(space, seed=seed).filter(pl.col(PLACE) <= per)


def drawn_orders(times: int, size: int) -> Counter[tuple[str, ...]]:
    """Draw from the same weights many times: each group of a space is a draw of its own."""
    rows = [(f"{n:05}", f"Q{k}", weight) for n in range(times) for k, weight in enumerate(WEIGHTS, 1)]
    space = pl.DataFrame(rows, schema=["country", "artifact_id", "popularity"], orient="row")
    taken = drawn(space.with_columns(concept=pl.lit("art")), per=size, seed=1)
    return Counter(tuple(names) for names in taken.group_by("country").agg("artifact_id")["artifact_id"])


def test_ordered_samples_come_as_often_as_drawing_one_after_the_other_says() -> None:
    """Each next one in proportion to its weight among those left: the exact chance of every ordered pair."""
    times = 8_000
    found = drawn_orders(times, 2)
    pairs = list(permutations(range(4), 2))
    total = sum(WEIGHTS)
    chances = [WEIGHTS[a] / total * WEIGHTS[b] / (total - WEIGHTS[a]) for a, b in pairs]
    seen = [found[f"Q{a + 1}", f"Q{b + 1}"] for a, b in pairs]
    assert sum(seen) == times
    assert stats.chisquare(seen, np.array(chances) * times).pvalue > 1e-3


rows = st.lists(
    st.tuples(
        st.integers(1, 60), st.sampled_from(["BR", "JP", "NG"]), st.sampled_from(["art", "cuisine"]),
        st.one_of(st.none(), st.floats(0, 1)),
    ),
    min_size=1, max_size=40, unique_by=lambda row: row[:3],
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(rows, st.randoms(use_true_random=False), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_draw_does_not_depend_on_the_order_of_rows(
    rows: list[tuple[int, str, str, float | None]], random: object, seed: int, quota: int
) -> None:
    made = [artifact(n, country=iso, concept=concept, popularity=p) for n, iso, concept, p in rows]
    mixed = list(made)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    first, second = (drawn(cspace(*several), per=quota, seed=seed) for several in (made, mixed))
    assert first.equals(second)
    sizes = Counter((concept, iso) for _, iso, concept, _ in rows)
    taken = Counter(first.select("concept", "country").iter_rows())
    assert taken == {group: min(size, quota) for group, size in sizes.items()}


@settings(deadline=None, max_examples=40)
@given(rows, st.integers(0, 1000))
def test_what_is_left_out_leaves_the_order_of_the_others(
    rows: list[tuple[int, str, str, float | None]], seed: int
) -> None:
    """So a rejected artifact gives way to the next one, and a smaller quota is a part of a larger one."""
    space = cspace(*(artifact(n, country=iso, concept=concept, popularity=p) for n, iso, concept, p in rows))
    key = ["concept", "country", "artifact_id"]
    whole = in_draw_order(space, seed=seed).select(key).rows()
    part = in_draw_order(space.slice(1), seed=seed).select(key).rows()
    gone = space.select(key).row(0)
    assert part == [row for row in whole if row != gone]


def test_the_unknown_are_drawn_only_when_nothing_else_is_left() -> None:
    space = weighted(None, 0.001, None, 0.0, 1.0)
    for seed in range(50):
        assert set(drawn(space, per=2, seed=seed)["artifact_id"]) == {"Q2", "Q5"}


def test_another_draw_of_the_same_seed_is_another_draw() -> None:
    space = weighted(*([1.0] * 40))
    seeded, fresh = (in_draw_order(space, seed=3, draw=draw)["artifact_id"].to_list() for draw in ("", "fresh"))
    assert seeded != fresh
    assert sorted(seeded) == sorted(fresh)


@pytest.mark.parametrize("weight", [-0.1, float("inf"), float("nan")])
def test_what_cannot_weigh_a_draw_is_named(weight: float) -> None:
    with pytest.raises(IntegrityError, match="Q2 in BR: 1 artifacts have a popularity"):
        in_draw_order(weighted(1.0, weight), seed=0)
