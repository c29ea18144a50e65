"""`culturekit score`: from tables to scores, one command per family of metrics."""

import typer

from culturekit.cli.scores import qvs

__all__ = ["score_app"]

score_app = typer.Typer(no_args_is_help=True, help="Scores with intervals, from the tables of earlier stages.")


@score_app.callback()
def score_group() -> None:
    """Keep `score` a group however many commands it has."""


score_app.command(epilog="Example: culturekit score qvs --matches matches/matches.parquet --out scores")(qvs.qvs)
