"""Shares of labels, the quality-weighted score, bounds of unknown items, and what CUBE printed."""

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from culturekit.core.errors import UsageError
from culturekit.metrics import QVS, STANDARD_KERNELS, distribution, mean_cosine, qvs, vendi, vendi_bounds
from culturekit.metrics.diversity.label_diversity import share_limits
from culturekit.metrics.realism.manifolds import share_interval
from tests.metrics.diversity.dense_oracle import dense_of_codes, score_of

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


def test_the_score_of_one_level_is_a_function_of_the_shares() -> None:
    codes = np.random.default_rng(1).zipf(1.5, (300, 3)) % 20
    shares = distribution(codes, level="country")["p"].to_numpy()
    assert vendi(codes, weights=(0, 1, 0)) == pytest.approx(np.exp(-np.sum(shares * np.log(shares))))
    assert vendi(codes, weights=(0, 1, 0), q=2) == pytest.approx(1 / np.sum(shares**2))


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distribution(LABELS, level="city"), "level must be 'continent' or 'country' or 'artifact'"),
        (lambda: distribution([], level="country"), "labels must be at least one"),
        (lambda: distribution([("a", "b", 0.5)], level="artifact"), "each artifact label must be a text"),  # type: ignore[arg-type]
        (lambda: mean_cosine(np.ones(3)), "vectors must be a matrix with at least one cell; found 'shape (3,)'"),
        (lambda: mean_cosine(np.ones((0, 3))), "vectors must be a matrix with at least one cell"),
        (lambda: mean_cosine([[1, 0], [0, 0]]), "vectors[1] must be finite, and a vector other than zero"),
        (lambda: mean_cosine([[1, np.nan]]), "vectors[0] must be finite"),
        (lambda: mean_cosine([["a", "b"]]), "vectors must be a matrix of numbers"),
        (lambda: mean_cosine([[1, 2], [3]]), "vectors must be a matrix of numbers"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


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


def test_limits_hold_the_share_where_batches_agree_with_themselves() -> None:
    generator = np.random.default_rng(7)
    held = 0
    for _ in range(150):
        of_batch = generator.random(60) < 0.3
        shown = np.where(generator.random((60, 8)) < 0.7, of_batch[:, None], generator.random((60, 8)) < 0.3)
        table = pl.DataFrame({"batch": np.repeat(np.arange(60), 8), "label": shown.ravel().astype(str)})
        low, high = share_limits(table).filter(label="True").select("low", "high").row(0)
        held += low <= 0.3 <= high
    assert 137 <= held <= 149


QVS_LABELS = [("Asia", "JP", "sushi"), ("Asia", "IN", "dosa"), ("Africa", "NG", "jollof"), ("Africa", "NG", "jollof")]
QUALITY = [0.2, 0.4, 0.9, 0.1]


@pytest.mark.parametrize("weights", STANDARD_KERNELS.values())
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, math.inf])
def test_is_mean_quality_times_diversity(weights: tuple[float, float, float], q: float) -> None:
    score = qvs(QVS_LABELS, QUALITY, weights=weights, q=q)
    assert score.quality == pytest.approx(0.4)
    assert score.diversity == vendi(QVS_LABELS, weights=weights, q=q) / 4
    assert score.value == score.quality * score.diversity


def test_a_frame_and_an_array_do_as_well() -> None:
    frame = pl.DataFrame(QVS_LABELS, schema=["continent", "country", "artifact"], orient="row")
    assert qvs(frame, np.array(QUALITY), weights=(0, 0, 1)) == qvs(QVS_LABELS, QUALITY, weights=(0, 0, 1))


def test_reaches_one_for_perfect_and_different_items_and_zero_for_worthless_ones() -> None:
    different = [("Asia", "JP", f"x{number}") for number in range(8)]
    assert qvs(different, [1.0] * 8, weights=(0, 0, 1)).value == pytest.approx(1)
    assert qvs(different, [0.0] * 8, weights=(0, 0, 1)).value == 0


def test_is_aware_of_quality() -> None:
    """Of two equally diverse collections, the better one scores at least as high."""
    other = [("Europe", country, artifact) for _, country, artifact in QVS_LABELS]
    weights = (0.0, 0.5, 0.5)
    better, worse = qvs(QVS_LABELS, QUALITY, weights=weights), qvs(other, [0.3] * 4, weights=weights)
    assert better.diversity == pytest.approx(worse.diversity)
    assert better.value > worse.value


@given(
    quality=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    copies=st.integers(1, 6),
    weights=st.sampled_from(list(STANDARD_KERNELS.values())),
    q=st.sampled_from([0.5, 1.0, 2.0, math.inf]),
)
@settings(deadline=None, derandomize=True, database=None, max_examples=60)
def test_duplication_scales(quality: list[float], copies: int, weights: tuple[float, float, float], q: float) -> None:
    once = qvs(QVS_LABELS, quality, weights=weights, q=q)
    copied = qvs(QVS_LABELS * copies, quality * copies, weights=weights, q=q)
    assert copies * copied.value == pytest.approx(once.value, rel=1e-9)


def test_missing_labels_follow_the_convention() -> None:
    nothing = [(None, None, None)] * 2
    assert qvs(nothing, [1, 1], weights=(0, 0, 1)).diversity == pytest.approx(1)
    assert qvs(nothing, [1, 1], weights=(0, 0, 1), missing="equal").diversity == 0.5
    spelled = [("a", "b", "c"), ("a", "b", "C")]
    assert qvs(spelled, [1, 1], weights=(0, 0, 1)).diversity == 0.5
    assert qvs(spelled, [1, 1], weights=(0, 0, 1), normalize_labels=False).diversity == pytest.approx(1)


