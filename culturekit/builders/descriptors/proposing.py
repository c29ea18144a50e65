"""Descriptors as models propose them, dimension by dimension, and as one chooses among them; and stereotypes."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.activities.extracting import FIXED, LOOKED_FOR, PER_CATEGORY
from culturekit.builders.asking import Asked, GivenWording, asks, bounded, row_id, sifted
from culturekit.core.declared import Typed
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import DESCRIPTOR_TRAIL, DESCRIPTORS, PROMPTS, PROPOSED_DESCRIPTORS, STEREOTYPES
from culturekit.core.stage import Outcome
from culturekit.core.tables import read_table, write_table
from culturekit.kg.countries import country
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.llm.untrusted import strip_hidden
from culturekit.metrics.ahead.matching import DIMENSIONS, normalise_phrase

# The activities that prompts ask for, dimension by dimension, as models are asked about them.


@dataclass(frozen=True, slots=True)
class ActivityDimension:
    """One dimension of what a prompt asks for."""

    prompt_id: str
    activity: str
    category: str
    country: str
    dimension: str

    @property
    def id(self) -> str:
        """The id that a model is asked under."""
        return row_id(self.category, self.activity, self.country, self.dimension)

    @property
    def key(self) -> str:
        """The name in `drops`."""
        return f"{self.prompt_id}/{self.dimension}"

    def asked(self) -> dict[str, object]:
        """Give what a model is told of it."""
        named = {name: getattr(self, name) for name in ("activity", "category", "country", "dimension")}
        return {"id": self.id, **named}


def activities_of(path: Path, *, grid: Sequence[str] = (), per_category: int = PER_CATEGORY) -> pl.DataFrame:
    """Read the prompts in English that name a country: prompt_id, activity, concept, country.

    A prompt of a table without the column `activity` is asked about by its text. Before the table is there, the whole
    grid of some countries can stand for it in a plan.
    """
    if grid and not path.is_file():
        return whole_grid(grid, per_category=per_category)
    prompts = read_table(path, PROMPTS).filter(pl.col("country").is_not_null(), language="en")
    if prompts.is_empty():
        raise UsageError("no English prompt names a country", where=str(path), expected="prompts of activities")
    text = pl.coalesce("activity", "text") if "activity" in prompts.columns else pl.col("text")
    return prompts.select("prompt_id", "concept", "country", activity=text).sort("prompt_id")


def whole_grid(isos: Sequence[str], *, per_category: int = PER_CATEGORY) -> pl.DataFrame:
    """Give as many activities as the prompts of some countries will ask for, under names of a usual length."""
    unknown = {category: [f"a usual custom {n}" for n in range(per_category)] for category in LOOKED_FOR}
    rows = [
        {"prompt_id": f"{iso}-{category}-{name}", "concept": category, "country": iso, "activity": name}
        for iso in isos
        for category, names in {**unknown, **FIXED}.items()
        for name in names
    ]
    return pl.DataFrame(rows)


def dimensions_of(prompts: pl.DataFrame) -> Iterator[ActivityDimension]:
    """Give the five dimensions of each activity."""
    for row in prompts.iter_rows(named=True):
        name = country(row["country"]).name
        for dimension in DIMENSIONS:
            yield ActivityDimension(row["prompt_id"], row["activity"], row["concept"] or "", name, dimension)


STYLES = ("traditional", "modern", "neutral")
NECESSITIES = ("necessary", "optional")

MOST_WORDS, LONGEST = 7, 80  # models are asked for one to four words; published descriptors have seven, and 40 letters
BETWEEN_STYLES = re.compile(r"\s*(?:[|/,]|\bor\b|\band\b)\s*")


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor as it is kept; `note` says what was read otherwise than it was written."""

    token: str
    style: str
    necessity: str
    note: str = ""


def read_descriptor(token: str, style: str, necessity: str) -> Descriptor:
    """Read a descriptor; a style or a necessity that is none is read as the one that claims least."""
    parts = [part for part in BETWEEN_STYLES.split(style.strip().casefold()) if part]
    known = [part for part in parts if part in STYLES]
    needed = necessity.strip().casefold()
    notes = []
    if not known or len(known) < len(parts):
        notes.append(f"style {style[:40]!r}")
    if needed not in NECESSITIES:
        notes.append(f"necessity {necessity[:40]!r}")
    shown = unicodedata.normalize("NFC", " ".join(strip_hidden(token).split())).removesuffix(".")
    necessary = needed if needed in NECESSITIES else "optional"
    note = f"no such {' and '.join(notes)}" if notes else ""
    return Descriptor(shown, joined_styles(*(known or ["neutral"])), necessary, note)


