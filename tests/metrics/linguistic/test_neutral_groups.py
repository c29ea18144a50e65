"""Neutral pictures against those of groups, and the bound that the paper's table breaks."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from culturekit.core.errors import UsageError
from culturekit.metrics import NeutralSpread, neutral_similarity, neutral_spread

PRINTED = {"minDALL-E": (0.0415, 0.0169), "Stable Diffusion": (0.0413, 0.0129), "Midjourney": (0.0519, 0.0139)}
"""Table 3 of the paper: STD and MAD."""

GROUPS = 6


LEAST = math.sqrt(2 / GROUPS)
"""The least that MAD can be of STD: deviations sum to zero, and the fewest that can do so are two, one up, one down."""

ALONE = 2 * math.sqrt(GROUPS - 1) / GROUPS
"""What it is when one group alone differs from five equal ones."""


def test_the_similarity_is_the_mean_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    neutral, group = rng.normal(size=(9, 16)), rng.normal(size=(4, 16))
    assert neutral_similarity(neutral, group) == pytest.approx(1 - cdist(neutral, group, "cosine").mean(), abs=1e-12)
    by_hand = np.mean([x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in itertools.product(neutral, group)])
    assert neutral_similarity(neutral, group) == pytest.approx(by_hand, abs=1e-12)


def test_the_similarity_knows_neither_order_nor_length_nor_sides() -> None:
    rng = np.random.default_rng(1)
    neutral, group = rng.normal(size=(5, 8)), rng.normal(size=(7, 8))
    value = neutral_similarity(neutral, group)
    assert neutral_similarity(neutral[::-1], group[rng.permutation(7)]) == value
    assert neutral_similarity(neutral * 1e200, group * 1e-200) == pytest.approx(value)
    assert neutral_similarity(group, neutral) == pytest.approx(value)
    assert neutral_similarity(neutral[:1], neutral[:1]) == pytest.approx(1)
    assert neutral_similarity([[1, 0]], [[0, 2]]) == 0


@pytest.mark.parametrize(
    ("neutral", "group", "message"),
    [
        ([[1, 2]], [[1, 2, 3]], "group must be vectors of width 2"),
        ([[0, 0]], [[1, 2]], r"neutral\[0\] must be a vector with a direction"),
        ([], [[1, 2]], "neutral must be finite vectors"),
        ([[1, 2]], [[1, float("nan")]], "group must be finite vectors"),
    ],
)
def test_what_is_no_vector_is_refused(neutral: list[list[float]], group: list[list[float]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        neutral_similarity(neutral, group)


def test_the_spread_is_per_prompt_first_and_then_the_mean() -> None:
    table = np.array([[0.9, 0.7, 0.7, 0.7, 0.7, 0.7], [0.5, 0.7, 0.5, 0.5, 0.5, 0.5]])
    found = neutral_spread(table, ["bakery", "apartment"])
    assert isinstance(found, NeutralSpread)
    assert found.std == pytest.approx(np.std(table, axis=1).mean())
    assert found.mad == pytest.approx(np.abs(table - table.mean(axis=1, keepdims=True)).mean())
    assert found.heat == pytest.approx([0.7, 0.7, 0.6, 0.6, 0.6, 0.6])
    assert found.of_means.std == pytest.approx(np.std([0.7, 0.7, 0.6, 0.6, 0.6, 0.6]))
    assert found.of_means.std < found.std
    assert found.ranking == ("apartment", "bakery")
    assert list(found.per_prompt) == ["apartment", "bakery"]


def test_equal_groups_have_no_spread_and_equal_prompts_rank_by_name() -> None:
    found = neutral_spread(np.full((3, GROUPS), 0.8), ["c", "a", "b"])
    assert (found.std, found.mad, found.of_means.std) == (0, 0, 0)
    assert found.ranking == ("a", "b", "c")


@given(st.lists(st.lists(st.floats(-1, 1), min_size=6, max_size=6), min_size=1, max_size=5))
def test_the_spread_knows_neither_order_of_prompts_nor_of_groups(rows: list[list[float]]) -> None:
    names = [f"prompt {number}" for number in range(len(rows))]
    table = np.array(rows)
    found = neutral_spread(table, names)
    turned = neutral_spread(table[::-1, ::-1], names[::-1])
    assert (turned.std, turned.mad, turned.ranking) == (found.std, found.mad, found.ranking)
    assert (turned.heat[::-1] == found.heat).all()
    # STD and MAD are norms of deviations: a mean of prompts cannot spread more than prompts do on average.
    assert found.of_means.std <= found.std + 1e-12
    assert found.of_means.mad <= found.mad + 1e-12


@given(st.lists(st.floats(0, 1), min_size=GROUPS, max_size=GROUPS))
def test_mad_is_never_below_its_bound(values: list[float]) -> None:
    found = neutral_spread([values], ["only"])
    assert found.mad >= LEAST * found.std - 1e-9


def test_the_bound_is_met_by_one_group_up_and_one_down_and_no_printed_mad_reaches_it() -> None:
    two = neutral_spread([[1, 0, 0.5, 0.5, 0.5, 0.5]], ["only"])
    one = neutral_spread([[1, 0, 0, 0, 0, 0]], ["only"])
    assert two.mad / two.std == pytest.approx(LEAST)
    assert one.mad / one.std == pytest.approx(ALONE)
    assert pytest.approx((0.5774, 0.7454), abs=1e-4) == (LEAST, ALONE)
    shares = [mad / std for std, mad in PRINTED.values()]
    assert (min(shares), max(shares)) == pytest.approx((0.268, 0.407), abs=1e-3)
    assert max(shares) < LEAST


MIDJOURNEY = (
    0.023540, 0.028766, 0.028991, 0.033970, 0.036674, 0.038141, 0.038812, 0.038888, 0.039123, 0.039735, 0.041090,
    0.041944, 0.042318, 0.049169, 0.050304, 0.051527, 0.051896, 0.057342, 0.057960, 0.059901, 0.060190, 0.062231,
    0.062337, 0.062892, 0.065145, 0.065382, 0.066902, 0.084666, 0.100636,
)  # fmt: skip
"""The STD of Midjourney's prompts in Figure 8, but for the one whose digits are not legible."""


