"""Means of what a judge says, put right by people: against ppi-python, a plain loop, identities; and the gates."""

import math
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import JudgedMean, judged_mean
from culturekit.metrics.corrected.audit_gates import DESIGN_UNKNOWN, ONE_RATER
from culturekit.metrics.corrected.judged_means import agreeing_pairs, marks_of_answers

Values = NDArray[np.float64]

# What `ppi_mean_pointestimate` and `ppi_mean_ci` of ppi-python 0.2.3 say of `cases`, at their own trust and 95 %.
# `python -m venv ppi && ppi/bin/pip install -c constraints.txt ppi-python==0.2.3`, and the two called on
# `people[asked], judged[asked], judged[~asked]`.
RECORDED = {
    "yes and no": (0.6090717948717949, 0.5172916978549722, 0.7008518918886175),
    "numbers": (0.5167440504388573, 0.4736856528558105, 0.559802448021904),
    "a judge who knows nothing": (0.012637062281967832, -0.1665947467332836, 0.19186887129721927),
    "a judge whose scale is too short": (0.5082030472979613, 0.44462020974455146, 0.5717858848513712),
}


def cases() -> Iterator[tuple[str, Values, Values, NDArray[np.bool_]]]:
    """Give judged, people and who was asked: numbers that look random, the same on every machine."""
    n = np.arange(240)
    wave, other = np.sin(n * n * 0.37), np.cos(n * 1.7 + n * n * 0.11)
    asked, yes, people = n * 7 % 240 % 4 == 0, (wave > -0.2).astype(float), 0.5 + 0.45 * wave
    yield "yes and no", np.where(other > 0.6, 1.0, yes), yes, asked
    yield "numbers", 0.3 + 0.4 * wave + 0.1 * other, people, asked
    yield "a judge who knows nothing", -other, wave, asked
    yield "a judge whose scale is too short", 0.1 * wave, people, asked


def case(name: str) -> tuple[Values, Values]:
    judged, people, asked = next(tuple(parts) for key, *parts in cases() if key == name)
    return np.asarray(judged), np.where(asked, people, np.nan)


@pytest.mark.parametrize("name", list(RECORDED))
def test_without_parts_it_is_what_ppi_python_says(name: str) -> None:
    value, low, high = RECORDED[name]
    found = judged_mean(*case(name), folds=1)
    assert found.corrected.value == pytest.approx(value, abs=1e-9)
    # Theirs is normal; ours is t with a variance over n - 1.
    wider = stats.t.ppf(0.975, 59) / stats.norm.ppf(0.975) * math.sqrt(60 / 59)
    assert found.corrected.high - found.corrected.value == pytest.approx((high - value) * wider, abs=1e-9)
    assert found.corrected.value - found.corrected.low == pytest.approx((value - low) * wider, abs=1e-9)
    assert (found.trust == 0) == (name == "a judge who knows nothing")
    assert (found.trust == pytest.approx(1)) == (name == "a judge whose scale is too short")


def test_the_trust_of_each_part_is_learnt_from_the_others() -> None:
    judged, people = case("yes and no")
    asked = [place for place, one in enumerate(people) if not math.isnan(one)]
    middle = sum(judged) / 240
    spread = sum((one - middle) ** 2 for one in judged) / 239
    total = 0.0
    for part in range(5):
        others = [place for number, place in enumerate(asked) if number % 5 != part]
        means = [sum(side[place] for place in others) / len(others) for side in (people, judged)]
        both = sum((people[place] - means[0]) * (judged[place] - means[1]) for place in others) / len(others)
        for place in asked[part::5]:
            total += people[place] - both / spread * (judged[place] - middle)
    assert judged_mean(judged, people).corrected.value == pytest.approx(total / 60, abs=1e-12)


