"""`culturekit score`: from tables to scores, one command per family of metrics."""

from functools import partial

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.scores.catalog import FAMILIES
from culturekit.scores.listing import family_named, outside_names


def outside() -> dict[str, CommandAt]:
    """Say how the families of other packages are imported."""
    return {name: CommandAt(load=partial(family_named, name)) for name in outside_names()}


score_app = typer.Typer(
    no_args_is_help=True,
    help="Scores with intervals, from the tables of earlier stages.",
    cls=lazy_group("score", {name: CommandAt(place) for name, place in FAMILIES.items()}, outside),
)
