"""From the plan of a folder to rows of the images table: ids, defaults, and which files are the same."""

from collections.abc import Mapping
from typing import Any

from culturekit.generation.folder.folder_listing import shown
from culturekit.generation.folder.folder_plan import FolderPlan, Row
from culturekit.storage.digests import digest

__all__ = ["duplicates_of", "image_id_of", "table_row"]

DEFAULTS: Mapping[str, Any] = {
    "path": "",
    "model_version": None,
    "seed": None,
    "seed_honoured": None,
    "repeat": None,
    "slot": None,
    "prompt_id": None,
    "prompt_sent": None,
    "prompt_revised": None,
    "rewriter": "unknown",
    "safety": None,
    "requested_at": None,
    "provider_params": "{}",
    "sha256": "",
    "width": 0,
    "height": 0,
    "concept": None,
    "country": None,
    "duplicate_of": None,
}


def image_id_of(row: Row) -> str:
    """Name an image: the same file under the same name and model has the same id, wherever the folder lies."""
    model = row.cells["model"]
    if row.source is None:
        return digest([model, row.cells["prompt_id"], row.cells["repeat"], row.cells["slot"], "missing"])[:16]
    return digest([model, row.source, row.file.sha256 if row.file else ""])[:16]


def table_row(row: Row, *, duplicate_of: str | None = None) -> dict[str, Any]:
    """Write a row as the table has it; what only reading the picture tells is still to come."""
    return {
        **DEFAULTS,
        **row.cells,
        "image_id": image_id_of(row),
        "status": row.status,
        "reason": row.reason,
        "source": row.source,
        "source_sha256": row.file.sha256 if row.file and row.file.sha256 else None,
        "duplicate_of": duplicate_of,
    }


def duplicates_of(plan: FolderPlan) -> dict[int, int]:
    """Find files with the same bytes: for each further one, by its place among the rows, the place of the first."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for place, row in enumerate(plan.rows):
        if row.file is not None and row.file.sha256:
            original = first.setdefault(row.file.sha256, place)
            if original != place:
                found[place] = original
    return found


def label_of(row: Row) -> str:
    """Call a row by its file, for people."""
    return row.source if row.source is not None else shown(str(row.cells["prompt_id"]))