def joined_styles(*styles: str) -> str:
    """Join styles, each once, in the order in which they come: `traditional|modern`."""
    return "|".join(dict.fromkeys(part for style in styles for part in style.split("|")))


def token_problem(token: str) -> str:
    """Explain why a text is no descriptor; empty where it is one."""
    if not any(letter.isalpha() for letter in token):
        return "nothing said"
    if len(token.split()) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    if len(token) > LONGEST:
        return f"more than {LONGEST} letters"
    if not all(unicodedata.name(letter, "").startswith("LATIN") for letter in token if letter.isalpha()):
        return "not in Latin letters"
    return ""


PROPOSE = "descriptors.propose"
PROPOSED = "proposed"
PROPOSE_TOKENS = 1024
MOST_READ = 200


class AskedDescriptor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A descriptor as a model is asked for it."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    style: Literal["traditional", "modern", "neutral"]
    necessity: Literal["necessary", "optional"]


class AskedDescriptors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply that is asked for."""

    id: str
    descriptors: list[AskedDescriptor]


class ProposedDescriptor(msgspec.Struct, frozen=True):
    """A descriptor as it may come: what is none costs itself, and not the whole reply."""

    token: str
    style: str = ""
    necessity: str = ""


class ProposedDescriptors(msgspec.Struct, frozen=True):
    """The reply that is read."""

    id: str
    descriptors: Annotated[list[ProposedDescriptor], msgspec.Meta(max_length=MOST_READ)]


AtMost: TypeAlias = Annotated[int, Field(ge=1, le=50, description="Descriptors of a dimension.")]
PromptsOfActivities: TypeAlias = Annotated[
    Path, Field(description="Prompts table; those in English that name a country are asked about.")
]


@asks(
    "propose-descriptors", "proposals", PROPOSE, words="descriptors_propose", unit="dimensions of prompts", version=3,
    key=lambda row: row.key, ahead=lambda given: bool(given["grid"]),
    example=f"--prompts prompts/prompts.parquet --llm {quoted('text')} --out proposals --budget 20",
)  # fmt: skip
def propose(
    asked: Asked,
    prompts: PromptsOfActivities,
    *,
    proposer: Annotated[
        str,
        Field(description="Who proposes, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ],
    at_most: AtMost = 10,
    wording: GivenWording = None,
    grid: tuple[str, ...] = (),
    per_category: int = PER_CATEGORY,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Have a model propose what pictures of activities show.

    It goes dimension by dimension.
    """
    rows = list(dimensions_of(activities_of(prompts, grid=grid, per_category=per_category)))
    request = partial(proposal_request, at_most=at_most, instructions=asked.instructions)
    came = asked.put(rows, request, unit="dimensions")
    found = [each for row, value in came for each in _proposed_rows(row, asked.client.model, value, at_most=at_most)]
    table = pl.DataFrame(found, schema=PROPOSED_DESCRIPTORS.schema)
    write_table(asked.work.out, PROPOSED_DESCRIPTORS, table)
    outcomes = dict(table.group_by("outcome").len().sort("outcome").iter_rows())
    return asked.outcome(asked.work, {"dimensions": len(rows), "proposals": table.height}, proposals=outcomes)


def proposal_request(row: ActivityDimension, *, at_most: int, instructions: str) -> Request:
    """Ask for the descriptors of a dimension."""
    data, bound = {**row.asked(), "at_most": at_most}, bounded(AskedDescriptors, "descriptors", at_most)
    return Request(PROPOSE, instructions, data, ProposedDescriptors, allowed={"id": (row.id,)},
                   max_tokens=PROPOSE_TOKENS, asks=bound)  # fmt: skip


