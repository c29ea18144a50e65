"""What references and raters tell of an audit, and means of what a judge says, put right by people."""

import math
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import JudgedMean, homogeneity_test, judged_mean, rater_model, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audit_gates import DESIGN_UNKNOWN, ONE_RATER
from culturekit.metrics.corrected.audited_counts import added_distance, audited_counts, audited_share, doubt_of
from culturekit.metrics.corrected.judged_means import agreeing_pairs, marks_of_answers
from culturekit.metrics.corrected.references import confusion_of, shares_by_em, skewed_limits
from tests.metrics.corrected.audits_by_hand import (
    CONTINENT,
    COUNTRIES,
    audits_of,
    mapped_with_error,
    matches_of,
    shown_by,
)
from tests.oracles.rater_errors import raters_of

COUNTRY = (0.0, 1.0, 0.0)
SHARES = [0.6, 0.15, 0.1, 0.08, 0.05, 0.02]


def references(accuracy: float, *, each: int, seed: int) -> pl.DataFrame:
    true: list[str | None] = [country for country in COUNTRIES for _ in range(each)]
    return pl.DataFrame(
        {"true": true, "mapped": mapped_with_error(true, accuracy=accuracy, rng=np.random.default_rng(seed))}
    )


def generated(accuracy: float, *, images: int, seed: int) -> tuple[pl.DataFrame, dict[str, str | None]]:
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [COUNTRIES[label] for label in rng.choice(6, p=SHARES, size=images)]
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=rng))
    return matches, shown_by(matches, truth)


def test_em_finds_the_shares_behind_a_known_confusion() -> None:
    rng = np.random.default_rng(0)
    confusion = rng.integers(1, 20, size=(4, 4)) + 60 * np.eye(4)
    shares = np.array([0.5, 0.3, 0.15, 0.05])
    chances = confusion + 0.5 * np.eye(4) + 1e-9
    chances /= chances.sum(axis=1, keepdims=True)
    mapped = np.rint(1e7 * shares @ chances).astype(np.int64)
    assert shares_by_em(mapped, confusion) == pytest.approx(shares, abs=1e-4)
    direct = np.linalg.solve(chances.T, mapped / mapped.sum())
    assert shares_by_em(mapped, confusion) == pytest.approx(direct, abs=1e-4)


def test_references_correct_images_that_are_mapped_like_them() -> None:
    matches, truth = generated(0.75, images=20_000, seed=1)
    audit = audits_of(dict(list(truth.items())[:6000]))
    answer = vendi_corrected(
        matches, audit, weights=COUNTRY, method="references",
        references=references(0.75, each=6000, seed=2), rng=np.random.default_rng(0),
    )  # fmt: skip
    true = vendi_batches([("", country, "") for country in truth.values()], size=8, weights=COUNTRY).mean()
    mapped = vendi_batches(matches.select("continent", "country", "artifact"), size=8, weights=COUNTRY).mean()
    assert abs(mapped - true) > 0.05
    assert abs(answer.value - true) < 0.03
    assert answer.low <= true <= answer.high


def test_references_that_lack_pictures_of_nothing_are_refused_where_people_found_some() -> None:
    matches, truth = generated(0.75, images=3_000, seed=1)
    found = {image: None if number % 5 == 0 else true for number, (image, true) in enumerate(truth.items())}
    audit = audits_of(dict(list(found.items())[:2000]))
    with pytest.raises(UsageError, match=r"labels of which there are no references.*none of these"):
        vendi_corrected(
            matches, audit, weights=COUNTRY, method="references",
            references=references(0.75, each=300, seed=2), rng=np.random.default_rng(0),
        )  # fmt: skip


@pytest.mark.parametrize("abstains", [0.0, 0.5])
def test_pictures_of_nothing_are_told_from_others_only_by_a_mapping_that_abstains(abstains: float) -> None:
    rng = np.random.default_rng(1)
    true = [None if nothing else COUNTRIES[0] for nothing in rng.random(1500) < 0.6]
    places = rng.choice(7, p=[*((1 - abstains) * np.array(SHARES)), abstains], size=3000)
    floor = [(*COUNTRIES, None)[place] for place in places]
    mapped = [floor.pop() if label is None else label for label in true]
    matches = matches_of(mapped)
    audit = audits_of(dict(list(zip(matches["image_id"].to_list(), true, strict=True))[:1000]))
    nothing = pl.DataFrame({"true": pl.Series([None] * 1500, dtype=pl.String), "mapped": floor[:1500]})
    known = pl.concat([references(0.9, each=300, seed=2), nothing])
    reason = "too few images|not mapped like" if abstains else "does not tell their true labels apart.*0.000, 7 true"
    with pytest.raises(UsageError, match=reason):
        vendi_corrected(
            matches, audit, weights=COUNTRY, method="references", references=known, rng=np.random.default_rng(0)
        )


