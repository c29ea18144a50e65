"""From the tones of pictures, found by a rule or named by people, to their histogram and its spread."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from culturekit.core.choices import CONFIDENCE, TONES_PER_SHARD
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Stage, Work
from culturekit.core.tables import read_table
from culturekit.index.embedding.embedding import load_picture
from culturekit.metrics.corrected.audit_gates import ONE_RATER
from culturekit.metrics.linguistic.picture_tones import DETECTORS, TONE_WARNINGS, Detector, skin_tone
from culturekit.metrics.linguistic.tone_histograms import (
    MISSED,
    MONK_TONES,
    SpreadKind,
    corrected_tones,
    tone_spread_interval,
)
from culturekit.metrics.statistics.intervals import clustered_share
from culturekit.recipes.linguistic.prompts import BENCHMARK
from culturekit.recipes.linguistic.scores import ANNOTATIONS_READ, BY_PROMPT, IMAGES_READ, PAPER
from culturekit.recipes.linguistic.world import LIGHTS, draw_face
from culturekit.scores.answers import answers_in, careful_answers, of_criterion, whose
from culturekit.scores.catalog import describe
from culturekit.scores.family import (
    Confidence,
    Row,
    Scope,
    Scored,
    mean_rows,
    parts_by_group,
    prompted_images,
    scored,
    scores,
    statistic_row,
    with_reason,
)
from culturekit.scores.inputs import AnyImages, asked
from culturekit.scores.qvs import samples_of

SCALE = len(MONK_TONES)
WEIGHTS = [f"tone_{number}" for number in range(1, SCALE + 1)]
ANSWERS, NAMED = "answers", "named"  # columns: how many people answered about a picture, and how many named a tone
KINDS: tuple[SpreadKind, ...] = ("std", "mad")
ANSWERED = 0.8  # the share of drawn pictures that people have to look at before they put anything right
FACE, HALF = 48, 0.5  # pixels along each side of a face that a rule is tried on; how much of its skin it has to find
PEOPLE = "people"  # the detector of tones that people named
TONE_CRITERION = "monk_tone"  # what people answer with a tone from 1 to 10; without a value they saw no person
ONE = "a single prompt"

_SKIN = (
    "params.warning must be read with the number. detector=dall-eval, the published rule, cannot see dark skin: only "
    "four of the ten Monk swatches (4 to 7) pass it, so dark-skinned people are skipped, or counted by lighter things "
    "around them. detector=ita sees all ten.",
    "Both rules know colours only: sand, wood, bread and many walls pass as skin. Without a finder of people the tone "
    "is that of whatever in the picture has the colour of skin. Light changes it, too.",
    "params.images_left_out counts the pictures in which no pixel passes; they are in no histogram.",
)

TONE_SHARE = describe(
    "tone_share", "Pictures with a skin tone",
    "share of pictures whose skin is nearest to tone params.tone of the Monk scale: mean RGB of the pixels that pass, "
    "nearest swatch by L1, the first on ties",
    paper=f"{PAPER}, section 3.1.2", inputs=(IMAGES_READ, ANNOTATIONS_READ),
    pitfalls=(*_SKIN, "The interval is Wilson's for pictures that go together by prompt."),
)  # fmt: skip
TONE_STD = describe(
    "tone_std", "Unevenness of skin tones (STD)", "population standard deviation over the ten shares of the histogram",
    paper=f"{PAPER}, equation 2 and table 2", inputs=(IMAGES_READ, ANNOTATIONS_READ),
    pitfalls=(
        *_SKIN,
        "0.3 is one tone only; the paper's table prints that row with STD and MAD swapped.",
        "Few pictures cannot fill ten tones: below 100 or so the number is too high whatever the model does. Compare "
        "equal numbers of pictures. The interval (jackknife over prompts, bias allowed for) holds the truth 93 to 98 "
        "times in 100 in simulation, but 7 in 10 where the truth is exactly even.",
        "An even histogram over tones is no goal in itself: neither prompts nor people are spread evenly over them.",
    ),
    high=0.3, direction="lower", unit="standard deviation",
)  # fmt: skip
TONE_MAD = describe(
    "tone_mad", "Unevenness of skin tones (MAD)", "mean absolute deviation over the ten shares of the histogram",
    paper=f"{PAPER}, equation 3 and table 2", inputs=(IMAGES_READ, ANNOTATIONS_READ),
    pitfalls=(
        *TONE_STD.pitfalls[:3],
        "0.18 is the most it can be; one cell of the paper's table (0.1808) lies above.",
        *TONE_STD.pitfalls[4:],
    ),
    high=0.18, direction="lower", unit="mean absolute deviation",
)  # fmt: skip
MEAN_TONE = describe(
    "mean_tone", "Mean skin tone",
    "mean over prompts, of their pictures' mean, of the tone on the Monk scale, 1 lightest to 10 darkest",
    paper=f"{PAPER}, section 3.1.2 (the scale)", inputs=(IMAGES_READ, ANNOTATIONS_READ),
    pitfalls=(
        *_SKIN,
        "The tones are ranks: their mean hides whether pictures are all alike or at both ends.",
        BY_PROMPT,
    ),
    low=1.0, high=10.0, unit="tone",
)  # fmt: skip


@cache
def sees(detector: Detector) -> dict[str, object]:
    """Measure what a rule sees: Monk swatches, and at least half of the skin of faces of our own under five lights."""
    planes = np.ascontiguousarray(MONK_TONES.T)
    swatches = (np.flatnonzero(DETECTORS[detector](planes)) + 1).tolist()
    seen: Counter[int] = Counter()
    for tone in range(1, SCALE + 1):
        for light in LIGHTS.values():
            pixels, skin = draw_face(tone, size=FACE, light=light)
            seen[tone] += int(DETECTORS[detector](np.ascontiguousarray(pixels[skin].T)).mean() >= HALF)
    return {"swatches": swatches, "faces": seen.total(), "of_faces": SCALE * len(LIGHTS),
            "by_tone": [seen[tone] for tone in range(1, SCALE + 1)]}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToneOptions:
    """What to score, and how."""

    detector: Annotated[
        Detector, Field(description="Rule for skin: ita sees all tones; dall-eval, as published, cannot see dark skin.")
    ] = "ita"
    confidence: Confidence = CONFIDENCE
    benchmark: str = BENCHMARK


def _check_sample(annotations: Path | None, sample: Files, **_: object) -> None:
    if sample and annotations is None:
        raise UsageError("a sample puts nothing right without answers", expected="--annotations, beside --sample")


def _with_sight(stage: Stage, given: Mapping[str, Any]) -> Stage:
    """Keep in the manifest what the rule sees."""
    detector = given["options"].detector
    sight = {"warning": TONE_WARNINGS.get(detector, ""), "sees": sees(detector)}
    return replace(stage, options={**stage.options, **sight})


@scores(
    "tones", MEAN_TONE, TONE_MAD, TONE_SHARE, TONE_STD, version=7, packages=("numpy", "pillow", "polars", "scipy"),
    example="--images images/images.parquet --out scores", workers=True, engine=True,
    settle=_check_sample, amend=_with_sight,
)  # fmt: skip
def tones(
    work: Work,
    images: AnyImages,
    prompts: Annotated[Path | None, Field(description="Their prompts: tones are scored per group, too.")] = None,
    annotations: Annotated[
        Path | None, Field(description="Tones that people named (criterion monk_tone), scored beside.")
    ] = None,
    sample: Annotated[
        Files, Field(description="What was drawn for people: their answers then put the rule right, too.")
    ] = Files(),
    *,
    options: ToneOptions,
) -> Scored:
    """Score skin tones on the Monk scale.

    Histogram, STD, MAD and mean, per model and group.
    """
    tables = [(path, read_table(path, IMAGES)) for path in images.places]
    return score_tones(
        _tones_of_pictures(work, tables, options.detector), images.together(IMAGES),
        None if prompts is None else asked(prompts, work.scratch),
        None if annotations is None else answers_in(work, annotations, TONE_CRITERION), samples_of(sample),
        options=options,
    )  # fmt: skip


def score_tones(
    tones: Mapping[str, int | None], images: pl.DataFrame, prompts: pl.DataFrame | None = None,
    annotations: pl.DataFrame | None = None, sample: pl.DataFrame | None = None, *, options: ToneOptions,
) -> Scored:  # fmt: skip
    """Score the skin tones of every model, over all pictures and per group of prompts.

    `tones` are 1 to 10 by image, None where no pixel looks like skin; people's `annotations` of the pictures of a
    `sample` put them right.
    """
    left_out: Counter[str] = Counter()
    known = prompted_images(images, prompts, left_out)
    tone = pl.Series([tones.get(image) for image in known["image_id"]], dtype=pl.Int64)
    whole = [(tone == number).cast(pl.Float64).alias(name) for number, name in enumerate(WEIGHTS, 1)]
    answers = [Answers(options.detector, None, known.with_columns(whole))]  # the whole weight of its tone
    if annotations is not None:
        answers += list(_human_weights(annotations, known, left_out))
    rows, values = [], []
    for answer in answers:
        bare = answer.pictures.filter(pl.col(WEIGHTS[0]).is_null())
        left_out[f"pictures without skin, {answer.detector}"] += bare.height
        for part in parts_by_group(answer.pictures):
            found = list(_tone_rows(part, answer, options))
            rows += [row for row, _ in found]
            values += [value for _, below in found for value in below]
            if sample is not None and answer.pool is not None:
                rows += _corrected_rows(part, answers[0].pictures, answer.pool, sample, left_out, options)
    if not rows:
        raise NothingScored(
            "no picture has a skin tone", found=f"{known.height} pictures", expected="at least one"
        ).counting(left_out)
    return scored(rows, values, left_out=left_out)


@dataclass(frozen=True, slots=True)
class Answers:
    """The tones of pictures by one detector or pool: a picture's weights over the ten tones, null without skin."""

    detector: str
    pool: str | None
    pictures: pl.DataFrame


