"""`culturekit index`: artifacts as vectors, and images mapped to them."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["index_app"]

STEPS = "culturekit.pipeline.steps"
COMMANDS = {
    "build": CommandAt(f"{STEPS}.index_stages:BUILD"),
    "embed": CommandAt(f"{STEPS}.index_stages:EMBED"),
    "map": CommandAt(f"{STEPS}.mapping_stages:MAP"),
    "diagnose": CommandAt(f"{STEPS}.mapping_stages:DIAGNOSE"),
    "shuffle": CommandAt(f"{STEPS}.mapping_stages:SHUFFLE"),
    "append": CommandAt(f"{STEPS}.index_change_stages:APPEND"),
    "remove": CommandAt(f"{STEPS}.index_change_stages:REMOVE"),
    "compact": CommandAt(f"{STEPS}.index_change_stages:COMPACT"),
}

index_app = typer.Typer(
    no_args_is_help=True,
    help="The index: artifacts as vectors, and images mapped to them.",
    cls=lazy_group("index", COMMANDS),
)
