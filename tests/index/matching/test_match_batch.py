from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from culturekit.core.choices import Aggregate
from culturekit.index.encoder import Vectors
from culturekit.index.matching import comparison
from culturekit.index.matching import match_batch as match_scope
from culturekit.index.matching.calibration import Abstention, abstention_from, design_effect, error_bounds, tail
from culturekit.index.matching.comparison import ranked_by_search, runs_of
from culturekit.index.matching.match_batch import (
    Adjusted,
    ChannelVectors,
    Matched,
    Ranking,
    country_sets,
    match_batch,
    ranked_by_blocks,
    scope_of,
)
from culturekit.index.search.search import Found, best_by_hand
from tests.index.matching.naive_matches import World, artifact_scores, made_world, naive_rows, unit

EQUAL = {"image": 1.0, "text": 1.0}


def queries_of(world: World, seed: int, count: int = 4) -> Vectors:
    """Some of the world's own vectors, which tie most, and some fresh ones."""
    numbers = np.random.default_rng(seed + 1)
    mine = next(iter(world.channels.values())).vectors
    fresh = unit(numbers.normal(size=(count, mine.shape[1])))
    return np.concatenate([mine[numbers.integers(0, len(mine), count)], fresh]) if len(mine) else fresh


def rows_of(matched: Matched, number: int) -> list[tuple[int, np.float32, np.float32, np.float32]]:
    kept = matched.artifacts[number] >= 0
    columns = (matched.artifacts, matched.scores, matched.margins, matched.country_margins)
    return list(zip(*(column[number][kept].tolist() for column in columns), strict=True))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    channels=st.sampled_from([("image",), ("text",), ("image", "text")]),
    aggregate=st.sampled_from(["max", "top3"]),
    k=st.sampled_from([1, 2, 5, 40]),
    weights=st.sampled_from([EQUAL, {"image": 0.7, "text": 0.3}]),
    block=st.sampled_from([1, 3, 8192]),
    codes=st.sampled_from(["AB", "ABCD", "ABCDEFGHIJ"]),
)
def test_matches_are_those_of_plain_python(
    seed: int, channels: tuple[str, ...], aggregate: Aggregate, k: int, weights: Mapping[str, float], block: int,
    codes: str,
) -> None:  # fmt: skip
    world = made_world(seed, channels=channels, codes=codes)
    queries = queries_of(world, seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(match_scope, "VECTORS_PER_BLOCK", block)
        scope = scope_of(world.channels, weights, aggregate=aggregate, count=world.count)
        matched = match_batch(scope, queries, country_sets(world.countries), k=k)
    for number, query in enumerate(queries):
        assert rows_of(matched, number) == naive_rows(world, artifact_scores(world, query, aggregate, weights), k)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), aggregate=st.sampled_from(["max", "top3"]), k=st.sampled_from([1, 5]))
def test_a_scope_is_a_world_of_its_own(seed: int, aggregate: Aggregate, k: int) -> None:
    world = made_world(seed, artifacts=15)
    within = np.random.default_rng(seed + 2).random(world.count) < 0.4
    within[seed % world.count] = True
    scope = scope_of(world.channels, EQUAL, aggregate=aggregate, count=world.count, within=within)
    queries = queries_of(world, seed)
    matched = match_batch(scope, queries, country_sets(world.countries), k=k)
    for number, query in enumerate(queries):
        scores = artifact_scores(world, query, aggregate, EQUAL)
        inside = {artifact: score for artifact, score in scores.items() if within[artifact]}
        assert rows_of(matched, number) == naive_rows(world, inside, k)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    aggregate=st.sampled_from(["max", "top3"]),
    channels=st.sampled_from([("image",), ("image", "text")]),
)
def test_a_vector_that_is_left_out_does_not_count(seed: int, aggregate: Aggregate, channels: tuple[str, ...]) -> None:
    world = made_world(seed, channels=channels)
    image = world.channels["image"]
    scope = scope_of(world.channels, EQUAL, aggregate=aggregate, count=world.count)
    rows = np.arange(len(image.owners))
    ranking = ranked_by_blocks(scope, image.vectors, count=2, left_out=rows)
    for row in rows.tolist():
        scores = artifact_scores(world, image.vectors[row], aggregate, EQUAL, left_out=row)
        expected = [(artifact, score) for artifact, score, _, _ in naive_rows(world, scores, 2)]
        assert list(zip(ranking.artifacts[row, :2], ranking.scores[row, :2], strict=True))[: len(expected)] == expected


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1.0, 2.0]))
def test_adjusted_scores_are_ranked_by_what_they_became(seed: int, scale: float) -> None:
    world = made_world(seed)
    offsets = np.random.default_rng(seed).normal(size=world.count)
    adjusted = Adjusted(scale, offsets, -9.0)
    scope = scope_of(world.channels, EQUAL, aggregate="max", count=world.count, adjusted=adjusted)
    queries = queries_of(world, seed)
    matched = match_batch(scope, queries, country_sets(world.countries), k=3)
    for number, query in enumerate(queries):
        plain = artifact_scores(world, query, "max", EQUAL)
        scores = {one: np.float32(scale * float(score) + offsets[one]) for one, score in plain.items()}
        assert rows_of(matched, number) == naive_rows(world, scores, 3, lowest=-9.0)