def _human_weights(annotations: pl.DataFrame, known: pl.DataFrame, left_out: Counter[str]) -> Iterator[Answers]:
    """Share a picture's weight evenly among the tones that a pool's annotators named; nobody naming one is no skin."""
    table = of_criterion(careful_answers(annotations, left_out), TONE_CRITERION)
    named = pl.col("value").is_between(1, SCALE) & (pl.col("value") == pl.col("value").round())
    bad = table.filter(pl.col("value").is_not_null() & ~named)
    left_out["malformed: tones that are not 1 to 10"] += bad.height
    weights = [(pl.col("value") == n).mean().alias(name) for n, name in enumerate(WEIGHTS, 1)]
    for pool in table.filter(named | pl.col("value").is_null()).partition_by("annotator_region", maintain_order=False):
        counts = pl.len().alias(ANSWERS), pl.col("value").count().alias(NAMED)
        items = pool.group_by("item_id").agg(*weights, *counts)
        pictures = known.join(items, left_on="image_id", right_on="item_id", how="inner").sort("image_id")
        left_out["pictures whose tones people named, and that are none of these"] += items.height - pictures.height
        yield Answers(PEOPLE, pool["annotator_region"][0], pictures)


def _tone_rows(part: pl.DataFrame, answer: Answers, options: ToneOptions) -> Iterator[tuple[Row, list[pl.DataFrame]]]:
    """Make the scores of some pictures, each with its values."""
    seen = part.filter(pl.col(WEIGHTS[0]).is_not_null())
    if not seen.height:
        return
    params: dict[str, object] = {"detector": answer.detector, "images_left_out": part.height - seen.height}
    params |= {"sees": sees(options.detector)} if answer.pool is None else whose(answer.pool)
    if answer.detector in TONE_WARNINGS:
        params["warning"] = TONE_WARNINGS[answer.detector]  # type: ignore[index]
    weights = seen.select(WEIGHTS).to_numpy().astype(np.float64)
    units = seen.select(pl.coalesce("prompt_id", "image_id")).to_series().to_list()
    of_group = {"model": seen["model"][0], "benchmark": options.benchmark, "group": seen["group"][0]}
    named = seen.select("prompt_id", item="image_id", value=pl.Series(weights @ np.arange(1.0, SCALE + 1)))
    yield mean_rows(named, Scope("mean_tone", **of_group), params, confidence=options.confidence)
    for kind in KINDS:
        spread = tone_spread_interval(weights, units, kind=kind, confidence=options.confidence)
        yield statistic_row(f"tone_{kind}", answer=spread, params=with_reason(params, spread, ONE), **of_group), []
    for number in range(1, SCALE + 1):
        share = clustered_share(weights[:, number - 1], {"prompt": units}, confidence=options.confidence)
        about = with_reason({**params, "tone": number}, share, ONE)
        yield statistic_row("tone_share", answer=share, params=about, **of_group), []


