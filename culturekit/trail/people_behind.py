"""Behind a corrected score: what people said of which images, how much each counted, and the images it spoke for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.metrics.corrected.audit_gates import anchoring_seen, unanchored
from culturekit.records.none_of_these import NO_CULTURE
from culturekit.records.schemas import AUDITS
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import manifest_of, upstream

__all__ = ["Answer", "MappedCell", "People", "people_behind", "people_lines"]

NOTHING = "no culture"
CELLS_SHOWN = 8
"""Mapped labels that are told; `--json` has all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one person said of an image: labels as far as they were named, or what none of them means."""

    annotator: str
    pool: str
    artifact_id: str | None
    country: str | None
    continent: str | None
    said: str


@dataclass(frozen=True, slots=True)
class MappedCell:
    """The images mapped to one label, how many of them people looked at, and what they said, most often first."""

    label: str
    images: int
    audited: tuple[str, ...]
    said: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class People:
    """The answers behind a corrected score.

    Attributes:
        images: of the score.
        weights: by audited image, for how many images of its concept it stands.
        cells: by mapped label, the most frequent first.
        answers: by audited image.
    """

    images: int
    weights: Mapping[str, float]
    cells: tuple[MappedCell, ...]
    answers: Mapping[str, tuple[Answer, ...]]

    def cell_of(self, image_id: str) -> MappedCell | None:
        """Find the images that an audited image speaks for."""
        return next((cell for cell in self.cells if image_id in cell.audited), None)


class Told(msgspec.Struct):
    """What the parameters of a corrected score say of its people."""

    weights: tuple[float, float, float]
    labels: str = ""
    pool: str | None = None


def people_behind(folder: Path, score: Mapping[str, Any], matches: pl.DataFrame) -> People | None:
    """Gather the answers behind a score by its folder and its matches; None for a score that is not corrected."""
    if '"labels":"corrected"' not in score["params"] or '"weights"' not in score["params"]:
        return None
    told = msgspec.json.decode(score["params"], type=Told)
    level = "artifact_id" if told.weights[2] > 0 else "country" if told.weights[1] > 0 else "continent"
    nearest = matches.filter(pl.col("rank") == 1)
    roles = [role for role in sorted(manifest_of(folder).inputs) if role.partition("-")[0] in {"audit", "audits"}]
    said = pl.concat([read_table(upstream(folder, role), AUDITS) for role in roles], how="diagonal")
    said = said if told.pool is None else said.filter(pool=told.pool)
    said = unanchored(said) if anchoring_seen(said) else said
    said = said.join(nearest.select("image_id"), on="image_id", how="semi").sort("image_id", "annotator")
    answers: dict[str, tuple[Answer, ...]] = {}
    for row in said.iter_rows(named=True):
        answers[row["image_id"]] = (*answers.get(row["image_id"], ()), answer_of(row, level))
    audited = nearest.filter(pl.col("image_id").is_in(list(answers)))
    of_concept = dict(nearest.group_by("concept").len().iter_rows())
    seen_of_concept = dict(audited.group_by("concept").len().iter_rows())
    weights = {
        image: of_concept[concept] / seen_of_concept[concept]
        for image, concept in audited.select("image_id", "concept").iter_rows()
    }
    return People(nearest.height, weights, tuple(cells_of(nearest, answers, level)), answers)


def answer_of(row: Mapping[str, Any], level: str) -> Answer:
    """Read one answer, and say it at a level."""
    none = row.get("none_means") or NO_CULTURE
    said = none if row["none_of_these"] else row[level] or row["country"] or row["continent"] or "nothing"
    return Answer(row["annotator"], row["pool"], row["artifact_id"], row["country"], row["continent"], str(said))


def cells_of(nearest: pl.DataFrame, answers: Mapping[str, tuple[Answer, ...]], level: str) -> Iterator[MappedCell]:
    """Part images by what they are mapped to."""
    labelled = nearest.with_columns(label=pl.col(level).fill_null("nothing"))
    for own in sorted(labelled.partition_by("label"), key=lambda each: (-each.height, each["label"][0])):
        audited = [image for image in own["image_id"] if image in answers]
        said = Counter(one.said for image in audited for one in answers[image])
        yield MappedCell(own["label"][0], own.height, tuple(audited), tuple(said.most_common()))


def people_lines(people: People) -> Iterator[str]:
    """Tell whom a corrected score rests on."""
    weights = sorted(set(people.weights.values()))
    spans = f"{weights[0]:.1f}" if len(weights) == 1 else f"{weights[0]:.1f} to {weights[-1]:.1f}"
    yield f"people     looked at {len(people.answers):,} of these {people.images:,} images; each stands for {spans}"
    for cell in people.cells[:CELLS_SHOWN]:
        said = ", ".join(f"{label} {count}" for label, count in cell.said) or "nobody looked"
        yield f"           {cell.images:,} mapped to {cell.label}, {len(cell.audited):,} looked at: {said}"
    if len(people.cells) > CELLS_SHOWN:
        yield f"           and {len(people.cells) - CELLS_SHOWN:,} more labels"
