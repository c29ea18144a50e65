"""The Vendi score of labels, batches, kernels and features: against other implementations."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from vendi_score import vendi as vendi_score

from culturekit.core.errors import UsageError
from culturekit.metrics import STANDARD_KERNELS, vendi, vendi_batches, vendi_kernel, vendi_table
from culturekit.metrics import vendi_features as vendi_kernel_vendi_features
from culturekit.metrics.diversity.batch_diversity import cut_batches, signatures_of
from culturekit.metrics.diversity.kernel_diversity import vendi_features
from culturekit.metrics.diversity.labels import Missing, classes_of, combined, label_classes
from tests.metrics.diversity.dense_oracle import crossing_codes, nested_codes

Triple = tuple[str | None, str | None, str | None]

CONVENTIONS: tuple[Missing, ...] = ("distinct", "equal")
INFINITY = float("inf")
ORDERS = (0.1, 0.5, 0.95, 0.999999, 1.0, 1.000001, 1.05, 1.5, 2.0, 3.7, 50.0, INFINITY)
KERNELS = (*STANDARD_KERNELS.values(), (0.2, 0.3, 0.5), (0.0, 0.4, 0.6), (0.7, 0.0, 0.3))

some_labels = st.lists(
    st.tuples(
        st.sampled_from(["Asia", "Africa", None]),
        st.sampled_from(["JP", "IN", "NG", None]),
        st.sampled_from(["sushi", "dosa", "jollof", "tea", "rice", None]),
    ),
    min_size=1,
    max_size=14,
)
few = settings(deadline=None, derandomize=True, database=None, max_examples=60)


def alike(one: str | None, other: str | None, *, missing: str) -> bool:
    """Compare two different items on one level."""
    return one == other and (one is not None or missing == "equal")


def dense_kernel(
    labels: Sequence[Triple], weights: tuple[float, float, float], *, missing: str = "distinct"
) -> np.ndarray:
    """Write the N×N kernel out, cell by cell."""
    kernel = np.eye(len(labels))
    for i, mine in enumerate(labels):
        for j, theirs in enumerate(labels):
            if i != j:
                kernel[i, j] = sum(
                    weight * alike(a, b, missing=missing) for weight, a, b in zip(weights, mine, theirs, strict=True)
                )
    return kernel


def dense_score(
    labels: Sequence[Triple], weights: tuple[float, float, float], *, q: float, missing: str = "distinct"
) -> float:
    """Score from the eigenvalues of the whole N×N kernel, straight from the definition."""
    eigenvalues = np.linalg.eigvalsh(dense_kernel(labels, weights, missing=missing)) / len(labels)
    positive = eigenvalues[eigenvalues > 1e-11]
    if q == 1:
        return float(np.exp(-np.sum(positive * np.log(positive))))
    if q == INFINITY:
        return float(1 / positive.max())
    return float(np.exp(np.log(np.sum(positive**q)) / (1 - q)))


@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("missing", CONVENTIONS)
def test_agrees_with_the_dense_kernel(weights: tuple[float, float, float], q: float, missing: Missing) -> None:
    rng = np.random.default_rng(7)
    names = np.array(["a", "b", "c", "d", "e", None], dtype=object)
    for items in (1, 2, 9, 40):
        labels = [tuple(row) for row in rng.choice(names, (items, 3))]
        ours = vendi(labels, weights=weights, q=q, missing=missing)
        # Near q = 1 the plain formula of the oracle itself loses digits.
        tolerance = 1e-8 if 0 < abs(q - 1) < 1e-3 else 1e-10
        assert ours == pytest.approx(dense_score(labels, weights, q=q, missing=missing), rel=tolerance)


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 4.0, INFINITY])
def test_agrees_with_the_vendi_score_package(weights: tuple[float, float, float], q: float) -> None:
    rng = np.random.default_rng(3)
    labels = [(f"c{a % 3}", f"k{a % 7}", f"x{a}") for a in rng.integers(0, 15, 60)]
    theirs = vendi_score.score_K(dense_kernel(labels, weights), q="inf" if q == INFINITY else q)
    assert vendi(labels, weights=weights, q=q) == pytest.approx(float(theirs), rel=1e-9)


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_agrees_with_the_vendi_score_package_on_full_rank_below_one(q: float) -> None:
    labels = [(f"c{number % 2}", f"k{number % 4}", f"x{number}") for number in range(12)]
    for weights in ((1 / 3, 1 / 3, 1 / 3), (0.0, 0.0, 1.0), (0.6, 0.3, 0.1)):
        theirs = vendi_score.score_K(dense_kernel(labels, weights), q=q)
        assert vendi(labels, weights=weights, q=q) == pytest.approx(float(theirs), rel=1e-10)


def test_labels_need_not_nest() -> None:
    """Dumplings of three countries are one artifact; a country on two continents is one country."""
    labels = [("Asia", "TR", "dumpling"), ("Europe", "TR", "dumpling"), ("Europe", "PL", "dumpling")]
    assert vendi(labels) == 1
    assert vendi(labels, weights=(0, 1, 0), q=INFINITY) == pytest.approx(1.5)
    for q in ORDERS:
        assert vendi(labels, weights=(0.5, 0.5, 0), q=q) == pytest.approx(
            dense_score(labels, (0.5, 0.5, 0), q=q), rel=1e-8
        )


def test_a_rank_deficient_kernel_below_order_one_gets_nothing_from_rounding_noise() -> None:
    crossed = [(continent, country, None) for continent in "ab" for country in "xy"] * 5
    # ½·(J⊗I + I⊗J)/2 on the 2×2 grid has the eigenvalues ½, ¼, ¼ and 0.
    expected = (0.5**0.1 + 2 * 0.25**0.1) ** (1 / 0.9)
    assert vendi(crossed, weights=(0.5, 0.5, 0), q=0.1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("q", ORDERS)
def test_a_missing_label_follows_the_convention(q: float) -> None:
    labels: list[Triple] = [(None, None, None)] * 4
    assert vendi(labels, q=q) == pytest.approx(4)
    assert vendi(labels, q=q, missing="equal") == pytest.approx(1)
    assert vendi(labels, weights=(0.5, 0.5, 0), q=q) == pytest.approx(4)
    assert vendi([("Asia", None, None)] * 4, weights=(1, 0, 0), q=q) == pytest.approx(1)


@given(labels=some_labels, q=st.sampled_from(ORDERS))
@few
def test_a_frame_equals_a_list(labels: list[Triple], q: float) -> None:
    frame = pl.DataFrame(labels, schema=["continent", "country", "artifact"], orient="row")
    frame = frame.cast(pl.String).with_columns(pl.lit(1).alias("another"))
    weights = (0.2, 0.3, 0.5)
    assert vendi(frame, weights=weights, q=q) == vendi(labels, weights=weights, q=q)
    assert vendi(np.array(labels, dtype=object), weights=weights, q=q) == vendi(labels, weights=weights, q=q)


def test_spelling_is_ignored_unless_it_is_asked_for() -> None:
    labels = [("Asia", "TR", "Dürüm"), (" asia ", "tr", "DÜRÜM"), ("ASIA", "TR", "du\u0308ru\u0308m")]
    assert vendi(labels) == 1
    assert vendi(labels, normalize_labels=False) == pytest.approx(3)
    assert vendi([("", "", "Straße"), ("", "", "STRASSE")]) == 1


def test_plain_labels_stand_for_all_levels() -> None:
    plain = ["a", "b", "b", None, None]
    triples = [(label, label, label) for label in plain]
    for weights in ((0, 0, 1), (0.2, 0.3, 0.5)):
        for missing in ("distinct", "equal"):
            expected = vendi(triples, weights=weights, missing=missing)
            assert vendi(plain, weights=weights, missing=missing) == expected
    assert vendi(np.array(["a", "b"])) == vendi([1, 2]) == pytest.approx(2)


def test_frames_of_pandas_are_taken() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [("Asia", "JP", "obi"), ("Asia", "JP", None), ("Europe", None, "kilt")]
    frame = pandas.DataFrame(rows, columns=["continent", "country", "artifact"])
    assert vendi(frame, weights=(0.2, 0.3, 0.5)) == vendi(rows, weights=(0.2, 0.3, 0.5))


def test_a_wrong_argument_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="q must be a number above 0"):
        vendi(["a"], q=0)


def test_whole_numbers_are_labels_too() -> None:
    assert vendi([(1, 2, 3), (1, 2, 4), (1, 2, 4)]) == vendi([("a", "b", "c"), ("a", "b", "d"), ("a", "b", "d")])
    mixed: list[tuple[int, int, int | str]] = [(1, 1, 1), (1, 1, "1")]
    assert vendi(mixed) == pytest.approx(2)


def test_weights_may_be_typed_with_few_digits_and_be_of_any_sequence() -> None:
    labels = [("Asia", "JP", "sushi"), ("Asia", "IN", "dosa"), ("Africa", "NG", "tea")]
    typed = vendi(labels, weights=[0.3333333333, 0.3333333333, 0.3333333333])
    assert typed == pytest.approx(vendi(labels, weights=STANDARD_KERNELS["uniform"]), rel=1e-8)
    assert vendi(labels, weights=np.array([0.0, 0.5, 0.5])) == vendi(  # type: ignore[arg-type]
        labels, weights=(0, 0.5, 0.5)
    )


ONE = [("Asia", "JP", "sushi")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vendi([]), "labels must be at least one (continent, country, artifact); found []"),
        (lambda: vendi(ONE, q=0), "q must be a number above 0, or infinity; found 0"),
        (lambda: vendi(ONE, q=-1), "q must be a number above 0, or infinity; found -1"),
        (lambda: vendi(ONE, q=math.nan), "q must be a number above 0, or infinity; found nan"),
        (lambda: vendi(ONE, weights=(0.5, 0.5)), "weights must be three numbers of at least 0 that sum to 1"),
        (lambda: vendi(ONE, weights=(1.5, -0.5, 0)), "found (1.5, -0.5, 0)"),
        (lambda: vendi(ONE, weights=(0.5, 0.5, 0.5)), "found (0.5, 0.5, 0.5)"),
        (lambda: vendi(ONE, weights=(math.nan, 0, 1)), "found (nan, 0, 1)"),
        (lambda: vendi(ONE, weights=(None, 0, 1)), "weights must be three numbers"),  # type: ignore[arg-type]
        (lambda: vendi(ONE, missing="same"), "missing must be 'distinct' or 'equal'; found 'same'"),  # type: ignore[arg-type]
        (lambda: vendi([*ONE, ("Asia", "JP")]), "labels[1] must be a triple (continent, country, artifact)"),
        (lambda: vendi("abc"), "labels must be a sequence of labels or of triples"),
        (lambda: vendi([*ONE, None]), "labels[1] must be a triple"),  # type: ignore[arg-type]
        (lambda: vendi([("Asia", "JP", 0.5)]), "each artifact label must be a text, a whole number or None; found 0.5"),  # type: ignore[arg-type]
        (lambda: vendi([("Asia", "JP", [])]), "each artifact label must be a text"),  # type: ignore[arg-type]
        (lambda: vendi(pl.DataFrame({"country": ["JP"]})), "labels must be a frame with the columns continent"),
        (lambda: vendi(pl.DataFrame({"country": ["JP"]}).lazy()), "labels must be a frame with the columns continent"),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named(call: Callable[[], float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(UsageError) as caught:
        vendi(ONE, weights=[0.001] * 500)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e308, 5e-324])
def test_features_of_any_size_have_the_score_of_their_directions(scale: float) -> None:
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    mixed = rows * np.array([[scale], [1.0], [scale], [1.0]])
    assert vendi_features(mixed) == pytest.approx(vendi_features(rows), rel=1e-12)


VendiBatchesTriple = tuple[str | None, str | None, str | None]
VENDI_BATCHES_CONVENTIONS: tuple[Missing, ...] = ("distinct", "equal")
VENDI_BATCHES_KERNELS = (*STANDARD_KERNELS.values(), (0.0, 0.4, 0.6), (0.7, 0.0, 0.3))


def nested_labels(items: int, *, seed: int, missing: float = 0.0) -> list[VendiBatchesTriple]:
    """Draw labels with a few common artifacts and many rare ones; some may be missing."""
    rng = np.random.default_rng(seed)
    drawn = rng.zipf(1.5, items) % 200
    labels: list[VendiBatchesTriple] = [(f"c{a % 6}", f"k{a % 40}", f"x{a}") for a in drawn]
    gone = rng.random(items) < missing
    return [(None, None, None) if absent else label for label, absent in zip(labels, gone, strict=True)]


@pytest.mark.parametrize("weights", VENDI_BATCHES_KERNELS)
@pytest.mark.parametrize("q", [0.3, 0.99, 1.0, 1.2, 2.0, 5.0, math.inf])
@pytest.mark.parametrize("missing", VENDI_BATCHES_CONVENTIONS)
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


@pytest.mark.parametrize("weights", VENDI_BATCHES_KERNELS)
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
    different: list[VendiBatchesTriple] = [(f"c{n}", f"k{n}", f"x{n}") for n in range(7)]
    for weights in VENDI_BATCHES_KERNELS:
        for q in (0.1, 0.5, 1.0, 2.0, math.inf):
            paper = vendi_batches(different, weights=weights, q=q, partial="paper")
            assert paper[0] == pytest.approx(7 / 8)
            assert paper[0] <= 7 / 8


def test_a_frame_equals_a_list_and_spelling_is_ignored() -> None:
    labels = nested_labels(32, seed=9)
    frame = pl.DataFrame(labels, schema=["continent", "country", "artifact"], orient="row")
    shouted = frame.with_columns(pl.col("artifact").str.to_uppercase())
    mixed = pl.concat([frame, shouted]).gather_every(2)
    for weights in VENDI_BATCHES_KERNELS:
        np.testing.assert_array_equal(vendi_batches(frame, weights=weights), vendi_batches(labels, weights=weights))
        np.testing.assert_array_equal(vendi_batches(shouted, weights=weights), vendi_batches(labels, weights=weights))
    exact = vendi_batches(mixed, weights=(0, 0, 1), normalize_labels=False)
    assert exact.shape == (4,)


@pytest.mark.parametrize("q", [0.3, 1.0, 2.0, math.inf])
def test_labels_that_do_not_nest_and_several_kernels_at_once(q: float) -> None:
    codes = np.random.default_rng(8).integers(0, 4, (8 * 60, 3))
    together = vendi_batches(codes, weights=list(VENDI_BATCHES_KERNELS), q=q)
    assert together.shape == (len(VENDI_BATCHES_KERNELS), 60)
    for row, weights in zip(together, VENDI_BATCHES_KERNELS, strict=True):
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
def test_an_argument_that_breaks_its_rule_is_named_of_vendi_batches(
    call: Callable[[], NDArray[np.float64]], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


VENDI_TABLE_ORDERS = (0.1, 0.5, 1.0, 2.0, math.inf)
RNG = np.random.default_rng(3)
NESTED = nested_codes(RNG, items=5000, artifacts=700, countries=40, continents=6)
CROSSING = crossing_codes(RNG, items=3000, artifacts=200, countries=30, continents=5, share=0.1)


@pytest.mark.parametrize("codes", [NESTED, CROSSING], ids=["nested", "crossing"])
def test_every_cell_is_what_vendi_says(codes: np.ndarray) -> None:
    table = vendi_table(codes, weights=list(STANDARD_KERNELS.values()), q=VENDI_TABLE_ORDERS)
    assert table.columns == ["kernel", "w_continent", "w_country", "w_artifact", "q", "value", "n"]
    assert table["kernel"].to_list() == [name for name in STANDARD_KERNELS for _ in VENDI_TABLE_ORDERS]
    assert table["q"].to_list() == list(VENDI_TABLE_ORDERS) * 5
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
def test_an_argument_that_breaks_its_rule_is_named_of_vendi_table(
    call: Callable[[], pl.DataFrame], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)


VENDI_KERNEL_ORDERS = (0.2, 0.9, 1.0, 1.01, 2.0, 7.0, math.inf)


def features(items: int, width: int, *, seed: int = 1) -> NDArray[np.float64]:
    """Draw feature vectors of any length, (items, width)."""
    return np.random.default_rng(seed).normal(size=(items, width))


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")
@pytest.mark.parametrize("q", [0.5, 1.0, 2.0, 3.5])
def test_a_kernel_agrees_with_the_vendi_score_package(q: float) -> None:
    unit = features(20, 50) / np.linalg.norm(features(20, 50), axis=1, keepdims=True)
    kernel = unit @ unit.T
    assert vendi_kernel(kernel, q=q) == pytest.approx(float(vendi_score.score_K(kernel, q=q)), rel=1e-10)


@pytest.mark.parametrize("q", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("shape", [(60, 7), (7, 60)])
def test_features_agree_with_the_vendi_score_package(q: float, shape: tuple[int, int]) -> None:
    vectors = features(*shape)
    assert vendi_kernel_vendi_features(vectors, q=q) == pytest.approx(
        float(vendi_score.score_dual(vectors, q=q)), rel=1e-10
    )


@pytest.mark.parametrize("q", VENDI_KERNEL_ORDERS)
def test_a_kernel_of_labels_gives_the_score_of_the_labels(q: float) -> None:
    labels = [("Asia", "JP", "sushi"), ("Asia", "JP", "ramen"), ("Asia", "IN", "dosa"), ("Africa", "NG", "jollof")]
    weights = (0.2, 0.3, 0.5)
    kernel = np.array(
        [[sum(w * (a == b) for w, a, b in zip(weights, x, y, strict=True)) for y in labels] for x in labels]
    )
    assert vendi_kernel(kernel, q=q) == pytest.approx(vendi(labels, weights=weights, q=q), rel=1e-10)


def test_many_short_vectors_need_no_kernel_between_them() -> None:
    """The 20,000 × 20,000 kernel would take 3.2 GB."""
    vectors = np.tile(np.eye(4), (5000, 1))
    assert vendi_kernel_vendi_features(vectors) == pytest.approx(4)


def test_float32_vectors_do() -> None:
    vectors = features(40, 16)
    assert vendi_kernel_vendi_features(vectors.astype(np.float32)) == pytest.approx(
        vendi_kernel_vendi_features(vectors), rel=1e-5
    )
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    assert vendi_kernel(unit @ unit.T) == pytest.approx(vendi_kernel_vendi_features(vectors), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vendi_kernel(np.ones((2, 3))), "K must be square; found 'shape (2, 3)'"),
        (lambda: vendi_kernel([[1.0, 0.2], [0.3, 1.0]]), "K must be symmetric; found 'cells that differ by 0.1'"),
        (lambda: vendi_kernel([[1.0, 0.2], [0.2, 2.0]]), "K[1, 1] must be 1, like the whole diagonal; found 2.0"),
        (lambda: vendi_kernel([[1.0, 3.0], [3.0, 1.0]]), "K must be positive semi-definite"),
        (lambda: vendi_kernel([[math.nan]]), "K must be finite in every cell"),
        (lambda: vendi_kernel([1.0]), "K must be a matrix with at least one cell"),
        (lambda: vendi_kernel([["a"]]), "K must be a matrix of numbers"),
        (lambda: vendi_kernel([[1.0]], q=0), "q must be a number above 0, or infinity; found 0"),
        (lambda: vendi_kernel_vendi_features(np.empty((0, 4))), "X must be a matrix with at least one cell"),
        (lambda: vendi_kernel_vendi_features([[1.0, 0.0], [0.0, 0.0]]), "X[1] must be a vector other than zero"),
        (
            lambda: vendi_kernel_vendi_features([[1.0]], q=math.nan),
            "q must be a number above 0, or infinity; found nan",
        ),
    ],
)
def test_an_argument_that_breaks_its_rule_is_named_of_vendi_kernel(call: Callable[[], float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
