"""Why an artifact is in the cultural space: its path of statements, each with its line of the dump."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import IntegrityError
from culturekit.kg.countries import by_qid
from culturekit.kg.dump.entities import ENTITY_STATEMENTS, Item, Malformed, decode
from culturekit.kg.dump.item_batches import LARGEST
from culturekit.kg.dump.read_line import read_line
from culturekit.kg.facts import Facts
from culturekit.kg.qids import number_of_item
from culturekit.records.schemas import CSPACE, KEPT, STARTS
from culturekit.storage.tables import read_table
from culturekit.trail.stage_verdicts import StageVerdict, judging_stages, verdicts_on
from culturekit.trail.upstream import manifest_of, recorded, upstream

__all__ = ["ArtifactEvidence", "DumpPlace", "EvidenceTables", "PathNode", "Said"]

PUBLISHED = "published"
"""The role of the file in the manifest of a cultural space that was taken in as it was."""

HASHED = 2_000_000_000
"""Bytes of a dump up to which it is held against its SHA-256 before a line of it is shown, some two seconds; of a
larger one the line alone is held against the graph, as it always is."""

SHOWN = 200
"""Characters of a wrong line that are quoted."""

CLASS_PROPERTIES = ("P31", "P279")
COUNTRY_PROPERTIES = ("P495", "P17")


@dataclass(frozen=True, slots=True)
class DumpPlace:
    """A line of a dump: the file by role and name, the line from 1, the gzip member and the offset in it."""

    role: str
    file: str
    line: int
    member: int
    offset: int

    def __str__(self) -> str:
        """Say it as a reader would look it up."""
        return f"{self.file}, line {self.line} (member {self.member}, byte {self.offset})"


@dataclass(frozen=True, slots=True)
class Said:
    """A statement: what an item says of another."""

    property: str
    value: str
    value_label: str
    rank: str


@dataclass(frozen=True, slots=True)
class PathNode:
    """An item on the path from a root: what it says of the one before it, and where the dump says so."""

    qid: str
    label: str
    said: tuple[Said, ...]
    place: DumpPlace | None


@dataclass(frozen=True, slots=True)
class ArtifactEvidence:
    """The path that made an item an artifact, and the countries it states; empty for what a model completed.

    `published` is the file that says so, where the cultural space was taken in as somebody released it.
    """

    artifact_id: str
    name: str
    concept: str
    path: tuple[PathNode, ...]
    countries: tuple[Said, ...]
    published: str = ""


class EvidenceTables:
    """The tables behind a cultural space, found from it stage by stage."""

    def __init__(self, cspace_folder: Path) -> None:
        """Open the cultural space, what the filter kept, and the graph; of a published space nothing lies behind it."""
        self.space = read_table(cspace_folder / "cspace.parquet", CSPACE)
        inputs = manifest_of(cspace_folder).inputs
        self.published = inputs[PUBLISHED].name if PUBLISHED in inputs else ""
        if self.published:
            return
        kept_path = upstream(cspace_folder, "kept")
        self.judging = tuple(judging_stages(cspace_folder))
        of_candidates = next((one for one in self.judging if "candidates" in manifest_of(one).inputs), kept_path.parent)
        candidates_folder = upstream(of_candidates, "candidates").parent
        self.graph = upstream(candidates_folder, "graph")
        self.kept = read_table(kept_path, KEPT)
        self.facts = Facts.of_graph(self.graph)
        self.files = {role: record.name for role, record in manifest_of(self.graph).inputs.items()}

    def verdicts(self, artifact: ArtifactEvidence) -> tuple[StageVerdict, ...]:
        """Collect what models said of an artifact; of a published space nobody knows."""
        return () if self.published else verdicts_on(self.judging, artifact.artifact_id, artifact.concept)

    def dump_line(self, place: DumpPlace, qid: str) -> str:
        """Read the line of the dump that describes an item; it must say of it what the graph says."""
        file = recorded(self.graph, place.role)
        if not file.exists() or file.stat().st_size <= HASHED:
            file = upstream(self.graph, place.role)
        path = self.graph / "starts.parquet"
        starts = read_table(path, STARTS).filter(pl.format("dump-{}", "file") == place.role) if path.exists() else None
        line = read_line(file, member=place.member, offset=place.offset, starts=starts)
        if not self.says_the_same(line, number_of_item(qid)):
            raise IntegrityError(
                "the dump is not the one that the graph was made from",
                where=str(place),
                expected=f"what the graph says of {qid}",
                found=line[:SHOWN],
            )
        return line

    def says_the_same(self, line: str, number: int) -> bool:
        """Tell whether a line of the dump says of an item what the graph has of it; targets may be redirected."""
        alone = np.array([number], np.uint32)
        label = self.facts.items(alone)["label"].to_list()
        stated = self.facts.statements(alone, ENTITY_STATEMENTS, ranks="all", ended="keep")
        try:
            item = decode(line.encode(), languages=tuple(manifest_of(self.graph).options["languages"]))
        except Malformed:
            return False
        if not isinstance(item, Item) or (item.number, [item.label]) != (number, label):
            return False
        kept = (s for s in item.statements if s.position <= LARGEST)
        said = sorted((s.property, s.position, s.snak, s.rank, s.qualified, s.ended) for s in kept)
        return said == stated.select("property", "position", "snak", "rank", "qualified", "ended").rows()

    def evidence_of(self, artifacts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ArtifactEvidence]:
        """Collect the evidence of artifacts, each an (artifact_id, concept)."""
        if self.published:
            return {(qid, concept): self.stated(qid, concept) for qid, concept in sorted(set(artifacts))}
        wanted = pl.DataFrame(sorted(set(artifacts)), schema={"qid": pl.String, "concept": pl.String}, orient="row")
        rows = self.kept.join(wanted, on=["qid", "concept"], how="semi")
        numbers = {int(qid[1:]) for row in rows.iter_rows(named=True) for qid in [*row["path"], *row["country_qids"]]}
        ascending = np.array(sorted(numbers), np.uint32)
        known = self.facts.items(ascending)
        items = {row["qid"]: row for row in known.iter_rows(named=True)}
        said = self.said_by(ascending, items)
        return {(row["qid"], row["concept"]): self.evidence(row, items, said) for row in rows.iter_rows(named=True)}

    def stated(self, artifact_id: str, concept: str) -> ArtifactEvidence:
        """Give what a published space says of an artifact: its name, and the QIDs of its path."""
        own = self.space.filter(pl.col("artifact_id") == artifact_id, pl.col("concept") == concept).sort("country")
        row = own.row(0, named=True)
        path = tuple(PathNode(qid, row["name"] if qid == row["qid"] else qid, (), None) for qid in row["path"])
        return ArtifactEvidence(artifact_id, row["name"], concept, path, (), self.published)

    def said_by(self, numbers: NDArray[np.uint32], items: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Said]]:
        """List what items say with the properties that make paths and countries."""
        rows = self.facts.statements(numbers, (*CLASS_PROPERTIES, *COUNTRY_PROPERTIES), ranks="all", ended="keep")
        said: dict[str, list[Said]] = {}
        for row in rows.filter(pl.col("value").is_not_null()).iter_rows(named=True):
            value = f"Q{row['value']}"
            statement = Said(row["property"], value, label_of(value, items), row["rank"])
            said.setdefault(f"Q{row['number']}", []).append(statement)
        return said

    def evidence(
        self, row: Mapping[str, Any], items: Mapping[str, Mapping[str, Any]], said: Mapping[str, Sequence[Said]]
    ) -> ArtifactEvidence:
        """Put the evidence of one artifact together."""
        path = []
        for before, qid in zip([None, *row["path"]], row["path"], strict=False):
            about = tuple(s for s in said.get(qid, ()) if s.property in CLASS_PROPERTIES and s.value == before)
            path.append(PathNode(qid, label_of(qid, items), about, self.place(items.get(qid))))
        stated = tuple(s for s in said.get(row["qid"], ()) if s.property in COUNTRY_PROPERTIES)
        return ArtifactEvidence(row["qid"], row["label"], row["concept"], tuple(path), stated)

    def place(self, item: Mapping[str, Any] | None) -> DumpPlace | None:
        """Say where the dump describes an item; None where it only mentions it."""
        if item is None:
            return None
        role = f"dump-{item['file']}"
        return DumpPlace(role, self.files[role], item["line"], item["member"], item["offset"])


def label_of(qid: str, items: Mapping[str, Mapping[str, Any]]) -> str:
    """Name an item by its label, a country by its name, anything else by its QID."""
    label = items[qid]["label"] if qid in items else None
    country = by_qid().get(qid)
    return label or (country.name if country else qid)