def _proposed_rows(
    row: ActivityDimension, proposer: str, value: ProposedDescriptors, *, at_most: int
) -> Iterator[dict[str, Any]]:
    """Write each proposal of a reply with what came of it: proposed, or why not."""
    read = (read_descriptor(each.token, each.style, each.necessity) for each in value.descriptors)
    sorted_out = sifted(
        read, problem=lambda one: token_problem(one.token), key=lambda one: normalise_phrase(one.token), at_most=at_most
    )
    for position, (each, why) in enumerate(sorted_out, start=1):
        yield {
            "prompt_id": row.prompt_id, "dimension": row.dimension, "proposer": proposer, "position": position,
            "token": each.token, "style": each.style, "necessity": each.necessity, "outcome": why or PROPOSED,
            "detail": each.note or None,
        }  # fmt: skip


# A refiner chooses among proposals and merges them, by number, and adds nothing. Each descriptor knows who proposed it
# and what was merged into it; each other proposal knows why it went.

REFINE = "descriptors.refine"
REFINE_TOKENS = 1536
KEPT, MERGED, TOO_MANY = "kept", "merged", "too many"
INVENTED, NOT_CHOSEN, NO_ANSWER = "invented", "not chosen", "the refiner gave no answer"
NONE_LEFT = "no descriptor is left"

Number = str
Why = Literal["wrong", "other dimension", "unrelated", "repeats", "too many"]


