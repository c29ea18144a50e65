"""Images with the group of their prompt and the pair that it belongs to, and means over such prompts."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.score_rows import Row, statistic_row, value_rows
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, interval
from culturekit.records.schemas import IMAGES, PROMPTS

__all__ = ["Place", "mean_rows", "over_prompts", "parts_by_group", "plain_row", "prompted_images"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a score stands: its metric, model, benchmark and group."""

    metric: str
    model: str
    benchmark: str
    group: str | None = None


def prompted_images(
    images: pl.DataFrame, prompts: pl.DataFrame | None, left_out: Counter[str], *, pair: Sequence[str] = ()
) -> pl.DataFrame:
    """Give the images that were made: image_id, model, prompt_id, group and, where asked for, `pair`.

    Args:
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS; without it images have no group.
        left_out: counts to add to.
        pair: the columns of prompts that a prompt shares with its counterparts of other groups.

    Raises:
        UsageError: a table does not conform, or no prompt has the columns of a pair.
    """
    table = checked(images, IMAGES)
    made = table.filter(status="ok").select("image_id", "model", "prompt_id").sort("image_id")
    left_out["images not made"] += table.height - made.height
    if prompts is None:
        return made.with_columns(group=pl.lit(None, pl.String))
    asked = checked(prompts, PROMPTS)
    unknown = [name for name in pair if name not in PROMPTS.columns]
    if unknown:
        raise UsageError("prompts have no such column", found=", ".join(unknown), expected=", ".join(PROMPTS.columns))
    named = asked.select("prompt_id", "group", *([pl.concat_str(pair, separator=" | ").alias("pair")] if pair else []))
    if pair:
        named = named.filter(pl.col("pair").is_not_null())
        if not named.height:
            raise UsageError(
                f"no prompt has {' and '.join(pair)}, so none has a counterpart",
                hint="Name the columns that prompts of one pair share.",
            )
    known = made.join(named, on="prompt_id", how="inner").sort("image_id")
    left_out["images of no known prompt"] += made.height - known.height
    return known


def parts_by_group(pictures: pl.DataFrame, *, item: str = "image_id") -> Iterator[pl.DataFrame]:
    """Part pictures by model, and a model's by group; its whole comes first, with the group null."""
    for model in pictures.sort("model", item).partition_by("model", maintain_order=True):
        yield model.with_columns(group=pl.lit(None, pl.String))
        groups = model.filter(pl.col("group").is_not_null()).sort("group", item)
        yield from groups.partition_by("group", maintain_order=True)


def over_prompts(values: pl.DataFrame, *, confidence: float) -> Interval:
    """Average prompt_id, item and value over images and then over prompts; an image without a prompt is its own."""
    keyed = values.with_columns(unit_id=pl.coalesce("prompt_id", "item"))
    units = keyed["unit_id"].n_unique()
    return interval(
        keyed["value"].to_numpy(),
        prompts=keyed["unit_id"].to_list(),
        repeats=keyed["item"].to_list(),
        target="population" if units >= FEWEST_PROMPTS else "these",
        confidence=confidence,
    )


def mean_rows(
    values: pl.DataFrame, place: Place, params: Mapping[str, object], *, confidence: float
) -> tuple[Row, list[pl.DataFrame]]:
    """Make the score that is the mean of some values, and the rows of these.

    Args:
        values: item, prompt_id (may be null) and value, at least one row.
        place: where the score stands.
        params: how it was computed; `target` is added.
        confidence: of the interval.
    """
    answer = over_prompts(values, confidence=confidence)
    params = {**params, "target": answer.target}
    about = asdict(place)
    behind = value_rows(about, params, values.sort("item").select("item", "prompt_id", "value"))
    return statistic_row(**about, answer=answer, params=params), [behind]


def plain_row(place: Place, value: float, n: int, params: Mapping[str, object]) -> Row:
    """Make a score that describes the numbers beside it and has no interval of its own."""
    answer = Interval(value, math.nan, math.nan, n, "these")
    return statistic_row(**asdict(place), answer=answer, params=params)
