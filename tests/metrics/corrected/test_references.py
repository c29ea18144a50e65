"""What references and raters tell of an audit."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import homogeneity_test, rater_model, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audited_counts import added_distance, audited_counts, audited_share, doubt_of
from culturekit.metrics.corrected.references import confusion_of, shares_by_em, skewed_limits
from tests.metrics.corrected.audits_by_hand import CONTINENT, COUNTRIES, audits_of, mapped_with_error, matches_of
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
    return matches, dict(zip(matches["image_id"].to_list(), truth, strict=True))


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


def test_references_are_refused_where_the_audit_could_not_see_that_they_mislead() -> None:
    matches, truth = generated(0.75, images=3_000, seed=1)
    audit = audits_of(dict(list(truth.items())[:200]))
    with pytest.raises(UsageError, match=r"see a bias of 0\.02 in 80% of cases.*200 audited images"):
        vendi_corrected(
            matches, audit, weights=COUNTRY, method="references",
            references=references(0.75, each=300, seed=2), rng=np.random.default_rng(0),
        )  # fmt: skip


def test_references_are_withheld_where_the_audit_contradicts_them() -> None:
    matches, truth = generated(0.55, images=20_000, seed=1)
    audit = audits_of(dict(list(truth.items())[:8000]))
    with pytest.raises(UsageError, match=r"not mapped like the references.*found p = 0\.00"):
        vendi_corrected(
            matches, audit, weights=COUNTRY, method="references",
            references=references(0.95, each=200, seed=2), rng=np.random.default_rng(0),
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
