"""Images as evidence: the first batch of every model and concept, with what each is nearest to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.report.looks import reference_of, reference_pictures, thumbnail_of
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables

__all__ = ["Near", "Shot", "collect_shots"]

SHOTS = 8
NEAREST = 3


@dataclass(frozen=True, slots=True)
class Near:
    """An artifact near an image, with a reference picture of it."""

    artifact_id: str
    artifact: str
    country: str
    score: float
    margin: float
    thumbnail: str | None


@dataclass(frozen=True, slots=True)
class Shot:
    """An image as evidence: what it was asked for, what it is nearest to, what it really shows."""

    image_id: str
    model: str
    concept: str
    thumbnail: str
    prompt: str
    nearest: tuple[Near, ...]
    truth_known: bool
    truth: str | None
    evidence: ArtifactEvidence | None


def collect_shots(run: RunFolders, thumbnails: dict[str, str]) -> Iterator[Shot]:
    """Give the shots of a run; `thumbnails` learns which pictures to copy under which names."""
    tables = EvidenceTables(run.folder(roles.CSPACE))
    prompts = run.prompts()
    space = run.space()
    looks = reference_pictures(run)
    for model in run.models:
        shown = first_batches(run.images(model))
        matches = run.matches(model).filter(pl.col("image_id").is_in(shown["image_id"].implode()))
        evidence = tables.evidence_of(wanted(matches, space))
        for image in shown.iter_rows(named=True):
            rows = matches.filter(pl.col("image_id") == image["image_id"], pl.col("rank") <= NEAREST).sort("rank")
            yield Shot(
                image_id=image["image_id"],
                model=model,
                concept=image["concept"] or "",
                thumbnail=thumbnail_of(model, image, thumbnails),
                prompt=prompts.get(image["prompt_id"], image["prompt_sent"] or ""),
                nearest=tuple(near(row, looks, thumbnails) for row in rows.iter_rows(named=True)),
                truth_known=model in run.truthful,
                truth=true_name(space, image.get("truth_artifact_id")),
                evidence=evidence_of(rows, image, evidence),
            )


def first_batches(images: pl.DataFrame) -> pl.DataFrame:
    """Take the first images of each concept, by prompt, repeat and slot."""
    made = images.filter(pl.col("status") == "ok").sort("concept", "prompt_id", "repeat", "slot")
    return made.group_by("concept", maintain_order=True).head(SHOTS)


def wanted(matches: pl.DataFrame, space: pl.DataFrame) -> list[tuple[str, str]]:
    """List the artifacts nearest to some image, in each concept they belong to."""
    nearest = matches.filter(pl.col("rank") == 1)["artifact_id"].drop_nulls().unique()
    rows = space.filter(pl.col("artifact_id").is_in(nearest.implode())).select("artifact_id", "concept").unique()
    return sorted(rows.iter_rows())


def near(row: Mapping[str, Any], looks: Mapping[str, tuple[str, str]], thumbnails: dict[str, str]) -> Near:
    """Describe a neighbour, with a picture of it where there is one."""
    name = reference_of(row["artifact_id"], looks, thumbnails)
    return Near(row["artifact_id"], row["artifact"], row["country"], row["score"], row["margin"], name)


def true_name(space: pl.DataFrame, artifact_id: str | None) -> str | None:
    """Name the artifact that an image really shows; None when it shows none."""
    if artifact_id is None:
        return None
    names = space.filter(pl.col("artifact_id") == artifact_id)["name"]
    return artifact_id if names.is_empty() else str(names[0])


def evidence_of(
    rows: pl.DataFrame, image: Mapping[str, Any], evidence: Mapping[tuple[str, str], ArtifactEvidence]
) -> ArtifactEvidence | None:
    """Choose the evidence of the nearest artifact, in the image's concept where it belongs to it."""
    if rows.is_empty():
        return None
    found = {concept: shown for (qid, concept), shown in evidence.items() if qid == rows["artifact_id"][0]}
    return found.get(image["concept"]) or next(iter(found.values()), None)
