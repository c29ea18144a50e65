"""Pictures that show artifacts: which artifact each shows, and which cannot be used."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table

__all__ = ["KnownReferences", "PromptsOfReferences", "known_references"]

PromptsOfReferences: TypeAlias = Annotated[
    Path | None,
    Field(description="Prompts of the references; they say what each shows when its table does not."),
    Typed(needs="references"),
]

NO_PICTURE = "reference without a picture"
SHOWS_NOTHING = "reference that shows no artifact"
UNKNOWN = "reference of an unknown artifact"


@dataclass(frozen=True, slots=True)
class KnownReferences:
    """References of known artifacts, rows of IMAGES with artifact_id; and image_id, reason and detail of the others."""

    rows: pl.DataFrame
    left_out: list[tuple[str, str, str | None]]


def known_references(references_path: Path, prompts_path: Path | None, artifacts: pl.DataFrame) -> KnownReferences:
    """Part the reference pictures into those of known artifacts and the others."""
    images = with_artifacts(read_table(references_path, IMAGES), references_path, prompts_path)
    known = set(artifacts["artifact_id"])
    left_out: list[tuple[str, str, str | None]] = []
    used: list[bool] = []
    for image_id, status, reason, artifact in images.select("image_id", "status", "reason", "artifact_id").iter_rows():
        used.append(status == "ok" and artifact in known)
        if status != "ok":
            left_out.append((image_id, NO_PICTURE, reason or status))
        elif artifact is None:
            left_out.append((image_id, SHOWS_NOTHING, None))
        elif artifact not in known:
            left_out.append((image_id, UNKNOWN, artifact))
    rows = images.filter(pl.Series(used, dtype=pl.Boolean)).sort("artifact_id", "image_id")
    if rows.is_empty():
        raise UsageError("no reference picture shows an artifact of the cultural space", where=str(references_path))
    return KnownReferences(rows, left_out)


def with_artifacts(images: pl.DataFrame, references_path: Path, prompts_path: Path | None) -> pl.DataFrame:
    """Say of each picture which artifact it shows: the truth, or else what its prompt asked for."""
    if "truth_artifact_id" in images.columns:
        return images.with_columns(artifact_id="truth_artifact_id")
    if prompts_path is None:
        raise UsageError(
            "the table does not say which artifact a reference picture shows",
            where=str(references_path),
            expected="a column truth_artifact_id, or --prompts with the prompts the pictures were made from",
        )
    asked = read_table(prompts_path, PROMPTS).select("prompt_id", "artifact_id")
    return images.join(asked, on="prompt_id", how="left", maintain_order="left")
