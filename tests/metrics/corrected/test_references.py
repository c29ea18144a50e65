import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import homogeneity_test, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audited_counts import audited_counts
from culturekit.metrics.corrected.references import confusion_of, shares_by_em, skewed_limits
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of

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
