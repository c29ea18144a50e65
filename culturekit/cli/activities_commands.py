"""`culturekit activities`: from pages about countries to prompts of what people do there."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["activities_app"]

STAGES = "culturekit.pipeline.steps.activity_stages"
COMMANDS = {
    "read": CommandAt(f"{STAGES}:READ"),
    "extract": CommandAt(f"{STAGES}:EXTRACT_ACTIVITIES"),
    "merge": CommandAt(f"{STAGES}:MERGE"),
    "prompts": CommandAt(f"{STAGES}:PROMPTS"),
}

activities_app = typer.Typer(
    no_args_is_help=True,
    help="Activities of countries, found on pages about them, and prompts for each.",
    cls=lazy_group("activities", COMMANDS),
)
