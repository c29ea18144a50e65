from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.choices import Aggregate
from culturekit.index.encoder import Vectors
from culturekit.index.matching import match_batch as match_scope
from culturekit.index.matching.match_batch import (
    Adjusted,
    Matched,
    country_sets,
    match_batch,
    ranked_by_blocks,
    scope_of,
)
from tests.index.matching.naive_matches import World, artifact_scores, made_world, naive_rows, unit

EQUAL = {"image": 1.0, "text": 1.0}


def queries_of(world: World, seed: int, count: int = 4) -> Vectors:
    """Some of the world's own vectors, which tie most, and some fresh ones."""
    numbers = np.random.default_rng(seed + 1)
    own = next(iter(world.channels.values())).vectors
    fresh = unit(numbers.normal(size=(count, own.shape[1])))
    return np.concatenate([own[numbers.integers(0, len(own), count)], fresh]) if len(own) else fresh


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
