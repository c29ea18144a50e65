"""What a completion added, as rows of the collection: of a candidate, an item of the graph, or the proposal alone."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from culturekit.builders.completing.completion_additions import Additions, ProposalRow
from culturekit.builders.completing.completion_lookup import KnownItem, KnownTables
from culturekit.builders.completing.completion_names import SLUG
from culturekit.builders.completing.completion_tables import GAINS
from culturekit.kg.countries import by_qid
from culturekit.kg.facts import Facts
from culturekit.kg.walk.candidate_rows import candidate_rows
from culturekit.records.schemas import CANDIDATES, COMPLETED

__all__ = ["gained_countries", "new_rows"]

Added = dict[str, ProposalRow]
LIST = pl.List(pl.String)


def gained_countries(additions: Additions, *, model: str) -> pl.DataFrame:
    """List the kept artifacts that gained countries."""
    rows = [
        (*key, [row.cell.country.qids[0] for row in own.values()], first(own).round, model, list(own))
        for key, own in additions.rows.items()
        if additions.items[key].standing == "kept"
    ]
    return pl.DataFrame(rows, schema=GAINS, orient="row")


def new_rows(additions: Additions, tables: KnownTables, *, model: str) -> pl.DataFrame:
    """Write the artifacts that were added; what the graph or a walk says of them comes along."""
    made = [
        completed_row(base_row(additions.items[key], own, tables), own, additions.items[key], model)
        for key, own in additions.rows.items()
        if additions.items[key].standing != "kept"
    ]
    return pl.DataFrame(made, schema={**COMPLETED.schema, "valueless": LIST}, orient="row")


def first(own: Added) -> ProposalRow:
    """Give the first proposal of an artifact that still stands."""
    return min(own.values(), key=lambda row: row.round)


def base_row(item: KnownItem, own: Added, tables: KnownTables) -> Mapping[str, Any]:
    """Find the row that an artifact has or would have among the candidates."""
    if item.qid.startswith(SLUG):
        return proposed_row(item)
    root = first(own).cell.root_of(first(own).proposal.kind)
    candidates = None
    if tables.candidates is not None:
        scan = pl.scan_parquet(tables.candidates.path).filter(pl.col("qid") == item.qid)
        candidates = scan.select([*tables.candidates.table.columns, *tables.candidates.table.optional]).collect()
        same = candidates.filter(pl.col("concept") == item.concept)
        if same.height:
            return same.row(0, named=True)
    if tables.graph is not None:
        return graph_row(item, own, tables, root)
    if candidates is None or candidates.is_empty():
        scan = pl.scan_parquet(tables.kept.path).filter(pl.col("qid") == item.qid)
        candidates = scan.select(tables.kept.table.columns.keys()).collect()
    other = candidates.row(0, named=True)
    return {**other, "concept": item.concept, "hop": 0, "roots": [root], "path": []}


def proposed_row(item: KnownItem) -> dict[str, Any]:
    """Write the row of an artifact that no graph knows."""
    blank: dict[str, Any] = {name: [] if column.dtype == LIST else None for name, column in CANDIDATES.columns.items()}
    return {**blank, "qid": item.qid, "label": item.label, "concept": item.concept, "hop": 0, "sitelinks": 0}


def graph_row(item: KnownItem, own: Added, tables: KnownTables, root: str) -> Mapping[str, Any]:
    """Write the row of an item that the graph knows and no walk found."""
    concept = first(own).cell.concept
    found = pl.DataFrame(
        {
            "number": [int(item.qid[1:])], "hop": [0], "roots": [[root]], "path": [[]],
            "concept": [item.concept], "country_qids": [list(item.country_qids)],
        },
        schema={
            "number": pl.UInt32, "hop": pl.UInt8, "roots": LIST, "path": LIST, "concept": pl.String,
            "country_qids": LIST,
        },
    )  # fmt: skip
    if tables.graph is None:
        raise ValueError("an item of a graph was found without a graph")
    return candidate_rows(concept, found, Facts.of(tables.graph)).row(0, named=True)


def completed_row(base: Mapping[str, Any], own: Added, item: KnownItem, model: str) -> dict[str, Any]:
    """Add to a row what the completion says: countries, who proposed it and when."""
    stated = {by_qid()[qid].iso for qid in base["country_qids"] if qid in by_qid()}
    gained = {iso: row.cell.country.qids[0] for iso, row in own.items() if iso not in stated}
    proposal, of_llm = first(own), item.qid.startswith(SLUG)
    row = {
        **base,
        "country_qids": [*base["country_qids"], *gained.values()],
        "label": base["label"] or proposal.name,
        "verdict": "keep",
        "reason": f"completion {model}",
        "source": "llm" if of_llm else "wikidata",
        "round": proposal.round,
        "proposer": model,
        "gained": list(gained),
        "valueless": base.get("valueless") or [],
    }
    if of_llm:
        aliases = [name for one in own.values() for name in one.aliases]
        root = proposal.cell.root_of(proposal.proposal.kind)
        row |= {"description": proposal.proposal.what or None, "aliases": list(dict.fromkeys(aliases)), "roots": [root]}
    return row
