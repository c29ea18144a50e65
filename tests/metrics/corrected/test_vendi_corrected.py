"""Corrected diversity: worlds where an earlier estimator was wrong, pairs of artifacts, a second instrument."""

import math
from itertools import product

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audit_gates import (
    ANCHORED,
    MOST_UNPLACED,
    UNSEEN_LISTS,
    anchoring_seen,
    audited_answers,
    marks_of,
)
from culturekit.metrics.corrected.audited_counts import RaterModel, audited_counts
from culturekit.metrics.corrected.corrected_diversity import (
    LEVELS,
    corrected_pair_mean,
    found_levels,
    means_of_images,
    squared_similarities,
    u_statistic,
)
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.statistics.intervals import Interval
from tests.metrics.corrected.audits_by_hand import (
    CONTINENT,
    COUNTRIES,
    audited,
    audits_of,
    mapped_with_error,
    matches_of,
    shown_by,
)

COUNTRY = (0.0, 1.0, 0.0)
KERNELS = [COUNTRY, (1.0, 0.0, 0.0), (0.5, 0.5, 0.0)]


def world(
    shares: list[float], *, images: int, accuracy: float, seed: int, prompts: int = 1
) -> tuple[pl.DataFrame, dict[str, str | None]]:
    """A model's matches, and what its images really show."""
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [COUNTRIES[label] for label in rng.choice(len(COUNTRIES), p=shares, size=images)]
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=rng), prompts=prompts)
    return matches, shown_by(matches, truth)


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


def test_pictures_of_nothing_have_no_diversity_whatever_they_are_mapped_to() -> None:
    matches, _ = world([1 / 6] * 6, images=5000, accuracy=0.0, seed=3)
    nothing: dict[str, str | None] = dict.fromkeys(matches["image_id"].to_list())
    audit = audited(matches, nothing, n=150, rng=np.random.default_rng(1))
    answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=np.random.default_rng(0))
    assert answer.value == pytest.approx(1 / 8, abs=0.002)
    assert answer.low == pytest.approx(1 / 8, abs=1e-9)
    assert answer.high < 0.16
    counts = audited_counts(matches, audit, weights=COUNTRY)
    assert counts.audit[:, counts.none].sum() == 150


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
        audit = audited(matches, found, n=150, rng=np.random.default_rng(seed))
        answer = vendi_corrected(matches, audit, weights=COUNTRY, rng=np.random.default_rng(seed))
        held += bool(answer.low <= true <= answer.high)
        mapped = vendi_batches(matches.select("continent", "country", "artifact"), size=8, weights=COUNTRY)
        margin = 2 * mapped.std(ddof=1) / math.sqrt(len(mapped))
        naive += bool(abs(mapped.mean() - true) <= margin)
    assert held >= 51  # 95 % of 60 is 57; fewer than 51 would come once in a thousand
    assert naive <= 6


def test_three_raters_who_agree_say_what_one_says() -> None:
    matches, truth = world([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], images=800, accuracy=0.8, seed=4)
    audit = audited(matches, truth, n=100, rng=np.random.default_rng(1))
    three = pl.concat(audit.with_columns(annotator=pl.lit(name)) for name in "abc")
    by = [
        [vendi_corrected(matches, said, weights=COUNTRY, rng=np.random.default_rng(seed)).value for seed in range(8)]
        for said in (audit, three)
    ]
    assert np.mean(by[1]) == pytest.approx(np.mean(by[0]), abs=2e-3)  # draws alone part single values by as much


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


AUDITED = 150
DIVERSITY = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * len(COUNTRIES))


def corrected(shares: NDArray[np.float64], *, each: int, accuracy: float, rng: np.random.Generator) -> Interval:
    """Correct the images of prompts with these shares by what people say of 150 of them."""
    prompts = len(shares)
    truth: list[str | None] = [
        COUNTRIES[rng.choice(len(COUNTRIES), p=shares[number % prompts])] for number in range(prompts * each)
    ]
    matches = matches_of(mapped_with_error(truth, accuracy=accuracy, rng=rng), prompts=prompts)
    audit = audited(matches, shown_by(matches, truth), n=AUDITED, rng=rng)
    return vendi_corrected(matches, audit, weights=COUNTRY, rng=rng)


