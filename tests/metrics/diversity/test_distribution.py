"""Shares of labels, quality times diversity, bounds, and labels of every kind."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from culturekit import metrics
from culturekit.metrics import QVS, STANDARD_KERNELS, distribution, mean_cosine, qvs, vendi, vendi_bounds
from culturekit.metrics.diversity.label_diversity import share_limits
from culturekit.metrics.realism.manifolds import share_interval
from tests.oracles.vendi import crossing_codes, dense_of_codes, score_of

LABELS = [("Asia", "JP", "Sushi"), ("Asia", "JP", "sushi "), ("Asia", "IN", "dosa"), (None, None, None)]


def test_shares_are_counts_over_all_items() -> None:
    table = distribution(LABELS, level="artifact")
    assert table.rows() == [("Sushi", 2, 0.5), ("dosa", 1, 0.25), (None, 1, 0.25)]
    assert table.columns == ["label", "n", "p"]
    assert distribution(LABELS, level="continent").rows() == [("Asia", 3, 0.75), (None, 1, 0.25)]
    apart = distribution(LABELS, level="artifact", normalize_labels=False)
    assert apart.rows() == [("Sushi", 1, 0.25), ("dosa", 1, 0.25), ("sushi ", 1, 0.25), (None, 1, 0.25)]


@pytest.mark.parametrize("level", ["continent", "country", "artifact"])
def test_any_kind_of_labels_gives_the_same(level: str) -> None:
    codes = np.random.default_rng(0).integers(0, 9, (200, 3))
    place = ["continent", "country", "artifact"].index(level)
    counts = Counter(codes[:, place].tolist())
    expected = sorted(((label, n, n / 200) for label, n in counts.items()), key=lambda row: (-row[1], row[0]))
    assert distribution(codes, level=level).rows() == expected
    assert distribution(codes.tolist(), level=level).rows() == expected
    frame = pl.DataFrame(codes, schema=["continent", "country", "artifact"])
    assert distribution(frame, level=level).rows() == expected
    texts = [(str(label), n, p) for label, n, p in expected]
    assert distribution(frame.cast(pl.String), level=level).rows() == texts
    assert distribution(frame.cast(pl.String).cast(pl.Categorical), level=level).rows() == texts


def test_mean_cosine_is_the_mean_over_all_pairs() -> None:
    rng = np.random.default_rng(2)
    for vectors in (rng.normal(size=(40, 7)), rng.normal(1, 0.1, (9, 300)).astype(np.float32), rng.normal(size=(1, 3))):
        assert mean_cosine(vectors) == pytest.approx(cosine_similarity(vectors.astype(float)).mean(), rel=1e-10)


def test_mean_cosine_at_its_ends_and_whatever_the_lengths() -> None:
    assert mean_cosine(np.ones((5, 3)) * 1e-200) == pytest.approx(1)
    assert mean_cosine([[1, 0], [-2, 0]]) == pytest.approx(0, abs=1e-15)
    assert mean_cosine(np.eye(8)) == pytest.approx(1 / 8)
    vectors = np.random.default_rng(3).normal(size=(70_000, 4))
    scaled = vectors * np.random.default_rng(4).uniform(0.1, 9, (70_000, 1))
    assert mean_cosine(scaled[::-1]) == pytest.approx(mean_cosine(vectors), rel=1e-9)
    assert mean_cosine(np.concatenate([vectors, vectors])) == pytest.approx(mean_cosine(vectors), rel=1e-9)


IMAGES = st.lists(st.tuples(st.integers(0, 24), st.sampled_from(["BR", "IN", "JP", None])), min_size=1, max_size=120)


@settings(deadline=None)
@given(IMAGES)
def test_each_label_has_the_limits_of_a_share_of_images_in_clusters(drawn: list[tuple[int, str | None]]) -> None:
    drawn = [*((batch, "IN") for batch in range(20)), *drawn]
    batches, labels = zip(*drawn, strict=True)
    found = share_limits(pl.DataFrame({"batch": batches, "label": labels}))
    assert set(found["label"]) == set(labels)
    for label, low, high in found.iter_rows():
        expected = share_interval([float(one == label) for one in labels], clusters=list(batches))
        assert low == pytest.approx(expected.low, abs=1e-9)
        assert high == pytest.approx(expected.high, abs=1e-9)


def test_with_few_batches_there_are_no_limits() -> None:
    table = pl.DataFrame({"batch": [number % 19 for number in range(100)], "label": ["BR"] * 100})
    assert share_limits(table).row(0) == ("BR", None, None)


QVS_LABELS = [("Asia", "JP", "sushi"), ("Asia", "IN", "dosa"), ("Africa", "NG", "jollof"), ("Africa", "NG", "jollof")]
QUALITY = [0.2, 0.4, 0.9, 0.1]


@pytest.mark.parametrize("weights", STANDARD_KERNELS.values())
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, math.inf])
def test_is_mean_quality_times_diversity(weights: tuple[float, float, float], q: float) -> None:
    score = qvs(QVS_LABELS, QUALITY, weights=weights, q=q)
    assert score.quality == pytest.approx(0.4)
    assert score == QVS(score.quality, vendi(QVS_LABELS, weights=weights, q=q) / 4)
    assert score.value == score.quality * score.diversity


def test_the_kernels_are_those_of_the_paper() -> None:
    third = 1 / 3
    assert dict(STANDARD_KERNELS) == {
        "continent": (1, 0, 0),
        "country": (0, 1, 0),
        "artifact": (0, 0, 1),
        "hierarchical": (0.5, 0.5, 0),
        "uniform": (third, third, third),
    }


Triple = tuple[int, int, int]
# Eight artifacts of four countries of two continents
WORLD: list[Triple] = [
    (continent, 2 * continent + country, 4 * continent + 2 * country + artifact)
    for continent in range(2)
    for country in range(2)
    for artifact in range(2)
]
kernels = st.sampled_from([*STANDARD_KERNELS.values(), (0.2, 0.0, 0.8), (0.6, 0.3, 0.1)])
orders = st.sampled_from([0.5, 1.0, 2.0, math.inf])


def every_way(known: list[Triple], unknown: int, weights: tuple[float, float, float], q: float) -> list[float]:
    """VS for every choice of artifacts of the world for the unknown items."""
    ways = itertools.combinations_with_replacement(WORLD, unknown)
    return [score_of(dense_of_codes(np.array([*known, *chosen]), weights), q) for chosen in ways]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORLD), min_size=1, max_size=6), st.integers(1, 3), kernels, orders)
def test_no_way_of_naming_the_unknown_items_leaves_the_bounds(
    known: list[Triple], unknown: int, weights: tuple[float, float, float], q: float
) -> None:
    low, high = vendi_bounds(known, unknown=unknown, weights=weights, q=q)
    scores = every_way(known, unknown, weights, q)
    assert low <= min(scores) + 1e-9
    assert max(scores) <= high + 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORLD), min_size=1, max_size=6), st.integers(0, 3), kernels, orders)
def test_both_bounds_are_reached(
    known: list[Triple], unknown: int, weights: tuple[float, float, float], q: float
) -> None:
    low, high = vendi_bounds(known, unknown=unknown, weights=weights, q=q)
    new = [(100 + number,) * 3 for number in range(unknown)]
    assert high == pytest.approx(vendi([*known, *new], weights=weights, q=q), abs=1e-9)
    repeats = [vendi([*known, *[item] * unknown], weights=weights, q=q) for item in known]
    assert low == pytest.approx(min(repeats), abs=1e-9)


def test_with_nothing_known_all_is_possible() -> None:
    assert vendi_bounds([], unknown=5, weights=(0, 0, 1)) == (1.0, 5.0)


def test_bounds_are_of_order_one_where_none_is_named() -> None:
    bounds = partial(vendi_bounds, WORLD[:3], unknown=1, weights=(0.2, 0.3, 0.5))
    assert bounds() == bounds(q=1) != bounds(q=2)


LEVELS = ("continent", "country", "artifact")
KERNELS = [(0.2, 0.3, 0.5), (0.5, 0.5, 0.0), (0.0, 0.0, 1.0)]


def seeded(name: str) -> Callable[..., Any]:
    function = getattr(metrics, name)
    return lambda labels, **rest: function(labels, rng=np.random.default_rng(1), **rest)


OF_LABELS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "vendi": (metrics.vendi, {}),
    "vendi_batches": (metrics.vendi_batches, {"size": 5, "partial": "paper"}),
    "vendi_table": (lambda labels, **rest: metrics.vendi_table(labels, q=[0.5, 1], **rest)["value"].to_list(), {}),
    "vendi_bounds": (metrics.vendi_bounds, {"unknown": 2}),
    "vendi_rarefied": (seeded("vendi_rarefied"), {"size": 8}),
    "vendi_jackknife": (seeded("vendi_jackknife"), {"groups": 6}),
    "qvs": (lambda labels, **rest: metrics.qvs(labels, np.linspace(0, 1, 24), **rest), {}),
}
CODES = crossing_codes(np.random.default_rng(3), items=24, artifacts=9, countries=5, continents=3, share=0.3)
NAMES = [tuple(f"{level[:3]} {code}" for level, code in zip(LEVELS, row, strict=True)) for row in CODES.tolist()]


def same(one: Any, other: Any) -> None:
    found, expected = (astuple(each)[:3] if is_dataclass(each) else each for each in (one, other))  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def with_gaps(names: list[tuple[str, ...]], *, distinct: bool) -> list[tuple[str, ...]]:
    """Write out what a missing label stands for: a label of its own, or one label for all."""
    return [
        tuple(f"gap {row if distinct else ''}" if (row + level) % 4 == 0 else name for level, name in enumerate(triple))
        for row, triple in enumerate(names)
    ]


@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("name", OF_LABELS)
def test_frames_arrays_lists_texts_and_numbers_say_the_same(name: str, weights: tuple[float, float, float]) -> None:
    function, options = OF_LABELS[name]
    expected = function(NAMES, weights=weights, **options)
    frame = pl.DataFrame(NAMES, schema=list(LEVELS), orient="row").with_columns(another=1)
    shouted = frame.with_columns(pl.col("artifact").str.to_uppercase(), country="  " + pl.col("country"))
    numbers = pl.DataFrame(CODES, schema=list(LEVELS))
    for labels in (frame, shouted, frame.cast({"artifact": pl.Categorical}), numbers, numbers.cast(pl.Int16), CODES,
                   CODES.tolist(), np.array(NAMES, dtype=object)):  # fmt: skip
        same(function(labels, weights=weights, **options), expected)
    mixed = pl.concat([frame.head(12), shouted.tail(12)])
    apart = [(one, *(f"{value}{'!' * (row >= 12)}" for value in rest)) for row, (one, *rest) in enumerate(NAMES)]
    found = function(mixed, weights=weights, normalize_labels=False, **options)
    same(found, function(apart, weights=weights, **options))


@pytest.mark.parametrize("missing", ["distinct", "equal"])
@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("name", OF_LABELS)
def test_a_missing_label_follows_the_convention(name: str, weights: tuple[float, float, float], missing: str) -> None:
    function, options = OF_LABELS[name]
    named = with_gaps(NAMES, distinct=missing == "distinct")
    labels = [tuple(None if value.startswith("gap") else value for value in triple) for triple in named]
    expected = function(named, weights=weights, **options)
    for given_as in (labels, pl.DataFrame(labels, schema=list(LEVELS), orient="row")):
        same(function(given_as, weights=weights, missing=missing, **options), expected)


def test_frames_of_pandas_are_taken() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [("Asia", "JP", "obi"), ("Asia", "JP", None), ("Europe", None, "kilt")]
    frame = pandas.DataFrame(rows, columns=list(LEVELS))
    assert metrics.vendi(frame, weights=(0.2, 0.3, 0.5)) == metrics.vendi(rows, weights=(0.2, 0.3, 0.5))


def test_plain_labels_stand_for_all_levels_and_letters_fold() -> None:
    plain = ["a", "b", "b", None]
    triples = [(label, label, label) for label in plain]
    assert metrics.vendi(plain, weights=(0.2, 0.3, 0.5)) == metrics.vendi(triples, weights=(0.2, 0.3, 0.5))
    assert metrics.vendi(np.array(["a", "b"])) == metrics.vendi([1, 2]) == pytest.approx(2)
    assert metrics.vendi([("", "", "Dürüm"), ("", "", " DU\u0308RU\u0308M")]) == 1
    assert metrics.vendi([("", "", "Straße"), ("", "", "STRASSE")]) == 1
    mixed: list[tuple[int, int, int | str]] = [(1, 1, 1), (1, 1, "1")]
    assert metrics.vendi(mixed) == pytest.approx(2)