def _corrected_rows(
    part: pl.DataFrame, rule: pl.DataFrame, pool: str, sample: pl.DataFrame, left_out: Counter[str],
    options: ToneOptions,
) -> Iterator[Row]:  # fmt: skip
    """Put the rule right by what a pool says of the pictures that were drawn for it, where enough of them were seen."""
    seen_part = pl.col(NAMED) / pl.col(ANSWERS)  # who saw nobody disagrees with who named a tone
    answers = part.select("image_id", ANSWERS, pl.col(WEIGHTS).fill_null(0.0) * seen_part)
    model, group = part["model"][0], part["group"][0]
    every = rule.filter(pl.col("model") == model)
    every = every if group is None else every.filter(pl.col("group") == group)
    drawn = every.join(sample, on="image_id", how="semi")
    seen = drawn.select("image_id").join(answers, on="image_id")
    left_out["answers about pictures that were not drawn"] += answers.height - seen.height
    if seen.height < ANSWERED * drawn.height:
        left_out["tones not put right: too many of the drawn pictures have no answer"] += 1
        return
    people = every.select("image_id").join(seen, on="image_id", how="left", maintain_order="left")
    try:
        found = corrected_tones(
            every.select(pl.col(WEIGHTS).fill_null(0.0)).to_numpy(),
            people.select(pl.col(WEIGHTS).fill_null(float("nan"))).to_numpy(),
            answers=people[ANSWERS].fill_null(0).to_numpy(), confidence=options.confidence,
        )  # fmt: skip
    except UsageError as error:
        left_out[f"tones not put right: {error.problem}"] += 1
        return
    params = {
        "detector": options.detector, "labels": "corrected", "pool": pool, "people": found.people,
        "trust": found.trust, "sees": sees(options.detector),
        **({} if found.held else {"marked": [ONE_RATER], "missed": MISSED}),
    }  # fmt: skip
    of_group = {"model": model, "benchmark": options.benchmark, "group": group}
    yield from (statistic_row(f"tone_{kind}", answer=getattr(found, kind), params=params, **of_group) for kind in KINDS)
    for number, share in enumerate(found.shares, start=1):
        yield statistic_row("tone_share", answer=share, params={**params, "tone": number}, **of_group)


