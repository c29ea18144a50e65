"""The rounds of a completion: ask every open cell, find out what is meant, have it verified, and ask again.

What is asked in a round depends on nothing but the answers of the rounds before, so a run that was cut asks the same.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from culturekit.builders.completing.completion_additions import Additions, ProposalRow
from culturekit.builders.completing.completion_lookup import KnownItem, KnownTables
from culturekit.builders.completing.completion_names import accents_agree
from culturekit.builders.completing.completion_questions import (
    PROPOSE,
    VERIFY,
    Cell,
    CompletionLimits,
    ProposalReply,
    VerificationReply,
    proposal_request,
    verification_request,
)
from culturekit.builders.completing.completion_state import CellState, Round
from culturekit.builders.completing.item_facts import ItemNames
from culturekit.builders.folded_names import folded, loose_key_of
from culturekit.llm.client import Request
from culturekit.llm.rows import Answered

__all__ = ["Ask", "CompletionRounds", "Found", "reconcile"]

Ask = Callable[[Sequence[Request], str], list[Answered]]
"""Answers a list of requests; the text says what they are, for the progress."""

How: TypeAlias = Literal["there", "elsewhere", "several", "nothing"]
"""The artifact is in the collection for the country; an item is likely meant that is not; several are called so, and
neither concept nor country decides; nothing is called so that could be meant."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a name was found to mean."""

    how: How
    item: KnownItem | None = None
    detail: str = ""


@dataclass(slots=True)
class CompletionRounds:
    """All cells of a completion; `classes` has, for each concept, the classes that its artifacts belong to."""

    states: list[CellState]
    tables: KnownTables
    names: ItemNames
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
        replies = ask([self.question(state) for state in active], f"questions of round {number}")
        opened: list[ProposalRow] = []
        for state, answered in zip(active, replies, strict=True):
            self.outcomes.append(answered.outcome)
            state.rows, state.taken_back = [], 0
            if isinstance(answered.value, ProposalReply):
                opened += state.take(answered.value, self.additions)
        self.find_meanings(opened)
        unclear = [row for row in opened if not row.outcome]
        self.checked = self.checks(unclear)
        for row, answered in zip(unclear, ask(self.checked, f"checks of round {number}"), strict=True):
            self.settle(row, answered)
        for state, answered in zip(active, replies, strict=True):
            self.rounds.append(state.close(answered))
            self.proposals += state.rows

    def ended_in(self) -> Mapping[str, int]:
        """Count how asking ended."""
        return dict(sorted(Counter(self.outcomes).items()))

    def question(self, state: CellState) -> Request:
        """Write the next question about a cell."""
        return proposal_request(state.cell, state.next_question(), self.limits, instructions=self.wordings[PROPOSE])

    def find_meanings(self, rows: Sequence[ProposalRow]) -> None:
        """Look all names of a round up at once, and end the proposals of what is there or cannot be decided."""
        found = self.tables.find(name for row in rows for name in (row.name, *row.aliases))
        for row in rows:
            self.find_meaning(row, found)

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

    def checks(self, rows: Sequence[ProposalRow]) -> list[Request]:
        """Write the question about each proposal that has to be verified."""
        described = self.names.describe([row.item for row in rows])
        return [
            verification_request(row.id, row.as_checked(), row.cell, item, instructions=self.wordings[VERIFY])
            for row, item in zip(rows, described, strict=True)
        ]

    def settle(self, row: ProposalRow, answered: Answered) -> None:
        """Add what two answers of yes allow; everything else is left out with its reason."""
        self.outcomes.append(answered.outcome)
        said = answered.value
        if not isinstance(said, VerificationReply):
            row.set_aside = True
            row.end("left out", f"not verified: {answered.outcome}", answered.detail)
        elif said.instance == "no":
            row.end("refused", "verified: not of the concept")
        elif said.belongs == "no":
            row.end("refused", "verified: not of the country")
        elif "unsure" in {said.instance, said.belongs}:
            row.end("refused", "verified: not sure")
        else:
            self.add(row, same=said.item == "same")

    def add(self, row: ProposalRow, *, same: bool) -> None:
        """Add a verified proposal, unless it came in meanwhile."""
        item = self.additions.current(row.item) if row.item is not None and same else None
        if item is None:
            item = self.additions.namesake(row.name, row.cell.concept.concept)
            if item is not None and row.item is not None and item.qid == row.item.qid:
                item = None
        if item is not None and is_there(item, row.cell):
            row.artifact_id = item.qid
            row.end("known")
            return
        self.additions.add(row, item)


def is_there(item: KnownItem, cell: Cell) -> bool:
    """Tell whether a cell has an artifact already."""
    here = any(qid in cell.country.qids for qid in item.country_qids)
    return here and item.concept == cell.concept.concept and item.standing == "kept"


def reconcile(
    name: str, called: Sequence[KnownItem], *, concept: str, classes: Collection[str], countries: Collection[str]
) -> Found:
    """Choose among the items whose names share the letters of a name.

    An equal name goes before one whose accents merely agree, so two items that only accents tell apart stay two. What
    has to do with the concept goes before what is only called the same; the country decides last.

    Args:
        name: as it was proposed.
        called: what is called so, in any spelling of the same letters.
        concept: what was asked for.
        classes: classes that mark an item as one of the concept, though it is no candidate.
        countries: the items of the country that was asked for.
    """
    key = folded(name)
    near = [
        item for item in once(called, concept) if item.concept == concept or any(one in classes for one in item.classes)
    ]
    far = [item for item in once(called, concept) if item not in near]
    for among, of_concept in ((near, True), (far, False)):
        for fits in (equal(key), agreeing(key)):
            fitting = [item for item in among if fits(item)]
            if fitting:
                return chosen(fitting, concept=concept, countries=countries, of_concept=of_concept)
    return Found("nothing")


def once(called: Sequence[KnownItem], concept: str) -> list[KnownItem]:
    """Leave each item once: as a candidate of the concept where it is one."""
    own = {item.qid: item for item in sorted(called, key=lambda item: (item.concept == concept, item.concept or ""))}
    return [own[qid] for qid in sorted(own)]


def equal(key: str) -> Callable[[KnownItem], bool]:
    """Make a test of equal names."""
    return lambda item: key in item.names


def agreeing(key: str) -> Callable[[KnownItem], bool]:
    """Make a test of names that may be spellings of one another."""
    return lambda item: any(accents_agree(key, name) for name in item.names)


def chosen(fitting: Sequence[KnownItem], *, concept: str, countries: Collection[str], of_concept: bool) -> Found:
    """Let the country decide among items of one name, then what the filter kept."""
    here = [item for item in fitting if any(qid in countries for qid in item.country_qids)]
    there = [item for item in here if item.concept == concept and item.standing == "kept"]
    if there:
        return Found("there", there[0])
    for among in (here, fitting):
        kept = [item for item in among if item.concept == concept and item.standing == "kept"]
        candidates = [item for item in among if item.concept == concept]
        one = next((few[0] for few in (kept, candidates, list(among)) if len(few) == 1), None)
        if one is not None:
            return Found("elsewhere", one)
        if among:
            break
    if not of_concept:
        return Found("nothing", detail=f"{len(fitting)} items of other kinds are called so")
    return Found("several", detail=" ".join(item.qid for item in fitting))
