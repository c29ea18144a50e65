"""The Vendi score of labels, batches, kernels and features: against other implementations."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from vendi_score import vendi as vendi_score

from culturekit.core.errors import UsageError
from culturekit.metrics import STANDARD_KERNELS, vendi, vendi_batches, vendi_features, vendi_kernel, vendi_table
from culturekit.metrics.diversity.batch_diversity import cut_batches, signatures_of
from culturekit.metrics.diversity.labels import Missing, combined, label_classes
from tests.metrics.diversity.dense_oracle import crossing_codes, dense_of_codes, nested_codes, score_of
from tests.oracles.vendi import coded, kernel_of

ORDERS = (0.1, 0.5, 0.95, 0.999999, 1.0, 1.000001, 1.05, 1.5, 2.0, 3.7, 50.0, math.inf)
KERNELS = (*STANDARD_KERNELS.values(), (0.2, 0.3, 0.5), (0.0, 0.4, 0.6), (0.7, 0.0, 0.3))
RNG = np.random.default_rng(3)
NESTED = nested_codes(RNG, items=5000, artifacts=700, countries=40, continents=6)
CROSSING = crossing_codes(RNG, items=3000, artifacts=200, countries=30, continents=5, share=0.1)
both_codes = pytest.mark.parametrize("codes", [NESTED, CROSSING], ids=["nested", "crossing"])


@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("missing", ["distinct", "equal"])
def test_agrees_with_the_dense_kernel(weights: tuple[float, float, float], missing: Missing) -> None:
    names = np.array(["a", "b", "c", "d", "e", None], dtype=object)
    for items in (1, 2, 9, 40):
        labels = np.random.default_rng(7).choice(names, (items, 3)).tolist()
        spectrum = dense_of_codes(coded(labels, missing=missing), weights)
        for q in ORDERS:
            ours = vendi(labels, weights=weights, q=q, missing=missing)
            assert ours == pytest.approx(score_of(spectrum, q), rel=1e-10)


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 4.0, math.inf])
def test_agrees_with_the_vendi_score_package(weights: tuple[float, float, float], q: float) -> None:
    codes = np.random.default_rng(3).integers(0, 15, (60, 1)) % np.array([3, 7, 15])
    kernel = kernel_of(codes, weights)
    theirs = vendi_score.score_K(kernel, q="inf" if q == math.inf else q)
    assert vendi(codes, weights=weights, q=q) == pytest.approx(float(theirs), rel=1e-9)
    assert vendi_kernel(kernel, q=q) == pytest.approx(float(theirs), rel=1e-9)
    if weights[2]:  # below order one the package counts rounding noise, but for full rank
        codes = np.arange(12)[:, None] % np.array([2, 4, 12])
        theirs = vendi_score.score_K(kernel_of(codes, weights), q=0.4)
        assert vendi(codes, weights=weights, q=0.4) == pytest.approx(float(theirs), rel=1e-10)


def test_a_rank_deficient_kernel_below_order_one_gets_nothing_from_rounding_noise() -> None:
    crossed = [(continent, country, None) for continent in "ab" for country in "xy"] * 5
    # ½·(J⊗I + I⊗J)/2 on the 2×2 grid has the eigenvalues ½, ¼, ¼ and 0.
    expected = (0.5**0.1 + 2 * 0.25**0.1) ** (1 / 0.9)
    assert vendi(crossed, weights=(0.5, 0.5, 0), q=0.1) == pytest.approx(expected, rel=1e-12)


def test_weights_may_be_typed_with_few_digits_and_be_of_any_sequence() -> None:
    labels = [("Asia", "JP", "sushi"), ("Asia", "IN", "dosa"), ("Africa", "NG", "tea")]
    typed = vendi(labels, weights=[0.3333333333, 0.3333333333, 0.3333333333])
    assert typed == pytest.approx(vendi(labels, weights=STANDARD_KERNELS["uniform"]), rel=1e-8)
    assert vendi(labels, weights=np.array([0, 0.5, 0.5])) == vendi(labels, weights=(0, 0.5, 0.5))  # type: ignore[arg-type]


def of_each_batch(codes: np.ndarray, size: int, *, partial: str, **ask: Any) -> list[float]:
    parts = [codes[start : start + size] for start in range(0, len(codes), size)]
    return [vendi(part, **ask) / size for part in parts if partial == "paper" or len(part) == size]


@pytest.mark.parametrize("partial", ["drop", "paper"])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 64, 65])
@pytest.mark.parametrize("q", [0.3, 0.99, 1.0, 2.0, math.inf])
def test_each_batch_has_its_score(size: int, q: float, partial: Any) -> None:
    """Labels that nest and that do not, of sizes around the largest pattern, the last batch incomplete."""
    for codes in (
        NESTED[: size * 12 + size // 2],
        np.random.default_rng(size).integers(0, [3, 9, 40], (size * 4 - 1, 3)),
    ):
        kernels = KERNELS if size <= 8 else KERNELS[4:6]
        together = vendi_batches(codes, size=size, weights=list(kernels), q=q, partial=partial)
        for row, weights in zip(together, kernels, strict=True):
            expected = of_each_batch(codes, size, partial=partial, weights=weights, q=q)
            np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)
            alone = vendi_batches(codes, size=size, weights=weights, q=q, partial=partial)
            np.testing.assert_allclose(alone, expected, rtol=0, atol=1e-12)


def test_too_few_items_for_a_batch_give_no_score() -> None:
    different = np.arange(7)[:, None].repeat(3, axis=1)
    for weights in KERNELS:
        assert vendi_batches(different, weights=weights).shape == (0,)
        for q in (0.1, 1.0, math.inf):
            (paper,) = vendi_batches(different, weights=weights, q=q, partial="paper")
            assert paper == pytest.approx(7 / 8)
            assert paper <= 7 / 8


def test_batches_of_the_same_pattern_are_solved_once() -> None:
    """All nested patterns of 4 items: 4 = 1 in a continent of 1 and so on; 15 of them, whatever the names."""
    rng = np.random.default_rng(0)
    artifact = rng.integers(0, 8, (3000, 4))
    country = artifact // 2
    codes = np.stack([country // 2, country, artifact], axis=2).reshape(-1, 3)
    found = []
    for labels in (codes, rng.permutation(1000)[codes]):
        batches = cut_batches(np.zeros(len(labels)), 4, "drop")
        signatures = signatures_of(dict(enumerate(labels.T)), batches.rows, batches.present)
        assert signatures.size == 4
        assert signatures.filled.tolist() == [4] * len(signatures.filled)
        np.testing.assert_array_equal(np.unique(signatures.of_batch), np.arange(len(signatures.filled)))
        found.append(signatures)
    assert len(found[0].filled) == len(found[1].filled) < 40
    np.testing.assert_array_equal(found[0].of_batch, found[1].of_batch)


@both_codes
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
@both_codes
def test_a_lazy_frame_says_what_the_frame_says(tmp_path: Path, codes: np.ndarray, missing: Missing) -> None:
    plain = pl.DataFrame(codes, schema=["continent", "country", "artifact"])
    texts = plain.select(pl.format(f"{name} {{}}", name).alias(name) for name in plain.columns).with_columns(
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


@pytest.mark.parametrize("codes", [NESTED, CROSSING, CROSSING * 10**9, np.zeros((7, 3), int)])
def test_classes_are_counted(codes: np.ndarray) -> None:
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    classes = label_classes(list(codes.T))
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


def features(items: int, width: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=(items, width))


@pytest.mark.parametrize("q", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("shape", [(60, 7), (7, 60)])
def test_features_agree_with_the_vendi_score_package(q: float, shape: tuple[int, int]) -> None:
    vectors = features(*shape)
    expected = float(vendi_score.score_dual(vectors, q=q))
    assert vendi_features(vectors, q=q) == pytest.approx(expected, rel=1e-10)
    assert vendi_features(vectors.astype(np.float32), q=q) == pytest.approx(expected, rel=1e-5)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    assert vendi_kernel(unit @ unit.T, q=q) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e308, 5e-324])
def test_features_of_any_size_have_the_score_of_their_directions(scale: float) -> None:
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    mixed = rows * np.array([[scale], [1.0], [scale], [1.0]])
    assert vendi_features(mixed) == pytest.approx(vendi_features(rows), rel=1e-12)


def test_many_short_vectors_need_no_kernel_between_them() -> None:
    """The 20,000 × 20,000 kernel would take 3.2 GB."""
    assert vendi_features(np.tile(np.eye(4), (5000, 1))) == pytest.approx(4)
