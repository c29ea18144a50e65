"""Names that a model proposes: which can be used, which two are one, and the id of what no graph knows.

What in a name looks as if it were meant for a model and not for a reader is a hint for people, never a filter. Nothing
is changed by it: a label stays as it is stored, and what is sent is made safe whether it looks suspicious or not. Only
here a text is brought to its compatibility form, so that look-alike letters are read as what they pose as.
"""

import heapq
import re
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain, count
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from pydantic import Field

from culturekit.builders.asked_rows import wording
from culturekit.builders.country_names import folded, without_accents
from culturekit.builders.filtering.cspace_filter import name_problem
from culturekit.core.tables import TableSlices
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import Country, countries
from culturekit.llm.client import Request
from culturekit.llm.untrusted import LONGEST_TEXT, MarkupScanner, reveal, without_hidden_characters

Suspicion: TypeAlias = Literal[
    "bidi", "comment", "controls", "half-characters", "hidden-html", "instruction", "look-alikes", "markup",
    "noncharacters", "role-marker", "tags", "too-long", "variation-selectors", "zero-width",
]  # fmt: skip

MOST_READ = 100_000

ROLE_MARKER = re.compile(
    r"<\|[^<>|\n]{1,40}\|>|<\|?(?:im_start|im_end|endoftext|eot_id)\b|\[/?inst\]|<</?sys>>|</?s>|<(?:start|end)_of_turn>"
    r"|</?(?:system|assistant|user|human|think|tool_call|function_calls?)>|\bbegin[_▁]of[_▁]sentence\b"
    r"|(?:^|\n)\s*#{0,4}\s*(?:system|assistant|user|human|developer|instruction|response)\s*:",
    re.IGNORECASE,
)
INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule|previous|above|prior|context)"
    r"|\b(?:you are now|act as|pretend to be|new instructions?|system prompt|jailbreak|developer mode)\b"
    r"|\b(?:answer|reply|respond|output|say|return|print)\b.{0,30}\b(?:keep|remove|yes|json|only|verdict)\b"
    r"|\"?verdict\"?\s*[:=]"
    r"|\b(?:ignor(?:a|e|ez|ier|iere|ieren|are|eer|uj)|oubli(?:e|ez)|olvida|esque[cç]a|vergiss|negeer|dimentica)\b"
    r".{0,40}\b(?:instru\w+|anweisung\w*|consignes?|regeln|regras|reglas|istruzioni|instructies|precedent\w*)"
    r"|игнорируй|забудь .{0,30}инструкци|忽略.{0,12}(?:指令|指示|说明|規則|规则)|(?:指示|命令).{0,6}無視"
    r"|(?:지시|명령).{0,8}무시|تجاهل|अनदेखा|উপেক্ষা|bỏ qua .{0,20}(?:hướng dẫn|chỉ thị)|abaikan .{0,20}instruksi"
    r"|נא להתעלם|התעלם|önceki .{0,12}talimat|نادیده|นโยบาย.{0,8}ละเลย|เพิกเฉย|puuza maagizo",
    re.IGNORECASE,
)


def suspicious(text: str) -> list[Suspicion]:
    """Name what is suspicious about a text, in alphabetical order; an empty list is no proof of innocence."""
    found: set[str] = set(reveal(text[:MOST_READ]))
    if len(text) > LONGEST_TEXT:
        found.add("too-long")
    shown = without_hidden_characters(text[:MOST_READ])
    scanner = MarkupScanner(shown)
    scanner.scan()
    found |= scanner.found
    plain = unicodedata.normalize("NFKC", shown)
    read = ((character, unicodedata.normalize("NFKC", character)) for character in set(shown))
    if plain != shown and any(not one.isascii() and plainly.isascii() and plainly.isalpha() for one, plainly in read):
        found.add("look-alikes")
    if ROLE_MARKER.search(plain):
        found.add("role-marker")
    if INSTRUCTION.search(plain):
        found.add("instruction")
    return sorted(found)  # type: ignore[arg-type] # both scanners name kinds of this list


MOST_CHARACTERS = 120
MOST_WORDS = 12  # longer than any name of an artifact is, and shorter than most sentences

SLUG = "LLM:"
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "『": "』", "`": "`"}
NEVER_IN_A_NAME = frozenset("<>{}[]|\\`\n\r\t=;*#@^~_$")
HARMLESS = ("look-alikes",)  # wide letters are usual in Japanese names
BEGINS_A_FORMULA = ("=", "+", "-", "@")


def stripped_name(text: str) -> str:
    """Give a name in its composed form, without white space around it and without one pair of quotation marks."""
    name = " ".join(unicodedata.normalize("NFC", text).split(" ")).strip()
    if len(name) > 2 and QUOTES.get(name[0]) == name[-1]:
        name = name[1:-1].strip()
    return name


def proposal_problem(name: str, *, languages: Sequence[str]) -> tuple[str, str] | None:
    """Give the reason and the detail why a proposed name cannot be used; None when it can.

    A proposal has nothing but its name, so it is held to more than the label of an item is.
    """
    if len(name) > MOST_CHARACTERS:
        return "malformed name", f"{len(name)} characters"
    if any(character in NEVER_IN_A_NAME for character in name) or name.startswith(BEGINS_A_FORMULA) or "://" in name:
        return "malformed name", "characters that no name has"
    odd = [kind for kind in suspicious(name) if kind not in HARMLESS]
    if odd:
        return "malformed name", f"looks like {', '.join(odd)}"
    if len(name.split()) > MOST_WORDS:
        return "malformed name", f"{len(name.split())} words"
    if not folded(name):
        return "no usable label", ""
    return name_problem(name, languages=languages)


def accents_agree(one: str, other: str) -> bool:
    """Tell whether two folded names may be two spellings of one: word by word equal, or written bare on one side.

    So `pate` may be `pâté`, and `pâte` may not. Marks on letters of other scripts are no accents, and must be equal.
    """
    words, others = one.split(), other.split()
    return len(words) == len(others) and all(
        word == other or without_accents(word) == other or word == without_accents(other)
        for word, other in zip(words, others, strict=True)
    )


def artifact_slug(name: str, *, concept: str, country: str, taken: Container[str]) -> str:
    """Make the id of an artifact that no graph knows: of its folded name, in whatever script that is.

    Another artifact of that name adds its concept, then its country, then a number.
    """
    plain = SLUG + folded(name).replace(" ", "-")
    full = f"{plain}-{concept}-{country.casefold()}"
    wished = chain((plain, f"{plain}-{concept}", full), (f"{full}-{number}" for number in count(2)))
    return next(wish for wish in wished if wish not in taken)


# What is completed, cell by cell, and its two questions: what is missing, and whether it belongs.

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
    for number, row in enumerate(row for frame in kept.slices(LOOKED_AT) for row in frame.iter_rows(named=True)):
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
