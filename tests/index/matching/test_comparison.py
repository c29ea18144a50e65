"""Any exact finder of rows gives the artifacts that looking at everything gives."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from culturekit.index.encoder import Vectors
from culturekit.index.matching import comparison
from culturekit.index.matching.comparison import ranked_by_search, runs_of
from culturekit.index.matching.match_batch import (
    ChannelVectors,
    Ranking,
    country_sets,
    match_batch,
    ranked_by_blocks,
    scope_of,
)
from culturekit.index.search.search import Found, best_by_hand
from tests.index.matching.naive_matches import World, made_world
from tests.index.matching.test_match_batch import queries_of

IMAGE = {"image": 1.0}


class ByHand:
    """The slow twin of all searchers, which counts how often it is asked."""

    name = "by hand"

    def __init__(self, world: World) -> None:
        channel = world.channels["image"]
        order = np.empty(len(channel.owners), np.int64)
        order[np.argsort(channel.owners, kind="stable")] = np.arange(len(order))
        self.vectors, self.order, self.asked = channel.vectors, order, 0

    def best(self, queries: Vectors, *, k: int, slices: Sequence[slice] | None = None) -> Found:
        self.asked += 1
        return best_by_hand(self.vectors, queries, k=k, order=self.order, slices=slices)


def agree(found: Ranking, wanted: Ranking, count: int) -> None:
    width = min(count, found.artifacts.shape[1], wanted.artifacts.shape[1])
    np.testing.assert_array_equal(found.artifacts[:, :width], wanted.artifacts[:, :width])
    np.testing.assert_array_equal(found.scores[:, :width], wanted.scores[:, :width])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.sampled_from([1, 3, 30]),
    limited=st.booleans(),
    most=st.sampled_from([4, 2048]),
)
def test_rows_found_give_the_same_ranking_as_all_rows(seed: int, count: int, limited: bool, most: int) -> None:
    world = made_world(seed, artifacts=20)
    within = np.random.default_rng(seed).random(world.count) < 0.5 if limited else None
    scope = scope_of(world.channels, IMAGE, aggregate="max", count=world.count, within=within)
    if scope.size == 0:
        return
    queries = queries_of(world, seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(comparison, "MOST_ROWS", most)
        found = ranked_by_search(scope, queries, ByHand(world), count=count)
    agree(found, ranked_by_blocks(scope, queries, count=count), count)
    if count == 30:
        sets = country_sets(world.countries)
        one, other = (match_batch(scope, queries, sets, k=3, ranking=given) for given in (found, None))
        np.testing.assert_array_equal(one.margins, other.margins)
        np.testing.assert_array_equal(one.country_margins, other.country_margins)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_row_that_is_left_out_is_not_found(seed: int) -> None:
    world = made_world(seed)
    scope = scope_of(world.channels, IMAGE, aggregate="max", count=world.count)
    vectors = world.channels["image"].vectors
    rows = np.arange(len(vectors))
    found = ranked_by_search(scope, vectors, ByHand(world), count=2, left_out=rows)
    agree(found, ranked_by_blocks(scope, vectors, count=2, left_out=rows), 2)
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -np.inf)
    np.testing.assert_allclose(found.scores[:, 0], likeness.max(axis=1), atol=1e-6)
    assert (found.scores[:, 0] < ranked_by_search(scope, vectors, ByHand(world), count=2).scores[:, 0]).any()


def test_more_rows_are_asked_for_where_one_artifact_fills_the_first() -> None:
    world = made_world(3, artifacts=30)
    channel = world.channels["image"]
    crowd = crowded(channel.vectors[0], copies=200, world=world)
    scope = scope_of(crowd.channels, IMAGE, aggregate="max", count=crowd.count)
    finder = ByHand(crowd)
    found = ranked_by_search(scope, channel.vectors[:1], finder, count=2)
    assert finder.asked == 3
    agree(found, ranked_by_blocks(scope, channel.vectors[:1], count=2), 2)


def crowded(vector: NDArray[np.float32], *, copies: int, world: World) -> World:
    channel = world.channels["image"]
    vectors = np.concatenate([channel.vectors, np.repeat(vector[np.newaxis], copies, axis=0)])
    owners = np.concatenate([channel.owners, np.full(copies, channel.owners[0])])
    return World({"image": ChannelVectors(vectors, owners)}, world.countries)


def test_a_scope_of_scattered_rows_is_not_searched_in_slices() -> None:
    world = made_world(1, artifacts=400, most=1)
    within = np.arange(400) % 2 == 0
    scattered = scope_of(world.channels, IMAGE, aggregate="max", count=400, within=within)
    assert runs_of(scattered) is None
    everything = runs_of(scope_of(world.channels, IMAGE, aggregate="max", count=400))
    assert everything == [slice(0, 400)]