def anchored_answers(
    shown: dict[str, str | None], mapped: dict[str, str | None], drawn: list[str], rng: np.random.Generator
) -> pl.DataFrame:
    """Three raters who are right, but in a fifth of cases take the mapped label where it stands first."""
    first = {image: bool(rng.integers(2)) for image in drawn}
    raters = []
    for rater in ("a", "b", "c"):
        kept_to = {image: first[image] and rng.random() < 0.2 for image in drawn}
        said = {image: mapped[image] if kept_to[image] else shown[image] for image in drawn}
        raters.append(
            audits_of(said, annotator=rater).with_columns(
                offered_first=pl.Series(list(first.values())),
                as_mapped=pl.Series([said[image] == mapped[image] for image in drawn]),
            )
        )
    return pl.concat(raters)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shares", [[0.7, 0.1, 0.05, 0.05, 0.05, 0.05], [0.9, 0.1, 0, 0, 0, 0]])
def test_raters_who_keep_to_the_mapped_label_are_held_or_left_out_or_marked(shares: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [COUNTRIES[label] for label in rng.choice(len(COUNTRIES), p=shares, size=2000)]
    matches = matches_of(mapped_with_error(truth, accuracy=0.6, rng=rng))
    shown = shown_by(matches, truth)
    mapped = dict(matches.select("image_id", "country").iter_rows())
    drawn = audit_sample(matches, n=AUDITED, rng=rng)["image_id"].to_list()
    audits = anchored_answers(shown, mapped, drawn, rng)
    answer = vendi_corrected(matches, audits, weights=COUNTRY, rng=rng)
    assert answer.low <= float(DIVERSITY(np.array([shares]))[0]) <= answer.high
    told = marks_of(matches, audits, None, "drawn", "country")
    assert told == ([ANCHORED] if anchoring_seen(audits) else [])
    unknown = audits.drop("offered_first", "as_mapped")
    assert marks_of(matches, unknown, None, "drawn", "country") == [UNSEEN_LISTS]


@pytest.mark.parametrize("shares", [[0.9, 0.1, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0, 0]])
def test_few_labels_are_known_as_closely_as_from_what_people_say_alone(shares: list[float]) -> None:
    model = np.array([shares])
    answers = [corrected(model, each=400, accuracy=0.85, rng=np.random.default_rng(seed)) for seed in (1, 2)]
    assert all(answer.low <= DIVERSITY(model)[0] <= answer.high for answer in answers)
    assert np.mean([answer.high - answer.low for answer in answers]) <= 1.05 * width_of_labels_alone(model[0])


def width_of_labels_alone(shares: NDArray[np.float64]) -> float:
    """Where 150 labels scatter, and what a label would add that as many labels miss in one of twenty audits."""
    again = np.random.default_rng(0).multinomial(AUDITED, shares, size=4000) / AUDITED
    scatter = float(np.diff(np.quantile(DIVERSITY(again), (0.025, 0.975)))[0])
    missed = 3 / AUDITED
    another = (1 - missed) * shares + missed * np.eye(len(shares))[-1]
    return float(np.hypot(scatter, DIVERSITY(another)[0] - DIVERSITY(shares)[0]))


@pytest.mark.parametrize("share", [0.06, 0.3])
def test_a_country_of_no_known_continent_is_not_where_nothing_is(share: float) -> None:
    rng, both = np.random.default_rng(3), (0.5, 0.5, 0.0)
    truth: list[str | None] = [
        ("JP", "Atlantis", None)[kind] for kind in rng.choice(3, 400, p=[0.5, share, 0.5 - share])
    ]
    matches = matches_of(["JP"] * 400)
    audits = audited(matches, shown_by(matches, truth), n=AUDITED, rng=rng)
    if share > MOST_UNPLACED:
        assert vendi_corrected(matches, audits, weights=COUNTRY, rng=rng).high > 1 / 8
        for weights, q in ((both, 1), ((1 / 3, 1 / 3, 1 / 3), 2)):
            with pytest.raises(UsageError, match="does not say the continent of what it names"):
                vendi_corrected(matches, audits, weights=weights, q=q, rng=rng)
    else:
        parents = audited_counts(matches, audits, weights=both).parents
        assert len(set(parents.tolist())) == 3


@pytest.mark.parametrize(
    ("left_out", "weights", "q"),
    [(["continent"], (0.5, 0.5, 0.0), 1), (["country", "continent"], (1 / 3, 1 / 3, 1 / 3), 2)],
)
def test_what_an_answer_names_alone_lies_where_the_matches_have_it(
    left_out: list[str], weights: tuple[float, float, float], q: int
) -> None:
    rng = np.random.default_rng(4)
    shown = [COUNTRIES[label] for label in rng.integers(0, 6, 400)]
    matches = matches_of(mapped_with_error(list(shown), accuracy=0.8, rng=rng))
    audits = audited(matches, shown_by(matches, shown), n=AUDITED, rng=rng)
    alone = audits.with_columns(pl.lit(None, pl.String).alias(level) for level in left_out)
    whole, told = (
        vendi_corrected(matches, said, weights=weights, q=q, rng=np.random.default_rng(1)) for said in (audits, alone)
    )
    assert (whole.value, whole.low, whole.high) == (told.value, told.low, told.high)


def answers_of(seed: int, *, raters: int, prompts: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Images mapped twice, and what raters who are right of nine in ten say of some; one was asked gold items."""
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [
        COUNTRIES[label] for label in rng.choice(6, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05], size=600)
    ]
    first, second = (matches_of(mapped_with_error(truth, accuracy=0.75, rng=rng), prompts=prompts) for _ in range(2))
    shown = shown_by(first, truth)
    asked = audit_sample(first, n=120, rng=rng)["image_id"].to_list()
    said = [mapped_with_error([shown[image] for image in asked], accuracy=0.9, rng=rng) for _ in range(raters)]
    audits = [audits_of(dict(zip(asked, one, strict=True)), annotator=f"r{n}") for n, one in enumerate(said)]
    gold = audits_of({f"gold {n}": "JP" for n in range(12)}, annotator="r0").with_columns(
        gold=pl.lit(value=True), known_country=pl.lit("JP"), known_continent=pl.lit("Asia"),
        known_artifact_id=pl.lit("dish of JP"),
    )  # fmt: skip
    return first, second, pl.concat([*audits, gold], how="diagonal")


@pytest.mark.parametrize(
    ("raters", "prompts", "kernel", "q", "twice", "expected"),
    [
        (1, 3, COUNTRY, 1.0, False, [0.44096654374821576, 0.38421626484393845, 0.49671619107396153]),
        (3, 3, COUNTRY, 1.0, False, [0.4387545162963964, 0.4000849988464814, 0.4767536228219283]),
        (1, 3, COUNTRY, 1.0, True, [0.4390088359650725, 0.3854249965366537, 0.492527628616498]),
        (1, 24, (0.5, 0.5, 0.0), 1.0, False, [0.38976055397465686, 0.3364898290549383, 0.443835712288248]),
        (3, 24, (1.0, 0.0, 0.0), 0.5, True, [0.3311749764356171, 0.29437570105694977, 0.3644306855795789]),
        (1, 24, COUNTRY, math.inf, False, [0.28242476314144965, 0.24359472808496205, 0.32117395680672717]),
        (2, 3, (0.0, 0.0, 1.0), 2.0, False, [0.3693041109493256, 0.3193375989227419, 0.4192706229759093]),
    ],
)
def test_numbers_stay_what_they_are(
    raters: int, prompts: int, kernel: tuple[float, float, float], q: float, twice: bool, expected: list[float]
) -> None:
    """An implementation of its own gave the same to 1e-7, draw by draw, as long as it was kept."""
    matches, second, audits = answers_of(11, raters=raters, prompts=prompts)
    found = vendi_corrected(
        matches, audits, weights=kernel, q=q, rng=np.random.default_rng(3), second=second if twice else None
    )
    assert [found.value, found.low, found.high] == pytest.approx(expected, abs=1e-9)


UNIFORM = (1 / 3, 1 / 3, 1 / 3)
ARTIFACT = (0.0, 0.0, 1.0)
ARTIFACTS = 40
LABELS = ("country", "continent", "artifact_id")


def drawn(images: int, *, accuracy: float, seed: int) -> tuple[pl.DataFrame, dict[str, str | None], dict[str, str]]:
    """Images of artifacts that are common to different degrees, some of them mapped to another artifact."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, ARTIFACTS + 1)
    true = rng.choice(ARTIFACTS, p=shares / shares.sum(), size=images)
    mapped = np.where(rng.random(images) < accuracy, true, rng.integers(ARTIFACTS, size=images))
    matches = matches_of([COUNTRIES[a % 6] for a in mapped], artifacts=[f"a{a}" for a in mapped])
    ids = matches["image_id"].to_list()
    countries: dict[str, str | None] = {i: COUNTRIES[a % 6] for i, a in zip(ids, true, strict=True)}
    return matches, countries, {i: f"a{a}" for i, a in zip(ids, true, strict=True)}


def numbered(matches: pl.DataFrame) -> NDArray[np.int64]:
    return matches.select(pl.col("continent", "country", "artifact_id").rank("dense").cast(pl.Int64)).to_numpy().T


def true_mean(images: int, weights: tuple[float, float, float]) -> float:
    """The mean of k² over pairs, from the shares themselves."""
    shares = 1 / np.arange(1, ARTIFACTS + 1)
    shares = shares / shares.sum()
    country = np.arange(ARTIFACTS) % 6
    continent = np.array([sorted(set(CONTINENT.values())).index(CONTINENT[COUNTRIES[c]]) for c in country])
    kernel = sum(
        weight * (codes[:, None] == codes[None, :])
        for weight, codes in zip(weights, (continent, country, np.arange(ARTIFACTS)), strict=True)
    )
    return float(shares @ kernel**2 @ shares)


@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT, (0.2, 0.3, 0.5)])
def test_the_mean_over_all_pairs_is_counted_without_looking_at_pairs(weights: tuple[float, float, float]) -> None:
    matches, _, _ = drawn(300, accuracy=0.8, seed=1)
    labels = numbered(matches)
    pairs = squared_similarities(labels, weights)
    assert means_of_images(labels, weights) == pytest.approx(pairs.sum(axis=1) / 299, abs=1e-12)


