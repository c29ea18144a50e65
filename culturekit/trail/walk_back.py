"""One score walked back: batches, one image of them, its match, the artifact, its path, the line of the dump."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.errors import IntegrityError, UsageError
from culturekit.records.schemas import IMAGES, MATCHES, PROMPTS
from culturekit.storage.digests import digest_file
from culturekit.storage.tables import read_table
from culturekit.trail.evidence import ArtifactEvidence, DumpPlace, EvidenceTables
from culturekit.trail.find_score import described, labels_of
from culturekit.trail.people_behind import People, people_behind
from culturekit.trail.stage_verdicts import StageVerdict
from culturekit.trail.upstream import manifest_of, upstream

__all__ = ["Behind", "Neighbour", "Trail", "walk_back", "walk_images"]

MOST_COMMON = 5
"""So many artifacts and countries are named of what is behind a score."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An artifact near an image: how near, by how much it leads, and where the dump describes it."""

    rank: int
    artifact_id: str
    artifact: str
    country: str
    score: float
    margin: float
    country_margin: float
    place: DumpPlace | None


@dataclass(frozen=True, slots=True)
class Behind:
    """All that is behind a score: how many images, of how many prompts, and what they were mapped to most often."""

    images: int
    prompts: int
    artifacts: tuple[tuple[str, str, int], ...]
    countries: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Trail:
    """Everything between a score and the line of the dump it rests on, for one of its images."""

    score: Mapping[str, Any]
    behind: Behind
    batch: tuple[str, ...]
    image_id: str
    image: Path
    prompt: str
    neighbours: tuple[Neighbour, ...]
    evidence: ArtifactEvidence | None
    dump_place: DumpPlace | None
    dump_line: str | None
    verdicts: tuple[StageVerdict, ...] = ()
    people: People | None = None


def walk_back(folder: Path | str, score: Mapping[str, Any], *, image_id: str | None = None) -> Trail:
    """Walk a score back by one of its images: the one named, or the first; of a corrected score one that people saw.

    Example:
        >>> trail = ck.walk_back(folder, score)
        >>> trail.image.is_file(), trail.neighbours[0].rank
        (True, 1)
    """
    walk = Walk(Path(folder), score)
    return walk.trail(image_id or walk.image_ids[0])


