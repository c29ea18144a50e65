"""What a collection lacks, named by a model, checked by a second question, and reconciled with what is known."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.builders.completing.completion_additions import Additions, ProposalRow
from culturekit.builders.completing.completion_lookup import KnownItem, KnownTables
from culturekit.builders.completing.completion_names import SLUG
from culturekit.builders.completing.completion_questions import Cell, CompletionLimits, cells_of, names_there, wordings
from culturekit.builders.completing.completion_rounds import Ask, CompletionRounds
from culturekit.builders.completing.completion_state import CellState
from culturekit.builders.completing.completion_tables import (
    GAINS,
    drop_rows,
    write_completed,
    write_proposals,
    write_rounds,
)
from culturekit.builders.completing.item_facts import ItemNames
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid
from culturekit.kg.facts import Facts
from culturekit.kg.walk.candidate_rows import candidate_rows
from culturekit.llm.answers import DEFAULTS, LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.reply_watch import ReplyWatch
from culturekit.llm.rows import Answered
from culturekit.records.schemas import CANDIDATES, COMPLETED, KEPT
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.table_slices import TableSlices, slices_of
from culturekit.storage.tables import write_drops

__all__ = ["CompletionInputs", "asking", "complete", "prepare"]

Added = dict[str, ProposalRow]
LIST = pl.List(pl.String)


@dataclass(frozen=True, slots=True)
class CompletionInputs:
    """What is completed and where names are looked up; the less is given, the less is known."""

    kept: Annotated[Path, Field(description="Table that `cspace filter` wrote.")]
    candidates: Annotated[
        Path | None, Field(description="Table that `kg extract` wrote: a proposal that was dropped is found by it.")
    ] = None
    drops: Annotated[
        Path | None,
        Field(description="Why the filter dropped candidates. [drops.parquet beside the kept table]"),
        Typed(needs="candidates"),
    ] = None
    graph: Annotated[
        Path | None, Field(description="Graph of the candidates: a proposal that it knows takes its QID.")
    ] = None

    def open(self, scratch: Path) -> KnownTables:
        """Open the tables."""
        kept = slices_of(self.kept, KEPT, scratch=scratch)
        candidates = None if self.candidates is None else slices_of(self.candidates, CANDIDATES, scratch=scratch)
        return KnownTables(kept, candidates, self.drops, self.graph)


def complete(
    work: Work,
    inputs: CompletionInputs,
    concepts: Sequence[Concept],
    client: Client | FreeClient,
    *,
    limits: CompletionLimits,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Complete a collection; write it, and everything that was proposed."""
    tables = inputs.open(work.scratch)
    completion = prepare(tables, concepts, cells_of(concepts), limits)
    watch = ReplyWatch(go_on=llm.go_on)
    completion.run(asking(work, client, llm, watch))
    outcome = write_all(work, completion, tables, client)
    return replace(outcome, notes={**outcome.notes, **watch.notes()})


def prepare(
    tables: KnownTables, concepts: Sequence[Concept], cells: Sequence[Cell], limits: CompletionLimits
) -> CompletionRounds:
    """Read what every question needs: the names that are there, and the classes that artifacts belong to."""
    there = names_there(tables.kept, cells, most=limits.shown)
    states = [CellState(cell, there[cell.id], limits) for cell in cells]
    names = ItemNames(concepts, tables.graph)
    additions = Additions(minted=minted_before(tables.kept))
    return CompletionRounds(states, tables, names, classes_of(tables.kept, concepts), limits, wordings(), additions)


def minted_before(kept: TableSlices) -> set[str]:
    """List the ids that an earlier completion gave: they are taken."""
    own = pl.col("qid").str.starts_with(SLUG)
    return {qid for frame in kept.slices(("qid",)) for qid in frame.filter(own)["qid"]}


def classes_of(kept: TableSlices, concepts: Sequence[Concept]) -> dict[str, set[str]]:
    """List the classes that the artifacts of each concept are instances of, and its roots."""
    classes = {concept.concept: {root.qid for root in concept.roots} for concept in concepts}
    for frame in kept.slices(("concept", "p31")):
        for concept, own in (
            frame.explode("p31").drop_nulls().group_by("concept").agg(pl.col("p31").unique()).iter_rows()
        ):
            if concept in classes:
                classes[concept].update(own)
    return classes


def asking(work: Work, client: Client | FreeClient, llm: LlmOptions, watch: ReplyWatch) -> Ask:
    """Make what answers a list of requests; each list goes through the journal of the stage."""

    def ask(requests: Sequence[Request], what: str) -> list[Answered]:
        if not requests:
            return []
        work.progress.begin(len(requests), what)
        came = []
        with closing(answers(client, requests, work=work, llm=llm, watch=watch)) as answered:
            for one in answered:
                came.append(one)
                work.progress.advance(1)
        return came

    return ask


def write_all(work: Work, completion: CompletionRounds, tables: KnownTables, client: Client | FreeClient) -> Outcome:
    """Write the tables, and count."""
    additions = completion.additions
    new = new_rows(additions, tables, model=client.model)
    gains = gained_countries(additions, model=client.model)
    reasons = write_drops(work.out, drop_rows(completion))
    set_aside = sum(row.set_aside for row in completion.proposals) + sum(each.set_aside for each in completion.rounds)
    counts = {
        "completed": write_completed(work.out, tables.kept, new, gains),
        "proposals": write_proposals(work.out, completion.proposals),
        "rounds": write_rounds(work.out, completion.rounds, proposer=client.model),
        "drops": sum(reasons.values()),
        "added": new.height,
        "gained_countries": gains.height,
        **({QUARANTINED: set_aside} if set_aside else {}),
    }
    ended = Counter(each.ended for each in completion.rounds if each.ended)
    notes = {
        "judge": client.model,
        "caveat": client.caveat,
        "outcomes": completion.ended_in(),
        "ended": dict(sorted(ended.items())),
    }
    return Outcome(counts, reasons, notes)


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
    return candidate_rows(concept, found, Facts.of_graph(tables.graph)).row(0, named=True)


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