@pytest.mark.parametrize(("labels", "most"), [(100, 1.3), (20, 1.4)])
def test_the_variance_of_a_mean_over_pairs_is_that_of_its_formula(labels: int, most: float) -> None:
    rng, n = np.random.default_rng(0), 60
    for shares, above in (
        (np.full(labels, 1 / labels), most),
        (np.r_[0.6, np.full(labels - 1, 0.4 / (labels - 1))], 1.1),
    ):
        alike = float((shares**2).sum())
        of_one, of_two = float((shares**3).sum()) - alike**2, alike - alike**2
        true = (4 * (n - 2) * of_one + 2 * of_two) / (n * (n - 1))  # Hoeffding
        found = []
        for _ in range(400):
            said = rng.choice(labels, p=shares, size=n)
            pairs = (said[:, None] == said).astype(np.float64)
            np.fill_diagonal(pairs, 0.0)
            found.append(u_statistic(pairs)[1])
        assert 0.9 <= np.mean(found) / true <= above  # of 100 even labels the jackknife alone gave 2.2 times as much


@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT])
def test_a_mapping_never_makes_the_interval_wider_than_labels_alone(weights: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(3)
    true = rng.integers(ARTIFACTS, size=400)
    hubs = np.where(rng.random(400) < 0.5, true, rng.integers(3, size=400))
    shown = [matches_of([COUNTRIES[a % 6] for a in each], artifacts=[f"a{a}" for a in each]) for each in (hubs, true)]
    sample = audit_sample(shown[0], n=150, rng=rng)["image_id"]
    said = shown[1].filter(pl.col("image_id").is_in(sample.implode()))
    artifacts = dict(said.select("image_id", "artifact_id").iter_rows())
    audits = audits_of(dict(said.select("image_id", "country").iter_rows()), artifacts=artifacts)
    nothing = shown[0].with_columns(pl.lit(shown[0][name][0]).alias(name) for name in LABELS)
    mapped, alone = (
        vendi_corrected(matches, audits, weights=weights, q=2.0, rng=np.random.default_rng(0))
        for matches in (shown[0], nothing)
    )
    assert mapped.high - mapped.low <= 1.01 * (alone.high - alone.low)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT])
