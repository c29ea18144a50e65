"""`culturekit score`: from tables to scores, one command per family of metrics."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.families.listing import FAMILIES, family_places

__all__ = ["score_app"]


def outside() -> dict[str, CommandAt]:
    """Say where the families of other packages are."""
    return {name: CommandAt(place) for name, place in family_places().items() if name not in FAMILIES}


score_app = typer.Typer(
    no_args_is_help=True,
    help="Scores with intervals, from the tables of earlier stages.",
    cls=lazy_group("score", {name: CommandAt(place) for name, place in FAMILIES.items()}, outside),
)


@score_app.callback()
def score_group() -> None:
    """Keep `score` a group however many commands it has."""
