"""`culturekit score` and `culturekit metrics`: from matches to scores, and what each score means."""

import json
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["metrics_app", "score_app"]

score_app = typer.Typer(no_args_is_help=True, help="Scores with intervals, from the tables of earlier stages.")
metrics_app = typer.Typer(no_args_is_help=True, help="What each metric means, measures and misses.")


@score_app.callback()
def score_group() -> None:
    """Keep `score` a group while it has one command."""


@score_app.command(epilog="Example: culturekit score qvs --matches matches/matches.parquet --out scores")
def qvs(
    matches: Annotated[Path, typer.Option(help="Table that `index map` wrote.")],
    out: Out,
    quality: Annotated[Path | None, typer.Option(help="Quality of the images; without it only VS is scored.")] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch.")] = 8,
    q: Annotated[float, typer.Option(help="Order of the Vendi score.")] = 1.0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score cultural diversity: quality, VS and qVS over the five standard kernels."""
    from culturekit.metrics.score_qvs import QvsOptions
    from culturekit.pipeline.image_stages import score_stage

    ratings = {} if quality is None else {"quality": quality}
    stage = score_stage({"matches": matches}, ratings, QvsOptions(size=size, q=q))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


@metrics_app.command("list", epilog="Example: culturekit metrics list")
def list_metrics(as_json: AsJson = False) -> None:
    """List the metrics, a line each."""
    from culturekit.metrics.catalog import CATALOG

    if as_json:
        print(json.dumps([metric.name for metric in CATALOG.values()]))
        return
    width = max(map(len, CATALOG))
    for name, metric in CATALOG.items():
        print(f"{name:<{width}}  {metric.title}")


@metrics_app.command("show", epilog="Example: culturekit metrics show qvs")
def show_metric(
    name: Annotated[str, typer.Argument(help="Name of a metric.")],
    as_json: AsJson = False,
) -> None:
    """Show a metric's formula, range, direction, sources and pitfalls."""
    from dataclasses import asdict

    from culturekit.errors import UsageError
    from culturekit.metrics.catalog import CATALOG

    metric = CATALOG.get(name)
    if metric is None:
        raise UsageError("there is no such metric", found=repr(name), expected=" or ".join(CATALOG))
    if as_json:
        print(json.dumps(asdict(metric), default=str))
        return
    for key, value in asdict(metric).items():
        print(f"{key}: {', '.join(map(str, value)) if isinstance(value, tuple) else value}")