def test_the_interval_holds_the_order_two_diversity_of_what_is_shown(weights: tuple[float, float, float]) -> None:
    value = 1 / (1 + 7 * true_mean(ARTIFACTS, weights))
    held, errors, naive = 0, [], []
    for seed in range(40):
        matches, countries, artifacts = drawn(2000, accuracy=0.75, seed=seed)
        sample = audit_sample(matches, n=150, rng=np.random.default_rng(seed))["image_id"].to_list()
        audit = audits_of({i: countries[i] for i in sample}, artifacts={i: artifacts[i] for i in sample})
        answer = vendi_corrected(matches, audit, weights=weights, q=2.0, rng=np.random.default_rng(0))
        naive.append(1 / (1 + 7 * means_of_images(numbered(matches), weights).mean()) - value)
        held += answer.low <= value <= answer.high
        errors.append(answer.value - value)
    assert held >= 33  # 95 % of 40 is 38; fewer than 33 would come once in a thousand
    assert abs(np.mean(errors)) < 0.02
    assert abs(np.mean(naive)) > 2 * abs(np.mean(errors))


@pytest.mark.parametrize("weights", [UNIFORM, ARTIFACT])
def test_a_mapping_that_is_always_right_leaves_how_images_scatter_told_with_caution(
    weights: tuple[float, float, float],
) -> None:
    labels = numbered(drawn(300, accuracy=1.0, seed=2)[0])
    found = [labels.astype(float)[level] * np.where(np.arange(300) < 60, 1, np.nan) for level in range(3)]
    columns = dict(zip(LEVELS, labels, strict=True)) | dict(
        zip([f"{level}_found" for level in LEVELS], found, strict=True)
    )
    images = pl.DataFrame(columns).with_columns(pl.selectors.ends_with("_found").fill_nan(None))
    raters = RaterModel(np.eye(1), np.ones(1), 1.0)
    mean = corrected_pair_mean(images, "p", weights=weights, raters=raters, helped=True)
    of_images = squared_similarities(labels, weights).sum(axis=1) / 299
    assert mean.value == pytest.approx(of_images.mean())
    assert mean.variance == pytest.approx(1.1**2 * 4 * of_images.var(ddof=1) / 300)


