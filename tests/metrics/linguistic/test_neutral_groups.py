"""Dialects, neutral pictures, question pairs and human ratings, with the paper's tables."""

import itertools
import math
import statistics

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import expit, softmax
from scipy.stats import permutation_test, ttest_rel

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    NeutralSpread,
    dialect_gap,
    likert_table,
    neutral_similarity,
    neutral_spread,
    question_pair,
    relevance_rates,
)

# Table 3 of the paper: STD and MAD
PRINTED = {"minDALL-E": (0.0415, 0.0169), "Stable Diffusion": (0.0413, 0.0129), "Midjourney": (0.0519, 0.0139)}

GROUPS = 6


# The least that MAD can be of STD: deviations sum to zero, and the fewest that can do so are two, one up, one down
LEAST = math.sqrt(2 / GROUPS)

ALONE = 2 * math.sqrt(GROUPS - 1) / GROUPS  # What it is when one group alone differs from five equal ones


def test_the_similarity_is_the_mean_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    neutral, group = rng.normal(size=(9, 16)), rng.normal(size=(4, 16))
    assert neutral_similarity(neutral, group) == pytest.approx(1 - cdist(neutral, group, "cosine").mean(), abs=1e-12)
    by_hand = np.mean([x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in itertools.product(neutral, group)])
    assert neutral_similarity(neutral, group) == pytest.approx(by_hand, abs=1e-12)


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


# The STD of Midjourney's prompts in Figure 8, but for the one whose digits are not legible
MIDJOURNEY = (
    0.023540, 0.028766, 0.028991, 0.033970, 0.036674, 0.038141, 0.038812, 0.038888, 0.039123, 0.039735, 0.041090,
    0.041944, 0.042318, 0.049169, 0.050304, 0.051527, 0.051896, 0.057342, 0.057960, 0.059901, 0.060190, 0.062231,
    0.062337, 0.062892, 0.065145, 0.065382, 0.066902, 0.084666, 0.100636,
)  # fmt: skip


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


# CLIPScore of SAE, of AAE and their difference; the share of correct images in per cent, the same three
TABLE_1 = {
    "minDALL-E": (0.2749, 0.2457, 0.0292, 82.25, 39.76, 42.49),
    "Stable Diffusion": (0.2689, 0.2575, 0.0114, 81.34, 54.92, 26.42),
    "Midjourney": (0.2870, 0.2493, 0.0377, 88.13, 36.87, 51.26),
}

RNG = np.random.default_rng


@pytest.mark.parametrize("model", TABLE_1)
def test_the_differences_of_the_papers_table(model: str) -> None:
    clip, human = TABLE_1[model][:3], TABLE_1[model][3:]
    for (standard, other, printed), digits in ((clip, 4), (human, 2)):
        found = dialect_gap(
            {"SAE": [standard, standard], "AAE": [other, other]}, {"SAE": ["a", "b"], "AAE": ["a", "b"]}, rng=RNG(0)
        )
        assert round(found.difference, digits) == printed


def test_the_order_of_the_papers_models() -> None:
    clip = {model: row[2] for model, row in TABLE_1.items()}
    human = {model: row[5] for model, row in TABLE_1.items()}
    assert sorted(clip, key=clip.__getitem__) == sorted(human, key=human.__getitem__)


def test_it_is_the_paired_t_interval_and_sign_flip_test() -> None:
    rng = RNG(3)
    sae, aae = rng.normal(0.27, 0.03, 12), rng.normal(0.25, 0.03, 12)
    names = [f"pair {number:02}" for number in range(12)]
    found = dialect_gap({"SAE": sae, "AAE": aae}, {"SAE": names, "AAE": names}, rng=RNG(0))
    reference = ttest_rel(sae, aae).confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((reference.low, reference.high))
    exact = permutation_test((sae - aae,), np.mean, permutation_type="samples", n_resamples=9999)
    assert found.p == pytest.approx(exact.pvalue)