def walk_images(folder: Path, score: Mapping[str, Any], *, count: int) -> list[Trail]:
    """Walk a score back by several of its images, as far apart as they come: from its first repeat to its last."""
    walk = Walk(folder, score)
    step = max(1, len(walk.image_ids) // count)
    return [walk.trail(image_id) for image_id in walk.image_ids[::step][:count]]


class Walk:
    """A score whose images are walked back; what several of them share is opened once."""

    def __init__(self, folder: Path, score: Mapping[str, Any]) -> None:
        """Find the matches behind the score."""
        self.score = score
        self.matches_folder, self.matches = matches_of(folder, score)
        self.people = people_behind(folder, score, self.matches)
        images: list[str] = self.matches["image_id"].unique(maintain_order=True).to_list()
        looked_at = {} if self.people is None else self.people.answers
        self.image_ids = [image for image in images if image in looked_at] or images
        self.images_path = upstream(self.matches_folder, "images")
        self.images = read_table(self.images_path, IMAGES)
        self.behind = behind(self.matches)
        self.lines: dict[str, str] = {}

    @cached_property
    def tables(self) -> EvidenceTables:
        """Open the tables behind the cultural space."""
        inputs = manifest_of(self.matches_folder).inputs
        holder = self.matches_folder if "cspace" in inputs else upstream(self.matches_folder, "index")
        return EvidenceTables(upstream(holder, "cspace").parent)

    def trail(self, image_id: str) -> Trail:
        """Walk back by one image."""
        rows = self.matches.filter(pl.col("image_id") == image_id).sort("rank")
        if rows.is_empty():
            raise UsageError(
                "this image is not behind that score",
                found=repr(image_id),
                expected=", ".join(self.image_ids[:8]) + ", ...",
            )
        first = rows.row(0, named=True)
        image = self.images.filter(pl.col("image_id") == image_id).row(0, named=True)
        file = self.images_path.parent / image["path"]
        if digest_file(file) != image["sha256"]:
            raise IntegrityError("the image is not the one its table describes", where=str(file))
        same_batch = self.matches.filter(
            pl.col("prompt_id").eq_missing(first["prompt_id"]), pl.col("repeat").eq_missing(first["repeat"])
        )
        named = [row for row in rows.iter_rows(named=True) if row["artifact_id"]]
        evidence = [self.evidence_of(row) for row in named]
        places = [about.path[-1].place if about and about.path else None for about in evidence]
        return Trail(
            score=self.score,
            behind=self.behind,
            batch=tuple(same_batch["image_id"].unique(maintain_order=True)),
            image_id=image_id,
            image=file,
            prompt=prompt_of(self.images_path.parent, image),
            neighbours=tuple(neighbour(row, place) for row, place in zip(named, places, strict=True)),
            evidence=evidence[0] if evidence else None,
            dump_place=places[0] if places else None,
            dump_line=self.line_of(evidence[0]) if evidence else None,
            verdicts=self.tables.verdicts(evidence[0]) if evidence and evidence[0] else (),
            people=self.people,
        )

    def evidence_of(self, match: Mapping[str, Any]) -> ArtifactEvidence | None:
        """Find why a matched artifact is one: in the concept asked for, where it is in that."""
        own = self.tables.space.filter(pl.col("artifact_id") == match["artifact_id"])
        concepts = own["concept"].unique().sort().to_list()
        concept = match["concept"] if match["concept"] in concepts else concepts[0]
        return self.tables.evidence_of([(match["artifact_id"], concept)]).get((match["artifact_id"], concept))

    def line_of(self, artifact: ArtifactEvidence | None) -> str | None:
        """Read the line of the dump that describes an artifact, each line once."""
        node = artifact.path[-1] if artifact and artifact.path else None
        if node is None or node.place is None:
            return None
        if node.qid not in self.lines:
            self.lines[node.qid] = self.tables.dump_line(node.place, node.qid)
        return self.lines[node.qid]


def behind(matches: pl.DataFrame) -> Behind:
    """Count what is behind a score."""
    nearest = matches.filter(pl.col("rank") == 1)
    named = nearest.filter(pl.col("artifact_id").is_not_null())
    artifacts = named.group_by("artifact_id", "artifact").len().sort("len", "artifact_id", descending=[True, False])
    countries = named.group_by("country").len().sort("len", "country", descending=[True, False])
    return Behind(
        nearest.height,
        nearest["prompt_id"].n_unique(),
        tuple(artifacts.head(MOST_COMMON).iter_rows()),
        tuple(countries.head(MOST_COMMON).iter_rows()),
    )


def matches_of(folder: Path, score: Mapping[str, Any]) -> tuple[Path, pl.DataFrame]:
    """Find the matches a score was computed from: those of its model, concept, country and kind of labels."""
    for role in sorted(manifest_of(folder).inputs):
        path = upstream(folder, role)
        if path.name != "matches.parquet":
            continue
        matches = read_table(path, MATCHES).filter(
            pl.col("model") == score["model"], (pl.col("method") == "truth") == (labels_of(score) == "truth")
        )
        if score["concept"] is not None:
            matches = matches.filter(pl.col("concept") == score["concept"])
        if score["country"] is not None:
            matches = matches.join(images_of_country(folder, path.parent, score["country"]), on="image_id", how="semi")
        if not matches.is_empty():
            return path.parent, matches.sort("prompt_id", "repeat", "slot", "rank")
    raise IntegrityError("no table of matches is behind this score", where=str(folder), found=described(score))


def images_of_country(folder: Path, matches_folder: Path, country: str) -> pl.DataFrame:
    """List the images whose prompts name a country, by the prompts of the score or by the table of images."""
    images = read_table(upstream(matches_folder, "images"), IMAGES)
    prompts = upstream(folder, "prompts") if "prompts" in manifest_of(folder).inputs else None
    if prompts is not None and prompts.suffix == ".parquet":
        asked = read_table(prompts, PROMPTS).filter(pl.col("country") == country)
        return images.join(asked.select("prompt_id"), on="prompt_id", how="semi").select("image_id")
    if "country" not in images.columns:
        raise UsageError("the table of images does not say which country was asked for", where=str(matches_folder))
    return images.filter(pl.col("country") == country).select("image_id")


def prompt_of(images_folder: Path, image: Mapping[str, Any]) -> str:
    """Read the prompt an image was made from; what was sent, where the prompts are not known."""
    if "prompts" not in manifest_of(images_folder).inputs:
        return image["prompt_sent"] or ""
    prompts = read_table(upstream(images_folder, "prompts"), PROMPTS)
    return str(prompts.filter(pl.col("prompt_id") == image["prompt_id"])["text"][0])


def neighbour(row: Mapping[str, Any], place: DumpPlace | None) -> Neighbour:
    """Read a neighbour from a row of matches."""
    return Neighbour(
        row["rank"],
        row["artifact_id"],
        row["artifact"],
        row["country"],
        row["score"],
        row["margin"],
        row["country_margin"],
        place,
    )