def test_where_people_marked_everything_the_judge_counts_for_nothing() -> None:
    judged, people, _ = next(tuple(parts) for _, *parts in cases())
    found = judged_mean(judged, people)
    low, high = stats.t.interval(0.95, 239, loc=people.mean(), scale=people.std(ddof=1) / math.sqrt(240))
    assert (found.corrected.value, found.corrected.low, found.corrected.high) == pytest.approx(
        (people.mean(), low, high), abs=2e-3
    )
    exact = judged_mean(judged, people, folds=1)
    assert (exact.corrected.value, exact.corrected.low, exact.corrected.high) == pytest.approx(
        (people.mean(), low, high)
    )


@pytest.mark.parametrize("size", [49, 119, 120])
def test_the_trust_is_no_more_than_one_where_nobody_is_left(size: int) -> None:
    """Whatever the weights of all units come to when they are added up: not to 1, of these sizes."""
    people = np.random.default_rng(size).random(size)
    assert judged_mean(0.3 * people + 0.1, people).trust <= 1


def test_a_bias_of_the_judge_moves_nothing() -> None:
    judged, people = case("numbers")
    plain, biased = judged_mean(judged, people), judged_mean(judged + 0.3, people)
    assert (biased.corrected.value, biased.corrected.low, biased.corrected.high) == pytest.approx(
        (plain.corrected.value, plain.corrected.low, plain.corrected.high)
    )
    assert biased.judged.value == pytest.approx(plain.judged.value + 0.3)
    scaled = judged_mean(5 * judged, 5 * people)
    assert (scaled.corrected.value, scaled.corrected.low, scaled.trust) == pytest.approx(
        (5 * plain.corrected.value, 5 * plain.corrected.low, plain.trust)
    )


def test_a_judge_who_was_never_seen_to_err_could_have_erred_once() -> None:
    people = np.tile([1.0, 0.0, 1.0], 80)
    seen = np.where(np.arange(240) % 12 < 3, people, np.nan)
    found = judged_mean(people, seen)
    assert found.corrected.value == pytest.approx(2 / 3)
    # One error among the 60 images that people saw would have moved their mean by 1/60.
    assert found.corrected.high - found.corrected.value > stats.t.ppf(0.975, 59) / 60
    erring = np.where(np.arange(240) % 12 == 0, 0.0, people)
    by_hand = judged_mean(erring, seen, folds=1)
    rest = people - by_hand.trust / 0.75 * (erring - erring.mean())
    variance = rest[~np.isnan(seen)].var() / 60 + by_hand.trust**2 * erring[np.isnan(seen)].var() / 180
    assert by_hand.corrected.high - by_hand.corrected.value == pytest.approx(
        stats.t.ppf(0.975, 59) * math.sqrt(60 / 59 * variance), rel=0.02
    )


def test_chances_and_weights_bring_back_units_that_people_met_less_often() -> None:
    rng = np.random.default_rng(3)
    found: list[JudgedMean] = []
    side = np.arange(1200) < 400
    chances = np.where(side, 0.3, 0.1)
    weights = np.where(side, 1.0, 2.0)
    for _ in range(200):
        truth = (rng.random(1200) < np.where(side, 0.8, 0.3)).astype(float)
        judged = np.where(rng.random(1200) < 0.2, 1.0, truth)
        people = np.where(rng.random(1200) < chances, truth, np.nan)
        found.append(judged_mean(judged, people, weights=weights, chances=chances))
    truth_of_all = (400 * 0.8 + 1600 * 0.3) / 2000
    assert np.mean([one.corrected.value for one in found]) == pytest.approx(truth_of_all, abs=0.01)
    assert 0.91 <= np.mean([one.corrected.low <= truth_of_all <= one.corrected.high for one in found]) <= 0.985


@pytest.mark.parametrize("whole", [True, False])
def test_units_of_a_prompt_that_are_alike_count_as_one(whole: bool) -> None:
    rng = np.random.default_rng(5)
    held, prompts = [], np.repeat(np.arange(60), 10)
    for _ in range(150):
        shared = rng.random(60)[prompts]
        truth = (rng.random(600) < shared).astype(float)
        judged = np.where(rng.random(600) < 0.15, 1.0, truth)
        drawn = np.isin(prompts, rng.choice(60, 30, replace=False)) if whole else rng.random(600) < 0.3
        one = judged_mean(judged, np.where(drawn, truth, np.nan), clusters=prompts)
        held.append(one.corrected.low <= 0.5 <= one.corrected.high)
    assert 0.9 <= np.mean(held) <= 0.99