def test_many_artifacts_of_one_country_hide_no_foreign_one() -> None:
    """The only foreign artifact stands far behind everything that is looked at first."""
    numbers = np.random.default_rng(5)
    world = made_world(5, artifacts=400, dim=24, most=2)
    countries = [["US"]] * 399 + [["FR"]]
    queries = unit(numbers.normal(size=(20, 24)))
    scope = scope_of(world.channels, EQUAL, aggregate="max", count=400)
    matched = match_batch(scope, queries, country_sets(countries), k=3)
    alone = World(world.channels, countries)
    for number, query in enumerate(queries):
        assert rows_of(matched, number) == naive_rows(alone, artifact_scores(alone, query, "max", EQUAL), 3)


def test_a_single_artifact_leads_over_the_lowest_score_there_is() -> None:
    world = made_world(1, artifacts=1)
    scope = scope_of(world.channels, EQUAL, aggregate="max", count=1)
    matched = match_batch(scope, queries_of(world, 1), country_sets(world.countries), k=5)
    assert (matched.artifacts[:, 1:] == -1).all()
    assert matched.margins[:, 0].tolist() == (matched.scores[:, 0] + np.float32(1)).tolist()
    assert matched.country_margins[:, 0].tolist() == matched.margins[:, 0].tolist()


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


TRIALS = 300


def drawn(
    numbers: np.random.Generator, artifacts: int, each: int, *, together: bool, hardness: float
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int64]]:
    """References whose chance of being matched wrongly falls with their margin."""
    margins = numbers.random(artifacts * each).astype(np.float32)
    owners = np.repeat(np.arange(artifacts), each)
    lots = numbers.random(artifacts)[owners] if together else numbers.random(len(margins))
    return margins, lots < chance(margins, hardness), owners


def chance(margins: NDArray[np.float32], hardness: float) -> NDArray[np.float64]:
    return hardness * (1 - margins.astype(np.float64)) ** 2


def true_error(threshold: float, hardness: float) -> float:
    """The error of what is accepted, of all that could ever be drawn."""
    accepted = np.linspace(min(threshold, 1), 1, 10_001, dtype=np.float32)
    return float(chance(accepted, hardness).mean())


def broken(*, artifacts: int, each: int, together: bool, hardness: float) -> tuple[float, float]:
    """How often the promise of at most 5 % is broken, and how often any image is kept at all."""
    numbers = np.random.default_rng(0)
    failures = kept = 0
    for _ in range(TRIALS):
        margins, wrong, owners = drawn(numbers, artifacts, each, together=together, hardness=hardness)
        found = abstention_from(margins, wrong, owners, max_error=0.05)
        if found.chosen is not None:
            kept += 1
            failures += true_error(found.threshold, hardness) > 0.05
    return failures / TRIALS, kept / TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("hardness", [0.16, 0.2, 0.4])
def test_the_promise_holds_as_often_as_is_said(hardness: float) -> None:
    failures, kept = broken(artifacts=1500, each=1, together=False, hardness=hardness)
    assert failures <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / TRIALS)
    assert kept > 0.9


def test_the_promise_holds_where_the_references_of_an_artifact_err_together() -> None:
    failures, _ = broken(artifacts=600, each=4, together=True, hardness=0.2)
    assert failures <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / TRIALS)


def certain(wrong: list[int], count: int, *, max_error: float = 0.05) -> Abstention:
    margins = np.linspace(1, 0.01, count, dtype=np.float32)
    mask = np.isin(np.arange(count), wrong)
    return abstention_from(margins, mask, np.arange(count), max_error=max_error)


def test_nothing_abstains_where_nothing_errs_and_errors_at_small_margins_are_abstained_from() -> None:
    found = certain([], 400)
    assert found.threshold == 0
    assert found.chosen is not None
    assert (found.chosen.accepted, found.chosen.wrong) == (400, 0)
    found = certain(list(range(900, 1000)), 1000)
    assert found.chosen is not None
    assert 850 <= found.chosen.accepted <= 950
    assert found.chosen.wrong / found.chosen.accepted <= 0.05
    assert found.chosen.upper <= 0.06


def test_too_few_references_prove_nothing() -> None:
    assert certain([], 50).chosen is None
    assert certain([], 50).threshold == np.inf
    assert abstention_from(
        np.empty(0, np.float32), np.empty(0, np.bool_), np.empty(0, np.int64), max_error=0.5
    ).chosen is None  # fmt: skip


def test_equal_margins_are_accepted_together() -> None:
    margins = np.array([0.5] * 300 + [0.0] * 300, np.float32)
    wrong = np.arange(600) >= 450
    found = abstention_from(margins, wrong, np.arange(600), max_error=0.05)
    assert [point.accepted for point in found.curve] == [300, 600]
    assert found.threshold == 0.5


@pytest.mark.parametrize(("errors", "accepted", "rate"), [(0, 59, 0.05), (3, 200, 0.05), (10, 40, 0.3), (7, 7, 0.5)])
def test_the_tail_is_the_binomial_one(errors: int, accepted: int, rate: float) -> None:
    assert tail(errors, accepted, rate) == pytest.approx(
        1.0 if errors == accepted else binom.cdf(errors, accepted, rate)
    )


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    lower, upper = error_bounds(3, 200)
    assert binom.sf(2, 200, lower) == pytest.approx(0.025)
    assert binom.cdf(3, 200, upper) == pytest.approx(0.025)
    assert error_bounds(0, 10)[0] == 0
    assert error_bounds(10, 10)[1] == 1


def test_references_that_err_together_count_once() -> None:
    owners = np.repeat(np.arange(200), 4)
    assert design_effect(np.repeat(np.arange(200) % 10 == 0, 4), owners) == pytest.approx(4, rel=0.02)
    apart = np.random.default_rng(1).random(800) < 0.1
    assert design_effect(apart, owners) < 1.4
    assert design_effect(np.zeros(800, np.bool_), owners) == 1
