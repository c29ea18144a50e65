"""The rounds of a completion: ask every open cell, find out what is meant, have it verified, and ask again.

What is asked in a round depends on nothing but the answers of the rounds before, so a run that was cut asks the same.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from pydantic import Field

from culturekit.builders.asking import wording
from culturekit.builders.completing.completion_names import (
    MOST_CHARACTERS,
    Found,
    KnownItem,
    KnownTables,
    Standing,
    artifact_slug,
    described,
    proposal_problem,
    reconcile,
    stripped_name,
)
from culturekit.builders.country_names import folded, loose_key_of
from culturekit.core.choices import ANSWERED
from culturekit.core.tables import TableSlices
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import Country, countries
from culturekit.llm.client import Request
from culturekit.llm.rows import Answered

# What is completed, cell by cell, and its two questions: what is missing, and whether it belongs.

RANKED = ("concept", "qid", "label", "country_qids", "sitelinks")


@dataclass(frozen=True, slots=True)
class Cell:
    """One concept in one country."""

    concept: Concept
    country: Country

    @property
    def id(self) -> str:
        """What the cell is called in requests and tables."""
        return f"{self.concept.concept}/{self.country.iso}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of artifact that the concept takes: the names of its roots."""
        return tuple(dict.fromkeys(root.label for root in self.concept.roots))

    def root_of(self, kind: str) -> str:
        """Give the QID of the root that a kind is the name of."""
        return next(root.qid for root in self.concept.roots if root.label == kind)


def cells_of(concepts: Sequence[Concept]) -> list[Cell]:
    """List the cells: concepts in the order given, countries by ISO code."""
    return [
        Cell(concept, country)
        for concept in concepts
        for iso, country in sorted(countries().items())
        if iso in concept.codes
    ]


def drawn_cells(cells: Sequence[Cell], size: int) -> list[Cell]:
    """Draw cells for a pilot by hash, the same ones each time; they stay in their order."""
    drawn = sorted(cells, key=lambda cell: blake2b(cell.id.encode(), digest_size=8).digest())[:size]
    return [cell for cell in cells if cell in drawn]


def names_there(kept: TableSlices, cells: Sequence[Cell], *, most: int) -> Mapping[str, list[str]]:
    """Name, for each cell, the artifacts that are there: the best known first, no more than `most`."""
    concepts = {cell.concept.concept: cell.concept for cell in cells}
    best: dict[str, list[tuple[int, int, str]]] = {cell.id: [] for cell in cells}
    for number, row in enumerate(row for frame in kept.slices(RANKED) for row in frame.iter_rows(named=True)):
        concept = concepts.get(row["concept"])
        if concept is None or not row["label"]:
            continue
        entry = (row["sitelinks"], -number, row["label"])
        for iso in concept.codes_of(row["country_qids"]):
            names = best.get(f"{concept.concept}/{iso}")
            if names is None:
                continue
            if len(names) < most:
                heapq.heappush(names, entry)
            elif most and entry > names[0]:
                heapq.heapreplace(names, entry)
    return {cell: [label for _, _, label in sorted(names, reverse=True)] for cell, names in best.items()}


PROPOSE, VERIFY = "cspace.propose", "cspace.verify"

MOST_IN_A_REPLY = 100
MOST_OTHER_NAMES = 3
LONGEST_WHAT = 200
TOKENS_OF_A_PROPOSAL = 160
VERIFY_TOKENS = 256
MOST_REPEATED = 50
MOST_KINDS = 100  # beyond this a list of kinds is no schema that every provider takes; the question names them all

Says: TypeAlias = Literal["yes", "no", "unsure"]
# Far too long for a name: what is too long is left out by itself, and does not cost the whole reply.
LongName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An artifact that a model says is missing."""

    name: LongName
    other_names: Annotated[list[LongName], msgspec.Meta(max_length=MOST_OTHER_NAMES)]
    kind: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)]
    what: Annotated[str, msgspec.Meta(max_length=400)]


class ProposalReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one cell in one round; an id is not asked for, and must be right."""

    wrong: list[str]
    artifacts: Annotated[list[Proposal], msgspec.Meta(max_length=MOST_IN_A_REPLY)]
    id: str | None = None


