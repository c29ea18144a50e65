"""From the tones of pictures, found by a rule or named by people, to their histogram and its spread."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.defaults import CONFIDENCE, TONES_PER_SHARD
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Files, roles_of
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table
from culturekit.core.work import Work
from culturekit.generation.simulated.scenes.portraits import LIGHTS, draw_face
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
from culturekit.scores.answers import careful_answers, of_criterion
from culturekit.scores.family import Confidence, Family, answers_in, described, family_stage
from culturekit.scores.image_collections import Place, mean_rows, parts_by_group, prompted_images
from culturekit.scores.inputs import AnyImages, asked
from culturekit.scores.qvs import samples_of
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row, with_reason

# What a rule for skin sees, and what people who named the tones of drawn pictures make of its answers.

SCALE = len(MONK_TONES)
WEIGHTS = [f"tone_{number}" for number in range(1, SCALE + 1)]
ANSWERS, NAMED = "answers", "named"
"""The column of how many people answered about a picture."""

KINDS: tuple[SpreadKind, ...] = ("std", "mad")

ANSWERED = 0.8
"""The share of drawn pictures that people have to look at before they put anything right."""

FACE, HALF = 48, 0.5
"""Pixels along each side of a face that a rule is tried on, and how much of its skin the rule has to find."""


def corrected_rows(
    part: pl.DataFrame, rule: pl.DataFrame, pool: str, sample: pl.DataFrame, left_out: Counter[str],
    *, detector: Detector, confidence: float, benchmark: str,
) -> Iterator[Row]:  # fmt: skip
    """Put the rule right by what a pool says of the pictures that were drawn for it, where enough of them were seen."""
    seen_part = pl.col(NAMED) / pl.col(ANSWERS)  # who saw nobody disagrees with who named a tone
    said = part.select("image_id", ANSWERS, pl.col(WEIGHTS).fill_null(0.0) * seen_part)
    model, group = part["model"][0], part["group"][0]
    every = rule.filter(pl.col("model") == model)
    every = every if group is None else every.filter(pl.col("group") == group)
    drawn = every.join(sample, on="image_id", how="semi")
    seen = drawn.select("image_id").join(said, on="image_id")
    left_out["answers about pictures that were not drawn"] += said.height - seen.height
    if seen.height < ANSWERED * drawn.height:
        left_out["tones not put right: too many of the drawn pictures have no answer"] += 1
        return
    people = every.select("image_id").join(seen, on="image_id", how="left", maintain_order="left")
    try:
        found = corrected_tones(
            every.select(pl.col(WEIGHTS).fill_null(0.0)).to_numpy(),
            people.select(pl.col(WEIGHTS).fill_null(float("nan"))).to_numpy(),
            answers=people[ANSWERS].fill_null(0).to_numpy(), confidence=confidence,
        )  # fmt: skip
    except UsageError as error:
        left_out[f"tones not put right: {error.problem}"] += 1
        return
    params = {"detector": detector, "labels": "corrected", "pool": pool, "people": found.people, "trust": found.trust,
              "sees": sees(detector), **({} if found.held else {"marked": [ONE_RATER], "missed": MISSED})}  # fmt: skip
    place = {"model": model, "benchmark": benchmark, "group": group}
    yield statistic_row("tone_std", answer=found.std, params=params, **place)
    yield statistic_row("tone_mad", answer=found.mad, params=params, **place)
    for number, share in enumerate(found.shares, start=1):
        yield statistic_row("tone_share", answer=share, params={**params, "tone": number}, **place)


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


PEOPLE = "people"
"""The detector of tones that people named."""

TONE_CRITERION = "monk_tone"
"""What people answer with a tone from 1 to 10; without a value they saw no person."""

ONE = "a single prompt"


@dataclass(frozen=True, slots=True)
class ToneReads:
    """Pictures, what was asked for, and tones that people named."""

    images: AnyImages
    prompts: Annotated[Path | None, Field(description="Their prompts: tones are scored per group, too.")] = None
    annotations: Annotated[
        Path | None, Field(description="Tones that people named (criterion monk_tone), scored beside.")
    ] = None
    sample: Annotated[
        Files, Field(description="What was drawn for people: their answers then put the rule right, too.")
    ] = Files()

    def __post_init__(self) -> None:
        """Refuse a sample that nobody looked at: it would decide nothing."""
        if self.sample and self.annotations is None:
            raise UsageError("a sample puts nothing right without answers", expected="--annotations, beside --sample")


@dataclass(frozen=True, slots=True)
class ToneOptions:
    """What to score, and how."""

    detector: Annotated[
        Detector, Field(description="Rule for skin: ita sees all tones; dall-eval, as published, cannot see dark skin.")
    ] = "ita"
    confidence: Confidence = CONFIDENCE
    benchmark: str = "linguistic"


def tones(given: ToneReads, options: ToneOptions, *, name: str = "scores") -> Stage:
    """Score skin tones on the Monk scale.

    Histogram, STD, MAD and mean, per model and group.
    """

    def score(work: Work) -> Scored:
        tables = [(path, read_table(path, IMAGES)) for path in given.images.places]
        return score_tones(
            tones_of_pictures(work, tables, options.detector),
            given.images.together(IMAGES),
            None if given.prompts is None else asked(given.prompts, work.scratch),
            None if given.annotations is None else answers_in(work, given.annotations, TONE_CRITERION),
            samples_of(given.sample),
            options=options,
        )

    known = {**kept(options), "warning": TONE_WARNINGS.get(options.detector, ""), "sees": sees(options.detector)}
    packages = ("numpy", "pillow", "polars", "scipy")
    return family_stage("tones", roles_of(given), known, score, version=6, name=name, packages=packages)


TONES = Family(
    tones,
    metrics=described("mean_tone tone_mad tone_share tone_std"),
    example="--images images/images.parquet --out scores",
    workers=True,
    engine=True,
)


def score_tones(
    tones: Mapping[str, int | None],
    images: pl.DataFrame,
    prompts: pl.DataFrame | None = None,
    annotations: pl.DataFrame | None = None,
    sample: pl.DataFrame | None = None,
    *,
    options: ToneOptions,
) -> Scored:
    """Score the skin tones of every model, over all pictures and per group of prompts.

    Args:
        tones: image id -> 1 to 10, or None where no pixel looks like skin.
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS: the groups, such as dialects.
        annotations: conforms to ANNOTATIONS: tones that people of each pool named, scored beside.
        sample: conforms to AUDIT_SAMPLE: the pictures drawn for people, whose answers put the rule right.
        options: what to score, and how.

    Raises:
        UsageError: a table does not conform, or no picture has a tone.
    """
    left_out: Counter[str] = Counter()
    known = prompted_images(images, prompts, left_out)
    answers = [Answers(options.detector, None, machine_weights(tones, known))]
    if annotations is not None:
        answers += list(human_weights(annotations, known, left_out))
    rows, values = [], []
    for answer in answers:
        bare = answer.pictures.filter(pl.col(WEIGHTS[0]).is_null())
        left_out[f"pictures without skin, {answer.detector}"] += bare.height
        for part in parts_by_group(answer.pictures):
            found = list(tone_rows(part, answer, options))
            rows += [row for row, _ in found]
            values += [value for _, below in found for value in below]
            if sample is not None and answer.pool is not None:
                rows += corrected_rows(
                    part, answers[0].pictures, answer.pool, sample, left_out,
                    detector=options.detector, confidence=options.confidence, benchmark=options.benchmark,
                )  # fmt: skip
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


def machine_weights(tones: Mapping[str, int | None], known: pl.DataFrame) -> pl.DataFrame:
    """Give each picture the whole weight of its tone."""
    found = [tones.get(image) for image in known["image_id"]]
    columns = {
        name: [None if tone is None else float(tone == n) for tone in found] for n, name in enumerate(WEIGHTS, 1)
    }
    return known.with_columns(**{name: pl.Series(column, dtype=pl.Float64) for name, column in columns.items()})


def human_weights(annotations: pl.DataFrame, known: pl.DataFrame, left_out: Counter[str]) -> Iterator[Answers]:
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


def tone_rows(part: pl.DataFrame, answer: Answers, options: ToneOptions) -> Iterator[tuple[Row, list[pl.DataFrame]]]:
    """Make the scores of some pictures, each with its values."""
    seen = part.filter(pl.col(WEIGHTS[0]).is_not_null())
    if not seen.height:
        return
    params: dict[str, object] = {"detector": answer.detector, "images_left_out": part.height - seen.height}
    if answer.pool is None:
        params["sees"] = sees(options.detector)
    if answer.pool is not None:
        params["pool"] = answer.pool
    if answer.detector in TONE_WARNINGS:
        params["warning"] = TONE_WARNINGS[answer.detector]  # type: ignore[index]
    weights = seen.select(WEIGHTS).to_numpy().astype(np.float64)
    units = seen.select(pl.coalesce("prompt_id", "image_id")).to_series().to_list()
    place = {"model": seen["model"][0], "benchmark": options.benchmark, "group": seen["group"][0]}
    yield mean_rows(
        seen.select("prompt_id", item="image_id", value=pl.Series(weights @ np.arange(1.0, SCALE + 1))),
        Place("mean_tone", **place),
        params,
        confidence=options.confidence,
    )
    for kind in KINDS:
        spread = tone_spread_interval(weights, units, kind=kind, confidence=options.confidence)
        yield statistic_row(f"tone_{kind}", answer=spread, params=with_reason(params, spread, ONE), **place), []
    for number in range(1, SCALE + 1):
        share = clustered_share(weights[:, number - 1], {"prompt": units}, confidence=options.confidence)
        about = with_reason({**params, "tone": number}, share, ONE)
        yield statistic_row("tone_share", answer=share, params=about, **place), []


@dataclass(frozen=True, slots=True)
class Shard:
    """Some pictures of one table: their ids, paths and hashes."""

    root: Path
    detector: Detector
    pictures: tuple[tuple[str, str, str], ...]


def tones_of_pictures(
    work: Work, tables: Sequence[tuple[Path, pl.DataFrame]], detector: Detector
) -> dict[str, int | None]:
    """Find the tone of every picture that was made; None where no pixel looks like skin.

    Args:
        work: the engine that maps, and who hears of it.
        tables: each with its path and its rows.
        detector: the rule for skin.
    """
    shards = []
    for path, table in tables:
        made = table.filter(status="ok").select("image_id", "path", "sha256").sort("image_id").rows()
        shards += [
            Shard(path.parent, detector, tuple(made[start : start + TONES_PER_SHARD]))
            for start in range(0, len(made), TONES_PER_SHARD)
        ]
    work.progress.begin(sum(len(shard.pictures) for shard in shards), "pictures")
    tones: dict[str, int | None] = {}
    for shard, found in zip(shards, work.engine.map(tones_of_shard, shards), strict=True):
        tones.update(found)
        work.progress.advance(len(shard.pictures))
    return tones


def tones_of_shard(shard: Shard) -> dict[str, int | None]:
    """Find the tones of some pictures."""
    tones: dict[str, int | None] = {}
    for image, relative, sha256 in shard.pictures:
        found = skin_tone(with_alpha(shard.root, relative, sha256), detector=shard.detector)
        tones[image] = None if found is None else found.index
    return tones


def with_alpha(root: Path, relative: str, sha256: str) -> NDArray[np.uint8]:
    """Load a picture, with its transparency where it has one: transparent pixels are no skin."""
    pixels = load_picture(root, relative, sha256=sha256)
    with Image.open(root / relative) as picture:
        if picture.has_transparency_data:
            return np.asarray(picture.convert("RGBA"))
    return pixels
