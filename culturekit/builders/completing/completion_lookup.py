"""Names looked up in everything that is known: kept and dropped candidates, and all items of the graph.

No index is made. The tables are read in slices, once a round, for the names of that round; what agrees in letters is
held, and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from culturekit.builders.country_names import folded, loose_key_of, names_among, without_accents
from culturekit.builders.filtering.cspace_filter import MOST_CHARACTERS, named
from culturekit.core.schemas import CSPACE, DROPS
from culturekit.core.tables import TableSlices, read_table
from culturekit.index.folder.artifact_names import artifacts_of
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid
from culturekit.kg.store import GraphTables, qid_of

# Of a concept's candidates, what the filter made of one; or an item of the graph that is none of them.
Standing: TypeAlias = Literal["kept", "dropped", "in the graph"]

LOOKED_AT = ("concept", "qid", "label", "description", "aliases", "title", "country_qids", "p31", "p279", "sitelinks")
NAMES_OF_AN_ITEM = ("number", "label", "title", "aliases")
STATED = ("P31", "P279", "P495", "P17")
ITEMS_AT_ONCE = 262_144


@dataclass(frozen=True, slots=True)
class KnownItem:
    """Something that is known by name; `names` are folded, and `concept` is None for what is no candidate."""

    qid: str
    concept: str | None
    label: str
    description: str | None
    names: frozenset[str]
    country_qids: tuple[str, ...]
    classes: tuple[str, ...]
    standing: Standing
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KnownTables:
    """Tables in which names are looked up; `candidates` and `graph` are optional."""

    kept: TableSlices
    candidates: TableSlices | None = None
    drops: Path | None = None
    graph: Path | None = None

    def find(self, names: Iterable[str]) -> dict[str, list[KnownItem]]:
        """Find what is called as one of these, by the loose key of the name; who is meant is for others to say."""
        wanted = pl.Series("key", sorted({loose_key_of(name) for name in names} - {""}), dtype=pl.String)
        found: dict[str, list[KnownItem]] = {}
        if not wanted.len():
            return found
        for item in self.items(wanted):
            for key in sorted(set(map(loose_key_of, item.names))):
                found.setdefault(key, []).append(item)
        return found

    def items(self, wanted: pl.Series) -> Iterator[KnownItem]:
        """Give what some keys are found in, each (concept, qid) once, what is no candidate last."""
        kept = [item_of(row, "kept") for row in _rows_among(self.kept, wanted)]
        yield from kept
        known = {(item.concept, item.qid) for item in kept}
        rows = [] if self.candidates is None else list(_rows_among(self.candidates, wanted))
        left = [row for row in rows if (row["concept"], row["qid"]) not in known]
        reasons = self.reasons([row["qid"] for row in left])
        for row in left:
            yield item_of(row, "dropped", reasons.get((row["qid"], row["concept"]), ""))
        candidates = {item.qid for item in kept} | {row["qid"] for row in left}
        if self.graph is not None:
            for row in graph_rows(self.graph, wanted):
                if row["qid"] not in candidates:
                    yield item_of(row, "in the graph")

    def reasons(self, qids: Sequence[str]) -> Mapping[tuple[str, str | None], str]:
        """Look up why the filter dropped candidates."""
        if self.drops is None or not qids:
            return {}
        drops = read_table(self.drops, DROPS).filter(pl.col("key").is_in(list(qids)))
        rows = drops.select("key", "concept", "reason", "detail").iter_rows()
        return {(key, concept): f"{reason}: {detail}" if detail else reason for key, concept, reason, detail in rows}


def _rows_among(source: TableSlices, wanted: pl.Series) -> Iterator[Mapping[str, Any]]:
    """Read the candidates that are called so."""
    for frame in source.slices(LOOKED_AT):
        yield from names_among(frame, wanted).iter_rows(named=True)


def graph_rows(graph: Path, wanted: pl.Series) -> Iterator[Mapping[str, Any]]:
    """Read the items of a graph that are called so, with their classes and countries."""
    tables = GraphTables(graph)
    scan = tables.items.select(NAMES_OF_AN_ITEM)
    rows = int(scan.select(pl.len()).collect().item())
    parts = [names_among(scan.slice(start, ITEMS_AT_ONCE).collect(), wanted) for start in range(0, rows, ITEMS_AT_ONCE)]
    numbers = np.sort(np.concatenate([np.zeros(0, np.uint32), *(part["number"].to_numpy() for part in parts)]))
    if not len(numbers):
        return
    found = tables.items_of(numbers).select("qid", "number", "label", "description", "aliases", "title").sort("number")
    stated = tables.statements_of(numbers, STATED, ranks="not-deprecated", ended="keep").drop_nulls("value")
    values: dict[tuple[int, str], list[str]] = {}
    for number, name, value in stated.select("number", "property", qid_of("value")).iter_rows():
        values.setdefault((number, name), []).append(value)
    for row in found.iter_rows(named=True):
        p31, p279, p495, p17 = (values.get((row["number"], name), []) for name in STATED)
        yield {**row, "concept": None, "country_qids": [*p495, *p17], "p31": p31, "p279": p279}


def item_of(row: Mapping[str, Any], standing: Standing, reason: str = "") -> KnownItem:
    """Read a row; its names are folded once."""
    called = (row["label"], row["title"], *row["aliases"])
    return KnownItem(
        row["qid"], row["concept"], row["label"] or row["qid"], row["description"],
        frozenset(filter(None, (folded(name) for name in called if name))), tuple(dict.fromkeys(row["country_qids"])),
        tuple(dict.fromkeys([*row["p31"], *row["p279"]])), standing, reason,
    )  # fmt: skip


# The artifacts of a cultural space by name: what somebody said, reconciled with what is known.

# How reconciling ended: the artifact was found; no artifact is called so; several are, and the country does not decide;
# the country said is none of the artifact's; or there was nothing to reconcile with.
Reconciling: TypeAlias = Literal[
    "reconciled", "unknown name", "name of several", "country of another", "no space given"
]


@dataclass(frozen=True, slots=True)
class KnownArtifact:
    """An artifact of the cultural space, its countries in stated order with the continent of each."""

    artifact_id: str
    name: str
    concepts: tuple[str, ...]
    countries: tuple[str, ...]
    continents: tuple[str, ...]

    def country(self, *wanted: str | None) -> tuple[str, str]:
        """Choose the first wanted country that is one of its own, else its first; and give the continent."""
        chosen = next((code for code in wanted if code in self.countries), self.countries[0])
        return chosen, self.continents[self.countries.index(chosen)]


class KnownArtifacts:
    """All artifacts of a cultural space, found by name or alias."""

    def __init__(self, cspace: Path) -> None:
        """Read the space.

        Names are compared folded, and without accents only where that finds what folding does not.
        """
        columns = ("artifact_id", "artifact", "concepts", "countries", "continents")
        rows = artifacts_of(cspace).select(columns).iter_rows()
        self.artifacts = {own: KnownArtifact(own, name, *map(tuple, lists)) for own, name, *lists in rows}
        self.exact: dict[str, set[str]] = {}
        self.loose: dict[str, set[str]] = {}
        space = read_table(cspace, CSPACE)
        aliases = pl.col("aliases") if "aliases" in space.columns else pl.lit(None)
        for artifact_id, name, others in space.select("artifact_id", "name", aliases.alias("others")).iter_rows():
            for key in map(folded, (name, *(others or ()))):
                self.exact.setdefault(key, set()).add(artifact_id)
                self.loose.setdefault(without_accents(key), set()).add(artifact_id)

    def find(
        self, name: str, *, country: str | None, concept: str | None = None
    ) -> tuple[KnownArtifact | None, Reconciling]:
        """Find the one artifact that is meant; the concept tells apart what name and country do not.

        Where a known country was said, an artifact of other countries is another one.
        """
        key = folded(name)
        ids = self.exact.get(key) or self.loose.get(without_accents(key)) or set()
        called = [self.artifacts[artifact_id] for artifact_id in sorted(ids)]
        if not key or not called:
            return None, "unknown name"
        there = [artifact for artifact in called if country is None or country in artifact.countries]
        if not there:
            return None, "country of another"
        meant = there if len(there) == 1 else [artifact for artifact in there if concept in artifact.concepts]
        return (meant[0], "reconciled") if len(meant) == 1 else (None, "name of several")


# What a verifier is told about an item: its names, and those of its classes and countries.


LONGEST_CLASS = 100  # characters of the name of a class or a country that are shown


def described(
    items: Sequence[KnownItem | None], concepts: Iterable[Concept], graph: Path | None
) -> list[dict[str, object] | None]:
    """Describe items as a verifier is shown them, classes as root configs and the graph call them; None stays None."""
    classes = {root.qid: root.label for concept in concepts for root in concept.roots}
    if graph is not None:
        qids = {qid for item in items if item is not None for qid in item.classes}
        classes = GraphTables(graph).names(qids) | classes
    countries = {qid: country.name for qid, country in by_qid().items()}
    return [None if item is None else _description_of(item, classes, countries) for item in items]


def _description_of(item: KnownItem, classes: Mapping[str, str], countries: Mapping[str, str]) -> dict[str, object]:
    """Describe one item."""
    description = item.description
    return {
        "label": item.label[:MOST_CHARACTERS],
        "description": None if description is None else description[:MOST_CHARACTERS],
        "classes": [name[:LONGEST_CLASS] for name in named(item.classes, classes)],
        "countries": [name[:LONGEST_CLASS] for name in named(item.country_qids, countries)],
        "dropped": item.reason[:MOST_CHARACTERS] or None,
    }
