import math

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audited_counts import NONE, audited_counts
from tests.metrics.corrected.audits_by_hand import CONTINENT, COUNTRIES, audits_of, mapped_with_error, matches_of

COUNTRY = (0.0, 1.0, 0.0)
KERNELS = [COUNTRY, (1.0, 0.0, 0.0), (0.5, 0.5, 0.0)]


def world(
    shares: list[float], *, images: int, accuracy: float, seed: int, prompts: int = 1
) -> tuple[pl.DataFrame, dict[str, str | None]]:
    """A model's matches, and what its images really show."""
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [COUNTRIES[label] for label in rng.choice(len(COUNTRIES), p=shares, size=images)]
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=rng), prompts=prompts)
    return matches, dict(zip(matches["image_id"].to_list(), truth, strict=True))


def audited(matches: pl.DataFrame, truth: dict[str, str | None], *, n: int, seed: int) -> pl.DataFrame:
    drawn = audit_sample(matches, n=n, rng=np.random.default_rng(seed))["image_id"].to_list()
    return audits_of({image: truth[image] for image in drawn})


@pytest.mark.parametrize("weights", KERNELS)
def test_with_every_image_audited_it_is_the_diversity_of_what_they_show(weights: tuple[float, float, float]) -> None:
    matches, truth = world([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], images=4000, accuracy=0.7, seed=1)
    answer = vendi_corrected(matches, audits_of(truth), weights=weights, rng=np.random.default_rng(0))
    shown = [(matches_continent(country), country, None) for country in truth.values()]
    batches = vendi_batches(shown, size=8, weights=weights)
    assert answer.low <= batches.mean() + 2 * batches.std() / math.sqrt(len(batches))
    assert answer.high >= batches.mean() - 2 * batches.std() / math.sqrt(len(batches))
    assert answer.high - answer.low < 0.03
    assert answer.n == 4000


def matches_continent(country: str | None) -> str | None:
    return CONTINENT.get(country or "")


def test_a_mapping_without_error_is_left_as_it_is() -> None:
    matches, truth = world([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], images=20_000, accuracy=1.0, seed=2)
    answer = vendi_corrected(
        matches, audited(matches, truth, n=150, seed=1), weights=COUNTRY, rng=np.random.default_rng(0)
    )
    mapped = vendi_batches(matches.select("continent", "country", "artifact"), size=8, weights=COUNTRY).mean()
    assert answer.value == pytest.approx(mapped, abs=0.01)
    assert answer.low <= mapped <= answer.high


def test_pictures_of_nothing_have_no_diversity_whatever_they_are_mapped_to() -> None:
    matches, _ = world([1 / 6] * 6, images=5000, accuracy=0.0, seed=3)
    nothing: dict[str, str | None] = dict.fromkeys(matches["image_id"].to_list())
    audit = audited(matches, nothing, n=150, seed=1)
    answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=np.random.default_rng(0))
    assert answer.value == pytest.approx(1 / 8, abs=0.002)
    assert answer.low == pytest.approx(1 / 8, abs=1e-9)
    assert answer.high < 0.16
    counts = audited_counts(matches, audit, weights=COUNTRY)
    assert counts.audit[:, counts.labels.index(NONE)].sum() == 150


@pytest.mark.slow
def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    shares = [0.7, 0.1, 0.08, 0.06, 0.04, 0.02]
    rng = np.random.default_rng(5)
    true = np.mean(
        [
            vendi([("", int(label), "") for label in batch], weights=COUNTRY) / 8
            for batch in rng.choice(6, p=shares, size=(5_000, 8))
        ]
    )
    held, naive = 0, 0.0
    for seed in range(60):
        matches, found = world(shares, images=2000, accuracy=0.8, seed=seed)
        answer = vendi_corrected(
            matches, audited(matches, found, n=150, seed=seed), weights=COUNTRY, rng=np.random.default_rng(seed)
        )
        held += bool(answer.low <= true <= answer.high)
        mapped = vendi_batches(matches.select("continent", "country", "artifact"), size=8, weights=COUNTRY)
        margin = 2 * mapped.std(ddof=1) / math.sqrt(len(mapped))
        naive += bool(abs(mapped.mean() - true) <= margin)
    assert held >= 51  # 95 % of 60 is 57; fewer than 51 would come once in a thousand
    assert naive <= 6