@lru_cache(maxsize=64)
def asked_proposals(kinds: tuple[str, ...], at_most: int) -> type[msgspec.Struct]:
    """Narrow the shape of a reply to what one question asks for, kinds by name.

    A reply that says more, or names another kind, is read all the same: what is too much costs no more than itself.
    """
    name = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS)]
    strict, most = partial(msgspec.defstruct, frozen=True, forbid_unknown_fields=True), msgspec.Meta(max_length=at_most)
    fields = [
        ("name", name),
        ("other_names", Annotated[list[name], msgspec.Meta(max_length=MOST_OTHER_NAMES)]),
        ("kind", Literal[kinds] if 0 < len(kinds) <= MOST_KINDS and "" not in kinds else str),
        ("what", Annotated[str, msgspec.Meta(max_length=LONGEST_WHAT)]),
    ]
    proposal: Any = strict("Proposal", fields)
    reply = [("wrong", Annotated[list[str], most]), ("artifacts", Annotated[list[proposal], most])]
    return strict("ProposalReply", reply)


class _Verification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model is asked for about one proposal."""

    instance: Says
    belongs: Says
    item: Literal["same", "other", "none"]


class VerificationReply(_Verification, frozen=True, forbid_unknown_fields=True):
    """What a model answers about it; an id is not asked for, and must be right."""

    id: str | None = None


@dataclass(frozen=True, slots=True)
class CompletionLimits:
    """How far the completion goes."""

    rounds: Annotated[int, Field(ge=1, le=20, description="Rounds of asking for each concept and country.")] = 4
    per_round: Annotated[int, Field(ge=1, le=MOST_IN_A_REPLY, description="Artifacts taken from one reply.")] = 20
    per_cell: Annotated[
        int, Field(ge=1, le=10_000, description="Artifacts added to a concept in a country, in all.")
    ] = 60
    shown: Annotated[
        int, Field(ge=0, le=1000, description="Names of what is there that go along with each question.")
    ] = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """What a question about a cell tells of it; `added` has the numbers of the last round's additions."""

    round: int
    known: Sequence[str]
    added: Mapping[str, str]
    repeated: Sequence[str]
    refused: Sequence[str]


def wordings() -> dict[str, str]:
    """Read the instructions of both questions; their hashes are part of what decides the result."""
    return {PROPOSE: wording("completion_propose"), VERIFY: wording("completion_verify")}


def proposal_request(cell: Cell, shown: Shown, limits: CompletionLimits, *, instructions: str) -> Request:
    """Ask what is missing in a cell, and what of the last round was wrong."""
    data = {
        "id": cell.id, "concept": cell.concept.concept, "kinds": list(cell.kinds), "country": cell.country.name,
        "languages": list(cell.concept.languages), "round": shown.round, "at_most": limits.per_round,
        "known": list(shown.known),
        "added": [{"number": number, "name": name} for number, name in shown.added.items()],
        "repeated": list(shown.repeated[:MOST_REPEATED]), "refused": list(shown.refused[-MOST_REPEATED:]),
    }  # fmt: skip
    allowed = {"id": (cell.id,), "wrong": tuple(shown.added)}
    tokens = VERIFY_TOKENS + TOKENS_OF_A_PROPOSAL * limits.per_round
    asks = asked_proposals(cell.kinds, limits.per_round)
    return Request(PROPOSE, instructions, data, ProposalReply, allowed=allowed, max_tokens=tokens, asks=asks)


def verification_request(
    proposal_id: str, proposal: Proposal, cell: Cell, item: Mapping[str, object] | None, *, instructions: str
) -> Request:
    """Ask whether a proposal belongs, and whether the item of that name is what it means."""
    data = {
        "id": proposal_id, "name": proposal.name, "other_names": list(proposal.other_names),
        "what": proposal.what[:LONGEST_WHAT], "kind": proposal.kind, "concept": cell.concept.concept,
        "country": cell.country.name, "item": item,
    }  # fmt: skip
    allowed = {"id": (proposal_id,)}
    asks = _Verification
    return Request(VERIFY, instructions, data, VerificationReply, allowed=allowed, max_tokens=VERIFY_TOKENS, asks=asks)


# What a completion has added so far, known by name from then on, and taken back where it was wrong.


