"""Pairs of dialects as a model proposes them, and the filters they go through; each that falls says where and why."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, bounded, row_id
from culturekit.builders.prompting.dialect_corpus import phrases_met
from culturekit.builders.prompting.dialect_grammar import GRAMMARS
from culturekit.builders.prompting.linguistic_prompts import dialect_prompts, prompt_table
from culturekit.builders.wordings import wording
from culturekit.generation.linguistic_lists import DialectPair, load_lists
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.records.schemas import DIALECT_PAIRS, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import write_table

__all__ = ["PROPOSE_PAIRS", "DialectOptions", "DialectReads", "build_dialects", "pair_requests"]

PROPOSE_PAIRS = "dialects.propose"
KEPT, REPEATED, MALFORMED = "kept", "repeated", "malformed"
NOT_MET, UNGRAMMATICAL = "not in the corpus", "not grammatical"
PER_QUESTION, LONGEST, WORDS = 10, 200, 3
LISTED = "listed"


class ProposedPair(msgspec.Struct, frozen=True):
    """A pair as it may come: what is none costs itself, and not the whole reply."""

    standard: str
    other: str
    frames: list[str]


class ProposedPairs(msgspec.Struct, frozen=True):
    """The reply that is read."""

    id: str
    pairs: Annotated[list[ProposedPair], msgspec.Meta(max_length=200)]


@dataclass(frozen=True, slots=True)
class DialectReads:
    """Where pairs come from where no model proposes them, and the corpora that they are to be met in."""

    lists: Annotated[
        Path | None, Field(description="YAML with `pairs`. [the shipped lists, unless --llm proposes]")
    ] = None
    standard_corpus: Annotated[
        Path | None, Field(description="File or folder of texts in the standard dialect; of any size.")
    ] = None
    other_corpus: Annotated[Path | None, Field(description="The same in the other dialect.")] = None


@dataclass(frozen=True, slots=True)
class DialectOptions:
    """Which dialects, who proposes, and how many."""

    proposer: Annotated[
        str | None, Field(description="Who proposes pairs, as a SPEC. [nobody: those of a list]"), Typed("llm")
    ] = None
    standard: Annotated[str, Field(description="The standard dialect.")] = "SAE"
    other: Annotated[str, Field(description="The other dialect.")] = "AAE"
    count: Annotated[int, Field(ge=1, le=1000, description="Pairs that are asked for.")] = 30
    grammar: Annotated[str, Field(description="Who says what is grammatical: rules or multi-value.")] = "rules"


def pair_requests(options: DialectOptions) -> Iterator[Request]:
    """Ask for pairs, some at a time; what is said twice is dropped afterwards."""
    instructions = wording("dialects_propose")
    for number, start in enumerate(range(0, options.count, PER_QUESTION), start=1):
        asked = row_id(options.standard, options.other, str(number))
        wanted = min(PER_QUESTION, options.count - start)
        data = {"id": asked, "standard": options.standard, "other": options.other, "batch": number, "wanted": wanted}
        yield Request(
            PROPOSE_PAIRS, instructions, data, ProposedPairs, allowed={"id": (asked,)}, max_tokens=2048,
            asks=bounded(ProposedPairs, "pairs", wanted),
        )  # fmt: skip


def build_dialects(
    work: Work, given: DialectReads, options: DialectOptions, client: Client | FreeClient | None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:  # fmt: skip
    """Propose pairs or read them, filter them twice, and write prompts of those that are left."""
    rows: list[dict[str, Any]] = []
    asked: AskedRows[Request] | None = None
    if client is None:
        rows = [row_of(pair.standard, pair.other, pair.frames, LISTED) for pair in load_lists(given.lists).pairs]
    else:
        asked = AskedRows(PROPOSE_PAIRS, client, llm, lambda request: str(request.data["id"]))
        for _, value in asked.ask(work, list(pair_requests(options)), lambda request: request, unit="questions"):
            assert isinstance(value, ProposedPairs)
            rows += [row_of(each.standard, each.other, each.frames, client.model) for each in value.pairs]
    sift(rows, given, options)
    table = pl.DataFrame([{**row, "position": n} for n, row in enumerate(rows, 1)], schema=DIALECT_PAIRS.schema)
    write_table(work.out, DIALECT_PAIRS, table)
    kept = [DialectPair(standard=row["standard"], other=row["other"], frames=tuple(row["frames"]))
            for row in table.filter(outcome=KEPT).iter_rows(named=True)]  # fmt: skip
    prompts = dialect_prompts(kept, standard=options.standard, other=options.other)
    write_table(work.out, PROMPTS, prompt_table(prompts))
    fell = Counter(row["outcome"] for row in rows if row["outcome"] != KEPT)
    counts = {"pairs": table.height, "kept": len(kept), "prompts": len(prompts)}
    if asked is None:
        return Outcome(counts, fell)
    return asked.outcome(work, counts, proposals=dict(sorted(fell.items())))


def row_of(standard: str, other: str, frames: Any, proposer: str) -> dict[str, Any]:  # noqa: ANN401 - a list of texts
    """Write a proposal."""
    return {"standard": standard.strip(), "other": other.strip(), "frames": [each.strip() for each in frames],
            "proposer": proposer, "outcome": KEPT, "detail": None}  # fmt: skip


def sift(rows: list[dict[str, Any]], given: DialectReads, options: DialectOptions) -> None:
    """Say what becomes of each: malformed or repeated, then corpus by corpus, then sentence by sentence."""
    taken: set[tuple[str, str]] = set()
    for row in rows:
        key = (row["standard"].casefold(), row["other"].casefold())
        drop(row, MALFORMED, malformed(row))
        drop(row, REPEATED, "an earlier pair" if key in taken else "")
        taken |= {key} if row["outcome"] == KEPT else set()
    for side, corpus, dialect in (("standard", given.standard_corpus, options.standard),
                                  ("other", given.other_corpus, options.other)):  # fmt: skip
        if corpus is not None:
            met = phrases_met(corpus, {row[side] for row in rows if row["outcome"] == KEPT})
            for row in rows:
                drop(row, NOT_MET, "" if met.get(row[side]) else f"{row[side]!r} in that of {dialect}")
    checker = GRAMMARS.make(options.grammar)
    for row in rows:
        for frame in row["frames"] if row["outcome"] == KEPT else ():
            standard, other = frame.format(row["standard"]), frame.format(row["other"])
            drop(row, UNGRAMMATICAL, told(checker.problem(other, standard, options.other), other, options.other))


def drop(row: dict[str, Any], outcome: str, why: str) -> None:
    """Let a pair fall that has not fallen yet."""
    if why and row["outcome"] == KEPT:
        row.update(outcome=outcome, detail=why)


def told(problem: str, sentence: str, dialect: str) -> str:
    """Say of which sentence, and in which dialect, a problem is."""
    return f"{problem}: {sentence!r} in {dialect}" if problem else ""


def malformed(row: dict[str, Any]) -> str:
    """Say why a proposal is no pair."""
    for side in ("standard", "other"):
        text = row[side]
        if not text or len(text.split()) > WORDS or not all(one.isalpha() or one in " '-’" for one in text):
            return f"{side} is no noun of one to {WORDS} words"
    if row["standard"].casefold() == row["other"].casefold():
        return "both are the same word"
    if not row["frames"] or any(
        frame.count("{}") != 1 or frame.count("{") != 1 or frame.count("}") != 1 or len(frame) > LONGEST
        or not frame.isprintable() for frame in row["frames"]
    ):  # fmt: skip
        return "a sentence without one place {} for the noun"
    return ""
