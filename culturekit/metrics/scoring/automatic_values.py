"""What machines say of single images, as values: quality, how near an image is to what it is mapped to, and to what."""

from collections.abc import Iterator, Sequence

import polars as pl

from culturekit.errors import NothingScored
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.rating_pools import PoolRatings
from culturekit.metrics.scoring.score_rows import Row, statistic_row, with_reason
from culturekit.metrics.scoring.value_sets import own_generator
from culturekit.metrics.statistics.pools import JudgeCalibration, calibrate_judge
from culturekit.records.schemas import JUDGMENTS, MATCHES, PROMPTS, QUALITY, VALUES
from culturekit.storage.digests import canonical_json

__all__ = ["automatic_values", "judge_rows"]

FEW = "a single prompt, or fewer than ten for the agreement, or no scatter"


def judge_rows(
    judgments: pl.DataFrame, pools: Sequence[PoolRatings], *, seed: int, resamples: int, confidence: float, by: str
) -> tuple[list[Row], int]:
    """Hold each judge against each pool; count the numbers it gave of items that no person of any pool judged.

    A verdict belongs to a criterion where the task is the scheme and the item of the judgment the criterion.
    Several verdicts of a judge on one image are averaged. Verdicts of which none can be held are refused.
    """
    table = checked(judgments, JUDGMENTS)
    verdicts = (
        table.filter(pl.col("value").is_finite().fill_null(value=False))
        .group_by("judge", "task", "item", "image_id")
        .agg(pl.col("value").sort().mean(), pl.col("prompt_id").min())
        .sort("judge", "task", "item", "image_id")
    )
    rows: list[Row] = []
    matched = set()
    for judge in verdicts.partition_by("judge", "task", "item", maintain_order=True):
        name, task, item = judge.row(0)[:3]
        for pool in pools:
            if (pool.scheme, pool.criterion) != (task, item) or not pool.numeric:
                continue
            means = pool.item_means()
            both = judge.filter(pl.col("image_id").is_in(list(means)))
            matched |= {(name, task, item, image) for image in both["image_id"]}
            if both.height:
                record = calibrate_judge(
                    both["value"].to_numpy(),
                    [means[image] for image in both["image_id"]],
                    pool=pool.pool,
                    clusters=both.select(pl.coalesce("prompt_id", "image_id")).to_series().to_numpy().astype(str),
                    confidence=confidence,
                    resamples=resamples,
                    rng=own_generator(seed, name, task, item, pool.pool),
                )
                rows += list(record_rows(name, pool, record, by))
    if not rows:
        asked = list(dict.fromkeys(f"{pool.scheme}: {pool.criterion}" for pool in pools if pool.numeric))
        told = table.select(pl.format("{}: {}", "task", "item")).to_series().unique().sort().to_list()
        raise NothingScored(
            "no verdict of a judge is about what people answered",
            expected=f"numbers of their items, of a task and item such as {', '.join(asked[:3]) or 'none'}",
            found=", ".join(told[:3]) or "no verdicts",
        )
    return rows, verdicts.height - len(matched)


def record_rows(judge: str, pool: PoolRatings, record: JudgeCalibration, by: str) -> Iterator[Row]:
    """Write a calibration record as two rows; the judge stands in the column model."""
    params: dict[str, object] = {
        "scheme": pool.scheme,
        "criterion": pool.criterion,
        "pool": pool.pool,
        "pools_by": by,
        "level": record.level,
    }
    for metric, answer in (("judge_bias", record.interval), ("judge_agreement", record.agreement)):
        yield statistic_row(
            metric,
            model=judge,
            benchmark=pool.scheme,
            answer=answer,
            params=with_reason(params, answer, FEW),
            group=pool.pool,
        )


MAPPED_AS_ASKED = "mapped_as_asked"
"""1 where an image is mapped to the country that its prompt names, 0 where to another; not known where it abstained."""

OF_MATCHES = {"similarity": "score", "margin": "margin", "country_margin": "country_margin"}
"""Values that a match has, by their names here."""

ABOUT = ("item", "model", "prompt_id", "concept", "country")


def automatic_values(
    quality: Sequence[pl.DataFrame],
    matches: Sequence[pl.DataFrame],
    prompts: pl.DataFrame | None,
    *,
    items: Sequence[str],
) -> pl.DataFrame:
    """Put what machines say of some images into one table.

    Args:
        quality: each conforms to QUALITY; images that have no match have no model, and are left out.
        matches: each conforms to MATCHES, such as those of each model; the nearest counts.
        prompts: conforms to PROMPTS: the country that was asked for; without it nothing was.
        items: the images.

    Returns:
        Conforms to VALUES.
    """
    nearest = pl.concat([checked(table, MATCHES).select(list(MATCHES.schema)) for table in matches])
    nearest = nearest.filter(pl.col("rank") == 1, pl.col("image_id").is_in(list(items)))
    about = asked_for(nearest, prompts)
    scored = pl.concat(
        [checked(table, QUALITY).select("image_id", "scorer", "value") for table in quality] or [none_scored()]
    )
    rated = about.select(ABOUT).join(scored, left_on="item", right_on="image_id")
    params = {scorer: canonical_json({"scorer": scorer}).decode() for scorer in rated["scorer"].unique()}
    parts = [
        rated.select(*ABOUT, "value", metric=pl.lit("quality"),
                     params=pl.col("scorer").replace_strict(params, return_dtype=pl.String)
                     if params else pl.lit("{}")),
        *(about.select(*ABOUT, value=pl.col(column).cast(pl.Float64), metric=pl.lit(metric), params=pl.lit("{}"))
          for metric, column in OF_MATCHES.items()),
        about.filter(pl.col("country").is_not_null()).select(
            *ABOUT, value=as_asked(), metric=pl.lit(MAPPED_AS_ASKED), params=pl.lit("{}")
        ),
    ]  # fmt: skip
    whole = pl.concat([part.select(*ABOUT, "value", "metric", "params") for part in parts])
    filled = whole.with_columns(benchmark=pl.lit("cube"), group=pl.lit(None, pl.String), repeat=pl.lit(None, pl.UInt16))
    return filled.select(list(VALUES.schema)).sort(VALUES.key)


def asked_for(nearest: pl.DataFrame, prompts: pl.DataFrame | None) -> pl.DataFrame:
    """Say of each match which country its prompt names; what it was mapped to is `mapped_country`."""
    plain = nearest.rename({"image_id": "item", "country": "mapped_country"})
    if prompts is None:
        return plain.with_columns(country=pl.lit(None, pl.String))
    asked = checked(prompts, PROMPTS).select("prompt_id", "country")
    return plain.join(asked, on="prompt_id", how="left", maintain_order="left")


def as_asked() -> pl.Expr:
    """Tell whether the mapped country is the one asked for; an artifact of several countries counts for each."""
    same = (pl.col("mapped_country") == pl.col("country")) | pl.col("countries").list.contains(pl.col("country"))
    return pl.when(pl.col("abstained")).then(None).otherwise(same.cast(pl.Float64))


def none_scored() -> pl.DataFrame:
    """Give the scores of no image."""
    return pl.DataFrame(schema={"image_id": pl.String, "scorer": pl.String, "value": pl.Float64})