@dataclass(slots=True, eq=False)
class ProposalRow:
    """One proposal and what has become of it; `item` is what its name was found to mean, where that was found."""

    cell: Cell
    round: int
    position: int
    proposal: Proposal
    name: str
    outcome: str = ""
    reason: str = ""
    detail: str = ""
    artifact_id: str | None = None
    item: KnownItem | None = None
    aliases: tuple[str, ...] = ()
    set_aside: bool = False

    @property
    def id(self) -> str:
        """The cell, the round, and the place in the reply."""
        return f"{self.cell.id}/{self.round}/{self.position}"

    def end(self, outcome: str, reason: str = "", detail: str = "") -> None:
        """Say what became of it."""
        self.outcome, self.reason, self.detail = outcome, reason, detail


@dataclass(slots=True)
class Additions:
    """Artifacts and the countries they were added for; `rows` has the proposal behind each, by artifact and country."""

    rows: dict[tuple[str, str], dict[str, ProposalRow]] = field(default_factory=dict)
    items: dict[tuple[str, str], KnownItem] = field(default_factory=dict)
    minted: set[str] = field(default_factory=set)
    called: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def also(self, keys: Iterable[str], found: Sequence[KnownItem]) -> list[KnownItem]:
        """Put what was added by now into what the tables say of some names."""
        as_added = [self.current(item) for item in found]
        keys_of_names = {key for name in keys for key in self.called.get(name, ()) if key in self.rows}
        new = [self.current(self.items[key]) for key in sorted(keys_of_names)]
        listed = {(item.concept, item.qid) for item in as_added}
        return as_added + [item for item in new if (item.concept, item.qid) not in listed]

    def current(self, item: KnownItem) -> KnownItem:
        """Give an item of the tables as it stands now."""
        added = self.rows.get((item.concept or "", item.qid))
        if not added:
            return item
        gained = [row.cell.country.qids[0] for row in added.values()]
        return replace(item, standing="kept", country_qids=tuple(dict.fromkeys([*item.country_qids, *gained])))

    def namesake(self, name: str, concept: str) -> KnownItem | None:
        """Find an artifact of no graph that was added under the same name."""
        ids = sorted(key for key in self.called.get(loose_key_of(name), ()) if key in self.rows and key[0] == concept)
        called = (self.items[key] for key in ids)
        named = next((item for item in called if folded(name) in item.names and item.qid in self.minted), None)
        return None if named is None else self.current(named)

    def add(self, row: ProposalRow, item: KnownItem | None) -> None:
        """Add a verified proposal: a new artifact, or a country to one that is known."""
        concept, country = row.cell.concept.concept, row.cell.country
        if item is None:
            slug = artifact_slug(row.name, concept=concept, country=country.iso, taken=self.minted)
            self.minted.add(slug)
            names = frozenset(filter(None, map(folded, (row.name, *row.aliases))))
            item = KnownItem(slug, concept, row.name, row.proposal.what or None, names, (), (), "in the graph")
        key = (concept, item.qid)
        gains = item.concept == concept and item.standing == "kept"
        row.artifact_id = item.qid
        row.end("country added" if gains else "added")
        self.rows.setdefault(key, {})[country.iso] = row
        own_standing: Standing = item.standing if item.concept == concept else "in the graph"
        self.items.setdefault(key, replace(item, concept=concept, standing=own_standing))
        for name in set(map(loose_key_of, item.names)):
            known = self.called.setdefault(name, [])
            if key not in known:
                known.append(key)

    def take_back(self, row: ProposalRow, round_number: int) -> None:
        """Remove what the proposer says was wrong; an artifact without any country of its own is gone."""
        key = (row.cell.concept.concept, row.artifact_id or "")
        added = self.rows.get(key, {})
        added.pop(row.cell.country.iso, None)
        if not added:
            self.rows.pop(key, None)
        row.end("taken back", "taken back by the proposer", f"in round {round_number}")


# Where one cell of a completion stands between its rounds, and what its next question shows.

