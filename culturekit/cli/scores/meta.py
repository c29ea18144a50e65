"""`culturekit score meta`: how well metrics follow people, and each other."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["meta"]

PoolsBy: TypeAlias = Literal["region", "in-region", "recruitment"]
Level: TypeAlias = Literal["item", "prompt"]


def meta(
    out: Out,
    values: Annotated[
        list[Path] | None, typer.Option(help="Table of values of metrics; repeat it for more than one.")
    ] = None,
    annotations: Annotated[Path | None, typer.Option(help="What people answered about the same items.")] = None,
    human: Annotated[
        list[Path] | None, typer.Option(help="Table of values that are ratings by people; repeatable.")
    ] = None,
    quality: Annotated[
        list[Path] | None, typer.Option(help="Scores of single images to hold against people; repeatable.")
    ] = None,
    matches: Annotated[
        list[Path] | None,
        typer.Option(help="What images were mapped to: similarity, margins, the country asked for; repeatable."),
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help="What images were asked for; with --matches.")] = None,
    choice: Annotated[
        list[str] | None,
        typer.Option(help="A choice in words, such as yes, whose share is a rating too; repeatable."),
    ] = None,
    level: Annotated[
        Level, typer.Option(help="Correlate single items, or the means of each model's items of a prompt.")
    ] = "item",
    people_only: Annotated[
        bool, typer.Option("--people-only", help="Leave out how metrics follow each other.")
    ] = False,
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
    from culturekit.errors import UsageError
    from culturekit.families.country_groups import country_groups
    from culturekit.metrics.scoring.score_meta import MetaOptions
    from culturekit.metrics.statistics.correlations import CORRELATIONS, as_correlation
    from culturekit.pipeline.scores.meta_stage import AutomaticFiles, meta_stage

    options = MetaOptions(
        methods=tuple(map(as_correlation, dict.fromkeys(method))) if method else CORRELATIONS,
        by=pools,
        scheme=scheme,
        groups=country_groups(scheme, groups) if scheme else {},
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        choices=tuple(sorted(set(choice or ()))),
        people_only=people_only,
        level=level,
    )
    if not values and not matches:
        raise UsageError("there is nothing to hold against people", expected="--values, or --matches and --quality")
    automatic = AutomaticFiles(tuple(quality or ()), tuple(matches or ()), prompts) if quality or matches else None
    stage = meta_stage(values or (), options, annotations=annotations, human=human or (), automatic=automatic)
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
