"""One score walked back: batches, one image of them, its match, the artifact, its path, the line of the dump."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.errors import IntegrityError, UsageError
from culturekit.kg.dump_line import read_line
from culturekit.records.schemas import IMAGES, MATCHES, PROMPTS
from culturekit.storage.digests import digest_file
from culturekit.storage.tables import read_table
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables
from culturekit.trail.find_score import described, labels_of
from culturekit.trail.upstream import manifest_of, upstream

__all__ = ["Neighbour", "Trail", "walk_back"]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An artifact near an image."""

    rank: int
    artifact_id: str
    artifact: str
    country: str
    score: float


@dataclass(frozen=True, slots=True)
class Trail:
    """Everything between a score and the line of the dump it rests on, for one of its images."""

    score: Mapping[str, Any]
    batch: tuple[str, ...]
    image_id: str
    image: Path
    prompt: str
    neighbours: tuple[Neighbour, ...]
    evidence: ArtifactEvidence | None
    dump_line: str | None


def walk_back(folder: Path, score: Mapping[str, Any], *, image_id: str | None = None) -> Trail:
    """Walk a score back by one of its images: the one named, or the first of its first batch."""
    matches_folder, matches = matches_of(folder, score)
    image_id = image_id or str(matches["image_id"][0])
    rows = matches.filter(pl.col("image_id") == image_id).sort("rank")
    if rows.is_empty():
        raise UsageError(
            "this image is not behind that score",
            found=repr(image_id),
            expected=", ".join(matches["image_id"].unique(maintain_order=True)[:8]) + ", ...",
        )
    first = rows.row(0, named=True)
    images_path = upstream(matches_folder, "images")
    image = read_table(images_path, IMAGES).filter(pl.col("image_id") == image_id).row(0, named=True)
    file = images_path.parent / image["path"]
    if digest_file(file) != image["sha256"]:
        raise IntegrityError("the image is not the one its table describes", where=str(file))
    evidence, line = artifact_evidence(matches_folder, first)
    same_batch = matches.filter(
        pl.col("prompt_id").eq_missing(first["prompt_id"]), pl.col("repeat").eq_missing(first["repeat"])
    )
    return Trail(
        score=score,
        batch=tuple(same_batch["image_id"].unique(maintain_order=True)),
        image_id=image_id,
        image=file,
        prompt=prompt_of(images_path.parent, image),
        neighbours=tuple(neighbour(row) for row in rows.iter_rows(named=True) if row["artifact_id"]),
        evidence=evidence,
        dump_line=line,
    )


def matches_of(folder: Path, score: Mapping[str, Any]) -> tuple[Path, pl.DataFrame]:
    """Find the matches a score was computed from: those of its model, concept and kind of labels."""
    for role in sorted(manifest_of(folder).inputs):
        path = upstream(folder, role)
        if path.name != "matches.parquet":
            continue
        matches = read_table(path, MATCHES).filter(
            pl.col("model") == score["model"], (pl.col("method") == "truth") == (labels_of(score) == "truth")
        )
        if score["concept"] is not None:
            matches = matches.filter(pl.col("concept") == score["concept"])
        if not matches.is_empty():
            return path.parent, matches.sort("prompt_id", "repeat", "slot", "rank")
    raise IntegrityError("no table of matches is behind this score", where=str(folder), found=described(score))


def artifact_evidence(matches_folder: Path, match: Mapping[str, Any]) -> tuple[ArtifactEvidence | None, str | None]:
    """Find why the matched artifact is one, and read its line of the dump."""
    if match["artifact_id"] is None:
        return None, None
    inputs = manifest_of(matches_folder).inputs
    holder = matches_folder if "cspace" in inputs else upstream(matches_folder, "index")
    tables = EvidenceTables(upstream(holder, "cspace").parent)
    concepts = tables.space.filter(pl.col("artifact_id") == match["artifact_id"])["concept"].unique().sort().to_list()
    concept = match["concept"] if match["concept"] in concepts else concepts[0]
    evidence = tables.of([(match["artifact_id"], concept)]).get((match["artifact_id"], concept))
    place = evidence.path[-1].place if evidence and evidence.path else None
    if place is None:
        return evidence, None
    return evidence, read_line(tables.dump_file(place.role), member=place.member, offset=place.offset)


def prompt_of(images_folder: Path, image: Mapping[str, Any]) -> str:
    """Read the prompt an image was made from; what was sent, where the prompts are not known."""
    if "prompts" not in manifest_of(images_folder).inputs:
        return image["prompt_sent"] or ""
    prompts = read_table(upstream(images_folder, "prompts"), PROMPTS)
    return str(prompts.filter(pl.col("prompt_id") == image["prompt_id"])["text"][0])


def neighbour(row: Mapping[str, Any]) -> Neighbour:
    """Read a neighbour from a row of matches."""
    return Neighbour(row["rank"], row["artifact_id"], row["artifact"], row["country"], row["score"])
