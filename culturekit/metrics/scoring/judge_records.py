"""The calibration of judge models against pools of people, from their tables."""

from collections.abc import Iterator, Sequence

import polars as pl

from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.rating_pools import PoolRatings
from culturekit.metrics.scoring.score_rows import Row, statistic_row, with_reason
from culturekit.metrics.scoring.value_sets import own_generator
from culturekit.metrics.statistics.pools import JudgeCalibration, calibrate_judge
from culturekit.records.schemas import JUDGMENTS

__all__ = ["judge_rows"]

FEW = "a single prompt, or fewer than ten for the agreement, or no scatter"


def judge_rows(
    judgments: pl.DataFrame, pools: Sequence[PoolRatings], *, seed: int, resamples: int, confidence: float, by: str
) -> tuple[list[Row], int]:
    """Hold each judge against each pool; count the verdicts on items that no person of any pool judged.

    A verdict belongs to a criterion where the task is the scheme and the item of the judgment the criterion.
    Several verdicts of a judge on one image are averaged.
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