ADDED = ("added", "country added")


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one question to the proposer."""

    cell: Cell
    number: int
    outcome: str
    ended: str
    counts: Counter[str]
    taken_back: int
    raw: str | None

    @property
    def set_aside(self) -> bool:
        """Whether the reply could not be used."""
        return self.outcome not in ANSWERED


@dataclass(slots=True)
class CellState:
    """A cell; `there` is named in each question, `seen` are the folded names that were proposed."""

    cell: Cell
    there: Sequence[str]
    limits: CompletionLimits
    round: int = 0
    earlier: list[str] = field(default_factory=list)
    last: dict[str, ProposalRow] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    rows: list[ProposalRow] = field(default_factory=list)
    taken_back: int = 0
    ended: str = ""

    def next_question(self) -> Shown:
        """Begin a round, and say what its question shows."""
        self.round += 1
        added = {number: row.name for number, row in self.last.items()}
        return Shown(self.round, [*self.there, *self.earlier], added, self.repeated, self.refused)

    @property
    def room(self) -> int:
        """How many artifacts may still be added."""
        return self.limits.per_cell - len(self.earlier) - len(self.last)

    def take(self, reply: ProposalReply, additions: Additions) -> list[ProposalRow]:
        """Read a reply: what was wrong goes, and what is proposed is held to what a name must be."""
        self.criticise(reply.wrong, additions)
        self.rows = []
        for position, proposal in enumerate(reply.artifacts, start=1):
            name, others = stripped_name(proposal.name), dict.fromkeys(map(stripped_name, proposal.other_names))
            usable = (one for one in others if proposal_problem(one, languages=self.cell.concept.languages) is None)
            aliases = tuple(one for one in usable if one != name)
            self.rows.append(ProposalRow(self.cell, self.round, position, proposal, name, aliases=aliases))
        opened: list[ProposalRow] = []
        for row in self.rows:
            self.look_at(row, room=self.room - len(opened))
            if not row.outcome:
                self.seen.add(folded(row.name))
                opened.append(row)
        return opened

    def criticise(self, wrong: Sequence[str], additions: Additions) -> None:
        """Take back what the proposer found wrong in its last round."""
        self.taken_back = len(wrong)
        for number in wrong:
            row = self.last.pop(number)
            additions.take_back(row, self.round)
            self.refused.append(row.name)
        self.earlier += [row.name for row in self.last.values()]
        self.last = {}

    def look_at(self, row: ProposalRow, *, room: int) -> None:
        """End a proposal that needs no verification."""
        problem = proposal_problem(row.name, languages=self.cell.concept.languages)
        if row.position > self.limits.per_round:
            row.end("left out", "over the limit of a round")
        elif problem is not None:
            row.end("left out", *problem)
        elif row.proposal.kind not in self.cell.kinds:
            row.end("left out", "kind that was not offered", row.proposal.kind)
        elif folded(row.name) in self.seen:
            row.end("repeated")
        elif room <= 0:
            row.end("left out", "over the limit of a cell")

    def close(self, answered: Answered) -> Round:
        """End a round, and with it the cell where nothing more may or need be asked."""
        added = [row for row in self.rows if row.outcome in ADDED]
        self.last = {str(number): row for number, row in enumerate(added, start=1)}
        self.repeated = [row.name for row in self.rows if row.outcome in {"known", "repeated"}]
        self.refused += [row.name for row in self.rows if row.outcome == "refused"]
        usable = isinstance(answered.value, ProposalReply)
        if not usable:
            self.ended = "no answer"
        elif not added:
            self.ended = "dry"
        elif self.room <= 0:
            self.ended = "limit of artifacts"
        elif self.round >= self.limits.rounds:
            self.ended = "limit of rounds"
        counts = Counter(row.outcome for row in self.rows)
        raw = None if usable else answered.raw.encode("utf-8", "replace").decode()
        return Round(self.cell, self.round, answered.outcome, self.ended, counts, self.taken_back, raw)


Ask = Callable[[Sequence[Request], str], list[Answered]]  # the text says what requests are, for the progress


@dataclass(slots=True)
class CompletionRounds:
    """All cells of a completion; `classes` has, for each concept, the classes that its artifacts belong to."""

    states: list[CellState]
    tables: KnownTables
    classes: Mapping[str, Collection[str]]
    limits: CompletionLimits
    wordings: Mapping[str, str]
    additions: Additions = field(default_factory=Additions)
    proposals: list[ProposalRow] = field(default_factory=list)
    checked: list[Request] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)

    def run(self, ask: Ask, *, rounds: int | None = None) -> None:
        """Go round after round until no cell is open, or for so many rounds."""
        number = 0
        while (rounds is None or number < rounds) and (active := [state for state in self.states if not state.ended]):
            number += 1
            self.one_round(active, ask, number)

    def one_round(self, active: Sequence[CellState], ask: Ask, number: int) -> None:
        """Ask the open cells once."""
        asked = [
            proposal_request(each.cell, each.next_question(), self.limits, instructions=self.wordings[PROPOSE])
            for each in active
        ]
        replies = ask(asked, f"questions of round {number}")
        opened: list[ProposalRow] = []
        for state, answered in zip(active, replies, strict=True):
            self.outcomes.append(answered.outcome)
            state.rows, state.taken_back = [], 0
            if isinstance(answered.value, ProposalReply):
                opened += state.take(answered.value, self.additions)
        found = self.tables.find(name for row in opened for name in (row.name, *row.aliases))
        for row in opened:
            self.find_meaning(row, found)
        unclear = [row for row in opened if not row.outcome]
        concepts = [state.cell.concept for state in self.states]
        items = described([row.item for row in unclear], concepts, self.tables.graph)
        self.checked = []
        for row, item in zip(unclear, items, strict=True):
            usable = Proposal(row.name, list(row.aliases), row.proposal.kind, row.proposal.what)
            words = self.wordings[VERIFY]
            self.checked.append(verification_request(row.id, usable, row.cell, item, instructions=words))
        for row, answered in zip(unclear, ask(self.checked, f"checks of round {number}"), strict=True):
            self.settle(row, answered)
        for state, answered in zip(active, replies, strict=True):
            self.rounds.append(state.close(answered))
            self.proposals += state.rows

    def ended_in(self) -> Mapping[str, int]:
        """Count how asking ended."""
        return dict(sorted(Counter(self.outcomes).items()))

    def find_meaning(self, row: ProposalRow, found: Mapping[str, Sequence[KnownItem]]) -> None:
        """Find out what a proposal means; where its name means nothing, one of its other names may."""
        meant = self.meaning_of(row.name, row.cell, found)
        if meant.how == "there" and meant.item is not None:
            row.artifact_id = meant.item.qid
            row.end("known")
        elif meant.how == "several":
            row.end("left out", "name of several items", meant.detail)
        row.item = meant.item
        for name in row.aliases if meant.how == "nothing" else ():
            other = self.meaning_of(name, row.cell, found)
            if other.item is not None and other.item.concept == row.cell.concept.concept:
                row.item = other.item
                return

    def meaning_of(self, name: str, cell: Cell, found: Mapping[str, Sequence[KnownItem]]) -> Found:
        """Find out what a name means in a cell."""
        key = loose_key_of(name)
        called = self.additions.also([key], found.get(key, ())) if key else []
        concept = cell.concept.concept
        return reconcile(name, called, concept=concept, classes=self.classes[concept], countries=cell.country.qids)

    def settle(self, row: ProposalRow, answered: Answered) -> None:
        """Add what two answers of yes allow; everything else is left out with its reason."""
        self.outcomes.append(answered.outcome)
        reply = answered.value
        if not isinstance(reply, VerificationReply):
            row.set_aside = True
            row.end("left out", f"not verified: {answered.outcome}", answered.detail)
        elif reply.instance == "no":
            row.end("refused", "verified: not of the concept")
        elif reply.belongs == "no":
            row.end("refused", "verified: not of the country")
        elif "unsure" in {reply.instance, reply.belongs}:
            row.end("refused", "verified: not sure")
        else:
            self.add(row, same=reply.item == "same")

    def add(self, row: ProposalRow, *, same: bool) -> None:
        """Add a verified proposal, unless it came in meanwhile."""
        item = self.additions.current(row.item) if row.item is not None and same else None
        if item is None:
            item = self.additions.namesake(row.name, row.cell.concept.concept)
            if item is not None and row.item is not None and item.qid == row.item.qid:
                item = None
        here = item is not None and any(qid in row.cell.country.qids for qid in item.country_qids)
        if item is not None and here and item.concept == row.cell.concept.concept and item.standing == "kept":
            row.artifact_id = item.qid
            row.end("known")
            return
        self.additions.add(row, item)
