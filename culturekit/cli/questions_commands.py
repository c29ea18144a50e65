"""`culturekit questions`: prompts turned into yes/no questions, and images asked."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["questions_app"]

STAGES = "culturekit.pipeline.steps.question_stages"

questions_app = typer.Typer(
    no_args_is_help=True,
    help="Yes/no questions about what a prompt asks for, and answers.",
    cls=lazy_group("questions", {"build": CommandAt(f"{STAGES}:BUILD"), "ask": CommandAt(f"{STAGES}:ASK")}),
)
