"""What a collection lacks, named by a model, checked by a second question, and reconciled with what is known."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, asks, scratch
from culturekit.builders.completing.completion_names import LONGEST_CLASS, MOST_CHARACTERS, KnownItem, KnownTables
from culturekit.builders.completing.completion_names import described as described_items
from culturekit.builders.completing.completion_rounds import (
    ADDED,
    LONGEST_WHAT,
    MOST_OTHER_NAMES,
    MOST_REPEATED,
    PROPOSE,
    VERIFY,
    Additions,
    Cell,
    CellState,
    CompletionLimits,
    CompletionRounds,
    Proposal,
    ProposalRow,
    Shown,
    cells_of,
    drawn_cells,
    names_there,
    proposal_request,
    verification_request,
    wordings,
)
from culturekit.builders.filtering.candidate_review import table_beside
from culturekit.builders.filtering.cspace_filter import MOST_LISTED
from culturekit.core.declared import Given, Typed
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UnusableReplies
from culturekit.core.inputs import roles_among
from culturekit.core.schemas import CANDIDATES, COMPLETED, DROPS, KEPT, OF_A_MODEL, PROPOSALS, ROUNDS
from culturekit.core.stage import QUARANTINED, Left, Outcome, Work
from culturekit.core.tables import ROWS_PER_SLICE, TableSlices, slices_of, write_drops, write_frames, write_table
from culturekit.kg.concepts import Concept, Roots
from culturekit.kg.countries import by_qid, country_files
from culturekit.kg.exchange.extract_stage import described
from culturekit.kg.extract import candidate_rows
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_requests
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.models import quoted
from culturekit.llm.rows import Answered, RepliesSeen

LIST = pl.List(pl.String)
LIMITS = CompletionLimits()


@dataclass(frozen=True, slots=True)
class SharedBudget(LlmOptions):
    """How answers are bought from a budget that other stages pay from, too."""

    beside: Annotated[
        tuple[Path, ...],
        Field(description="Folder of another paid stage, such as the filter's, under the same budget. Repeatable."),
        Typed(needs="budget"),
    ] = ()


def prepare(given: Given, cells: Sequence[Cell], folder: Path) -> CompletionRounds:
    """Read what every question needs: the names that are there, and the classes that artifacts belong to.

    Classes are those that the artifacts of each concept are instances of, and its roots; ids that an earlier completion
    gave are taken.
    """
    limits, candidates = given["limits"], given["candidates"]
    kept = slices_of(given["kept"], KEPT, scratch=folder)
    among = None if candidates is None else slices_of(candidates, CANDIDATES, scratch=folder)
    drops = given["drops"] or table_beside(given["kept"], DROPS)
    there = names_there(kept, cells, most=limits.shown)
    states = [CellState(cell, there[cell.id], limits) for cell in cells]
    earlier = pl.col("qid").str.starts_with(OF_A_MODEL)
    minted = {qid for frame in kept.slices(("qid",)) for qid in frame.filter(earlier)["qid"]}
    classes = {concept.concept: {root.qid for root in concept.roots} for concept in given["roots"]}
    for frame in kept.slices(("concept", "p31")):
        pairs = frame.explode("p31").drop_nulls().group_by("concept").agg(pl.col("p31").unique())
        for concept, found in pairs.iter_rows():
            classes.get(concept, set()).update(found)
    tables = KnownTables(kept, among, drops, given["graph"])
    return CompletionRounds(states, tables, classes, limits, wordings(), Additions(minted=minted))


def _answers_to(asked: Asked, requests: Sequence[Request], what: str) -> list[Answered]:
    """Answer a list of requests; each list goes through the journal of the stage."""
    return list(asked.every(requests, lambda request: request, unit=what)) if requests else []


# The tables of a completion: the collection as it is now, every proposal, every round, and what was left out.

FATES = (*ADDED, "known", "repeated", "refused", "left out")  # how proposals end, in the order of the columns
ADDED_COLUMNS = ("source", "round", "proposer", "gained")
GAINS = {
    "concept": pl.String(), "qid": pl.String(), "more": LIST, "by_round": pl.UInt8(), "by": pl.String(), "isos": LIST,
}  # fmt: skip

Added = dict[str, ProposalRow]  # the proposals of an artifact, by country


def _write(work: Work, completion: CompletionRounds, client: Client | FreeClient) -> Outcome:
    """Write the tables, and count."""
    additions, tables, model = completion.additions, completion.tables, client.model
    known = {key: additions.items[key].standing == "kept" for key in additions.rows}
    new = pl.DataFrame(
        [_completed_row(additions.items[key], additions.rows[key], tables, model) for key in known if not known[key]],
        schema={**COMPLETED.schema, "valueless": LIST}, orient="row",
    )  # fmt: skip
    gains = pl.DataFrame(
        [
            (*key, [row.cell.country.qids[0] for row in rows.values()], _first(rows).round, model, list(rows))
            for key, rows in additions.rows.items()
            if known[key]
        ],
        schema=GAINS, orient="row",
    )  # fmt: skip
    proposals = [
        (
            row.id, row.cell.concept.concept, row.cell.country.iso, row.round, row.position, row.name,
            row.proposal.other_names, row.proposal.kind, row.proposal.what, row.artifact_id, row.outcome,
            ": ".join(filter(None, (row.reason, row.detail))) or None,
        )
        for row in completion.proposals
    ]  # fmt: skip
    write_table(work.out, PROPOSALS, pl.DataFrame(proposals, schema=PROPOSALS.schema, orient="row"))
    rounds = [
        (
            each.cell.concept.concept, each.cell.country.iso, each.number, model, each.outcome, each.counts.total(),
            *(each.counts[fate] for fate in FATES), each.taken_back, each.ended or None, each.raw,
        )
        for each in completion.rounds
    ]  # fmt: skip
    write_table(work.out, ROUNDS, pl.DataFrame(rounds, schema=ROUNDS.schema, orient="row"))
    reasons = write_drops(work.out, list(_dropped(completion)))
    set_aside = sum(row.set_aside for row in completion.proposals) + sum(each.set_aside for each in completion.rounds)
    counts = {
        "completed": write_completed(work.out, tables.kept, new, gains), "proposals": len(proposals),
        "rounds": len(rounds), "drops": sum(reasons.values()), "added": new.height, "gained_countries": gains.height,
        **({QUARANTINED: set_aside} if set_aside else {}),
    }  # fmt: skip
    ended = Counter(each.ended for each in completion.rounds if each.ended)
    notes = {"judge": model, "caveat": client.caveat, "outcomes": completion.ended_in()}
    return Outcome(counts, reasons, {**notes, "ended": dict(sorted(ended.items()))})


def _dropped(completion: CompletionRounds) -> Iterator[tuple[str | None, ...]]:
    """List what was proposed and is not there, and replies that could not be used."""
    for row in completion.proposals:
        if row.outcome not in {*ADDED, "known", "repeated"}:
            detail = f"{row.name}: {row.detail}" if row.detail else row.name
            yield row.id, row.cell.concept.concept, "completion", row.reason, detail
    for each in completion.rounds:
        if each.set_aside:
            key, why = f"{each.cell.id}/{each.number}", f"no proposals: {each.outcome}"
            yield key, each.cell.concept.concept, "completion", why, None


def write_completed(folder: Path, kept: TableSlices, new: pl.DataFrame, gains: pl.DataFrame) -> int:
    """Write the kept rows, some of them with more countries, and the new ones between them, in the order of the key."""
    optional = {name: column for name, column in kept.table.optional.items() if name not in ADDED_COLUMNS}
    names = [*COMPLETED.columns, *optional]
    missing = [pl.lit([], dtype=LIST).alias(name) for name in names if name not in new.columns]
    written = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal written
        rest = new.with_columns(missing).select(names).sort("concept", "qid")
        for frame in kept.slices():
            last = pl.lit(frame["concept"][-1]), pl.lit(frame["qid"][-1])
            comes = (pl.col("concept") < last[0]) | ((pl.col("concept") == last[0]) & (pl.col("qid") < last[1]))
            joined = pl.concat([_with_gains(frame, gains).select(names), rest.filter(comes)]).sort("concept", "qid")
            rest = rest.filter(~comes)
            written += joined.height
            yield joined
        written += rest.height
        yield rest

    write_frames(folder, replace(COMPLETED, optional=optional), frames(), rows_per_group=ROWS_PER_SLICE)
    return written


def _with_gains(frame: pl.DataFrame, gains: pl.DataFrame) -> pl.DataFrame:
    """Add countries to kept rows; a table that was completed before keeps what it says of that."""
    blank = {
        "source": pl.lit("wikidata"), "round": pl.lit(0, dtype=pl.UInt8), "proposer": pl.lit(None, dtype=pl.String),
        "gained": pl.lit([], dtype=LIST),
    }  # fmt: skip
    whole = frame.with_columns(value.alias(name) for name, value in blank.items() if name not in frame.columns)
    more, isos = (pl.col(name).fill_null([]) for name in ("more", "isos"))
    return whole.join(gains, on=["concept", "qid"], how="left", maintain_order="left").with_columns(
        country_qids=pl.col("country_qids").list.concat(more), gained=pl.col("gained").list.concat(isos),
        round=pl.coalesce("by_round", "round"), proposer=pl.coalesce("by", "proposer"),
    )  # fmt: skip


def _first(rows_by_country: Added) -> ProposalRow:
    """Give the first proposal of an artifact that still stands."""
    return min(rows_by_country.values(), key=lambda row: row.round)


def _completed_row(item: KnownItem, rows_by_country: Added, tables: KnownTables, model: str) -> dict[str, Any]:
    """Write an artifact that was added: what a graph or a walk says of it, its countries, who proposed it and when."""
    base, proposal = _base_row(item, rows_by_country, tables), _first(rows_by_country)
    of_llm = item.qid.startswith(OF_A_MODEL)
    stated = {by_qid()[qid].iso for qid in base["country_qids"] if qid in by_qid()}
    gained = {iso: row.cell.country.qids[0] for iso, row in rows_by_country.items() if iso not in stated}
    row = {
        **base, "country_qids": [*base["country_qids"], *gained.values()], "label": base["label"] or proposal.name,
        "verdict": "keep", "reason": f"completion {model}", "source": "llm" if of_llm else "wikidata",
        "round": proposal.round, "proposer": model, "gained": list(gained), "valueless": base.get("valueless") or [],
    }  # fmt: skip
    if of_llm:
        aliases = [name for one in rows_by_country.values() for name in one.aliases]
        root = proposal.cell.root_of(proposal.proposal.kind)
        row |= {"description": proposal.proposal.what or None, "aliases": list(dict.fromkeys(aliases)), "roots": [root]}
    return row


def _base_row(item: KnownItem, rows_by_country: Added, tables: KnownTables) -> Mapping[str, Any]:
    """Find the row that an artifact has or would have among the candidates."""
    if item.qid.startswith(OF_A_MODEL):
        columns = CANDIDATES.columns.items()
        blank: dict[str, Any] = {name: [] if column.dtype == LIST else None for name, column in columns}
        return {**blank, "qid": item.qid, "label": item.label, "concept": item.concept, "hop": 0, "sitelinks": 0}
    first = _first(rows_by_country)
    root = first.cell.root_of(first.proposal.kind)
    candidates = None
    if tables.candidates is not None:
        scan = pl.scan_parquet(tables.candidates.path).filter(pl.col("qid") == item.qid)
        candidates = scan.select([*tables.candidates.table.columns, *tables.candidates.table.optional]).collect()
        same = candidates.filter(pl.col("concept") == item.concept)
        if same.height:
            return same.row(0, named=True)
    if tables.graph is not None:
        return _graph_row(item, first.cell.concept, root, GraphTables(tables.graph))
    if candidates is None or candidates.is_empty():
        scan = pl.scan_parquet(tables.kept.path).filter(pl.col("qid") == item.qid)
        candidates = scan.select(tables.kept.table.columns.keys()).collect()
    return {**candidates.row(0, named=True), "concept": item.concept, "hop": 0, "roots": [root], "path": []}


def _graph_row(item: KnownItem, concept: Concept, root: str, graph: GraphTables) -> Mapping[str, Any]:
    """Write the row of an item that the graph knows and no walk found."""
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
    return candidate_rows(concept, found, graph).row(0, named=True)


# What completing a collection can take at most, and what a pilot says of it.

SAMPLED = 40  # proposals of a pilot that are shown
USUAL_NAME, USUAL_TEXT = "Name of a usual length", "a dish of the region, made of rice and beans, on feast days"
# A letter of four bytes, and a mark that is written with an escape: nothing takes more room.
LONGEST_NAME, WORST_TEXT = "\U00010348" * MOST_CHARACTERS, "~"
USUAL_ITEM = KnownItem("Q1", "x", USUAL_NAME, USUAL_TEXT, frozenset(), ("Q155",), ("Q746549", "Q2095"), "kept")


@dataclass(frozen=True, slots=True)
class CompletionPilot:
    """What one round of a few cells brought: what became of the proposals, and what of the replies could be used."""

    tried: CompletionRounds
    replies: RepliesSeen

    @property
    def to_mend(self) -> str:
        """Why a person has to look at the replies first."""
        return self.replies.to_mend

    @property
    def fates(self) -> dict[str, int]:
        """Count proposals by outcome."""
        return dict(sorted(Counter(row.outcome for row in self.tried.proposals).items()))

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return {
            "asked": len(self.tried.rounds), "outcomes": dict(self.tried.ended_in()), "proposals": self.fates,
            "samples": [(row.outcome, row.name, row.cell.id) for row in self.tried.proposals[:SAMPLED]],
            "replies": asdict(self.replies),
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        ended = ", ".join(f"{count:,} {outcome}" for outcome, count in self.tried.ended_in().items())
        yield f"pilot: one round of {len(self.tried.rounds):,} pairs ({ended}); the answers are kept for the run"
        yield f"  proposals: {', '.join(f'{count:,} {fate}' for fate, count in self.fates.items()) or 'none'}"
        yield from self.replies.lines()
        for row in self.tried.proposals[:SAMPLED]:
            yield f"  {row.cell.id}: {row.name[:60]!r} {row.outcome} {row.reason}".rstrip()


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """Cells, and the most that asking about them, and checking what comes of it, can take in so many rounds."""

    judge: str
    cells: int
    rounds: int
    proposals: CostPlan
    checks: CostPlan

    @property
    def units(self) -> int:
        """What is asked about."""
        return self.cells

    @property
    def left(self) -> Left:
        """What is left to ask at most."""
        parts = self.proposals.left, self.checks.left
        requests, tokens = (sum(part[index] or 0 for part in parts) for index in (0, 1))
        return Left(int(requests), int(tokens), _sum(self.proposals.usd, self.checks.usd))

    @property
    def most(self) -> float | None:
        """US dollars that surely suffice when nothing has to be asked twice."""
        return _sum(self.proposals.most, self.checks.most)

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        sums = dict(zip(("requests", "tokens", "usd"), self.left, strict=True))
        return {**asdict(self), **sums, "most": self.most}

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        yield (
            f"{self.cells:,} pairs of concept and country, at most {self.rounds} rounds: {self.proposals.requests:,} "
            f"questions to {self.judge}, and a check of at most {self.checks.requests:,} proposals"
        )
        if self.most == 0.0 and self.left.tokens == 0 and self.left.requests:
            yield f"{self.judge} answers in this process and costs nothing"
            return
        for name, part in (("questions", self.proposals), ("checks", self.checks)):
            yield from (f"{name}: {line}" for line in cost_plan_lines(part))


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def plan_completion(
    judge: str,
    states: Sequence[CellState],
    limits: CompletionLimits,
    cost: Callable[[Iterable[Request]], CostPlan],
    *,
    known: bool,
    pilot: Sequence[Request] = (),
) -> CompletionPlan:
    """Plan, offline.

    Args:
        judge: who is asked.
        states: the cells before any round.
        limits: how far the completion goes.
        cost: says what requests cost, besides what was bought already.
        known: whether the names that are there could be read yet.
        pilot: checks that a pilot asked, from which those to come are reckoned.
    """

    def both(kind: Callable[..., Iterator[Request]], asked: Sequence[Request] = ()) -> CostPlan:
        usual = cost(chain(asked, islice(kind(worst=False), len(asked), None)))
        worst = cost(kind(worst=True))
        times = usual.requests // worst.requests if worst.requests else 1
        return replace(usual, most=None if worst.most is None else worst.most * times)

    questions = both(partial(_asked_at_most, states, limits, known=known))
    return CompletionPlan(
        judge, len(states), limits.rounds, questions, both(partial(_checked_at_most, states, limits), pilot)
    )


def _asked_at_most(
    states: Sequence[CellState], limits: CompletionLimits, *, known: bool, worst: bool
) -> Iterator[Request]:
    """Write questions as large as they can become: the first round as it is, the others full of names."""
    name = LONGEST_NAME if worst else USUAL_NAME
    most, wording = min(limits.per_round, limits.per_cell), wordings()[PROPOSE]
    for state in states:
        there = list(state.there) if known else [name] * limits.shown
        for number in range(1, limits.rounds + 1):
            earlier = min(most * (number - 1), limits.per_cell)
            last = min(most, earlier)
            others = [name] * (MOST_REPEATED if number > 1 and worst else 0)
            added = {str(index + 1): name for index in range(last)}
            shown = Shown(number, [*there, *[name] * (earlier - last)], added, others, others)
            yield proposal_request(state.cell, shown, limits, instructions=wording)


def _checked_at_most(states: Sequence[CellState], limits: CompletionLimits, *, worst: bool) -> Iterator[Request]:
    """Write a check for each proposal that can come; of the largest, which are all the same, one for each cell."""
    wording, concepts = wordings()[VERIFY], [state.cell.concept for state in states]
    long, names = WORST_TEXT * 10_000, tuple(f"Q{WORST_TEXT * LONGEST_CLASS}{number}" for number in range(MOST_LISTED))
    largest = KnownItem("Q1", "x", long, long, frozenset(), names, names, "dropped", long)
    (item,) = described_items([largest if worst else USUAL_ITEM], concepts, None)
    name, what = (LONGEST_NAME, WORST_TEXT * LONGEST_WHAT) if worst else (USUAL_NAME, USUAL_TEXT)
    for state in states:
        others = [name] * (MOST_OTHER_NAMES if worst else 1)
        proposal = Proposal(name, others, max(state.cell.kinds, key=len), what)
        request = verification_request(f"{state.cell.id}/00/000", proposal, state.cell, item, instructions=wording)
        yield from repeat(request, 1 if worst else limits.rounds * min(limits.per_round, limits.per_cell))


def _plan(client: Client | FreeClient, given: Given, out: Path, tried: CompletionPilot | None) -> CompletionPlan:
    """Plan, with the names that are there as far as they are known."""
    cells, known = cells_of(given["roots"]), given["kept"].is_file()
    states = [CellState(cell, (), given["limits"]) for cell in cells]
    with scratch() as folder:
        if known:
            states = prepare({**given, "graph": None}, cells, folder).states
        cost = partial(plan_requests, client, spent=read_spending(journal_for(out)), batch=given["llm"].batch)
        checked = () if tried is None else tried.tried.checked
        return plan_completion(client.model, states, given["limits"], cost, known=known, pilot=checked)


def _pilot(asked: Asked, given: Given, size: int) -> CompletionPilot:
    """Do the first round of a few cells."""
    completion = prepare(given, drawn_cells(cells_of(given["roots"]), size), asked.work.scratch)
    stopped = ""
    try:
        completion.run(partial(_answers_to, asked), rounds=1)
    except UnusableReplies as error:
        stopped = str(error)
    return CompletionPilot(completion, asked.watch.seen(stopped=stopped))


def _decides(given: Given) -> dict[str, object]:
    hashes = {task: digest_bytes(text.encode()) for task, text in wordings().items()}
    return {"limits": asdict(given["limits"]), "wordings": hashes, **described(given["roots"])}


def _reads(given: Given) -> dict[str, Path]:
    beside = {} if given["drops"] else roles_among({"drops": table_beside(given["kept"], DROPS)})
    return {**beside, **country_files()}


@asks(
    "completion", "completion", "completion", words="", unit="pairs", version=3, reads=_reads, decides=_decides,
    key=lambda request: str(request.data["id"]), ahead=lambda _: True, plan=_plan, pilot=_pilot,
    example="--kept kept/kept.parquet --candidates candidates/candidates.parquet --graph graph --roots cuisine "
    f"--llm {quoted('text-small')} --out completion --budget 20",
    help={
        "plan": "Say what it could ask and cost; nothing is sent.",
        "pilot": "Ask one round about so many pairs only, then say what the rest can cost.",
    },
)  # fmt: skip
def complete(
    asked: Asked,
    kept: Annotated[Path, Field(description="Table that `cspace filter` wrote.")],
    candidates: Annotated[
        Path | None, Field(description="Table that `kg extract` wrote: a proposal that was dropped is found by it.")
    ] = None,
    drops: Annotated[
        Path | None,
        Field(description="Why the filter dropped candidates. [drops.parquet beside the kept table]"),
        Typed(needs="candidates"),
    ] = None,
    graph: Annotated[
        Path | None, Field(description="Graph of the candidates: a proposal that it knows takes its QID.")
    ] = None,
    *,
    roots: Roots,
    proposer: Annotated[
        str, Field(description="Who proposes and checks, as a SPEC: openai:MODEL, google:MODEL, rules."), Typed("llm")
    ],
    limits: CompletionLimits = LIMITS,
    llm: SharedBudget | LlmOptions = DEFAULTS,
) -> Outcome:
    """Complete a collection by what a model says is missing.

    A second question checks each name.
    """
    given = {"kept": kept, "candidates": candidates, "drops": drops, "graph": graph, "roots": roots, "limits": limits}
    completion = prepare(given, cells_of(roots), asked.work.scratch)
    completion.run(partial(_answers_to, asked))
    outcome = _write(asked.work, completion, asked.client)
    return replace(outcome, notes={**outcome.notes, **asked.watch.notes()})