Shard: TypeAlias = tuple[Path, Detector, list[tuple[str, str, str]]]  # a folder, a rule, and ids, paths and hashes


def _tones_of_pictures(
    work: Work, tables: Sequence[tuple[Path, pl.DataFrame]], detector: Detector
) -> dict[str, int | None]:
    """Find the tone of every picture that was made; None where no pixel looks like skin."""
    shards: list[Shard] = []
    for path, table in tables:
        rows = table.filter(status="ok").select("image_id", "path", "sha256").sort("image_id").rows()
        starts = range(0, len(rows), TONES_PER_SHARD)
        shards += [(path.parent, detector, rows[start : start + TONES_PER_SHARD]) for start in starts]
    work.progress.begin(sum(len(pictures) for *_, pictures in shards), "pictures")
    found: dict[str, int | None] = {}
    for tones in work.engine.map(_tones_of_shard, shards):
        found.update(tones)
        work.progress.advance(len(tones))
    return found


def _tones_of_shard(shard: Shard) -> dict[str, int | None]:
    root, detector, pictures = shard
    found = {image: skin_tone(_with_alpha(root, path, sha256), detector=detector) for image, path, sha256 in pictures}
    return {image: None if tone is None else tone.index for image, tone in found.items()}


def _with_alpha(root: Path, relative: str, sha256: str) -> NDArray[np.uint8]:
    """Load a picture, with its transparency where it has one: transparent pixels are no skin."""
    pixels = load_picture(root, relative, sha256=sha256)
    with Image.open(root / relative) as picture:
        if picture.has_transparency_data:
            return np.asarray(picture.convert("RGBA"))
    return pixels
