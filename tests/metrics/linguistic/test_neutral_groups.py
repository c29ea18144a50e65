"""Dialects, neutral pictures, question pairs and human ratings, with the paper's tables."""

import statistics

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
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

GROUPS = 6


def test_the_similarity_is_the_mean_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    neutral, group = rng.normal(size=(9, 16)), rng.normal(size=(4, 16))
    assert neutral_similarity(neutral, group) == pytest.approx(1 - cdist(neutral, group, "cosine").mean(), abs=1e-12)


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
