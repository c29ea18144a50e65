"""What is completed, cell by cell, and its two questions: what is missing, and whether it belongs."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from pydantic import Field

from culturekit.builders.completing.completion_names import MOST_CHARACTERS
from culturekit.builders.wordings import wording
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import Country, countries
from culturekit.llm.client import Request
from culturekit.storage.table_slices import TableSlices

__all__ = [
    "PROPOSE",
    "VERIFY",
    "Cell",
    "CompletionLimits",
    "Proposal",
    "ProposalReply",
    "Shown",
    "VerificationReply",
    "cells_of",
    "drawn_cells",
    "names_there",
    "proposal_request",
    "verification_request",
    "wordings",
]

LOOKED_AT = ("concept", "qid", "label", "country_qids", "sitelinks")


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
    for place, row in enumerate(row for frame in kept.slices(LOOKED_AT) for row in frame.iter_rows(named=True)):
        concept = concepts.get(row["concept"])
        if concept is None or not row["label"]:
            continue
        entry = (row["sitelinks"], -place, row["label"])
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
MOST_KINDS = 100
"""Beyond this a list of kinds is no schema that every provider takes; the question names them in any case."""

Says: TypeAlias = Literal["yes", "no", "unsure"]
LongName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
"""Far too long for a name: what is too long is left out by itself, and does not cost the whole reply."""


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An artifact that a model says is missing."""

    name: LongName
    other_names: Annotated[list[LongName], msgspec.Meta(max_length=MOST_OTHER_NAMES)]
    kind: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)]
    what: Annotated[str, msgspec.Meta(max_length=400)]


class ProposalReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one cell in one round."""

    id: str
    wrong: list[str]
    artifacts: Annotated[list[Proposal], msgspec.Meta(max_length=MOST_IN_A_REPLY)]


@lru_cache(maxsize=64)
def asked_proposals(kinds: tuple[str, ...], at_most: int) -> type[msgspec.Struct]:
    """Narrow the shape of a reply to what one question asks for, kinds by name.

    A reply that says more, or names another kind, is read all the same: what is too much costs no more than itself.
    """
    name = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS)]
    proposal: Any = msgspec.defstruct(
        "Proposal",
        [
            ("name", name),
            ("other_names", Annotated[list[name], msgspec.Meta(max_length=MOST_OTHER_NAMES)]),
            ("kind", Literal[kinds] if 0 < len(kinds) <= MOST_KINDS and "" not in kinds else str),
            ("what", Annotated[str, msgspec.Meta(max_length=LONGEST_WHAT)]),
        ],
        frozen=True,
        forbid_unknown_fields=True,
    )
    return msgspec.defstruct(
        "ProposalReply",
        [
            ("id", str),
            ("wrong", Annotated[list[str], msgspec.Meta(max_length=at_most)]),
            ("artifacts", Annotated[list[proposal], msgspec.Meta(max_length=at_most)]),
        ],
        frozen=True,
        forbid_unknown_fields=True,
    )


class VerificationReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one proposal."""

    id: str
    instance: Says
    belongs: Says
    item: Literal["same", "other", "none"]


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
        "id": cell.id,
        "concept": cell.concept.concept,
        "kinds": list(cell.kinds),
        "country": cell.country.name,
        "languages": list(cell.concept.languages),
        "round": shown.round,
        "at_most": limits.per_round,
        "known": list(shown.known),
        "added": [{"number": number, "name": name} for number, name in shown.added.items()],
        "repeated": list(shown.repeated[:MOST_REPEATED]),
        "refused": list(shown.refused[-MOST_REPEATED:]),
    }
    allowed = {"id": (cell.id,), "wrong": tuple(shown.added)}
    tokens = VERIFY_TOKENS + TOKENS_OF_A_PROPOSAL * limits.per_round
    asks = asked_proposals(cell.kinds, limits.per_round)
    return Request(PROPOSE, instructions, data, ProposalReply, allowed=allowed, max_tokens=tokens, asks=asks)


def verification_request(
    proposal_id: str, proposal: Proposal, cell: Cell, item: Mapping[str, object] | None, *, instructions: str
) -> Request:
    """Ask whether a proposal belongs, and whether the item of that name is what it means."""
    data = {
        "id": proposal_id,
        "name": proposal.name,
        "other_names": list(proposal.other_names),
        "what": proposal.what[:LONGEST_WHAT],
        "kind": proposal.kind,
        "concept": cell.concept.concept,
        "country": cell.country.name,
        "item": item,
    }
    return Request(
        VERIFY, instructions, data, VerificationReply, allowed={"id": (proposal_id,)}, max_tokens=VERIFY_TOKENS
    )
