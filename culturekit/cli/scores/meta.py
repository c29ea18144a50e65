"""`culturekit score meta`: how well metrics follow people, and each other."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["meta"]

PoolsBy: TypeAlias = Literal["region", "in-region", "recruitment"]


def meta(
    values: Annotated[list[Path], typer.Option(help="Table of values of metrics; repeat it for more than one.")],
    out: Out,
    annotations: Annotated[Path | None, typer.Option(help="What people answered about the same items.")] = None,
    human: Annotated[
        list[Path] | None, typer.Option(help="Table of values that are ratings by people; repeatable.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="spearman, kendall or pearson; repeatable. [all three]")
    ] = None,
    pools: Annotated[PoolsBy, typer.Option(help="What makes a pool of annotators.")] = "region",
    scheme: Annotated[
        str, typer.Option(help="Rows for each group of countries too: a scheme as in `score gaps`.")
    ] = "",
    groups: Annotated[
        Path | None, typer.Option(help="YAML (scheme: group: [countries]) or CSV (scheme,group,country).")
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(min=99, help="Resamples of each bootstrap.")] = 2000,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Correlate metrics with ratings by people, pool by pool, and metrics with each other."""
    from culturekit.metrics.scoring.score_meta import MetaOptions
    from culturekit.metrics.statistics.correlations import CORRELATIONS, as_correlation
    from culturekit.pipeline.scores.country_groups import country_groups
    from culturekit.pipeline.scores.meta_stage import meta_stage

    options = MetaOptions(
        methods=tuple(map(as_correlation, dict.fromkeys(method))) if method else CORRELATIONS,
        by=pools,
        scheme=scheme,
        groups=country_groups(scheme, groups) if scheme else {},
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    stage = meta_stage(values, options, annotations=annotations, human=human or ())
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
