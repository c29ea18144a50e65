"""`culturekit score`, one command per family of metrics, and `culturekit metrics`: what each means."""

import json
import math
from functools import partial
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import AsJson, complete_metric
from culturekit.cli.showing import show
from culturekit.scores.catalog import FAMILIES
from culturekit.scores.listing import family_named, outside_names


def outside() -> dict[str, CommandAt]:
    """Say how the families of other packages are imported."""
    return {name: CommandAt(load=partial(family_named, name)) for name in outside_names()}


score_app = typer.Typer(
    no_args_is_help=True,
    help="Scores with intervals, from the tables of earlier stages.",
    cls=lazy_group("score", {name: CommandAt(target) for name, target in FAMILIES.items()}, outside),
)


metrics_app = typer.Typer(no_args_is_help=True, help="What each metric means, measures and misses.")


@metrics_app.command("list", epilog="Example: culturekit metrics list")
def list_metrics(as_json: AsJson = False) -> None:
    """List the metrics, a line each."""
    from culturekit.scores.listing import all_metrics

    metrics = all_metrics()
    width = max(map(len, metrics))
    show(list(metrics), (f"{name:<{width}}  {metric.title}" for name, metric in metrics.items()), as_json=as_json)


@metrics_app.command("show", epilog="Example: culturekit metrics show qvs")
def show_metric(
    name: Annotated[str, typer.Argument(help="Name of a metric.", autocompletion=complete_metric)],
    as_json: AsJson = False,
) -> None:
    """Show a metric's formula, range, sources and pitfalls.

    Also its direction.
    """
    from dataclasses import asdict
    from difflib import get_close_matches

    from culturekit.core.errors import UsageError
    from culturekit.scores.listing import all_metrics

    metrics = all_metrics()
    metric = metrics.get(name)
    if metric is None:
        near = get_close_matches(name, metrics, n=3)
        raise UsageError(
            "there is no such metric", found=repr(name), expected="a name that `culturekit metrics list` lists",
            hint=f"Did you mean {' or '.join(near)}?" if near else "",
        )  # fmt: skip
    if as_json:
        card = asdict(metric)
        card |= {end: None for end in ("low", "high") if math.isinf(card[end])}  # JSON knows no infinity
        print(json.dumps(card, default=str, allow_nan=False))
        return
    for key, value in asdict(metric).items():
        several = value if isinstance(value, tuple) else (value,)
        print("\n- ".join([f"{key}:", *several]) if key == "pitfalls" else f"{key}: {', '.join(map(str, several))}")
