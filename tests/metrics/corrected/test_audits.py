"""Which audits are refused or marked by all kernels alike, and audits of whole batches."""

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.audit_gates import (
    ANCHORED,
    DESIGN_UNKNOWN,
    ONE_RATER,
    UNSEEN_LISTS,
    anchoring_seen,
    check_even_draw,
    drawing_of,
    marks_of,
)
from culturekit.metrics.corrected.audit_sampling import batch_forecast
from culturekit.metrics.corrected.audited_counts import RaterModel
from culturekit.metrics.corrected.batch_audit import AuditedBatches, batches_diversity
from culturekit.metrics.statistics.intervals import Interval
from tests.metrics.corrected.audits_by_hand import (
    COUNTRIES,
    audited,
    audits_of,
    mapped_with_error,
    matches_of,
    shown_by,
)

# What is refused does not depend on how near the numbers come
pytestmark = pytest.mark.usefixtures("imputed_in_few_rounds")
KERNELS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.0), (1 / 3, 1 / 3, 1 / 3)]
ARTIFACT_KERNELS = [weights for weights in KERNELS if weights[2] > 0]


class Audited:
    """A model of three prompts, what its images show, and a sample of them drawn for an audit."""

    def __init__(self, seed: int = 1, images: int = 1200, n: int = 150) -> None:
        rng = np.random.default_rng(seed)
        truth: list[str | None] = [COUNTRIES[c] for c in rng.choice(6, p=[0.5, 0.2, 0.1, 0.1, 0.06, 0.04], size=images)]
        mapped = mapped_with_error(truth, accuracy=0.8, rng=rng)
        scores = np.where([a == b for a, b in zip(truth, mapped, strict=True)], 0.6, 0.3) + rng.normal(0, 0.05, images)
        self.matches = matches_of(mapped, prompts=3, artifacts=[f"dish of {c}" for c in mapped]).with_columns(
            score=pl.Series(scores, dtype=pl.Float32)
        )
        self.truth = shown_by(self.matches, truth)
        self.sample = audit_sample(self.matches, n=n, rng=rng)
        self.audit = self.answers(self.sample["image_id"].to_list())

    def answers(self, images: list[str]) -> pl.DataFrame:
        return audits_of({image: self.truth[image] for image in images})

    def corrected(
        self, audit: pl.DataFrame, weights: tuple[float, float, float], sample: pl.DataFrame | None = None
    ) -> Interval:
        q = 2.0 if weights[2] > 0 else 1.0
        return vendi_corrected(self.matches, audit, weights=weights, q=q, rng=np.random.default_rng(0), sample=sample)


def listless(audit: pl.DataFrame) -> pl.DataFrame:
    """Let it be known that nobody was offered first what an image was mapped to."""
    return audit.with_columns(offered_first=pl.lit(value=False), as_mapped=pl.lit(value=False))


def with_gold(audit: pl.DataFrame, *, asked: int, right: int) -> pl.DataFrame:
    """Let the rater answer gold items that show Japan, and say France of the others."""
    gold = audits_of({f"gold-{number}": "JP" if number < right else "FR" for number in range(asked)})
    known = {"artifact_id": "dish of JP", "country": "JP", "continent": "Asia"}
    told = gold.with_columns(pl.lit(label).alias(f"known_{name}") for name, label in known.items())
    return pl.concat([audit, told.with_columns(gold=pl.lit(value=True))], how="diagonal")


@pytest.mark.parametrize("weights", KERNELS)
def test_the_audit_that_was_drawn_is_taken(weights: tuple[float, float, float]) -> None:
    world = Audited()
    alone = world.corrected(world.audit, weights)
    named = world.audit.with_columns(drawing=pl.lit(drawing_of(world.sample)))
    assert alone == world.corrected(world.audit, weights, sample=world.sample)
    assert alone == world.corrected(named, weights, sample=world.sample)


@pytest.mark.parametrize("weights", ARTIFACT_KERNELS)
def test_answers_that_name_a_country_and_no_artifact_say_nothing_of_artifacts(
    weights: tuple[float, float, float],
) -> None:
    world = Audited()
    unnamed = world.audit.with_columns(artifact_id=pl.lit(None, pl.String))
    with pytest.raises(
        UsageError, match=r"150 of 150 audited images: an audit says neither an artifact nor none of these"
    ):
        world.corrected(unnamed, weights)
    some = world.audit.with_columns(pl.when(pl.int_range(pl.len()) >= 12).then("artifact_id").alias("artifact_id"))
    assert world.corrected(some, weights) == world.corrected(world.audit.slice(12), weights)