def test_each_prompt_needs_an_audit_of_its_own() -> None:
    matches, countries, artifacts = drawn(300, accuracy=0.8, seed=1)
    two = matches.with_columns(prompt_id=pl.when(pl.int_range(pl.len()) < 200).then(pl.lit("p")).otherwise(pl.lit("r")))
    sample = audit_sample(two, n=36, rng=np.random.default_rng(1))
    audit = audits_of(countries, artifacts=artifacts).filter(pl.col("image_id").is_in(sample["image_id"].implode()))
    with pytest.raises(UsageError, match="too few images of a prompt were audited"):
        vendi_corrected(two, audit, weights=ARTIFACT, q=2.0, rng=np.random.default_rng(0))


def test_what_an_audit_may_have_missed_is_the_same_in_three_prompts_as_in_one() -> None:
    matches = matches_of(["JP"] * 600, prompts=3, artifacts=["x"] * 600)
    widths = []
    for table in (matches, matches.with_columns(prompt_id=pl.lit("p"))):
        asked = audit_sample(table, n=150, rng=np.random.default_rng(1))["image_id"].to_list()
        audit = audits_of(dict.fromkeys(asked, "JP"), artifacts=dict.fromkeys(asked, "x"))
        answer = vendi_corrected(table, audit, weights=ARTIFACT, q=2.0, rng=np.random.default_rng(0))
        assert answer.low <= 1 / 8 < answer.high
        widths.append(answer.high - answer.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.01)  # it was wider by the root of three