def test_the_answer_depends_on_no_order_of_rows() -> None:
    matches, truth = world([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], images=800, accuracy=0.8, seed=4, prompts=2)
    audit = audited(matches, truth, n=100, seed=1)
    one = vendi_corrected(matches, audit, weights=COUNTRY, rng=np.random.default_rng(7))
    other = vendi_corrected(
        matches.sample(fraction=1, shuffle=True, seed=3), audit.sample(fraction=1, shuffle=True, seed=4),
        weights=COUNTRY, rng=np.random.default_rng(7),
    )  # fmt: skip
    assert one == other
    assert audit_sample(matches, n=50, rng=np.random.default_rng(1)).equals(
        audit_sample(matches.reverse(), n=50, rng=np.random.default_rng(1))
    )


def test_three_raters_who_agree_say_what_one_says() -> None:
    matches, truth = world([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], images=800, accuracy=0.8, seed=4)
    audit = audited(matches, truth, n=100, seed=1)
    three = pl.concat(audit.with_columns(annotator=pl.lit(name)) for name in "abc")
    by = [
        [vendi_corrected(matches, said, weights=COUNTRY, rng=np.random.default_rng(seed)).value for seed in range(8)]
        for said in (audit, three)
    ]
    assert np.mean(by[1]) == pytest.approx(np.mean(by[0]), abs=2e-3)  # draws alone part single values by as much


def test_the_sample_meets_every_label_and_prompt_as_often_as_it_occurs() -> None:
    matches, _ = world([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], images=3000, accuracy=0.8, seed=4, prompts=3)
    sample = audit_sample(matches, n=150, rng=np.random.default_rng(2))
    assert sample.height == sample["image_id"].n_unique() == 150
    assert sample["chance"].unique().to_list() == [0.05]
    for column in ("country", "prompt_id"):
        key = "stratum" if column == "country" else column
        expected = matches.group_by(column).len().sort(column)["len"].to_numpy() * 0.05
        drawn = sample.group_by(key).len().sort(key)["len"].to_numpy()
        assert np.abs(drawn - expected).max() <= (1 if column == "prompt_id" else 3)
    assert audit_sample(matches, n=9_999, rng=np.random.default_rng(2)).height == 3000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": (0.0, 0.5, 0.5)}, "cannot be corrected for kernels with artifacts"),
        ({"size": 1}, "size must be between 2 and 12; found 1"),
        ({"size": 13}, "size must be between 2 and 12; found 13"),
        ({"q": 0.0}, "q must be a number above 0"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"method": "wishes"}, "method must be 'audit' or 'references'"),
        ({"method": "references"}, "references must be the labels of held-out"),
    ],
)
def test_what_cannot_be_asked_is_said(change: dict[str, object], message: str) -> None:
    matches, truth = world([1 / 6] * 6, images=200, accuracy=0.8, seed=4)
    arguments = {"weights": COUNTRY, "rng": np.random.default_rng(0), **change}
    with pytest.raises(UsageError, match=message):
        vendi_corrected(matches, audits_of(truth), **arguments)  # type: ignore[arg-type]


def test_an_audit_that_cannot_carry_a_correction_is_refused() -> None:
    matches, truth = world([1 / 6] * 6, images=200, accuracy=0.8, seed=4)
    ask = {"weights": COUNTRY, "rng": np.random.default_rng(0)}
    audit = audits_of(truth)
    with pytest.raises(UsageError, match="too few images were audited; expected at least 30, better 150, found 20"):
        vendi_corrected(matches, audit.head(20), **ask)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no audited image is among the matches"):
        vendi_corrected(matches, audit.with_columns(image_id=pl.lit("x") + pl.col("image_id")), **ask)  # type: ignore[arg-type]
    two = pl.concat([audit, audit.with_columns(pool=pl.lit("others"))])
    with pytest.raises(UsageError, match="several pools of people answered; expected pool= with one of them"):
        vendi_corrected(matches, two, **ask)  # type: ignore[arg-type]
    assert vendi_corrected(matches, two, pool="people", **ask).n == 200  # type: ignore[arg-type]
    unsure = audit.with_columns(pl.lit(None, pl.String).alias(level) for level in ("country", "artifact_id"))
    with pytest.raises(UsageError, match="says neither a country nor none of these"):
        vendi_corrected(matches, unsure, **ask)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="matches must be of one model; found 'a, m'"):
        vendi_corrected(pl.concat([matches, matches_of(["JP"], model="a")]), audit, **ask)  # type: ignore[arg-type]
    elsewhere = matches.with_columns(
        continent=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("Atlantis")).otherwise("continent")
    )
    with pytest.raises(UsageError, match="lies in several continents"):
        vendi_corrected(elsewhere, audit, weights=(0.5, 0.5, 0.0), rng=np.random.default_rng(0))
