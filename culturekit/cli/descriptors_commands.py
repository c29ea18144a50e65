"""`culturekit descriptors`: what pictures of activities should show, and what they overdo."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["descriptors_app"]

STAGES = "culturekit.pipeline.steps.descriptor_stages"
LAYOUT = "culturekit.pipeline.steps.published_stages"
COMMANDS = {
    "propose": CommandAt(f"{STAGES}:PROPOSE_DESCRIPTORS"),
    "refine": CommandAt(f"{STAGES}:REFINE_DESCRIPTORS"),
    "stereotypes": CommandAt(f"{STAGES}:STEREOTYPES"),
    "import": CommandAt(f"{LAYOUT}:IMPORT"),
    "export": CommandAt(f"{LAYOUT}:EXPORT"),
}

descriptors_app = typer.Typer(
    no_args_is_help=True,
    help="What pictures of activities should show, proposed and refined by models, and what they overdo.",
    cls=lazy_group("descriptors", COMMANDS),
)