def test_a_ratio_is_of_sums() -> None:
    rng = np.random.default_rng(2)
    held, truth = [], 0.4
    for _ in range(200):
        per = rng.integers(3, 9, 500).astype(float)
        right = rng.binomial(per.astype(int), truth).astype(float)
        by_judge = np.minimum(right + rng.binomial(1, 0.4, 500), per)
        asked = rng.permutation(500) < 100
        people = np.where(asked, right, np.nan)
        one = judged_mean(by_judge, people, per=(per, np.where(asked, per, np.nan)))
        held.append(one.corrected.low <= truth <= one.corrected.high)
        assert one.judged.value == pytest.approx(by_judge.sum() / per.sum())
    assert 0.91 <= np.mean(held) <= 0.985
    plain = judged_mean(by_judge, people)
    again = judged_mean(2 * by_judge, 2 * people, per=(np.full(500, 2.0), np.where(asked, 2.0, np.nan)))
    assert (again.corrected.value, again.corrected.low, again.trust) == pytest.approx(
        (plain.corrected.value, plain.corrected.low, plain.trust)
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"people": [math.nan] * 40}, "people must be one number"),
        ({"people": [1.0] * 39}, "people must be one number"),
        ({"people": [math.inf] * 40}, "people must be one number"),
        ({"weights": [0.0] * 40}, "weights must be finite and above 0"),
        ({"weights": [1.0]}, "weights must be of length 40"),
        ({"chances": [-1.0] * 40}, "chances must be finite and above 0"),
        ({"per": ([1.0] * 40, [1.0] * 39)}, "per.1. must be a number where people has one"),
        ({"per": ([1.0] * 40, [0.0] * 40)}, "over a sum above 0"),
        ({"clusters": [0] * 40}, "too few units, or clusters"),
        ({"folds": 0}, "too few units, or clusters"),
        ({"confidence": 2.0}, "confidence must be"),
    ],
)
def test_arguments_that_break_their_rule(change: dict[str, object], why: str) -> None:
    given: dict[str, object] = {"judged": np.arange(40.0), "people": np.arange(40.0) % 7, **change}
    with pytest.raises(UsageError, match=why):
        judged_mean(**given)  # type: ignore[arg-type]


def pairs(*values: tuple[float, float]) -> pl.DataFrame:
    """Answers of two people to each of some images."""
    rows = [
        (f"i{place}", who, value) for place, both in enumerate(values) for who, value in zip("ab", both, strict=True)
    ]
    return pl.DataFrame(rows, schema=["image_id", "annotator", "value"], orient="row")


def test_neighbours_on_a_scale_agree_and_yes_and_no_do_not() -> None:
    assert agreeing_pairs(pairs((1, 2), (1, 3), (2, 2))) == (2, 3)
    assert agreeing_pairs(pairs((0, 1), (1, 1))) == (1, 2)
    assert agreeing_pairs(pairs((1, 2), (1, 3)), step=2.0) == (2, 2)


@pytest.mark.parametrize(("span", "agreeing"), [(1.0, 7), (math.inf, 7), (8.0, 8)])
def test_what_has_more_values_than_a_scale_agrees_within_a_quarter_of_its_range(span: float, agreeing: int) -> None:
    assert agreeing_pairs(pairs(*((n / 7, (n + 1.7) / 7) for n in range(7)), (0.0, 1.0)), span=span) == (agreeing, 8)


def test_one_rater_an_item_and_an_unknown_design_are_marked() -> None:
    alone = pairs((1, 2), (1, 3)).filter(pl.col("annotator") == "a")
    assert marks_of_answers(alone, "unknown") == [ONE_RATER, DESIGN_UNKNOWN]
    assert marks_of_answers(alone, "drawn") == [ONE_RATER]
    assert marks_of_answers(pairs(*[(1, 2)] * 40), "drawn") == []