def unlike_each_other(world: Audited) -> pl.DataFrame:
    """Three raters who are right of one image in five."""
    rng, images = np.random.default_rng(3), world.sample["image_id"].to_list()
    truth = [world.truth[image] for image in images]
    said = {rater: mapped_with_error(truth, accuracy=0.2, rng=rng) for rater in "abc"}
    return pl.concat(audits_of(dict(zip(images, one, strict=True)), annotator=rater) for rater, one in said.items())


def of_some(world: Audited, which: pl.Expr) -> pl.DataFrame:
    """The answers about images of which their matches say something."""
    return world.audit.join(world.matches.filter(which).select("image_id"), on="image_id", how="semi")


def without_half_of_the_hard(world: Audited) -> pl.DataFrame:
    hard = world.matches.filter(pl.col("country") != "FR")["image_id"]
    silent = world.sample.filter(pl.col("image_id").is_in(hard.implode()))["image_id"][::2]
    return world.audit.filter(~pl.col("image_id").is_in(silent.implode()))


def with_others(world: Audited) -> pl.DataFrame:
    others = sorted(world.truth.keys() - set(world.sample["image_id"]))[:3]
    return pl.concat([world.audit, world.answers(others)])


# Answers that no kernel takes; those of the second table are held against the sample
REFUSED: dict[str, Callable[[Audited], pl.DataFrame]] = {
    "too few images were audited; expected at least 30, better 150, found 29": lambda world: world.audit.head(29),
    "answers name a place and say none of these": lambda world: world.audit.with_columns(
        none_of_these=pl.col("none_of_these") | (pl.int_range(pl.len()) % 10 == 0)
    ),
    "a country lies in several continents": lambda world: world.audit.with_columns(
        pl.col("continent").replace({"Asia": "Eastern Asia"})
    ),
    "the raters disagree too often": unlike_each_other,
    r"no even draw over prompts.*'p0': 0 of 400 images": lambda world: world.answers(
        world.matches.filter(prompt_id="p1")["image_id"].to_list()[:150]
    ),
    "no even draw over": lambda world: world.answers(
        world.matches.sort("score", descending=True)["image_id"].to_list()[:600:4]
    ),
    r"no even draw over mapped labels.*'US': 0 of": lambda world: of_some(world, pl.col("country") != "US"),
    r"wrong too often of pictures that are known.*at least 0\.75.*found 7 of 10": lambda world: with_gold(
        world.audit, asked=10, right=7
    ),
}
REFUSED_BY_SAMPLE: dict[str, Callable[[Audited], pl.DataFrame]] = {
    "too few of the drawn images were answered": without_half_of_the_hard,
    "images that were not drawn for the audit.*3 of 153 outside the sample": with_others,
    "belong to another drawing.*found another: 150 of 150 answers": lambda world: world.audit.with_columns(
        drawing=pl.lit("another")
    ),
}


@pytest.mark.parametrize("weights", KERNELS)
@pytest.mark.parametrize("reason", [*REFUSED, *REFUSED_BY_SAMPLE])
def test_every_kernel_refuses(reason: str, weights: tuple[float, float, float]) -> None:
    world = Audited(n=300 if "US" in reason else 150)
    audit = {**REFUSED, **REFUSED_BY_SAMPLE}[reason](world)
    with pytest.raises(UsageError, match=reason):
        world.corrected(audit, weights, sample=world.sample if reason in REFUSED_BY_SAMPLE else None)


def test_a_prompt_of_many_without_any_answer_is_missed_where_the_sample_is_known() -> None:
    world = Audited()
    many = pl.format("q{}", pl.col("image_id").rank("dense") % 24)
    matches, sample = (table.with_columns(prompt_id=many) for table in (world.matches, world.sample))
    of_image = dict(matches.select("image_id", "prompt_id").iter_rows())
    sample = sample.with_columns(prompt_id=pl.col("image_id").replace(of_image))
    drawn = sample.group_by("prompt_id").len().filter(pl.col("len").is_between(5, 7)).sort("prompt_id")
    silent = sample.filter(prompt_id=drawn["prompt_id"][0])["image_id"]
    ask = partial(vendi_corrected, matches, weights=KERNELS[0], sample=sample, rng=np.random.default_rng(0))
    with pytest.raises(UsageError, match=r"too few of the drawn images were answered.*found 0%"):
        ask(world.audit.filter(~pl.col("image_id").is_in(silent.implode())))  # 4 in 100 of the sample: it was taken
    assert ask(world.audit.filter(~pl.col("image_id").is_in(silent[1:].implode()))).n > 140