def test_images_of_a_prompt_are_averaged_and_lonely_prompts_left_out() -> None:
    found = dialect_gap(
        {"SAE": [1, 0, 1, 1], "AAE": [0, 1, 0, 0]},
        {"SAE": ["a", "a", "b", "c"], "AAE": ["a", "b", "b", "d"]},
        rng=RNG(0),
    )
    assert found.difference == pytest.approx(((0.5 - 0) + (1 - 0.5)) / 2)
    assert (found.n, found.left_out) == (2, 2)


def test_other_dialects_and_missing_ones() -> None:
    found = dialect_gap(
        {"SE": [0.3, 0.2], "Singlish": [0.2, 0.2]}, {"SE": ["a", "b"], "Singlish": ["a", "b"]},
        standard="SE", other="Singlish", rng=RNG(0),
    )  # fmt: skip
    assert found.difference == pytest.approx(0.05)
    with pytest.raises(UsageError, match="scores must be given for 'SAE' and 'AAE'"):
        dialect_gap({"SAE": [1]}, {"SAE": ["a"]}, rng=RNG(0))


Answer = tuple[str, str, str, float | None]


def ratings(*answers: Answer, criterion: str = "cleanliness", **labels: list[str]) -> pl.DataFrame:
    items, annotators, pools, values = zip(*answers, strict=True)
    return pl.DataFrame(
        {
            "item_id": items, "annotator": annotators, "annotator_region": pools, "scheme": "linguistic",
            "criterion": criterion, "value": pl.Series(values, dtype=pl.Float64), **labels,
        }
    )  # fmt: skip


def test_the_papers_kind_of_table_is_the_sample_deviation_over_items() -> None:
    values = [5, 5, 4, 5, 2, 1, 3, 3]
    groups = ["Europe"] * 4 + ["Africa"] * 4
    table = likert_table(ratings(*((f"i{n}", "ann", "US", v) for n, v in enumerate(values)), group=groups))
    assert table["group"].to_list() == ["Africa", "Europe"]
    for row, own in zip(table.iter_rows(named=True), (values[4:], values[:4]), strict=True):
        assert row["mean"] == pytest.approx(statistics.mean(own))
        assert row["sd"] == pytest.approx(statistics.stdev(own))
        assert (row["items"], row["annotators"], row["answers"], row["within"]) == (4, 1, 4, None)


# Cells of the paper's fourth table, 16 pictures each, and whole ratings that give them
HUMAN_TABLES_PRINTED = {
    "Europe cleanliness": ([5] * 15 + [4], 4.938, 0.25),
    "Africa completeness": ([5] * 15 + [3], 4.875, 0.5),
    "America cleanliness": ([5] * 8 + [4] * 7 + [3], 4.438, 0.6292),
}


@pytest.mark.parametrize("cell", HUMAN_TABLES_PRINTED)
def test_cells_of_the_papers_table_come_from_whole_ratings(cell: str) -> None:
    values, mean, deviation = HUMAN_TABLES_PRINTED[cell]
    row = likert_table(ratings(*((f"{n:02}", "a", "US", v) for n, v in enumerate(values)))).row(0, named=True)
    assert (round(row["mean"], 3), round(row["sd"], 4)) == (mean, deviation)


def test_an_items_score_is_the_mean_of_its_annotators_and_their_scatter_stands_apart() -> None:
    table = likert_table(ratings(("x", "a", "US", 1), ("x", "b", "US", 3), ("y", "a", "US", 4), ("z", "c", "US", None)))
    row = table.row(0, named=True)
    assert (row["mean"], row["sd"]) == (pytest.approx(3), pytest.approx(statistics.stdev([2, 4])))
    assert row["within"] == pytest.approx(statistics.stdev([1, 3]))
    assert (row["items"], row["annotators"], row["answers"]) == (2, 2, 3)