MIN_DALLE = (
    0.009821, 0.012010, 0.016631, 0.016868, 0.020254, 0.021702, 0.022869, 0.024069, 0.025124, 0.026145, 0.027352,
    0.035785, 0.037620, 0.038073, 0.038282, 0.038780, 0.040172, 0.040846, 0.043027, 0.048026, None, 0.052679, None,
    None, 0.058802, 0.060038, 0.065768, None, None, 0.110201,
)  # fmt: skip
STABLE_DIFFUSION = (
    0.008647, 0.014048, 0.015046, 0.016201, 0.027582, 0.027730, 0.030245, 0.032020, 0.032429, 0.033284, 0.035442,
    0.037568, 0.038156, 0.038341, 0.039229, 0.041145, 0.041901, 0.042242, 0.042533, 0.045438, 0.046290, None, None,
    0.054334, None, 0.060428, None, 0.065915, None, 0.074705,
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "stds"),
    [("minDALL-E", MIN_DALLE), ("Stable Diffusion", STABLE_DIFFUSION),
     ("Midjourney", (*MIDJOURNEY[:27], None, *MIDJOURNEY[27:]))],
)  # fmt: skip
def test_the_papers_std_is_the_mean_over_prompts(model: str, stds: tuple[float | None, ...]) -> None:
    """Figure 8, of which the text has lost some values: whichever they have between their neighbours, it is so."""
    known = [std for std in stds if std is not None]
    assert len(stds) == 30
    assert known == sorted(known)
    least = [std or max(known_before for known_before in stds[:at] if known_before) for at, std in enumerate(stds)]
    most = [std or min(known_after for known_after in stds[at:] if known_after) for at, std in enumerate(stds)]
    assert sum(least) / 30 - 5e-5 <= PRINTED[model][0] <= sum(most) / 30 + 5e-5


def test_arguments_are_checked() -> None:
    with pytest.raises(UsageError, match="similarities must be finite numbers"):
        neutral_spread([[0.1, float("inf")]], ["a"])
    with pytest.raises(UsageError, match="prompts must be 2 different names"):
        neutral_spread([[0.1, 0.2], [0.1, 0.2]], ["a", "a"])
