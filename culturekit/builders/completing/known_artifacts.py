"""The artifacts of a cultural space by name: what somebody said, reconciled with what is known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from culturekit.builders.folded_names import folded, without_accents
from culturekit.index.folder.artifact_names import artifacts_of
from culturekit.records.schemas import CSPACE
from culturekit.storage.tables import read_table

__all__ = ["KnownArtifact", "KnownArtifacts", "Reconciling"]

Reconciling: TypeAlias = Literal[
    "reconciled", "unknown name", "name of several", "country of another", "no space given"
]
"""How reconciling ended: the artifact was found; no artifact is called so; several are, and the country does not
decide; the country said is none of the artifact's; or there was nothing to reconcile with."""


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
        rows = artifacts_of(cspace).iter_rows(named=True)
        self.artifacts = {row["artifact_id"]: artifact_of(row) for row in rows}
        self.exact: dict[str, set[str]] = {}
        self.loose: dict[str, set[str]] = {}
        for artifact_id, name in names_of(cspace):
            key = folded(name)
            self.exact.setdefault(key, set()).add(artifact_id)
            self.loose.setdefault(without_accents(key), set()).add(artifact_id)

    def find(
        self, name: str, *, country: str | None, concept: str | None = None
    ) -> tuple[KnownArtifact | None, Reconciling]:
        """Find the one artifact that is meant.

        Args:
            name: as somebody said it.
            country: its ISO code, if one was said and is known; an artifact of other countries is then another one.
            concept: what was asked for, which tells apart what name and country do not.
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


def names_of(cspace: Path) -> Iterator[tuple[str, str]]:
    """List the names of all artifacts, and their aliases where the table has them."""
    space = read_table(cspace, CSPACE)
    yield from space.select("artifact_id", "name").iter_rows()
    if "aliases" in space.columns:
        for artifact_id, aliases in space.select("artifact_id", "aliases").iter_rows():
            yield from ((artifact_id, alias) for alias in aliases or ())


def artifact_of(row: Mapping[str, Sequence[str]]) -> KnownArtifact:
    """Read an artifact's row."""
    lists = (tuple(row[name]) for name in ("concepts", "countries", "continents"))
    return KnownArtifact(str(row["artifact_id"]), str(row["artifact"]), *lists)