def test_pools_are_never_merged() -> None:
    table = likert_table(ratings(("x", "a", "US", 1), ("x", "b", "IN", 5)))
    assert table.select("pool", "mean").rows() == [("IN", 5.0), ("US", 1.0)]
    assert table["sd"].null_count() == 2


def test_ratings_given_twice_and_missing_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="one rating per annotator, item and criterion"):
        likert_table(ratings(("x", "a", "US", 1), ("x", "a", "US", 2)))
    with pytest.raises(UsageError, match="annotations must be a frame with the columns"):
        likert_table(pl.DataFrame({"item_id": ["x"]}))


def choices(*answers: tuple[str, str, str | None]) -> pl.DataFrame:
    items, annotators, chosen = zip(*answers, strict=True)
    return pl.DataFrame(
        {
            "item_id": items, "annotator": annotators, "annotator_region": "US", "scheme": "cultivate",
            "criterion": "relevance", "choice": pl.Series(chosen, dtype=pl.String),
        }
    )  # fmt: skip


def test_relevance_rates_are_means_over_items() -> None:
    answers = [("x", "a", "yes"), ("x", "b", "yes"), ("x", "c", "no"), ("y", "a", "no"), ("y", "b", None)]
    table = relevance_rates(choices(*answers))
    assert dict(table.select("choice", "rate").iter_rows()) == {
        "no": pytest.approx((1 / 3 + 1) / 2), "yes": pytest.approx(1 / 3),
    }  # fmt: skip
    assert table["items"].to_list() == [2, 2]
    assert table["answers"].to_list() == [2, 2]
    assert table["rate"].sum() == pytest.approx(1)
    assert relevance_rates(choices(*answers[::-1])).equals(table)
    with pytest.raises(UsageError, match="choice"):
        relevance_rates(pl.DataFrame({"item_id": ["x"]}))


def drawn(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, 12)), rng.normal(size=12), rng.normal(size=12)


def cosines(images: np.ndarray, caption: np.ndarray) -> np.ndarray:
    return np.asarray(images @ caption / np.linalg.norm(images, axis=1) / np.linalg.norm(caption))


@pytest.mark.parametrize("scale", [1.0, 100.0, 14.3])
def test_it_is_the_softmax_of_scaled_cosines(scale: float) -> None:
    images, first, second = drawn()
    logits = scale * np.stack([cosines(images, first), cosines(images, second)], axis=1)
    shares = question_pair(images, first, second, logit_scale=scale)
    assert shares == pytest.approx(softmax(logits, axis=1), abs=1e-12)
    assert shares[:, 0] == pytest.approx(expit(logits[:, 0] - logits[:, 1]), abs=1e-12)


def test_clips_scale_is_the_default() -> None:
    images, first, second = drawn()
    assert (question_pair(images, first, second) == question_pair(images, first, second, logit_scale=100)).all()


@pytest.mark.parametrize(
    ("images", "first", "message"),
    [
        ([[1.0, 0.0]], [1.0, 0.0, 0.0], "width"),
        ([[0.0, 0.0]], [1.0, 0.0], r"images\[0\] must be a vector with a direction"),
        ([[1.0, 0.0]], [0.0, 0.0], r"first\[0\] must be a vector with a direction"),
        ([1.0, 0.0], [1.0, 0.0], "images must be finite vectors"),
    ],
)
def test_arguments_are_checked_of_question_pairs(images: list[list[float]], first: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        question_pair(images, first, first)


def test_the_scale_is_above_zero() -> None:
    images, first, second = drawn()
    with pytest.raises(UsageError, match="logit_scale must be a number above 0"):
        question_pair(images, first, second, logit_scale=0)


def test_captions_of_different_widths_are_refused() -> None:
    with pytest.raises(UsageError, match="width"):
        question_pair([[1.0, 0.0]], [1.0, 0.0], [1.0, 0.0, 0.0])