@pytest.mark.parametrize("weights", KERNELS)
def test_images_that_nobody_drew_are_taken_where_that_is_said(weights: tuple[float, float, float]) -> None:
    world = Audited()
    every = world.answers(world.matches.sort("score")["image_id"].to_list()[:400:2])
    with pytest.raises(UsageError, match="no even draw"):
        world.corrected(every, weights)
    q = 2.0 if weights[2] > 0 else 1.0
    ask = partial(vendi_corrected, world.matches, every, weights=weights, q=q, rng=np.random.default_rng(0))
    assert ask(design="unknown").n == 200
    with pytest.raises(UsageError, match="a sample is given, so the design is known"):
        ask(design="unknown", sample=world.sample)


def test_people_of_whom_nobody_knows_what_they_were_offered_are_marked() -> None:
    world = Audited()
    again = pl.concat([world.audit, world.audit.with_columns(annotator=pl.lit("second"))])
    told = partial(marks_of, world.matches, pool=None, design="drawn", column="country")
    assert told(again) == [UNSEEN_LISTS]
    assert told(listless(again).with_columns(offered_first=pl.lit(None, pl.Boolean))) == [UNSEEN_LISTS]
    assert told(listless(again)) == told(again.with_columns(pool=pl.lit("simulated"))) == []


def test_a_few_images_with_a_second_rater_do_not_hold_the_first() -> None:
    world = Audited()
    told = partial(marks_of, world.matches, pool=None, design="drawn", column="country")

    def again(images: pl.DataFrame) -> pl.DataFrame:
        return listless(pl.concat([world.audit, images.with_columns(annotator=pl.lit("second"))]))

    assert marks_of(world.matches, listless(world.audit), None, "unknown", "country") == [ONE_RATER, DESIGN_UNKNOWN]
    assert told(again(world.audit.head(1))) == [ONE_RATER]  # one image was enough
    assert told(again(world.audit.head(9))) == [ONE_RATER]
    assert told(again(world.audit.head(10))) == []
    unsure = world.audit.head(10).with_columns(pl.lit(None, pl.String).alias("country"), none_of_these=False)
    assert told(again(unsure)) == [ONE_RATER]  # of the level the second says nothing
    alone = pl.when(pl.int_range(pl.len()) < 16).then(pl.lit("third")).otherwise("annotator")
    third = again(world.audit.tail(20)).with_columns(annotator=alone)
    assert told(third) == []  # 16 of 170 answers are of a third, whom nothing holds
    more = pl.when(pl.int_range(pl.len()) < 18).then(pl.lit("third")).otherwise("annotator")
    assert told(again(world.audit.tail(20)).with_columns(annotator=more)) == [ONE_RATER]


def test_few_items_whose_list_is_known_do_not_tell_of_the_others() -> None:
    world = Audited()
    again = pl.concat([world.audit, world.audit.with_columns(annotator=pl.lit("second"))])
    told = partial(marks_of, world.matches, pool=None, design="drawn", column="country")

    def known(images: int, first: int = 0) -> pl.DataFrame:
        place = pl.col("image_id").rank("dense")
        return again.with_columns(
            offered_first=pl.when(place <= images).then(place <= first), as_mapped=pl.lit(value=True)
        )

    assert told(known(1)) == told(known(134)) == [UNSEEN_LISTS]  # one was enough
    assert told(known(135)) == []
    assert told(known(150, first=14)) == []  # fewer than a tenth
    assert told(known(150, first=16)) == []  # and then enough to compare
    few = world.audit.head(30).with_columns(offered_first=pl.int_range(30) < 14, as_mapped=pl.lit(value=True))
    assert UNSEEN_LISTS in told(few)


def test_one_rater_is_held_by_ten_gold_items() -> None:
    world = Audited()
    assert marks_of(world.matches, with_gold(listless(world.audit), asked=9, right=9), None, "drawn", "country") == [
        ONE_RATER
    ]
    assert marks_of(world.matches, with_gold(listless(world.audit), asked=10, right=9), None, "drawn", "country") == []


@pytest.mark.parametrize("weights", KERNELS)
def test_what_gold_items_tell_of_one_rater_moves_and_widens_every_kernel(weights: tuple[float, float, float]) -> None:
    world = Audited()
    bare, better, worse = (
        world.corrected(audit, weights)
        for audit in (world.audit, *(with_gold(world.audit, asked=20, right=right) for right in (20, 17)))
    )
    assert worse.value < better.value < bare.value  # wrong answers make diversity
    assert worse.high - worse.low > better.high - better.low > bare.high - bare.low