@pytest.mark.parametrize(
    ("right", "images", "audited", "known", "each", "reason"),
    [
        (0.75, 3_000, 200, 0.75, 300, r"see a bias of 0\.02 in 80% of cases.*200 audited images"),
        (0.55, 20_000, 8_000, 0.95, 200, r"not mapped like the references.*found p = 0\.00"),
    ],
    ids=["the audit could not see that they mislead", "the audit contradicts them"],
)
def test_references_are_refused_where_an_audit_does_not_bear_them_out(
    right: float, images: int, audited: int, known: float, each: int, reason: str
) -> None:
    matches, truth = generated(right, images=images, seed=1)
    audit = audits_of(dict(list(truth.items())[:audited]))
    with pytest.raises(UsageError, match=reason):
        vendi_corrected(
            matches, audit, weights=COUNTRY, method="references",
            references=references(known, each=each, seed=2), rng=np.random.default_rng(0),
        )  # fmt: skip


def test_the_test_of_homogeneity_rejects_by_chance_as_often_as_it_says() -> None:
    rejected = 0
    for seed in range(40):
        matches, truth = generated(0.8, images=160, seed=seed)
        counts = audited_counts(matches, audits_of(truth), weights=COUNTRY)
        confusion = confusion_of(references(0.8, each=40, seed=1000 + seed), counts.labels)
        rejected += homogeneity_test(counts, confusion, rng=np.random.default_rng(seed), permutations=99).rejected
    assert rejected <= 7  # 5 % of 40 is 2; more than 7 would come once in a thousand


def test_too_small_an_audit_cannot_tell() -> None:
    matches, truth = generated(0.8, images=149, seed=1)
    counts = audited_counts(matches, audits_of(truth), weights=COUNTRY)
    confusion = confusion_of(references(0.8, each=40, seed=1), counts.labels)
    with pytest.raises(UsageError, match=r"too few images were audited to tell.*expected at least 150, found 149"):
        homogeneity_test(counts, confusion, rng=np.random.default_rng(0))
    with pytest.raises(UsageError, match="columns mapped and true"):
        confusion_of(pl.DataFrame({"a": []}), counts.labels)


@pytest.mark.parametrize("way", [1, -1])
def test_limits_of_skewed_draws_are_those_of_halls_cubic(way: int) -> None:
    draws = way * np.random.default_rng(1).gamma(8.0, size=4_000)
    low, high = skewed_limits(5.0, draws, freedom=30, confidence=0.9, lowest=-99.0, highest=99.0)
    g, t = float(stats.skew(draws)), float(stats.t(30).ppf(0.95))
    for limit, wanted in ((low, t), (high, -t)):
        away = (5.0 - limit) / draws.std(ddof=1)
        assert away + g * away**2 / 3 + g**2 * away**3 / 27 + g / 6 == pytest.approx(wanted)
    assert skewed_limits(5.0, draws, freedom=30, confidence=0.9, lowest=4.9, highest=5.1) == (4.9, 5.1)
    assert skewed_limits(5.0, np.ones(9), freedom=30, confidence=0.9, lowest=0.0, highest=9.0) == (5.0, 5.0)


def answers(
    accuracy: tuple[float, ...], *, images: int, labels: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Answers of raters of known accuracy about images of known labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(labels, size=images)
    image = np.repeat(np.arange(images), len(accuracy))
    rater = np.tile(np.arange(len(accuracy)), images)
    wrong = (truth[image] + rng.integers(1, labels, size=len(image))) % labels
    right = rng.random(len(image)) < np.array(accuracy)[rater]
    return truth, image, rater, np.where(right, truth[image], wrong)


def test_it_finds_who_is_good_and_beats_the_majority() -> None:
    truth, image, rater, said = answers((0.95, 0.7, 0.6), images=3000, labels=6, seed=1)
    model = rater_model(image, rater, said, labels=6)
    assert model.accuracy == pytest.approx([0.95, 0.7, 0.6], abs=0.03)
    votes = np.zeros((3000, 6))
    np.add.at(votes, (image, said), 1)
    by_model = (model.shares.argmax(axis=1) == truth).mean()
    assert by_model > (votes.argmax(axis=1) == truth).mean() + 0.02
    assert model.shares.sum(axis=1) == pytest.approx(np.ones(3000))
    assert model.shares.max(axis=1).mean() == pytest.approx(by_model, abs=0.02)  # probabilities mean what they say


def test_agreement_is_the_share_of_pairs_that_agree() -> None:
    image, rater = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1])
    assert rater_model(image, rater, np.array([2, 2, 1, 0, 0]), labels=3).agreement == pytest.approx(2 / 4)
    assert np.isnan(rater_model(np.arange(3), np.zeros(3, int), np.array([0, 1, 2]), labels=3).agreement)


def test_one_answer_per_image_is_taken_as_it_is() -> None:
    model = rater_model(np.arange(3), np.zeros(3, int), np.array([0, 1, 2]), labels=3)
    assert (model.shares == np.eye(3)).all()


