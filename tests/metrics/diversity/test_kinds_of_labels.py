"""Every function of labels: whatever holds them says the same, spelling is ignored, and nothing is what it is told."""

from collections.abc import Callable
from dataclasses import astuple, is_dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit import metrics
from tests.metrics.diversity.dense_oracle import crossing_codes

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
    for given in (labels, pl.DataFrame(labels, schema=list(LEVELS), orient="row")):
        same(function(given, weights=weights, missing=missing, **options), expected)


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
