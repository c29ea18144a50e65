"""Audits of whole batches: how they are drawn, and that their intervals hold."""

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audit_sampling import batch_forecast
from culturekit.metrics.corrected.audited_counts import RaterModel
from culturekit.metrics.corrected.batch_audit import AuditedBatches, batches_diversity
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of

COUNTRY, ARTIFACT = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def world(seed: int, *, prompts: int = 24, right: float = 0.7) -> tuple[pl.DataFrame, dict[str, str | None]]:
    """Prompts of 24 images each, some of one country and some of all."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(len(COUNTRIES), 0.4), size=prompts)
    truth: list[str | None] = [COUNTRIES[rng.choice(len(COUNTRIES), p=drawn[k % prompts])] for k in range(prompts * 24)]
    matches = matches_of(mapped_with_error(truth, accuracy=right, rng=rng), prompts=prompts)
    return matches, dict(zip(matches["image_id"].to_list(), truth, strict=True))


def sample_of(matches: pl.DataFrame, batches: int, seed: int = 0) -> pl.DataFrame:
    return audit_sample(matches, n=8 * batches, rng=np.random.default_rng(seed), drawing="batches")


@pytest.mark.parametrize("batches", [5, 24, 30, 60, 72, 100])
def test_whole_batches_of_a_prompt_are_drawn_and_spread(batches: int) -> None:
    matches, _ = world(1)
    sample = sample_of(matches, batches)
    taken = min(batches, 72)
    assert sample.height == 8 * taken == sample["image_id"].n_unique()
    each = sample.group_by("batch").agg(pl.len(), prompts=pl.col("prompt_id").n_unique())
    assert each["len"].unique().to_list() == [8]
    assert each["prompts"].unique().to_list() == [1]
    of_prompts = sample.group_by("prompt_id").agg(pl.col("batch").n_unique())["batch"]
    assert of_prompts.max() - (of_prompts.min() if taken >= 24 else 1) <= 1  # type: ignore[operator]
    assert set(sample["chance"].round(9)) == {round(taken / 72, 9)}


def test_every_prompt_is_drawn_as_often_as_the_others() -> None:
    matches, _ = world(2)
    times = pl.concat([sample_of(matches, 6, seed).select("prompt_id").unique() for seed in range(400)])
    counts = times.group_by("prompt_id").len()["len"]
    assert counts.len() == 24
    assert 60 < counts.min() <= counts.max() < 145  # type: ignore[operator]  # 100 expected, 8.7 of spread


def test_with_all_batches_looked_at_it_is_what_people_saw() -> None:
    matches, truth = world(3)
    sample = sample_of(matches, 72)
    audits = audits_of(truth)
    for weights in (COUNTRY, (0.5, 0.5, 0.0)):
        answer = vendi_corrected(matches, audits, weights=weights, rng=np.random.default_rng(0), sample=sample)
        shown = sample.sort("batch")["image_id"].to_list()
        by_image = {row["image_id"]: (row["continent"], row["country"], None) for row in audits.to_dicts()}
        batches = vendi_batches([by_image[image] for image in shown], weights=weights, size=8)
        assert answer.value == pytest.approx(batches.mean(), abs=0.02)
        assert answer.low < batches.mean() < answer.high
        assert answer.n == 576


def test_kernels_with_artifacts_take_every_order_and_many_prompts() -> None:
    matches, truth = world(4)
    sample = sample_of(matches, 18)
    audits = audits_of({image: truth[image] for image in sample["image_id"]})
    audits = audits.with_columns(artifact_id=pl.col("country"))
    for q in (1.0, 2.0, float("inf")):
        answer = vendi_corrected(matches, audits, weights=ARTIFACT, q=q, rng=np.random.default_rng(0), sample=sample)
        assert 1 / 8 <= answer.low < answer.value < answer.high <= 1


def test_answers_that_name_the_level_of_a_kernel_alone_make_whole_batches() -> None:
    matches, truth = world(4)
    sample = sample_of(matches, 18)
    audits = audits_of({image: truth[image] for image in sample["image_id"]})
    countries = audits.with_columns(artifact_id=pl.lit(None, pl.String))
    whole, named = (
        vendi_corrected(matches, answers, weights=COUNTRY, rng=np.random.default_rng(0), sample=sample)
        for answers in (audits, countries)
    )
    assert whole == named


def test_widths_are_foretold_by_the_scatter_of_mapped_batches() -> None:
    foretold, found = [], []
    for seed in range(8):
        matches, truth = world(seed, right=0.85)
        rng = np.random.default_rng(seed)
        forecast = batch_forecast(matches, weights=COUNTRY, rng=rng)
        assert (forecast.least(), forecast.images) == (96, 576)
        sample = sample_of(matches, 24, seed)
        audits = audits_of({image: truth[image] for image in sample["image_id"]})
        answer = vendi_corrected(matches, audits, weights=COUNTRY, rng=rng, sample=sample)
        foretold.append(forecast.width(24 * 8))
        found.append(answer.high - answer.low)
    assert np.mean(foretold) == pytest.approx(np.mean(found), rel=0.2)
    few, _ = world(0, prompts=3)
    with pytest.raises(UsageError, match=r"too few whole batches to audit.*found 9"):
        batch_forecast(few, weights=COUNTRY, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("batches", "lost", "message"), [(11, 0, "too few whole batches"), (14, 24, "too few")])
def test_few_or_incomplete_batches_are_refused(batches: int, lost: int, message: str) -> None:
    matches, truth = world(5)
    sample = sample_of(matches, batches).sort("batch")
    asked = sample["image_id"].to_list()
    kept = [image for place, image in enumerate(asked) if place % 8 or place >= lost]
    audits = audits_of({image: truth[image] for image in kept})
    with pytest.raises(UsageError, match=message):
        vendi_corrected(matches, audits, weights=COUNTRY, rng=np.random.default_rng(0), sample=sample)


def test_batches_that_are_all_alike_leave_room_for_a_label_that_nobody_met() -> None:
    matches, truth = world(6)
    same: dict[str, str | None] = dict.fromkeys(truth, COUNTRIES[0])
    sample = sample_of(matches, 14)
    audits = audits_of({image: same[image] for image in sample["image_id"]})
    answer = vendi_corrected(matches, audits, weights=COUNTRY, rng=np.random.default_rng(0), sample=sample)
    assert answer.value == answer.low == pytest.approx(1 / 8)
    assert answer.high > 0.13


def test_many_prompts_of_one_image_each_are_refused_where_the_mapping_errs_often() -> None:
    matches, truth = world(7, prompts=120, right=0.6)
    drawn = audit_sample(matches, n=150, rng=np.random.default_rng(0))["image_id"]
    audits = audits_of({image: truth[image] for image in drawn})
    with pytest.raises(UsageError, match="does not tell how alike the images of a prompt are"):
        vendi_corrected(matches, audits, weights=COUNTRY, rng=np.random.default_rng(0))


@pytest.mark.parametrize("main", [0.0, 0.8])
def test_intervals_hold_where_a_tenth_of_the_answers_is_wrong(main: float) -> None:
    """Whether labels are even, or most images show one: wrong answers are never the right one."""
    held, away = 0, list[tuple[float, float]]()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shares = np.repeat(rng.dirichlet(np.full(20, 0.5), size=24) * (1 - main), 8, axis=0)
        shares[:, 3] += main
        shown = (shares.cumsum(axis=1) < rng.random(192)[:, None]).sum(axis=1).clip(max=19)
        said = np.where(rng.random(192) < 0.1, (shown + rng.integers(1, 20, size=192)) % 20, shown)
        truth, wrong = (
            vendi_batches([(None, str(one), None) for one in each], weights=COUNTRY).mean() for each in (shown, said)
        )
        levels = np.column_stack([said // 4, said, said])
        model = RaterModel(np.eye(20)[said], np.array([0.9]), float("nan"), 0.9, 0.03)
        rows = np.arange(192).reshape(-1, 8)
        answer = batches_diversity(
            AuditedBatches(levels, np.arange(192) // 8, rows, levels, model),
            weights=COUNTRY, q=1.0, confidence=0.95, rng=rng,
        )  # fmt: skip
        held += answer.low <= truth <= answer.high
        away.append((answer.value - truth, wrong - truth))
        assert answer.low <= answer.sure_low < answer.value < answer.sure_high <= answer.high
    corrected, raw = np.array(away).mean(axis=0)
    assert held >= 19
    assert abs(corrected) < 0.4 * raw


@pytest.mark.slow
@pytest.mark.parametrize("batches", [14, 36])
def test_intervals_hold(batches: int) -> None:
    held = 0
    for seed in range(80):
        matches, truth = world(seed, prompts=30)
        rng = np.random.default_rng(seed)
        by_prompt = matches.group_by("prompt_id", maintain_order=True).agg("image_id")["image_id"].to_list()
        values = [
            vendi_batches([(None, truth[image], None) for image in rng.permutation(images)], weights=COUNTRY).mean()
            for images in by_prompt
            for _ in range(5)
        ]
        sample = sample_of(matches, batches, seed)
        audits = audits_of({image: truth[image] for image in sample["image_id"]})
        answer = vendi_corrected(matches, audits, weights=COUNTRY, rng=rng, sample=sample)
        held += answer.low <= float(np.mean(values)) <= answer.high
    assert held >= 71  # 1 in 400 if they hold in 95 of 100