def test_a_score_is_a_value() -> None:
    assert QVS(quality=0.5, diversity=0.5) == QVS(0.5, 0.5)
    with pytest.raises(AttributeError):
        QVS(0.5, 0.5).quality = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: qvs(QVS_LABELS, [0.1], weights=(0, 0, 1)), "quality must be of length 4"),
        (lambda: qvs(QVS_LABELS, [], weights=(0, 0, 1)), "quality must be a sequence of at least one number"),
        (lambda: qvs(QVS_LABELS, [0.1, 0.2, math.nan, 0.4], weights=(0, 0, 1)), "quality[2] must be finite; found nan"),
        (lambda: qvs(QVS_LABELS, ["good"] * 4, weights=(0, 0, 1)), "quality must be a sequence of numbers"),
        (lambda: qvs([], [], weights=(0, 0, 1)), "labels must be at least one"),
        (lambda: qvs(QVS_LABELS, QUALITY, weights=(0, 0, 2)), "weights must be three numbers"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named_of_qvs(call: Callable[[], QVS], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


MODELS = ("IM", "SDXL", "PG", "RV")
CONCEPTS = ("cuisine", "landmarks", "art")
COLUMNS = [(concept, model) for concept in CONCEPTS for model in MODELS]

# Table 4, first row: the mean of HPS-v2
CUBE_TABLES_QUALITY = "0.27 0.21 0.29 0.27  0.25 0.22 0.21 0.23  0.31 0.30 0.34 0.33"

# Table 4: VS/8 per kernel
DIVERSITY = {
    "continent": "0.32 0.23 0.24 0.27  0.17 0.27 0.23 0.25  0.23 0.14 0.18 0.16",
    "country": "0.59 0.53 0.51 0.51  0.50 0.65 0.34 0.52  0.42 0.29 0.37 0.23",
    "artifact": "0.91 0.71 0.82 0.74  0.73 0.84 0.58 0.81  0.72 0.60 0.51 0.44",
    "hierarchical": "0.51 0.44 0.41 0.38  0.42 0.53 0.31 0.45  0.36 0.24 0.31 0.22",
    "uniform": "0.72 0.58 0.66 0.59  0.55 0.66 0.45 0.52  0.52 0.39 0.41 0.30",
}

# Table 5: the quality-weighted score per kernel
WEIGHTED = {
    "continent": "0.08 0.04 0.07 0.07  0.04 0.06 0.04 0.05  0.07 0.042 0.06 0.05",
    "country": "0.15 0.11 0.14 0.13  0.12 0.14 0.07 0.12  0.13 0.08 0.12 0.07",
    "artifact": "0.24 0.14 0.23 0.20  0.18 0.18 0.12 0.18  0.22 0.18 0.17 0.14",
    "hierarchical": "0.13 0.09 0.12 0.10  0.10 0.11 0.06 0.10  0.11 0.07 0.10 0.072",
    "uniform": "0.19 0.12 0.19 0.16  0.14 0.15 0.09 0.12  0.16 0.12 0.14 0.10",
}

# The cells of Table 5 that no values rounding to those of Table 4 can give; all four are printed too low
TOO_LOW = {
    ("continent", "cuisine", "SDXL"),
    ("continent", "landmarks", "PG"),
    ("continent", "landmarks", "RV"),
    ("country", "cuisine", "IM"),
}


def rounding(printed: str) -> tuple[float, float]:
    """Give the range of values that print like this."""
    half = 0.5 * 10 ** -len(printed.split(".")[1])
    return float(printed) - half, float(printed) + half


def test_table_5_is_table_4_multiplied_but_for_four_cells() -> None:
    misses, cells = {}, 0
    for kernel, row in WEIGHTED.items():
        for column, quality, diversity, weighted in zip(
            COLUMNS, CUBE_TABLES_QUALITY.split(), DIVERSITY[kernel].split(), row.split(), strict=True
        ):
            cells += 1
            (q_low, q_high), (d_low, d_high), (low, high) = map(rounding, (quality, diversity, weighted))
            if not (q_low * d_low <= high and low <= q_high * d_high):
                misses[kernel, *column] = high < q_low * d_low
    assert cells == 60
    assert set(misses) == TOO_LOW
    assert all(misses.values())


def test_the_kernels_are_those_of_the_paper() -> None:
    third = 1 / 3
    assert dict(STANDARD_KERNELS) == {
        "continent": (1, 0, 0),
        "country": (0, 1, 0),
        "artifact": (0, 0, 1),
        "hierarchical": (0.5, 0.5, 0),
        "uniform": (third, third, third),
    }
    assert list(WEIGHTED) == list(STANDARD_KERNELS)


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


def test_with_everything_known_both_are_the_score_and_with_nothing_known_all_is_possible() -> None:
    low, high = vendi_bounds(WORLD[:3], unknown=0, weights=(0, 0.5, 0.5))
    assert low == high == pytest.approx(vendi(WORLD[:3], weights=(0, 0.5, 0.5)))
    assert vendi_bounds([], unknown=5, weights=(0, 0, 1)) == (1.0, 5.0)


def test_missing_labels_follow_the_rule_for_them() -> None:
    unlabelled = [(None, None, None)] * 3
    assert vendi_bounds(unlabelled, unknown=1, weights=(0, 0, 1), missing="equal") == pytest.approx(
        (1.0, math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25))))
    )
    assert vendi_bounds(unlabelled, unknown=1, weights=(0, 0, 1))[1] == pytest.approx(4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"labels": [], "unknown": 0}, "at least one item"),
        ({"labels": WORLD, "unknown": -1}, "0 or more"),
        ({"labels": WORLD, "unknown": 1, "q": 0}, "above 0"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        vendi_bounds(**{"weights": (0, 0, 1), **arguments})  # type: ignore[arg-type]