def test_gold_items_tell_how_often_one_rater_is_right() -> None:
    truth, image, rater, said = answers((0.8,), images=2000, labels=6, seed=2)
    model = rater_model(image, rater, said, labels=6, gold=np.array([[200, 160]]))
    assert model.accuracy[0] == pytest.approx(169 / 210)
    assert model.right == pytest.approx((said == truth).mean(), abs=0.02)
    low = stats.beta(model.right * 210 + 0.5, (1 - model.right) * 210 + 0.5).ppf(0.025)
    assert model.doubt == pytest.approx((model.right - low) / 1.959964, rel=1e-6)
    assert model.doubt == pytest.approx((model.right * (1 - model.right) / 211) ** 0.5, rel=0.1)


def test_ten_gold_items_that_are_right_do_not_say_that_all_are() -> None:
    model = rater_model(np.arange(40), np.zeros(40, int), np.arange(40) % 4, labels=4, gold=np.array([[10, 10]]))
    assert model.right - 1.96 * model.doubt == pytest.approx(stats.beta(19.5, 1.5).ppf(0.025), abs=0.01)
    assert model.right - 1.96 * model.doubt < 0.8  # who is right in 80 of 100 meets that in one of nine cases


@pytest.mark.parametrize("seen", [12, 130, 460])
@pytest.mark.parametrize("right", [1.0, 0.99999, 0.999, 0.99])
def test_few_errors_leave_as_much_doubt_as_none(right: float, seen: int) -> None:
    none_seen = 1 - stats.beta(seen + 0.5, 0.5).ppf(0.025)
    assert doubt_of(right, seen) > 0  # it was below 0, or 0
    assert doubt_of(right, seen) * 1.959964 >= none_seen - (1 - right) - 1e-9


def test_what_raters_do_to_all_parts_adds_up_and_the_rest_in_squares() -> None:
    assert added_distance([(0.5, 0.3, 0.3), (0.5, 0.4, 0.4)]) == pytest.approx(0.25)
    assert added_distance([(0.5, 0.5, 0.4), (0.5, 0.5, 0.3)]) == pytest.approx(np.hypot(0.25, (0.3 + 0.4) / 2))
    assert added_distance([(1.0, 0.5, 0.6)]) == pytest.approx(0.5)  # a limit at its end: what is sure is no more


def test_answers_that_nothing_holds_do_not_tell_how_good_a_rater_is() -> None:
    _, image, rater, said = answers((0.8,), images=500, labels=6, seed=3)
    few, many = (rater_model(image[:n], rater[:n], said[:n], labels=6, gold=np.array([[10, 9]])) for n in (100, 500))
    assert few.accuracy == many.accuracy == pytest.approx([0.9])


@pytest.mark.parametrize(("said", "labels"), [([0, 3], 3), ([], 3), ([0, 1, 2], 3)])
def test_wrong_arguments_are_named(said: list[int], labels: int) -> None:
    with pytest.raises(UsageError, match=r"answers must be|labels must be"):
        rater_model(np.arange(2), np.zeros(2, int), np.array(said, int), labels=labels)


def test_a_mapping_that_tells_nothing_apart_among_audited_images_moves_nothing() -> None:
    said, seen = [np.array([1.0, 1.0, 0.0, 0.0, 0.0])], [np.zeros(5)]
    shares = [audited_share(said, seen, [everywhere], [50], confidence=0.95) for everywhere in (0.0, 0.6)]
    assert shares[0] == shares[1]
    assert shares[0].value == pytest.approx(0.4)


def test_a_mapping_that_is_right_throughout_gives_its_share_of_all_images() -> None:
    said = [np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])]
    share = audited_share(said, said, [0.3, 0.9], [30, 10], confidence=0.95)
    assert share.value == pytest.approx((0.3 * 30 + 0.9 * 10) / 40)
    assert (share.low, share.high) == pytest.approx(
        (share.value - 1.96 * 0.75 / 4, share.value + 1.96 * 0.75 / 4), abs=1e-4
    )


CONTINENTS = (1.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_two_raters_who_disagree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = [str(country) for country in rng.choice(COUNTRIES[: 2 + seed % 5], 60)]
    matches = matches_of([*truth], prompts=3)
    ids = matches["image_id"].to_list()[:40]
    said = [{image: str(rng.choice(COUNTRIES[:4])) if rng.random() < 0.15 else country for image, country in
             zip(ids, truth, strict=False)} for _ in range(2)]  # fmt: skip
    audits = pl.concat([audits_of({**one}, annotator=name) for one, name in zip(said, "ab", strict=True)])
    scored = audited_counts(matches, audits, weights=CONTINENTS)
    answers = {image: {name: CONTINENT[one[image]] for one, name in zip(said, "ab", strict=True)} for image in ids}
    again = raters_of(answers, {}, scored.labels).shares
    assert (scored.found.shown.max(axis=1) < 1).any()
    assert (scored.found.shown == [[round(again[image][name], 9) for name in scored.labels] for image in ids]).all()


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
