"""The Vendi score by every way there is: against the dense kernel, the vendi-score package and expectations."""

import itertools
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from vendi_score import vendi as vendi_score

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    STANDARD_KERNELS,
    Interval,
    vendi,
    vendi_batches,
    vendi_features,
    vendi_jackknife,
    vendi_kernel,
    vendi_rarefied,
    vendi_table,
)
from culturekit.metrics.diversity.batch_diversity import cut_batches, signatures_of
from culturekit.metrics.diversity.label_spectra import (
    CrossingKernel,
    Deflated,
    NestedKernel,
    deflate,
    effective_numbers,
    from_sums,
    largest_eigenvalue,
    nests,
    power_sum,
    tsallis_sums,
)
from culturekit.metrics.diversity.labels import Missing, label_classes
from tests.oracles.vendi import coded, crossing_codes, dense_of_codes, kernel_of, nested_codes, score_of

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


SPECTRA_ORDERS = (0.1, 0.5, 0.9, 0.999999, 1.0, 1.000001, 1.05, 1.1, 1.11, 1.5, 2.0, 2.5, 3.0, 8.0, 50.0, math.inf)
SPECTRA_KERNELS = (
    (1 / 3, 1 / 3, 1 / 3),
    (0.5, 0.5, 0.0),
    (0.0, 0.5, 0.5),
    (0.7, 0.0, 0.3),
    (0.98, 0.01, 0.01),
    (0.01, 0.01, 0.98),
    (1e-6, 1e-3, 1 - 1e-6 - 1e-3),
)


def deflated(codes: np.ndarray, weights: tuple[float, ...]) -> Deflated:
    levels = [level for level, weight in enumerate(weights) if weight]
    return deflate(label_classes(list(codes.T)).on(levels), tuple(weights[level] for level in levels))


def by_sums(
    codes: np.ndarray, weights: tuple[float, ...], kind: type[NestedKernel] | type[CrossingKernel]
) -> list[float]:
    """Score without ever solving a matrix for eigenvalues, however few classes there are."""
    kernel = deflated(codes, weights)
    return from_sums(kernel, kind(kernel), SPECTRA_ORDERS)


@pytest.mark.parametrize("weights", SPECTRA_KERNELS)
@pytest.mark.parametrize("items", [14, 40, 160])
def test_nested_sums_agree_with_the_dense_kernel(weights: tuple[float, ...], items: int) -> None:
    codes = nested_codes(np.random.default_rng(items), items=items, artifacts=200, countries=20, continents=4)
    if not len(deflated(codes, weights).mass):
        pytest.skip("deflation left nothing")
    spectrum = dense_of_codes(codes, weights)
    for kind in (NestedKernel, CrossingKernel):
        expected = [score_of(spectrum, q) for q in SPECTRA_ORDERS]
        np.testing.assert_allclose(by_sums(codes, weights, kind), expected, rtol=3e-11)


@pytest.mark.parametrize("weights", SPECTRA_KERNELS[:6])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("artifacts", [6, 90])
def test_determinants_agree_with_the_dense_kernel(weights: tuple[float, ...], share: float, artifacts: int) -> None:
    rng = np.random.default_rng(int(10 * share))
    codes = crossing_codes(rng, items=200, artifacts=artifacts, countries=12, continents=4, share=share)
    spectrum = dense_of_codes(codes, weights)
    expected = [score_of(spectrum, q) for q in SPECTRA_ORDERS]
    np.testing.assert_allclose(by_sums(codes, weights, CrossingKernel), expected, rtol=3e-10)


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=30),
    weights=st.sampled_from([*SPECTRA_KERNELS[:4], *STANDARD_KERNELS.values()]),
    q=st.sampled_from(SPECTRA_ORDERS),
    copies=st.integers(1, 3),
)
@settings(deadline=None, derandomize=True, database=None, max_examples=150)
def test_any_labels_agree_with_the_dense_kernel(
    rows: list[tuple[int, int, int]], weights: tuple[float, float, float], q: float, copies: int
) -> None:
    codes = np.repeat(np.array(rows), copies, axis=0)
    expected = score_of(dense_of_codes(codes, weights), q)
    assert vendi(codes, weights=weights, q=q) == pytest.approx(expected, rel=1e-9)
    kernel = deflated(codes, weights)
    if len(kernel.mass) and len(kernel.weights) > 1:
        assert from_sums(kernel, CrossingKernel(kernel), [q])[0] == pytest.approx(expected, rel=1e-9)
        if nests(kernel):
            assert from_sums(kernel, NestedKernel(kernel), [q])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("codes", [NESTED, CROSSING, CROSSING * 10**9, np.zeros((7, 3), int)])
