"""From values and ratings to correlations: recomputed with scipy."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import ANNOTATIONS, IMAGES, QUALITY
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.scores.family import Scored
from culturekit.scores.meta import MetaOptions, meta, score_meta
from tests.scores.value_tables import annotations, conforming, params_of, values

GROUPS = {"DE": "GN", "FR": "GN", "IN": "GS", "NG": "GS", "BR": "GS"}
OPTIONS = MetaOptions(resamples=99)
METRIC = values()
RATINGS = annotations(
    {item: 1 + 3 * min(worth, 1.3) for item, worth in METRIC.select("item", "value").iter_rows()}, noise=0.6
)


def scored(*, options: MetaOptions = OPTIONS, table: pl.DataFrame = METRIC, **sources: Any) -> Scored:
    answer = score_meta(table, options=options, **sources)
    conforming(answer.scores)
    return answer


def chosen(answer: Scored, metric: str, **conditions: object) -> dict[str, Any]:
    rows = [
        row
        for row in answer.scores.filter(pl.col("metric") == metric).iter_rows(named=True)
        if all({**row, **params_of(row), **params_of(row)["with"]}.get(key) == value
               for key, value in conditions.items())
    ]  # fmt: skip
    assert len(rows) == 1
    return rows[0]


def item_means(pool: str) -> dict[str, float]:
    own = RATINGS.filter(pl.col("annotator_region") == pool)
    return dict(own.group_by("item_id").agg(pl.col("value").mean()).rows())


@pytest.mark.parametrize(
    ("method", "function"), [("spearman", stats.spearmanr), ("kendall", stats.kendalltau), ("pearson", stats.pearsonr)]
)
def test_a_row_is_the_correlation_with_one_pool(method: str, function: Any) -> None:
    answer = scored(annotations=RATINGS)
    for model in ("m1", "m2", "all"):
        own = METRIC if model == "all" else METRIC.filter(pl.col("model") == model)
        for pool in ("IN", "DE"):
            means = item_means(pool)
            row = chosen(answer, "human_correlation", model=model, pool=pool, method=method)
            expected = function(own["value"].to_list(), [means[item] for item in own["item"]]).statistic
            assert row["value"] == pytest.approx(expected)
            assert row["ci_low"] < row["value"] < row["ci_high"]
            assert row["n"] == own.height
            assert params_of(row)["prompts"] == 36
            assert params_of(row)["metric"] == "dialect_score"


def test_groups_of_countries_have_rows_of_their_own() -> None:
    options = MetaOptions(methods=("spearman",), scheme="cultivate", groups=GROUPS, resamples=99)
    answer = scored(annotations=RATINGS, options=options)
    assert answer.scores.height == 3 * 2 * 3
    own = METRIC.filter(pl.col("model") == "m1", pl.col("country").is_in(["DE", "FR"]))
    means = item_means("IN")
    row = chosen(answer, "human_correlation", model="m1", pool="IN", group="GN")
    expected = stats.spearmanr(own["value"].to_list(), [means[item] for item in own["item"]]).statistic
    assert row["value"] == pytest.approx(expected)
    assert params_of(row)["scheme"] == "cultivate"


def test_metrics_are_correlated_with_each_other() -> None:
    other = METRIC.with_columns(metric=pl.lit("quality"), value=-pl.col("value"))
    answer = scored(table=pl.concat([METRIC, other]), options=MetaOptions(methods=("kendall",), resamples=99))
    row = chosen(answer, "metric_correlation", model="all")
    assert (row["value"], row["ci_low"], row["ci_high"]) == (-1, -1, -1)
    assert (params_of(row)["metric"], params_of(row)["with"]["metric"]) == ("dialect_score", "quality")
    assert set(answer.scores["metric"]) == {"metric_correlation"}


def test_a_small_sample_has_no_interval_and_says_why() -> None:
    table = METRIC.filter(pl.col("country") == "IN")
    row = chosen(scored(table=table, annotations=RATINGS), "human_correlation", model="m1", pool="IN", method="pearson")
    assert row["ci_low"] is None
    assert params_of(row)["no_interval"] == "fewer than 10 prompts, or no scatter"
    assert row["n"] == 12


def test_an_item_under_two_scores_counts_once_and_order_does_not_matter() -> None:
    again = METRIC.with_columns(country=pl.lit(None, pl.String))
    options = MetaOptions(methods=("spearman",), resamples=49)
    once = scored(annotations=RATINGS, options=options)
    twice = scored(table=pl.concat([METRIC, again]), annotations=RATINGS, options=options)
    assert once.scores.equals(twice.scores)
    shuffled = scored(
        table=METRIC.sample(fraction=1, shuffle=True, seed=1),
        annotations=RATINGS.sample(fraction=1, shuffle=True, seed=2),
        options=options,
    )
    assert once.scores.equals(shuffled.scores)


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(UsageError, match="no item has two scores to correlate"):
        scored()
    with pytest.raises(UsageError, match=r"no metric can be held against people.*ratings, of items such as 'unseen'"):
        scored(annotations=annotations({"unseen": 3.0}))
    with pytest.raises(UsageError, match="no metric can be held against people"):  # metrics alone would be left
        scored(table=METRIC, annotations=annotations({"unseen": 3.0}))
    with pytest.raises(UsageError, match="methods must be at least one correlation"):
        scored(annotations=RATINGS, options=MetaOptions(methods=()))


def test_the_quality_of_images_that_nothing_was_mapped_of_is_held_against_people(work: Work, tmp_path: Path) -> None:
    """Images of activities have no matches, and `--quality` asked for these."""
    names = RATINGS["item_id"].unique().sort().to_list()
    images = pl.DataFrame([
        {"image_id": name, "path": "", "model": "m", "prompt_id": f"p{place}", "repeat": 0, "slot": 0,
         "rewriter": "off", "provider_params": "{}", "sha256": "", "width": 1, "height": 1, "status": "ok"}
        for place, name in enumerate(names)
    ], schema=IMAGES.schema)  # fmt: skip
    means = item_means("IN")
    rated = [(name, "clip", 2 * means.get(name, 0.0)) for name in names]
    quality = write_table(tmp_path, QUALITY, pl.DataFrame(rated, schema=QUALITY.schema, orient="row"))
    stage = meta.stage(
        annotations=write_table(tmp_path, ANNOTATIONS, RATINGS), quality=Numbered([quality]),
        images=Numbered([write_table(tmp_path, IMAGES, images)]), options=OPTIONS,
    )  # fmt: skip
    stage.run(work)
    found = pl.read_parquet(work.out / "scores.parquet").filter(metric="human_correlation", model="m")
    rows = [(params_of(row), row["value"]) for row in found.iter_rows(named=True)]
    of_home = [value for about, value in rows if about["with"]["pool"] == "IN" and about["method"] == "spearman"]
    assert of_home == pytest.approx([1.0] * len(of_home))
    assert of_home
