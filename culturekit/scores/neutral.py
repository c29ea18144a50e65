"""From vectors of neutral pictures and of groups' pictures to the heat map and its spread."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Stage
from culturekit.core.work import Work
from culturekit.metrics.linguistic.neutral_groups import NeutralSpread, neutral_similarity, neutral_spread
from culturekit.metrics.statistics.comparisons import mean_interval
from culturekit.metrics.statistics.intervals import Interval, simple_mean
from culturekit.scores.family import Confidence, Family, Pair, described, family_stage
from culturekit.scores.image_collections import Place, plain_row, prompted_images
from culturekit.scores.inputs import AnyImages, GroupedPrompts, NamedVectors, asked
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row, value_rows

Vectors = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class NeutralReads:
    """Pictures, what was asked for, and their vectors."""

    images: AnyImages
    prompts: GroupedPrompts
    vectors: Annotated[NamedVectors, Field(description="Folder of vectors of the images.")]


@dataclass(frozen=True, slots=True)
class NeutralOptions:
    """What to compare, and how; the encoder is what made the vectors, as it stands in params."""

    pair: Pair = ("artifact_id",)
    encoder: str = ""
    confidence: Confidence = CONFIDENCE
    benchmark: str = "linguistic"


def neutral(given: NeutralReads, options: NeutralOptions, *, name: str = "scores") -> Stage:
    """Score how pictures of neutral prompts resemble each group's.

    --pair: [artifact_id].
    """
    known = replace(options, encoder=options.encoder or given.vectors.encoder)

    def score(work: Work) -> Scored:
        images, prompts = given.images.together(IMAGES), asked(given.prompts, work.scratch)
        return score_neutral(images, prompts, *given.vectors.vectors(), options=known)

    return family_stage("neutral", roles_of(given), kept(known), score, name=name)


NEUTRAL = Family(
    neutral,
    metrics=described("neutral_mad neutral_mad_of_means neutral_similarity neutral_std neutral_std_of_means"),
    example="--images images/images.parquet --prompts prompts/prompts.parquet --vectors vectors --out scores",
)


def score_neutral(
    images: pl.DataFrame, prompts: pl.DataFrame, vectors: Vectors, ids: Sequence[str], *, options: NeutralOptions
) -> Scored:
    """Score how much the neutral pictures of every model resemble those of each group.

    Args:
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS: a prompt without a group is neutral.
        vectors: float, (n, dim): of pictures.
        ids: (n,): the images they belong to.
        options: what to compare, and how.

    Raises:
        UsageError: a table does not conform, or no prompt has pictures of itself and of all groups.
    """
    left_out: Counter[str] = Counter()
    known = with_vectors(prompted_images(images, prompts, left_out, pair=options.pair), ids, left_out)
    rows, values = [], []
    for model in known.sort("model", "image_id").partition_by("model", maintain_order=True):
        groups = groups_beside_neutral(model)
        table = similarity_table(model, groups, vectors)
        left_out["prompts without pictures of every group"] += model["pair"].n_unique() - len(table)
        if table:
            made, below = model_rows(model["model"][0], table, groups, options)
            rows += made
            values += below
    if not rows:
        raise NothingScored(
            "no prompt has pictures without a group and of every group",
            found=f"{known.height} pictures of {known['pair'].n_unique()} prompts, "
            f"groups {', '.join(known['group'].drop_nulls().unique().sort()) or 'none'}",
            hint="Name with --pair the columns of prompts that a neutral prompt shares with those of the groups.",
        ).counting(left_out)
    return scored(rows, values, left_out=left_out)


def with_vectors(known: pl.DataFrame, ids: Sequence[str], left_out: Counter[str]) -> pl.DataFrame:
    """Add the row of each image's vector; images without one are left out and counted."""
    found = known.join(vector_rows(ids), on="image_id", how="inner")
    left_out["images without a vector"] += known.height - found.height
    return found


def vector_rows(ids: Sequence[str]) -> pl.DataFrame:
    """Say which row of the vectors belongs to which image."""
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise UsageError("an id stands twice among the vectors", found=repr(twice))
    return pl.DataFrame(
        {"image_id": list(ids), "row": range(len(ids))}, schema={"image_id": pl.String, "row": pl.Int64}
    )


def groups_beside_neutral(model: pl.DataFrame) -> list[str]:
    """List the groups that stand beside a neutral prompt; others belong to another comparison."""
    neutral = model.filter(pl.col("group").is_null())["pair"]
    return sorted(model.filter(pl.col("pair").is_in(neutral.implode()))["group"].drop_nulls().unique())


def similarity_table(model: pl.DataFrame, groups: Sequence[str], vectors: Vectors) -> dict[str, list[float]]:
    """Compare the neutral pictures of each prompt with those of every group, (n_groups,) per pair."""
    table = {}
    for (pair,), pictures in sorted(model.partition_by("pair", as_dict=True).items()):
        rows = {
            group: part["row"].to_numpy() for (group,), part in pictures.partition_by("group", as_dict=True).items()
        }
        if groups and None in rows and all(group in rows for group in groups):
            neutral = np.asarray(vectors[rows[None]])
            table[str(pair)] = [neutral_similarity(neutral, np.asarray(vectors[rows[group]])) for group in groups]
    return table


def model_rows(
    model: str, table: dict[str, list[float]], groups: Sequence[str], options: NeutralOptions
) -> tuple[list[Row], list[pl.DataFrame]]:
    """Make the scores of one model: the heat map, the spread over groups, and the spread of the heat map."""
    params: dict[str, object] = {"encoder": options.encoder} if options.encoder else {}
    params["groups"] = len(groups)
    spread = neutral_spread(list(table.values()), list(table))
    rows: list[Row] = []
    values: list[pl.DataFrame] = []
    for metric, group, numbers in columns_of(spread, np.array(list(table.values())).T, groups):
        place = Place(metric, model, options.benchmark, group)
        answer = t_interval(numbers, options.confidence)
        rows.append(
            statistic_row(metric, model=model, benchmark=options.benchmark, answer=answer, params=params, group=group)
        )
        below = pl.DataFrame({"item": list(table), "prompt_id": list(table), "value": numbers})
        values.append(value_rows(asdict(place), params, below))
    ranked = {**params, "prompts_ranked": list(spread.ranking)}
    for metric, value in (("neutral_std_of_means", spread.of_means.std), ("neutral_mad_of_means", spread.of_means.mad)):
        rows.append(plain_row(Place(metric, model, options.benchmark), value, len(table), ranked))
    return rows, values


def columns_of(
    spread: NeutralSpread, columns: NDArray[np.float64], groups: Sequence[str]
) -> Iterator[tuple[str, str | None, NDArray[np.float64]]]:
    """Give each score as the mean of one number per prompt: metric, group, numbers."""
    for group, column in zip(groups, columns, strict=True):
        yield "neutral_similarity", group, column
    yield "neutral_std", None, np.array([each.std for each in spread.per_prompt.values()])
    yield "neutral_mad", None, np.array([each.mad for each in spread.per_prompt.values()])


def t_interval(numbers: NDArray[np.float64], confidence: float) -> Interval:
    """Average one number per prompt; the interval speaks about other prompts."""
    return mean_interval(simple_mean(np.sort(numbers)), n=len(numbers), target="population", confidence=confidence)
