"""What a collection lacks, named by a model, checked by a second question, and reconciled with what is known."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from culturekit.builders.completing.completion_additions import Additions
from culturekit.builders.completing.completion_cells import Cell, cells_of, drawn_cells, names_there
from culturekit.builders.completing.completion_lookup import KnownTables
from culturekit.builders.completing.completion_names import SLUG
from culturekit.builders.completing.completion_questions import CompletionLimits, wordings
from culturekit.builders.completing.completion_rounds import Ask, CompletionRounds
from culturekit.builders.completing.completion_rows import gained_countries, new_rows
from culturekit.builders.completing.completion_state import CellState
from culturekit.builders.completing.completion_tables import drop_rows, write_completed, write_proposals, write_rounds
from culturekit.builders.filtering.item_facts import ItemNames
from culturekit.errors import UnusableReplies
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.outcomes import Answered
from culturekit.llm.reply_watch import RepliesSeen, ReplyWatch
from culturekit.records.schemas import CANDIDATES, DROPS, KEPT
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.table_slices import TableSlices, slices_of
from culturekit.storage.tables import write_table

__all__ = ["CompletionInputs", "complete", "prepare", "try_cells"]

DEFAULTS = LlmOptions()


@dataclass(frozen=True, slots=True)
class CompletionInputs:
    """What is completed and where names are looked up; the less is given, the less is known."""

    kept: Path
    candidates: Path | None = None
    drops: Path | None = None
    graph: Path | None = None

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


def try_cells(
    work: Work,
    inputs: CompletionInputs,
    concepts: Sequence[Concept],
    client: Client,
    *,
    size: int,
    limits: CompletionLimits,
    llm: LlmOptions = DEFAULTS,
) -> tuple[CompletionRounds, RepliesSeen]:
    """Do the first round of a few cells; the answers lie in the journal for the run to come."""
    cells = drawn_cells(cells_of(concepts), size)
    completion = prepare(inputs.open(work.scratch), concepts, cells, limits)
    watch, stopped = ReplyWatch(go_on=llm.go_on), ""
    try:
        completion.run(asking(work, client, llm, watch), rounds=1)
    except UnusableReplies as error:
        stopped = str(error)
    return completion, watch.seen(stopped=stopped)


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
    drops, reasons = drop_rows(completion)
    write_table(work.out, DROPS, drops)
    set_aside = sum(row.set_aside for row in completion.proposals) + sum(each.set_aside for each in completion.rounds)
    counts = {
        "completed": write_completed(work.out, tables.kept, new, gains),
        "proposals": write_proposals(work.out, completion.proposals),
        "rounds": write_rounds(work.out, completion.rounds, proposer=client.model),
        "drops": drops.height,
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