def test_classes_are_those_that_numpy_counts_in_any_order_of_the_items(codes: np.ndarray) -> None:
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    for order in (slice(None), slice(None, None, -1)):
        classes = label_classes(list(codes[order].T))
        assert np.unique(classes.labels, axis=0).shape == rows.shape == classes.labels.shape
        np.testing.assert_array_equal(classes.counts, counts)
    pairs, pair_counts = np.unique(codes[:, :2], axis=0, return_counts=True)
    np.testing.assert_array_equal(classes.on([0, 1]).labels, pairs)
    np.testing.assert_array_equal(classes.on([0, 1]).counts, pair_counts)


def test_a_million_items_without_a_country_are_no_burden() -> None:
    """An artifact that is known, in as many countries as there are items: one class after deflation."""
    items = 300_000
    codes = np.stack([np.zeros(items, int), np.arange(items), np.arange(items) % 3], axis=1)
    kernel = deflated(codes, (0.2, 0.3, 0.5))
    assert len(kernel.mass) == 3
    # Antisymmetric vectors see the countries only, those within artifacts' sums the artifacts too.
    country, artifact = 0.3 / items, 0.5 / 3 + 0.3 / items
    expected = np.array([country] * 3 + [artifact] * 2 + [0.2 + artifact])
    times = np.array([items / 3 - 1] * 3 + [1] * 3)
    for q, value in zip(
        (0.5, 1.0, 3.0), effective_numbers(label_classes(list(codes.T)), (0.2, 0.3, 0.5), (0.5, 1, 3)), strict=True
    ):
        spectrum = np.repeat(expected, times.astype(int))
        assert value == pytest.approx(score_of_many(spectrum, q), rel=1e-9)


def score_of_many(spectrum: np.ndarray, q: float) -> float:
    """Score without dropping what is small."""
    if q == 1:
        return float(np.exp(-np.sum(spectrum * np.log(spectrum))))
    return float(np.sum(spectrum**q) ** (1 / (1 - q)))


def test_sums_over_a_spectrum_that_is_known() -> None:
    codes = nested_codes(np.random.default_rng(8), items=400, artifacts=80, countries=9, continents=3)
    kernel = deflated(codes, (0.3, 0.3, 0.4))
    spectrum = np.linalg.eigvalsh(kernel.matrix())
    implicit = NestedKernel(kernel)
    assert implicit.rank == len(spectrum)
    assert implicit.trace == pytest.approx(spectrum.sum(), rel=1e-13)
    assert largest_eigenvalue(implicit) == pytest.approx(spectrum.max(), rel=1e-13)
    assert implicit.least <= spectrum.min() * (1 + 1e-12)
    assert implicit.most >= spectrum.max()
    t = np.array([1e-9, 1e-3, 1.0, 1e6])
    np.testing.assert_allclose(implicit.resolvent(t), (spectrum / (spectrum + t[:, None])).sum(axis=1), rtol=1e-12)
    z = np.array([0.3 + 0.1j, 1e-4 - 2e-3j])
    np.testing.assert_allclose(implicit.resolvent(z), (spectrum / (spectrum + z[:, None])).sum(axis=1), rtol=1e-11)
    sums = tsallis_sums(implicit, [0.25, 1.0])
    assert sums[1.0] == pytest.approx(-np.sum(spectrum * np.log(spectrum)), rel=1e-12)
    assert sums[0.25] == pytest.approx(np.sum(spectrum**0.25 - spectrum) / 0.75, rel=1e-12)
    top = spectrum.max()
    for q in (1.2, 4.0, 8.0, 30.0, 400.0):
        assert power_sum(implicit, q, largest=top) == pytest.approx(np.sum((spectrum / top) ** q), rel=1e-11)
    assert tsallis_sums(implicit, []) == {}


def test_the_score_falls_with_the_order_across_all_ways_of_computing_it() -> None:
    codes = nested_codes(np.random.default_rng(1), items=30_000, artifacts=3000, countries=80, continents=6)
    orders = [*np.geomspace(0.05, 1.2, 40), *np.linspace(1.3, 9, 40), 100, 1e4, math.inf]
    scores = effective_numbers(label_classes(list(codes.T)), (1 / 3, 1 / 3, 1 / 3), orders)
    assert all(later < earlier for earlier, later in pairwise(scores))
    assert scores[-1] == pytest.approx(scores[-2], rel=1e-2)
    assert math.isclose(effective_numbers(label_classes(list(codes.T)), (0.5, 0.5, 0.5), [1])[0], effective_numbers(
        label_classes(list(codes.T)), (1 / 3, 1 / 3, 1 / 3), [1])[0], rel_tol=1e-12)  # fmt: skip


