"""Scores of many batches at once: what `vendi` says of each, but fast."""

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics import STANDARD_KERNELS, vendi, vendi_batches
from culturekit.metrics.diversity.batch_diversity import cut_batches, signatures_of
from culturekit.metrics.diversity.labels import Missing

Triple = tuple[str | None, str | None, str | None]
CONVENTIONS: tuple[Missing, ...] = ("distinct", "equal")
KERNELS = (*STANDARD_KERNELS.values(), (0.0, 0.4, 0.6), (0.7, 0.0, 0.3))


def nested_labels(items: int, *, seed: int, missing: float = 0.0) -> list[Triple]:
    """Draw labels with a few common artifacts and many rare ones; some may be missing."""
    rng = np.random.default_rng(seed)
    drawn = rng.zipf(1.5, items) % 200
    labels: list[Triple] = [(f"c{a % 6}", f"k{a % 40}", f"x{a}") for a in drawn]
    gone = rng.random(items) < missing
    return [(None, None, None) if absent else label for label, absent in zip(labels, gone, strict=True)]


@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("q", [0.3, 0.99, 1.0, 1.2, 2.0, 5.0, math.inf])
@pytest.mark.parametrize("missing", CONVENTIONS)
def test_agrees_with_the_score_of_each_batch(weights: tuple[float, float, float], q: float, missing: Missing) -> None:
    labels = nested_labels(24 * 8 + 5, seed=11, missing=0.1)
    scores = vendi_batches(labels, weights=weights, q=q, missing=missing)
    expected = [
        vendi(labels[start : start + 8], weights=weights, q=q, missing=missing) / 8 for start in range(0, 24 * 8, 8)
    ]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 13])