@pytest.mark.parametrize("prompts", [1, 3])
def test_pairs_of_one_mapped_label_that_an_even_audit_meets_seldom_are_made_good(prompts: int) -> None:
    truth: list[str | None] = [COUNTRIES[number // prompts % 6] for number in range(540)]
    matches = matches_of(truth, prompts=prompts, artifacts=[f"unlike all others {number}" for number in range(540)])
    shown = shown_by(matches, truth)
    asked = audit_sample(matches, n=90, rng=np.random.default_rng(1))["image_id"].to_list()
    audit = audits_of({i: shown[i] for i in asked}, artifacts={i: f"dish of {shown[i]}" for i in asked})
    found = found_levels(matches, audited_answers(matches, audit, weights=ARTIFACT, pool=None, sample=None))
    each = 540 // prompts
    for helped, (name, rows) in product((True, False), found.images.group_by("prompt_id")):
        mean = corrected_pair_mean(rows, str(name), weights=ARTIFACT, raters=found.raters, helped=helped)
        assert mean.value == pytest.approx((each / 6 - 1) / (each - 1), abs=1e-12)  # diversity was up to .04 higher


def test_few_images_of_each_prompt_do_not_make_a_model_look_more_diverse() -> None:
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn = rng.choice(6, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05], size=400)
        matches = matches_of(["JP"] * 400, prompts=16, artifacts=["x"] * 400)
        dishes = {image: f"dish {label}" for image, label in zip(matches["image_id"], drawn, strict=True)}
        audit = audits_of(dict.fromkeys(dishes, "JP"), artifacts=dishes)
        value = vendi_corrected(matches, audit, weights=ARTIFACT, q=2.0, rng=rng).value
        errors.append(value - 1 / (1 + 7 * 0.245))
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(40)  # it was 3.8 standard errors too high


class World:
    """Images of three prompts, mapped twice, and an audit of 150 of them."""

    def __init__(self, seed: int, *, right: float = 0.75, copied: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.ones(len(COUNTRIES)))
        truth = [COUNTRIES[label] for label in rng.choice(len(COUNTRIES), p=shares, size=1200)]
        first, second = (mapped_with_error(truth, accuracy=right, rng=rng) for _ in range(2))
        both = zip(first, second, rng.random(len(truth)) < copied, strict=True)
        self.first = matches_of(first, prompts=3)
        self.second = matches_of([one if same else other for one, other, same in both], prompts=3)
        self.truth = shown_by(self.first, truth)
        self.audits = audited(self.first, self.truth, n=150, rng=rng)

    def width(self, *, second: bool) -> float:
        """Give the width of the interval, which holds a value between its limits."""
        answer = vendi_corrected(
            self.first, self.audits, weights=COUNTRY, rng=np.random.default_rng(0),
            second=self.second if second else None,
        )  # fmt: skip
        assert answer.low <= answer.value <= answer.high
        return answer.high - answer.low


def test_an_instrument_of_its_own_errors_narrows_the_interval_and_a_copied_one_does_not() -> None:
    def part(copied: float) -> float:
        worlds = [World(seed, copied=copied) for seed in range(12)]
        return sum(one.width(second=True) for one in worlds) / sum(one.width(second=False) for one in worlds)

    assert part(0.0) < 0.9
    assert 0.95 < part(0.9) < 1.15  # nine labels in ten are the first's: taken for its own they would halve it


def test_a_copy_is_left_out_and_so_is_who_is_seldom_right() -> None:
    world = World(3, copied=1.0)
    assert world.width(second=True) == world.width(second=False)
    world.second = matches_of(["FR"] * 1200, prompts=3)
    assert world.width(second=True) == world.width(second=False)


def test_images_are_coded_by_both_labels_and_images_of_the_first_are_all_there() -> None:
    world = World(5)
    counts = audited_counts(world.first, world.audits, weights=COUNTRY, second=world.second)
    assert counts.instruments is not None
    pairs = pl.DataFrame({"a": world.first["country"], "b": world.second["country"], "p": world.first["prompt_id"]})
    named = [(counts.labels[a], counts.labels[b]) for a, b in counts.instruments.T]
    for prompt, row in zip(sorted(set(pairs["p"])), counts.mapped, strict=True):
        rows = pairs.filter(p=prompt)
        assert [rows.filter(a=a, b=b).height for a, b in named] == row.tolist()
    with pytest.raises(UsageError, match="second instrument has not mapped all images"):
        audited_counts(world.first, world.audits, weights=COUNTRY, second=world.second.head(900))


def test_labels_that_only_the_second_knows_are_labels() -> None:
    world = World(6)
    world.second = world.second.with_columns(
        country=pl.when(pl.int_range(pl.len()) % 40 == 0).then(pl.lit("AQ")).otherwise("country"),
        continent=pl.when(pl.int_range(pl.len()) % 40 == 0).then(pl.lit("Antarctica")).otherwise("continent"),
    )
    assert 0 < world.width(second=True) < 0.2


@pytest.mark.slow
def test_intervals_hold_where_errors_are_tied() -> None:
    held, widths = [], []
    for seed in range(60):
        world = World(seed, right=0.7, copied=0.3)
        answer = vendi_corrected(
            world.first, world.audits, weights=COUNTRY, rng=np.random.default_rng(0), second=world.second
        )
        every = vendi_corrected(world.first, audits_of(world.truth), weights=COUNTRY, rng=np.random.default_rng(0))
        held.append(answer.low <= every.value <= answer.high)
        widths.append(answer.high - answer.low)
    assert sum(held) >= 53  # 1 in 2,000 if they hold in 95 of 100
    assert np.mean(widths) < 0.1
