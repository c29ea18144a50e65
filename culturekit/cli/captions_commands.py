"""`culturekit captions`: captions of a culture, from a few seeds to translations and objects."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["captions_app"]

STAGES = "culturekit.pipeline.steps.caption_stages"
COMMANDS = {
    "expand": CommandAt(f"{STAGES}:EXPAND_CAPTIONS"),
    "sample": CommandAt(f"{STAGES}:SAMPLE"),
    "stats": CommandAt(f"{STAGES}:STATS"),
}

captions_app = typer.Typer(
    no_args_is_help=True,
    help="Captions of a culture: expanded from seeds, sampled, counted, translated, and the objects they are about.",
    cls=lazy_group("captions", COMMANDS),
)
