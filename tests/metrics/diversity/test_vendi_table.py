"""Many kernels and orders at once: what `vendi` says, one pass over the labels."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import STANDARD_KERNELS, vendi, vendi_table
from culturekit.metrics.diversity.labels import Missing, classes_of, combined, label_classes
from tests.metrics.diversity.dense_oracle import crossing_codes, nested_codes

ORDERS = (0.1, 0.5, 1.0, 2.0, math.inf)
RNG = np.random.default_rng(3)
NESTED = nested_codes(RNG, items=5000, artifacts=700, countries=40, continents=6)
CROSSING = crossing_codes(RNG, items=3000, artifacts=200, countries=30, continents=5, share=0.1)


@pytest.mark.parametrize("codes", [NESTED, CROSSING], ids=["nested", "crossing"])
def test_every_cell_is_what_vendi_says(codes: np.ndarray) -> None:
    table = vendi_table(codes, weights=list(STANDARD_KERNELS.values()), q=ORDERS)
    assert table.columns == ["kernel", "w_continent", "w_country", "w_artifact", "q", "value", "n"]
    assert table["kernel"].to_list() == [name for name in STANDARD_KERNELS for _ in ORDERS]
    assert table["q"].to_list() == list(ORDERS) * 5
    assert set(table["n"]) == {len(codes)}
    for row in table.rows(named=True):
        weights = (row["w_continent"], row["w_country"], row["w_artifact"])
        assert row["value"] == pytest.approx(vendi(codes, weights=weights, q=row["q"]), rel=1e-11)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint32, np.uint16, np.int16])
def test_codes_texts_and_numbers_far_apart_say_the_same(kind: type) -> None:
    expected = vendi_table(NESTED, weights=[(0.2, 0.3, 0.5), (0.5, 0.5, 0)], q=[0.5, 1])
    columns = dict(zip(("continent", "country", "artifact"), NESTED.T, strict=True))
    frames = [
        pl.DataFrame({name: column.astype(kind) for name, column in columns.items()}),
        pl.DataFrame({name: column * 10**12 - 10**13 for name, column in columns.items()}),
        pl.DataFrame({name: [f"{name}{code:05d}" for code in column] for name, column in columns.items()}),
    ]
    frames.append(frames[2].with_columns(pl.all().cast(pl.Categorical)))
    frames.append(frames[2].with_columns(pl.col(name).cast(pl.Enum(frames[2][name].unique())) for name in columns))
    for frame in frames:
        assert vendi_table(frame, weights=[(0.2, 0.3, 0.5), (0.5, 0.5, 0)], q=[0.5, 1]).equals(expected)


@pytest.mark.parametrize("missing", ["distinct", "equal"])
@pytest.mark.parametrize("codes", [NESTED, CROSSING], ids=["nested", "crossing"])
def test_a_lazy_frame_says_what_the_frame_says(tmp_path: Path, codes: np.ndarray, missing: Missing) -> None:
    columns = dict(zip(("continent", "country", "artifact"), codes.T, strict=True))
    plain = pl.DataFrame(columns)
    texts = plain.select(pl.format(f"{name} {{}}", name).alias(name) for name in columns).with_columns(
        artifact=pl.when(pl.int_range(pl.len()) % 97 > 0).then(pl.col("artifact").str.to_uppercase())
    )
    for number, frame in enumerate([plain, texts]):
        path = tmp_path / f"{number}.parquet"
        frame.with_columns(model=pl.lit("m")).write_parquet(path, row_group_size=500)
        for weights in ([(0.2, 0.3, 0.5), (0.5, 0.5, 0)], [(0, 0, 1)]):
            rows = pl.scan_parquet(path).filter(pl.col("model") == "m")
            lazy = vendi_table(rows, weights=weights, q=[0.5, 1, 2], missing=missing)
            assert lazy.equals(vendi_table(frame, weights=weights, q=[0.5, 1, 2], missing=missing))
    with pytest.raises(UsageError, match="with the columns continent"):
        vendi_table(pl.LazyFrame({"continent": [1]}), weights=(0, 0, 1), q=1)
    with pytest.raises(UsageError, match="at least one"):
        vendi_table(plain.lazy().head(0), weights=(0, 0, 1), q=1)


def test_one_kernel_and_one_order_do_too() -> None:
    table = vendi_table(NESTED, weights=(0, 0, 1), q=1)
    assert table.height == 1
    assert table["value"][0] == vendi(NESTED)


def test_missing_labels_and_spelling_follow_the_conventions() -> None:
    frame = pl.DataFrame(
        {"continent": [None] * 4, "country": ["JP", "jp ", None, None], "artifact": ["a", "b", "c", None]}
    )
    for missing in ("distinct", "equal"):
        for normal in (True, False):
            options = {"missing": missing, "normalize_labels": normal}
            table = vendi_table(frame, weights=[(0.2, 0.3, 0.5), (1, 0, 0)], q=1, **options)  # type: ignore[arg-type]
            expected = [vendi(frame, weights=weights, **options) for weights in ((0.2, 0.3, 0.5), (1, 0, 0))]  # type: ignore[arg-type]
            assert table["value"].to_list() == pytest.approx(expected)


@pytest.mark.parametrize("codes", [NESTED, CROSSING, CROSSING * 10**9, np.zeros((7, 3), int)])
def test_classes_are_counted(codes: np.ndarray) -> None:
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    classes = classes_of(codes)
    assert classes.labels.shape == rows.shape
    np.testing.assert_array_equal(classes.counts, counts)
    assert classes.items == len(codes)
    np.testing.assert_array_equal(combined(list(classes.labels.T)), np.sort(combined(list(classes.labels.T))))
    order = np.random.default_rng(0).permutation(len(codes))
    shuffled = label_classes(list(codes[order].T))
    np.testing.assert_array_equal(shuffled.labels, classes.labels)
    np.testing.assert_array_equal(shuffled.counts, classes.counts)
    pairs, pair_counts = np.unique(codes[:, :2], axis=0, return_counts=True)
    np.testing.assert_array_equal(classes.on([0, 1]).labels, pairs)
    np.testing.assert_array_equal(classes.on([0, 1]).counts, pair_counts)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vendi_table(NESTED, weights=[], q=1), "weights must be three numbers"),
        (lambda: vendi_table(NESTED, weights=1, q=1), "weights must be a triple of numbers, or triples"),  # type: ignore[arg-type]
        (lambda: vendi_table(NESTED, weights=[(1, 0, 0), (1, 1, 0)], q=1), "found (1, 1, 0)"),
        (lambda: vendi_table(NESTED, weights=(1, 0, 0), q=[1, 0]), "q must be a number above 0"),
        (lambda: vendi_table([], weights=(1, 0, 0), q=1), "labels must be at least one"),
        (lambda: vendi_table(NESTED[:, :2], weights=(1, 0, 0), q=1), "labels[0] must be a triple"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], pl.DataFrame], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