def listed(world: Audited, *, drawn: float) -> pl.DataFrame:
    """List first what half of the images are mapped to; of these some part of the wrongly mapped is taken over."""
    rng = np.random.default_rng(7)
    mapped = dict(world.matches.select("image_id", "country").iter_rows())
    first = {image: bool(rng.integers(2)) for image in world.audit["image_id"]}
    said = {
        image: mapped[image] if first[image] and rng.random() < drawn else world.truth[image]
        for image in world.audit["image_id"]
    }
    return audits_of(said).with_columns(
        offered_first=pl.Series(list(first.values())),
        as_mapped=pl.Series([said[image] == mapped[image] for image in said]),
    )


@pytest.mark.parametrize("weights", KERNELS)
def test_raters_who_keep_to_what_is_listed_first_count_only_where_it_was_not(
    weights: tuple[float, float, float],
) -> None:
    world = Audited(n=300)
    anchored = listed(world, drawn=0.9)
    others = anchored.filter(~pl.col("offered_first"))
    assert marks_of(world.matches, anchored, None, "drawn", "country") == [ANCHORED, ONE_RATER]
    assert world.corrected(anchored, weights, sample=world.sample) == world.corrected(others, weights)
    free = listed(world, drawn=0.0)
    assert marks_of(world.matches, free, None, "drawn", "country") == [ONE_RATER]
    assert world.corrected(free, weights) == world.corrected(world.audit, weights)


def test_few_answers_of_each_half_show_no_anchoring() -> None:
    half = [True, False] * 14
    few = pl.DataFrame({"image_id": [str(n) for n in range(28)], "offered_first": half, "as_mapped": half})
    assert not anchoring_seen(few)
    more = pl.concat([few, few.head(2).with_columns(image_id=pl.col("image_id") + "b")])
    assert anchoring_seen(more)


def test_an_audit_without_any_error_is_not_certain_of_artifacts() -> None:
    world = Audited()
    matches = world.matches.with_columns(
        country=pl.lit("JP"), continent=pl.lit("Asia"), artifact_id=pl.lit("x"), artifact=pl.lit("x")
    )
    images = world.sample["image_id"].to_list()
    audit = audits_of(dict.fromkeys(images, "JP"), artifacts=dict.fromkeys(images, "x"))
    answer = vendi_corrected(matches, audit, weights=(0.0, 0.0, 1.0), q=2.0, rng=np.random.default_rng(0))
    missed = 0.019  # of images unlike all others: by 150 images 5 times in 100
    assert answer.low <= 1 / 8 < 1 / (1 + 7 * (1 - missed) ** 2) <= answer.high


@pytest.mark.parametrize("sign", [1, -1])
def test_audited_images_may_lie_four_standard_errors_from_all(sign: int) -> None:
    scores = sign * np.arange(200.0)
    images = pl.DataFrame({"image_id": [f"i{n:03}" for n in range(200)], "score": scores})
    images = images.with_columns(prompt_id=pl.lit("p"), country=pl.lit("IN"))
    check_even_draw(images, images["image_id"][100:150])
    with pytest.raises(UsageError, match=f"images that are {'more' if sign > 0 else 'less'} like"):
        check_even_draw(images, images["image_id"][108:158])


@pytest.mark.slow
def test_even_draws_are_seldom_refused() -> None:
    refused = 0
    for seed in range(40):
        world = Audited(seed=100 + seed, images=300, n=60)
        plain = world.matches.sample(60, seed=seed)["image_id"].to_list()
        try:
            world.corrected(world.answers(plain), (1.0, 0.0, 0.0))
        except UsageError:
            refused += 1
    assert refused == 0


COUNTRY, ARTIFACT = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def world(seed: int, *, prompts: int = 24, right: float = 0.7) -> tuple[pl.DataFrame, dict[str, str | None]]:
    """Prompts of 24 images each, some of one country and some of all."""
    rng = np.random.default_rng(seed)
    drawn = rng.dirichlet(np.full(len(COUNTRIES), 0.4), size=prompts)
    truth: list[str | None] = [COUNTRIES[rng.choice(len(COUNTRIES), p=drawn[k % prompts])] for k in range(prompts * 24)]
    matches = matches_of(mapped_with_error(truth, accuracy=right, rng=rng), prompts=prompts)
    return matches, shown_by(matches, truth)


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
    audits = audited(matches, truth, n=150, rng=np.random.default_rng(0))
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