SHARES = np.array([0.5, 0.25, 0.15, 0.1])
ARTIFACT = (0.0, 0.0, 1.0)


def draw(rng: np.random.Generator, items: int) -> np.ndarray:
    """Draw labels by SHARES; artifacts 0 and 1 are of one country."""
    artifact = rng.choice(len(SHARES), items, p=SHARES)
    return np.stack([np.zeros(items, int), np.array([0, 0, 1, 2])[artifact], artifact], axis=1)


def expected_vs(size: int) -> float:
    """Average VS over all ways to draw `size` items, exactly."""
    total = 0.0
    for counts in itertools.product(range(size + 1), repeat=len(SHARES)):
        if sum(counts) == size:
            share = np.array([count for count in counts if count]) / size
            total += float(stats.multinomial.pmf(counts, size, SHARES)) * math.exp(-np.sum(share * np.log(share)))
    return total


def test_rarefaction_is_unbiased_and_its_interval_holds() -> None:
    truth, runs = expected_vs(4), 300
    answers = [
        vendi_rarefied(
            draw(np.random.default_rng([1, run]), 80), size=4, weights=ARTIFACT, rng=np.random.default_rng(run)
        )
        for run in range(runs)
    ]
    mean = np.mean([answer.value for answer in answers])
    assert mean == pytest.approx(truth, abs=float(4 * np.std([answer.value for answer in answers]) / math.sqrt(runs)))
    covered = np.mean([answer.low <= truth <= answer.high for answer in answers])
    assert covered > 0.93
    assert answers[0] == Interval(answers[0].value, answers[0].low, answers[0].high, 80, "population")


def test_a_single_batch_has_a_value_but_no_interval() -> None:
    labels = draw(np.random.default_rng(0), 9)
    answer = vendi_rarefied(labels, size=9, weights=(0, 0.5, 0.5), q=2, rng=np.random.default_rng(1))
    assert answer.value == pytest.approx(vendi(labels, weights=(0, 0.5, 0.5), q=2))
    assert math.isnan(answer.low)
    assert math.isnan(answer.high)


def test_large_batches_need_no_kernel() -> None:
    labels = draw(np.random.default_rng(0), 3000)
    answer = vendi_rarefied(labels, size=1000, weights=(0.2, 0.3, 0.5), rng=np.random.default_rng(1))
    assert answer.low < vendi(labels, weights=(0.2, 0.3, 0.5)) < answer.high
    batches = vendi_batches(labels, size=1000, weights=(0.2, 0.3, 0.5), q=0.5)
    expected = [vendi(labels[start : start + 1000], weights=(0.2, 0.3, 0.5), q=0.5) / 1000 for start in (0, 1000, 2000)]
    np.testing.assert_allclose(batches, expected, rtol=1e-12)


def test_leaving_out_single_items_is_the_jackknife_of_the_textbook() -> None:
    labels = draw(np.random.default_rng(2), 30)
    whole = vendi(labels, weights=(0, 0.4, 0.6))
    without = np.array([vendi(np.delete(labels, row, axis=0), weights=(0, 0.4, 0.6)) for row in range(30)])
    value = 30 * whole - 29 * without.mean()
    margin = stats.t.ppf(0.95, 29) * math.sqrt(29 * without.var())
    answer = vendi_jackknife(labels, weights=(0, 0.4, 0.6), confidence=0.9, rng=np.random.default_rng(0))
    assert (answer.value, answer.low, answer.high) == pytest.approx((value, value - margin, value + margin), rel=1e-9)
    assert (answer.n, answer.target) == (30, "population")


def test_groups_of_unequal_size_correct_the_same_bias() -> None:
    """The plain score of 205 items is too low by 0.02 on average; three quarters of that go."""
    truth = math.exp(-np.sum(SHARES * np.log(SHARES)))
    plain, better = [], []
    for run in range(300):
        labels = draw(np.random.default_rng([3, run]), 205)
        plain.append(vendi(labels))
        better.append(vendi_jackknife(labels, weights=ARTIFACT, groups=20, rng=np.random.default_rng(run)))
    error = np.std(plain) / math.sqrt(300)
    assert np.mean(plain) < truth - 2 * error
    assert np.mean([answer.value for answer in better]) == pytest.approx(truth, abs=float(3 * error))
    assert 0.91 < np.mean([answer.low <= truth <= answer.high for answer in better]) < 0.98


def test_a_single_item_says_nothing_of_its_scatter() -> None:
    answer = vendi_jackknife([("a", "b", "c")], weights=ARTIFACT, rng=np.random.default_rng(0))
    assert answer.value == 1
    assert math.isnan(answer.low)
