"""From scores of pictures, and people's verdicts on them, to the gap between two dialects."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.declared import check_options, kept
from culturekit.core.defaults import CONFIDENCE, PERMUTATIONS
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Numbered, roles_of
from culturekit.core.schemas import IMAGES, QUALITY
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Seed
from culturekit.core.work import Work
from culturekit.metrics.linguistic.human_tables import dialect_gap
from culturekit.scores.answers import careful_answers, of_criterion
from culturekit.scores.family import Confidence, Family, Pair, answers_in, described, family_stage
from culturekit.scores.image_collections import Place, checked, mean_rows, own_generator, prompted_images
from culturekit.scores.inputs import AnyImages, GroupedPrompts, asked
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row

CORRECT = "correct"
"""What people say of a picture: yes or no."""

YES, NO = "yes", "no"


UNPAIRED = "gaps of which nobody looked at both of a pair of prompts"
"""Why a model has no gap by a measure."""


@dataclass(frozen=True, slots=True)
class DialectReads:
    """What dialects are compared by: scores of pictures, answers of people, or both."""

    images: AnyImages
    prompts: GroupedPrompts
    quality: Annotated[
        Numbered, Field(description="Scores of the images, such as CLIPScores; repeat it for more than one.")
    ] = Numbered()
    annotations: Annotated[
        Path | None, Field(description="Whether people call images correct (criterion correct, yes or no).")
    ] = None


@dataclass(frozen=True, slots=True)
class DialectOptions:
    """What to compare, and how; the seed is that of the permutations."""

    standard: Annotated[str, Field(description="Group of the prompts in the standard dialect.")] = "SAE"
    other: Annotated[str, Field(description="Group of their counterparts.")] = "AAE"
    pair: Pair = ("artifact_id", "template_id")
    scale: Annotated[
        float, Field(gt=0, description="What scores are divided by: 100 for CLIPScores at that scale.")
    ] = 1.0
    confidence: Confidence = CONFIDENCE
    resamples: Annotated[int, Field(ge=99, description="Permutations of each test.")] = PERMUTATIONS
    seed: Seed = 0
    benchmark: str = "linguistic"


def dialects(given: DialectReads, options: DialectOptions, *, name: str = "scores") -> Stage:
    """Score the gap between pictures of two dialects.

    Paired by prompt. --pair: [artifact_id, template_id].
    """

    def score(work: Work) -> Scored:
        return score_dialects(
            given.images.together(IMAGES),
            asked(given.prompts, work.scratch),
            given.quality.together(QUALITY) if given.quality else None,
            None if given.annotations is None else answers_in(work, given.annotations, CORRECT),
            options=options,
        )

    seeds = {"permutations": options.seed}
    return family_stage(
        "dialects", roles_of(given), kept(options, but=("seed",)), score, seeds=seeds, version=3, name=name
    )


DIALECTS = Family(
    dialects,
    metrics=described("dialect_gap dialect_score"),
    example="--images images/images.parquet --prompts prompts/prompts.parquet --quality quality/quality.parquet "
    "--out scores",
)


def score_dialects(
    images: pl.DataFrame,
    prompts: pl.DataFrame,
    quality: pl.DataFrame | None = None,
    annotations: pl.DataFrame | None = None,
    *,
    options: DialectOptions,
) -> Scored:
    """Compare the pictures of two dialects: by every scorer, and by every pool of people.

    Args:
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS: `group` is the dialect.
        quality: conforms to QUALITY: CLIPScores, for instance.
        annotations: conforms to ANNOTATIONS: the criterion `correct`, answered yes or no.
        options: what to compare, and how.

    Raises:
        UsageError: a table does not conform, nothing was given to compare, or no pair of prompts has both dialects.
    """
    if quality is None and annotations is None:
        raise UsageError("there is nothing to compare dialects by", expected="quality, annotations, or both")
    check_options(options)
    left_out: Counter[str] = Counter()
    known = prompted_images(images, prompts, left_out, pair=options.pair)
    check_dialects(options, prompts)
    spoken = known.filter(pl.col("group").is_in([options.standard, options.other]))
    left_out["images of other groups"] += known.height - spoken.height
    rows, values = [], []
    for name, pool, table in measures(quality, annotations, options, left_out):
        judged = spoken.join(table, on="image_id", how="inner").sort("model", "image_id")
        left_out[f"scores that are of no known image, by {name}"] += table.join(
            images, on="image_id", how="anti"
        ).height
        if pool is None:
            left_out[f"images of both dialects without a score, by {name}"] += spoken.height - judged.height
        for model in judged.partition_by("model", maintain_order=True):
            for row, below in model_rows(model, name, pool, options, left_out):
                rows.append(row)
                values += below
    if not rows:
        raise NothingScored(
            f"no picture of a prompt in {options.standard!r} or {options.other!r} has a score",
            found=f"{known.height} pictures, {spoken.height} of these groups",
        ).counting(left_out)
    if left_out[UNPAIRED] and not any(row["metric"] == "dialect_gap" for row in rows):
        raise NothingScored(
            "no prompt of one dialect has pictures of its twin in the other", found=f"{len(rows)} scores"
        ).counting(left_out)
    return scored(rows, values, left_out=left_out)


def check_dialects(options: DialectOptions, prompts: pl.DataFrame) -> None:
    """Refuse dialects that no prompt is in, and one dialect twice."""
    if options.standard == options.other:
        raise UsageError("a dialect has no gap to itself", found=f"{options.standard!r} as standard and as other")
    groups = prompts["group"].drop_nulls().unique().sort().to_list()
    missing = [dialect for dialect in (options.standard, options.other) if dialect not in groups]
    if missing:
        raise UsageError(
            f"no prompt is in {missing[0]!r}", expected=" or ".join(map(repr, groups)) or "prompts with groups",
            hint="Name the groups of the prompts with --standard and --other.",
        )  # fmt: skip


def measures(
    quality: pl.DataFrame | None, annotations: pl.DataFrame | None, options: DialectOptions, left_out: Counter[str]
) -> Iterator[tuple[str, str | None, pl.DataFrame]]:
    """Give what pictures are compared by: its name, the pool it is of, and image_id and value."""
    if quality is not None:
        for part in checked(quality, QUALITY).sort("scorer").partition_by("scorer", maintain_order=True):
            finite = part.filter(pl.col("value").is_finite())
            left_out["scores that are no number"] += part.height - finite.height
            yield part["scorer"][0], None, finite.select("image_id", value=pl.col("value") / options.scale)
    if annotations is not None:
        verdicts = of_criterion(careful_answers(annotations, left_out), CORRECT)
        answer = pl.col("choice").str.strip_chars().str.to_lowercase()
        clear = verdicts.filter(answer.is_in([YES, NO])).with_columns(value=(answer == YES).cast(pl.Float64))
        left_out["verdicts that are neither yes nor no"] += verdicts.height - clear.height
        for pool in clear.sort("annotator_region").partition_by("annotator_region", maintain_order=True):
            means = pool.group_by("item_id").agg(pl.col("value").mean())
            yield CORRECT, pool["annotator_region"][0], means.rename({"item_id": "image_id"})


def model_rows(
    judged: pl.DataFrame, name: str, pool: str | None, options: DialectOptions, left_out: Counter[str]
) -> Iterator[tuple[Row, list[pl.DataFrame]]]:
    """Make the scores of one model by one measure: each dialect's, and their gap."""
    params: dict[str, object] = {"of": name}
    if pool is not None:
        params["pool"] = pool
    elif options.scale != 1:
        params["scale"] = options.scale
    model, sides = judged["model"][0], {}
    for dialect in (options.standard, options.other):
        side = judged.filter(group=dialect)
        if side.height:
            sides[dialect] = side
            # A value stands under its pair, so that the other dialect's can be found.
            items = side.select(prompt_id="pair", item="image_id", value="value")
            place = Place("dialect_score", model, options.benchmark, dialect)
            yield mean_rows(items, place, params, confidence=options.confidence)
    if len(sides) == 2 and not set.intersection(*(set(side["pair"]) for side in sides.values())):
        left_out[UNPAIRED] += 1
    elif len(sides) == 2:
        yield gap_row(sides, model, params, options), []


def gap_row(sides: dict[str, pl.DataFrame], model: str, params: dict[str, object], options: DialectOptions) -> Row:
    """Make the gap between the dialects of one model."""
    found = dialect_gap(
        {dialect: side["value"].to_numpy() for dialect, side in sides.items()},
        {dialect: side["pair"].to_list() for dialect, side in sides.items()},
        standard=options.standard,
        other=options.other,
        confidence=options.confidence,
        resamples=options.resamples,
        rng=own_generator(options.seed, "dialect_gap", model, *params.values()),
    )
    about = {"a": options.standard, "b": options.other, "pairs": found.n, "left_out": found.left_out}
    return statistic_row(
        "dialect_gap",
        model=model,
        benchmark=options.benchmark,
        answer=found.interval,
        params={**params, **about, "p": None if found.p != found.p else found.p},
        group=f"{options.standard} - {options.other}",
    )
