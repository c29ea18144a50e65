"""A small collection with its candidates and graph, and a proposer that says what a test wants."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl

from culturekit.core.schemas import CANDIDATES, DROPS, ITEMS, KEPT, STATEMENTS
from culturekit.core.tables import write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.llm.client import Reply, Request
from tests.builders.spaces import rows_of
from tests.index.picture_world import finish

BRAZIL, JAPAN = "Q155", "Q17"
DISH = "Q746549"
CUISINE = Concept(
    concept="cuisine", hops=3, roots=(Root(qid=DISH, label="dish"), Root(qid="Q40050", label="drink")),
    countries=("BR", "JP"),
)  # fmt: skip

# Tables of what was kept, of all candidates and of drops, and a graph, as a completion reads them
Inputs: TypeAlias = tuple[Path, Path, Path, Path | None]
Says = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]] | str]
Checks = Callable[[Mapping[str, Any]], tuple[str, str, str] | str]


def dish(number: int, label: str | None, *countries: str, **more: object) -> dict[str, object]:
    """A candidate of the cuisine."""
    row: dict[str, object] = {
        "qid": f"Q{number}", "label": label, "concept": "cuisine", "country_qids": list(countries or (BRAZIL,)),
        "roots": [DISH], "p31": [DISH], "path": [DISH, f"Q{number}"], "hop": 1, "sitelinks": 10,
    }  # fmt: skip
    return {**row, **more}


def artifact_said(name: str, kind: str = "dish", **more: object) -> dict[str, object]:
    """A proposal as a model writes it."""
    return {"name": name, "other_names": [], "kind": kind, "what": "a dish", **more}


def nothing_said(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Propose nothing."""
    return []


def all_right(data: Mapping[str, Any]) -> tuple[str, str, str]:
    """Agree with everything."""
    return "yes", "yes", "none" if data["item"] is None else "same"


@dataclass
class Proposer:
    """Answers in this process; what it is asked is kept. `wrong` says what of the last round it takes back."""

    says: Says = nothing_said
    checks: Checks = all_right
    wrong: Callable[[Mapping[str, Any]], Sequence[str]] = lambda data: []
    asked: list[Request] = field(default_factory=list)
    model: str = "proposer-1"
    caveat: str = ""

    def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        own = request.data["id"]
        if request.task == "cspace.verify":
            said = self.checks(request.data)
            if isinstance(said, str):
                return Reply(said)
            return encoded({"instance": said[0], "belongs": said[1], "item": said[2]})
        proposed = self.says(request.data)
        if isinstance(proposed, str):
            return Reply(proposed)
        return encoded({"id": own, "wrong": list(self.wrong(request.data)), "artifacts": list(proposed)})

    def of(self, task: str) -> list[Mapping[str, Any]]:
        """Give the data of all requests of a task."""
        return [request.data for request in self.asked if request.task == task]


def encoded(value: object) -> Reply:
    return Reply(msgspec.json.encode(value).decode())


def world(
    folder: Path,
    kept: Iterable[Mapping[str, object]],
    dropped: Iterable[tuple[Mapping[str, object], str]] = (),
    graph: Iterable[Mapping[str, object]] = (),
) -> Inputs:
    """Write a collection: what was kept, what was dropped and why, and items that are no candidates."""
    kept, dropped, items = list(kept), list(dropped), list(graph)
    rows = rows_of(KEPT, *({**row, "verdict": "keep", "reason": "judge x"} for row in kept))
    candidates = rows_of(CANDIDATES, *kept, *(row for row, _ in dropped))
    drops = [(row["qid"], row["concept"], "filter", reason, None) for row, reason in dropped]
    folder.mkdir(parents=True, exist_ok=True)
    return (
        write_table(folder, KEPT, rows),
        write_table(folder, CANDIDATES, candidates),
        write_table(folder, DROPS, pl.DataFrame(drops, schema=DROPS.schema, orient="row")),
        graph_of(folder / "graph", items) if items else None,
    )


def graph_of(folder: Path, items: Sequence[Mapping[str, object]]) -> Path:
    """Write the tables of a graph; `P31` and the like of an item are lists of QIDs."""
    folder.mkdir(parents=True)
    rows = [
        {"number": int(str(item["qid"])[1:]), "sitelinks": 0, "file": 0, "member": 0, "line": 1, "offset": 0, **item}
        for item in items
    ]
    plain = [{name: value for name, value in row.items() if not name.startswith("P")} for row in rows]
    write_table(folder, ITEMS, rows_of(ITEMS, *plain))
    said = [
        {
            "number": row["number"], "property": name, "position": position, "value": int(value[1:]), "snak": "value",
            "rank": "normal", "qualified": False, "ended": False,
        }
        for row in rows
        for name, values in row.items()
        if name.startswith("P") and isinstance(values, list)
        for position, value in enumerate(values)
    ]  # fmt: skip
    write_table(folder, STATEMENTS, rows_of(STATEMENTS, *said))
    finish(folder, "ingest")
    return folder