class KeptNumber(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate that is kept, and those that say the same."""

    number: str
    merges: list[str]


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate that is left out, and why."""

    number: str
    reason: Why


class Refinement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a refiner answers: numbers of candidates, never words of its own."""

    id: str
    kept: list[KeptNumber]
    left_out: list[LeftOut]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Equal phrases of all proposers."""

    token: str
    style: str
    necessity: str
    proposers: tuple[str, ...]
    position: int

    def joined(self, other: "Candidate") -> "Candidate":
        """Take in another one: it is necessary where one of them is, and of the styles of both."""
        return replace(
            self,
            style=joined_styles(self.style, other.style),
            necessity="necessary" if "necessary" in (self.necessity, other.necessity) else "optional",
            proposers=tuple(dict.fromkeys((*self.proposers, *other.proposers))),
        )


def _candidate(row: Mapping[str, Any]) -> Candidate:
    """Read a proposal."""
    return Candidate(row["token"], row["style"], row["necessity"], (row["proposer"],), row["position"])


def _candidates_of(proposals: Sequence[Mapping[str, Any]]) -> list[Candidate]:
    """Join equal phrases, and put those first that more proposers name, then those that were named earlier."""
    found: dict[str, Candidate] = {}
    for row in proposals:
        phrase, one = normalise_phrase(row["token"]), _candidate(row)
        found[phrase] = found[phrase].joined(one) if phrase in found else one
    return sorted(found.values(), key=lambda each: (-len(each.proposers), each.position))


@dataclass
class Cell:
    """One dimension of a prompt on its way from candidates to descriptors."""

    row: ActivityDimension
    candidates: Mapping[Number, Candidate]
    rejected: Sequence[Mapping[str, Any]] = ()
    answered: bool = False
    fates: dict[Number, tuple[str, Number | None]] = field(default_factory=dict)
    invented: list[str] = field(default_factory=list)

    def take(self, value: Refinement, *, at_most: int) -> None:
        """Read a reply: what it keeps and merges first, then why it left out the rest."""
        self.answered = True
        kept = 0
        for each in value.kept:
            number = self.known(each.number)
            if number is None or number in self.fates:
                continue
            kept += 1
            self.fates[number] = (KEPT, number) if kept <= at_most else (TOO_MANY, None)
            for merged in filter(None, map(self.known, each.merges)):
                self.fates.setdefault(merged, (MERGED, number) if kept <= at_most else (TOO_MANY, None))
        for left in value.left_out:
            number = self.known(left.number)
            if number is not None:
                self.fates.setdefault(number, (left.reason, None))

    def known(self, named: str) -> Number | None:
        """Find the candidate that a reply names, by its number or its own words; what is none is invented."""
        if named in self.candidates:
            return named
        same = [n for n, each in self.candidates.items() if normalise_phrase(each.token) == normalise_phrase(named)]
        if not same:
            self.invented.append(named)
        return same[0] if same else None

    def descriptors(self) -> Iterator[dict[str, Any]]:
        """Write the descriptors that are kept, with all that was merged into them."""
        for number, (fate, _) in self.fates.items():
            if fate == KEPT:
                whole = self.candidates[number]
                for other, (how, into) in self.fates.items():
                    if how == MERGED and into == number:
                        whole = whole.joined(self.candidates[other])
                yield self.about(whole)

    def trail(self, refiner: str) -> Iterator[dict[str, Any]]:
        """Write what became of each candidate, of what was no descriptor, and of what the refiner invented."""
        untold = NOT_CHOSEN if self.answered else NO_ANSWER
        fates = [(each, *self.fates.get(number, (untold, None))) for number, each in self.candidates.items()]
        fates += [(_candidate(row), row["outcome"], None) for row in self.rejected]
        fates += [
            (Candidate(named[:400], "neutral", "optional", (), 0), INVENTED, None)
            for named in dict.fromkeys(self.invented)
        ]
        for number, (each, fate, into) in enumerate(fates, start=1):
            kept_as = None if into is None else self.candidates[into].token
            yield self.about(each) | {"number": number, "outcome": fate, "kept_as": kept_as, "refiner": refiner}

    def about(self, each: Candidate) -> dict[str, Any]:
        """Write a candidate."""
        return {"prompt_id": self.row.prompt_id, "dimension": self.row.dimension, "token": each.token,
                "style": each.style, "necessity": each.necessity, "proposers": list(each.proposers)}  # fmt: skip

    def request(self, *, at_most: int, instructions: str) -> Request:
        """Ask which candidates stay."""
        candidates = [
            {"number": number, "token": each.token, "style": each.style, "necessity": each.necessity,
             "proposers": len(each.proposers)}
            for number, each in self.candidates.items()
        ]  # fmt: skip
        data = {**self.row.asked(), "at_most": at_most, "candidates": candidates}
        allowed = {"id": (self.row.id,)}
        return Request(REFINE, instructions, data, Refinement, allowed=allowed, max_tokens=REFINE_TOKENS)


@asks(
    "refine-descriptors", "descriptors", REFINE, words="descriptors_refine", unit="dimensions of prompts",
    key=lambda cell: cell.row.key, ahead=lambda given: bool(given["grid"]),
    example="--prompts prompts/prompts.parquet --proposals proposals/proposed_descriptors.parquet "
    f"--llm {quoted('text')} --out descriptors --budget 20",
)  # fmt: skip
def refine(
    asked: Asked,
    prompts: Annotated[Path, Field(description="Prompts table that was proposed for.")],
    proposals: Annotated[Numbered, Field(description="Table that `descriptors propose` wrote; one for each proposer.")],
    *,
    refiner: Annotated[
        str,
        Field(
            description="Who chooses, as a SPEC: openai:MODEL, google:MODEL or another; `rules` takes the first of "
            "all, those that more proposers name."
        ),
        Typed("llm"),
    ],
    at_most: AtMost = 10,
    wording: GivenWording = None,
    grid: tuple[str, ...] = (),
    per_category: int = PER_CATEGORY,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Have a model choose among proposals, and merge them.

    What says the same is merged; it can add nothing.
    """
    if asked.planning and not all(path.is_file() for path in (prompts, *proposals.places)):
        ahead = activities_of(prompts, grid=grid, per_category=per_category)
        # Before anything was proposed cells are as large as they can become.
        usual = {str(n): Candidate(f"seated around low table {n}", "traditional", "optional", ("",), n)
                 for n in range(1, 1 + len(proposals.places) * at_most)}  # fmt: skip
        cells = [Cell(row, usual) for row in dimensions_of(ahead)]
    else:
        cells = _cells_of(prompts, proposals.places)
    request = partial(Cell.request, at_most=at_most, instructions=asked.instructions)
    for cell, value in asked.put([cell for cell in cells if cell.candidates], request, unit="dimensions"):
        cell.take(value, at_most=at_most)
        if not any(fate == KEPT for fate, _ in cell.fates.values()):
            asked.drop(cell, NONE_LEFT)
    kept = [row for cell in cells for row in cell.descriptors()]
    trail = [row for cell in cells for row in cell.trail(asked.client.model)]
    write_table(asked.work.out, DESCRIPTORS, pl.DataFrame(kept, schema=DESCRIPTORS.schema))
    table = pl.DataFrame(trail, schema=DESCRIPTOR_TRAIL.schema)
    write_table(asked.work.out, DESCRIPTOR_TRAIL, table)
    fates = dict(table.group_by("outcome").len().sort("outcome").iter_rows())
    return asked.outcome(asked.work, {"dimensions": len(cells), "descriptors": len(kept)}, candidates=fates)


def _cells_of(prompts: Path, proposals: Sequence[Path]) -> list[Cell]:
    """Gather the candidates of each dimension."""
    rows = {(row.prompt_id, row.dimension): row for row in dimensions_of(activities_of(prompts))}
    tables = [read_table(path, PROPOSED_DESCRIPTORS) for path in proposals]
    every = pl.concat([table.select(list(PROPOSED_DESCRIPTORS.schema)) for table in tables])
    strange = sorted(set(every["prompt_id"]) - {prompt for prompt, _ in rows})
    if strange:
        raise UsageError(
            f"{len(strange)} prompts of the proposals are not among the prompts", where=str(prompts),
            found=", ".join(strange[:5]),
        )  # fmt: skip
    cells = []
    for key, group in every.partition_by("prompt_id", "dimension", as_dict=True, maintain_order=True).items():
        proposed = list(group.filter(outcome=PROPOSED).iter_rows(named=True))
        rejected = list(group.filter(pl.col("outcome") != PROPOSED).iter_rows(named=True))
        numbered = {str(number): each for number, each in enumerate(_candidates_of(proposed), start=1)}
        cells.append(Cell(rows[str(key[0]), str(key[1])], numbered, rejected))
    return sorted(cells, key=lambda cell: (cell.row.prompt_id, DIMENSIONS.index(cell.row.dimension)))


# What pictures of a country overdo, as a model names it.

STEREOTYPE = "stereotypes.propose"
STEREOTYPE_TOKENS = 512


class Stereotypes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one country."""

    id: str
    stereotypes: Annotated[list[str], msgspec.Meta(max_length=MOST_READ)]


@asks(
    "name-stereotypes", "stereotypes", STEREOTYPE, words="stereotypes_propose", unit="countries", version=3,
    key="/".join, ahead=lambda given: bool(given["grid"]),
    example=f"--prompts prompts/prompts.parquet --llm {quoted('text')} --out stereotypes",
)  # fmt: skip
def stereotypes(
    asked: Asked,
    prompts: PromptsOfActivities,
    *,
    proposer: Annotated[
        str,
        Field(description="Who names them, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ],
    at_most: Annotated[int, Field(ge=1, le=100, description="Stereotypes of a country.")] = 15,
    wording: GivenWording = None,
    grid: tuple[str, ...] = (),
    per_category: int = PER_CATEGORY,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Have a model name what pictures of each country overdo."""
    isos = sorted(set(activities_of(prompts, grid=grid, per_category=per_category)["country"]))
    kept: list[tuple[str, str]] = []

    def request(row: tuple[str, str]) -> Request:
        return stereotype_request(row[0], at_most=at_most, instructions=asked.instructions)

    for (iso, _), value in asked.put([(iso, "") for iso in isos], request, unit="countries"):
        tokens = (read_descriptor(named, "neutral", "optional").token for named in value.stereotypes)
        for token, why in sifted(tokens, problem=token_problem, key=normalise_phrase, at_most=at_most):
            if why:
                asked.drop((iso, token[:80]), why)
            else:
                kept.append((iso, token))
    if not kept:
        ended = ", ".join(f"{count} {outcome}" for outcome, count in sorted(asked.outcomes.items()))
        raise UsageError(
            f"{asked.client.model} names no stereotype of any country", found=f"questions ended {ended}",
            hint="Ask another model: without stereotypes there is no EXAG and no FAITH.",
        )  # fmt: skip
    write_table(asked.work.out, STEREOTYPES, pl.DataFrame(kept, schema=STEREOTYPES.schema, orient="row"))
    return asked.outcome(asked.work, {"countries": len(isos), "stereotypes": len(kept)})


def stereotype_request(iso: str, *, at_most: int, instructions: str) -> Request:
    """Ask for the stereotypes of a country."""
    name = country(iso).name
    asked_id = row_id("stereotypes", name)
    return Request(
        STEREOTYPE, instructions, {"id": asked_id, "country": name, "at_most": at_most}, Stereotypes,
        allowed={"id": (asked_id,)}, max_tokens=STEREOTYPE_TOKENS, asks=bounded(Stereotypes, "stereotypes", at_most),
    )  # fmt: skip
