"""`culturekit generate --dry-run`: how the names of a folder map to prompts, shown before anything is done."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from culturekit.pipeline.steps.folder_stage import ImageFolder

__all__ = ["dry_run_of"]


def dry_run_of(folder: "ImageFolder", *, as_json: bool) -> None:
    """Show what would come of a folder; leave with 1 when something should be looked at first."""
    from culturekit.generation.folder.folder_listing import shown
    from culturekit.generation.folder.folder_preview import preview_lines, preview_of

    with tempfile.TemporaryDirectory() as scratch:
        preview = preview_of(*folder.plan(Path(scratch)))
    if as_json:
        print(shown(json.dumps(preview.as_data(), ensure_ascii=False)))
    else:
        for line in preview_lines(preview):
            print(shown(line))
    if preview.findings:
        typer.echo(f"to be looked at: {'; '.join(preview.findings)}", err=True)
        raise typer.Exit(1)
