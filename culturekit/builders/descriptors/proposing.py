"""Descriptors as a model proposes them: what one is, a question per prompt and dimension, and why others went."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from culturekit.core.schemas import PROMPTS, PROPOSED_DESCRIPTORS
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome
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
REPLY_TOKENS = 1024
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
                   max_tokens=REPLY_TOKENS, asks=bound)  # fmt: skip


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