def test_any_size_does(size: int) -> None:
    labels = nested_labels(40, seed=2)
    scores = vendi_batches(labels, size=size, weights=(0.2, 0.3, 0.5))
    assert scores.shape == (40 // size,)
    expected = [
        vendi(labels[number * size : (number + 1) * size], weights=(0.2, 0.3, 0.5)) / size
        for number in range(40 // size)
    ]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


def test_the_two_ends_of_the_scale() -> None:
    alike: list[Triple] = [("Asia", "JP", "sushi")] * 8
    different: list[Triple] = [(f"c{n}", f"k{n}", f"x{n}") for n in range(8)]
    for weights in KERNELS:
        np.testing.assert_allclose(vendi_batches(alike + different, weights=weights), [1 / 8, 1], atol=1e-12)
        assert vendi_batches(alike + different, weights=weights).max() <= 1


@pytest.mark.parametrize("weights", KERNELS)
def test_an_incomplete_batch_is_dropped_or_divided_by_the_full_size(weights: tuple[float, float, float]) -> None:
    labels = nested_labels(21, seed=5, missing=0.2)
    dropped = vendi_batches(labels, weights=weights)
    paper = vendi_batches(labels, weights=weights, partial="paper")
    assert dropped.shape == (2,)
    np.testing.assert_array_equal(paper[:2], dropped)
    assert paper[2] == pytest.approx(vendi(labels[16:], weights=weights) / 8, abs=1e-12)
    assert paper[2] <= 5 / 8


def test_too_few_items_for_a_batch_give_no_score() -> None:
    assert vendi_batches(nested_labels(7, seed=1), weights=(0, 0, 1)).shape == (0,)
    assert vendi_batches(nested_labels(7, seed=1), weights=(0, 0, 1), partial="paper").shape == (1,)
    different: list[Triple] = [(f"c{n}", f"k{n}", f"x{n}") for n in range(7)]
    for weights in KERNELS:
        for q in (0.1, 0.5, 1.0, 2.0, math.inf):
            paper = vendi_batches(different, weights=weights, q=q, partial="paper")
            assert paper[0] == pytest.approx(7 / 8)
            assert paper[0] <= 7 / 8


def test_a_frame_equals_a_list_and_spelling_is_ignored() -> None:
    labels = nested_labels(32, seed=9)
    frame = pl.DataFrame(labels, schema=["continent", "country", "artifact"], orient="row")
    shouted = frame.with_columns(pl.col("artifact").str.to_uppercase())
    mixed = pl.concat([frame, shouted]).gather_every(2)
    for weights in KERNELS:
        np.testing.assert_array_equal(vendi_batches(frame, weights=weights), vendi_batches(labels, weights=weights))
        np.testing.assert_array_equal(vendi_batches(shouted, weights=weights), vendi_batches(labels, weights=weights))
    exact = vendi_batches(mixed, weights=(0, 0, 1), normalize_labels=False)
    assert exact.shape == (4,)


def test_the_order_within_a_batch_does_not_matter() -> None:
    labels = nested_labels(80, seed=4)
    backwards = [labels[start + place] for start in range(0, 80, 8) for place in reversed(range(8))]
    for weights in KERNELS:
        np.testing.assert_allclose(
            vendi_batches(backwards, weights=weights), vendi_batches(labels, weights=weights), atol=1e-12
        )


@pytest.mark.parametrize("q", [0.3, 1.0, 2.0, math.inf])
def test_labels_that_do_not_nest_and_several_kernels_at_once(q: float) -> None:
    codes = np.random.default_rng(8).integers(0, 4, (8 * 60, 3))
    together = vendi_batches(codes, weights=list(KERNELS), q=q)
    assert together.shape == (len(KERNELS), 60)
    for row, weights in zip(together, KERNELS, strict=True):
        expected = [vendi(codes[start : start + 8], weights=weights, q=q) / 8 for start in range(0, 480, 8)]
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(vendi_batches(codes, weights=weights, q=q), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 64, 65])
def test_sizes_around_the_largest_pattern(size: int) -> None:
    codes = np.random.default_rng(size).integers(0, [3, 9, 40], (size * 4 - 1, 3))
    for partial in ("drop", "paper"):
        scores = vendi_batches(codes, size=size, weights=(0.2, 0.3, 0.5), partial=partial)
        parts = [codes[start : start + size] for start in range(0, len(codes), size)]
        kept = parts if partial == "paper" else parts[:-1]
        expected = [vendi(part, weights=(0.2, 0.3, 0.5)) / size for part in kept]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


def test_batches_of_the_same_pattern_are_solved_once() -> None:
    """All nested patterns of 4 items: 4 = 1 in a continent of 1 and so on; 15 of them, whatever the names."""
    rng = np.random.default_rng(0)
    artifact = rng.integers(0, 8, (3000, 4))
    country = artifact // 2
    codes = np.stack([country // 2, country, artifact], axis=2).reshape(-1, 3)
    renamed = rng.permutation(1000)[codes]
    found = []
    for labels in (codes, renamed):
        batches = cut_batches(np.zeros(len(labels)), 4, "drop")
        signatures = signatures_of(dict(enumerate(labels.T)), batches.rows, batches.present)
        assert signatures.size == 4
        assert signatures.filled.tolist() == [4] * len(signatures.filled)
        np.testing.assert_array_equal(np.unique(signatures.of_batch), np.arange(len(signatures.filled)))
        found.append(signatures)
    assert len(found[0].filled) == len(found[1].filled) < 40
    np.testing.assert_array_equal(found[0].of_batch, found[1].of_batch)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vendi_batches([], weights=(0, 0, 1)), "labels must be at least one"),
        (lambda: vendi_batches(nested_labels(8, seed=0), size=0, weights=(0, 0, 1)), "size must be a whole number"),
        (lambda: vendi_batches(nested_labels(8, seed=0), size=2.5, weights=(0, 0, 1)), "found 2.5"),  # type: ignore[arg-type]
        (lambda: vendi_batches(nested_labels(8, seed=0), weights=(1, 1, 1)), "weights must be three numbers"),
        (lambda: vendi_batches(nested_labels(8, seed=0), weights=(0, 0, 1), q=0), "q must be a number above 0"),
        (
            lambda: vendi_batches(nested_labels(8, seed=0), weights=(0, 0, 1), partial="keep"),  # type: ignore[arg-type]
            "partial must be 'drop' or 'paper'; found 'keep'",
        ),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], NDArray[np.float64]], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
