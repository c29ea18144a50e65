"""The Vendi score of labels: against other implementations, by its identities, and by what must not change it."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vendi_score import vendi as vendi_score

from culturekit.core.errors import UsageError
from culturekit.metrics import STANDARD_KERNELS, vendi
from culturekit.metrics.diversity.kernel_diversity import vendi_features
from culturekit.metrics.diversity.labels import Missing

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


@pytest.mark.parametrize("q", ORDERS)
@pytest.mark.parametrize("weights", KERNELS)
def test_n_alike_count_as_one_and_n_different_as_n(weights: tuple[float, float, float], q: float) -> None:
    assert vendi([("Asia", "JP", "sushi")] * 9, weights=weights, q=q) == pytest.approx(1, abs=1e-12)
    different = [(f"c{number}", f"k{number}", f"x{number}") for number in range(9)]
    assert vendi(different, weights=weights, q=q) == pytest.approx(9, abs=1e-11)


def test_one_level_alone_is_the_diversity_of_its_shares() -> None:
    labels = [("Asia", "JP", "a"), ("Asia", "JP", "b"), ("Asia", "IN", "c"), ("Africa", "NG", "c")]
    quarters = math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert vendi(labels, weights=(1, 0, 0)) == pytest.approx(quarters, rel=1e-14)
    assert vendi(labels, weights=(0, 1, 0), q=2) == pytest.approx(1 / (0.5**2 + 2 * 0.25**2), rel=1e-14)
    assert vendi(labels, weights=(0, 0, 1), q=INFINITY) == 2
    assert vendi(labels) == vendi(labels, weights=(0, 0, 1))


def test_two_items_alike_by_a_third() -> None:
    # Eigenvalues of [[1, s], [s, 1]] / 2 are (1 ± s) / 2, here with s = 2/3.
    labels = [("Asia", "JP", "sushi"), ("Asia", "JP", "ramen")]
    high, low = 5 / 6, 1 / 6
    third = (1 / 3, 1 / 3, 1 / 3)
    assert vendi(labels, weights=third) == pytest.approx(math.exp(-high * math.log(high) - low * math.log(low)))
    assert vendi(labels, weights=third, q=2) == pytest.approx(1 / (high**2 + low**2))
    assert vendi(labels, weights=third, q=INFINITY) == pytest.approx(1.2)
    assert vendi(labels, weights=third, q=0.5) == pytest.approx((math.sqrt(high) + math.sqrt(low)) ** 2)


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


@given(labels=some_labels, weights=st.sampled_from(KERNELS), q=st.sampled_from(ORDERS), data=st.data())
@few
def test_order_does_not_matter(
    labels: list[Triple], weights: tuple[float, float, float], q: float, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(labels))
    assert vendi(shuffled, weights=weights, q=q, missing="equal") == vendi(
        labels, weights=weights, q=q, missing="equal"
    )
    assert vendi(shuffled, weights=weights, q=q) == pytest.approx(vendi(labels, weights=weights, q=q), rel=1e-9)


@given(labels=some_labels, weights=st.sampled_from(KERNELS), q=st.sampled_from(ORDERS))
@few
def test_renaming_does_not_matter(labels: list[Triple], weights: tuple[float, float, float], q: float) -> None:
    def renamed(label: str | None) -> str | None:
        return label and f"{len(label)}-{label[::-1]}"

    other = [(renamed(a), renamed(b), renamed(c)) for a, b, c in labels]
    assert vendi(other, weights=weights, q=q) == pytest.approx(vendi(labels, weights=weights, q=q), rel=1e-9)


@given(labels=some_labels, weights=st.sampled_from(KERNELS))
@few
def test_a_higher_order_never_counts_more_and_all_lie_between_one_and_n(
    labels: list[Triple], weights: tuple[float, float, float]
) -> None:
    scores = [vendi(labels, weights=weights, q=q) for q in ORDERS]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(scores))
    assert all(1 <= score <= len(labels) for score in scores)


@given(labels=some_labels, weights=st.sampled_from(KERNELS), q=st.sampled_from(ORDERS), copies=st.integers(2, 4))
@few
def test_duplicates_leave_the_score_alone(
    labels: list[Triple], weights: tuple[float, float, float], q: float, copies: int
) -> None:
    once = vendi(labels, weights=weights, q=q, missing="equal")
    assert vendi(labels * copies, weights=weights, q=q, missing="equal") == pytest.approx(once, rel=1e-9)


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


def test_one_item_counts_as_one() -> None:
    for q in ORDERS:
        for weights in KERNELS:
            assert vendi([(None, "JP", None)], weights=weights, q=q) == 1


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
