"""Small worlds as dumps and graphs, for the tools around the graph."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.core.work import Work
from culturekit.kg.concepts import Concept, Exclusions, Root
from culturekit.kg.dump.ingest import IngestOptions, ingest
from tests.conftest import HeardProgress, HereEngine

__all__ = ["Said", "concept_of", "make_graph"]


@dataclass(frozen=True)
class Said:
    """A statement of a world; `value` 0 is novalue, -1 is somevalue."""

    number: int
    name: str
    value: int
    rank: str = "normal"
    ended: bool = False

    @property
    def counts(self) -> bool:
        return self.value > 0 and self.rank != "deprecated"

    def document(self) -> dict[str, object]:
        kind = {0: "novalue", -1: "somevalue"}.get(self.value, "value")
        snak: dict[str, object] = {"snaktype": kind, "property": self.name}
        if self.value > 0:
            snak["datavalue"] = {"value": {"id": f"Q{self.value}"}}
        statement: dict[str, object] = {"mainsnak": snak, "rank": self.rank}
        if self.ended:
            statement["qualifiers"] = {"P582": [{"snaktype": "somevalue", "property": "P582"}]}
        return statement


def make_graph(
    folder: Path, said: Iterable[Said], items: Sequence[int] = (), labels: Mapping[int, Mapping[str, str]] | None = None
) -> Path:
    """Ingest a world; every item that says something is described, and so are `items`."""
    documents: dict[int, dict[str, list[object]]] = {number: {} for number in items}
    for statement in said:
        documents.setdefault(statement.number, {}).setdefault(statement.name, []).append(statement.document())
    named = labels or {}
    lines = []
    for number, claims in sorted(documents.items()):
        terms = named.get(number, {"en": f"item {number}"})
        written = {code: {"language": code, "value": value} for code, value in terms.items()}
        lines.append(json.dumps({"id": f"Q{number}", "type": "item", "labels": written, "claims": claims or []}))
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text("\n".join(lines), encoding="utf-8")
    work = Work({}, folder / "graph", folder / "scratch", HereEngine(), HeardProgress())
    work.out.mkdir()
    work.scratch.mkdir()
    ingest(work, [folder / "dump.json"], IngestOptions(languages=("en", "de")))
    return work.out


def concept_of(
    roots: Mapping[int, int | None],
    *,
    hops: int = 3,
    classes: Sequence[int] = (),
    items: Sequence[int] = (),
    countries: Sequence[str] | None = None,
) -> Concept:
    """Make a concept from root numbers and their own limits."""
    return Concept(
        concept="any",
        hops=hops,
        roots=tuple(Root(qid=f"Q{number}", label="", hops=own) for number, own in roots.items()),
        countries=tuple(countries) if countries else "all",
        exclude=Exclusions(classes=tuple(f"Q{n}" for n in classes), items=tuple(f"Q{n}" for n in items)),
    )
