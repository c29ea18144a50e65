"""Rows put to a model, one question each: what it answered, and how each row ended that it did not answer."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import tee
from pathlib import Path
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, get_args, get_type_hints

import msgspec
import polars as pl
from pydantic import Field

from culturekit.core.choices import ANSWERED
from culturekit.core.digests import digest, digest_bytes
from culturekit.core.schemas import DROPS
from culturekit.core.tables import Gathered, write_drops
from culturekit.core.work import QUARANTINED, Outcome, Work
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.rows import Answered, ReplyWatch

ID_LETTERS = 16
LONGEST_DETAIL = 2000

Row = TypeVar("Row")
Named = TypeVar("Named")


def row_id(*about: str) -> str:
    """Make the id of a question from what it is about, so that equal questions are asked once."""
    return digest(list(about))[:ID_LETTERS]


@lru_cache(maxsize=64)
def bounded(reply: type[msgspec.Struct], name: str, most: int) -> type[msgspec.Struct]:
    """Narrow the list of a reply to as many items as one question asks for.

    A server that holds a model to the schema then ends the list there: left to itself, a small model repeats an item
    until its reply is cut off, and all of it is lost.
    """
    hints = get_type_hints(reply, include_extras=True)
    listed = hints[name]
    plain = get_args(listed)[0] if hasattr(listed, "__metadata__") else listed
    hints[name] = Annotated[plain, msgspec.Meta(max_length=most)]
    config = reply.__struct_config__
    return msgspec.defstruct(
        reply.__name__, list(hints.items()), frozen=config.frozen, forbid_unknown_fields=config.forbid_unknown_fields
    )


def sifted(
    named: Iterable[Named],
    *,
    problem: Callable[[Named], str],
    key: Callable[[Named], Hashable],
    at_most: int | None = None,
) -> Iterator[tuple[Named, str]]:
    """Give each thing that a reply names with why it is not taken: it is none, it repeats another, there are enough."""
    taken: set[Hashable] = set()
    for each in named:
        why = problem(each) or ("repeated" if key(each) in taken else "")
        if not why and len(taken) == at_most:
            why = f"more than {at_most}"
        if not why:
            taken.add(key(each))
        yield each, why


def unanswered(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Count the questions that brought no answer, by how each ended; nothing is counted where all did."""
    count = sum(number for outcome, number in outcomes.items() if outcome not in ANSWERED)
    return {QUARANTINED: count} if count else {}


@dataclass
class AskedRows(Generic[Row]):
    """Asks about rows, counts how they end, and writes why some brought nothing, each under its key."""

    stage: str
    client: Client | FreeClient
    llm: LlmOptions
    key: Callable[[Row], str]
    outcomes: Counter[str] = field(default_factory=Counter)
    drops: list[dict[str, Any]] = field(default_factory=list)
    on_disk: Gathered | None = field(default=None, init=False)  # the drops so far of a stage with many rows

    def __post_init__(self) -> None:
        """Begin to watch for replies that are of no use."""
        self.watch = ReplyWatch(go_on=self.llm.go_on)

    def ask(
        self, work: Work, rows: Iterable[Row], request: Callable[[Row], Request], *, unit: str = ""
    ) -> Iterator[tuple[Row, msgspec.Struct]]:
        """Give the rows that were answered, each with its answer; without a unit the caller says how far it is.

        What is asked about later rows may depend on earlier answers: a killed run asks the same again, and the journal
        answers.
        """
        if unit:
            work.progress.begin(len(rows) if isinstance(rows, Sized) else 0, unit)
        rows_asked, rows_answered = tee(rows)
        answered = self.answered(work, map(request, rows_asked), step=1 if unit else 0)
        for row, answer in zip(rows_answered, answered, strict=True):
            if answer.value is None:
                raw = answer.raw.encode("utf-8", "replace").decode()
                self.drop(row, answer.outcome, f"{answer.detail}: {raw}" if answer.detail else raw)
            else:
                yield row, answer.value

    def answered(self, work: Work, requests: Iterable[Request], *, step: int = 1) -> Iterator[Answered]:
        """Give how each request ended, answered or not; each is a step of progress."""
        with closing(answers(self.client, requests, work=work, llm=self.llm, watch=self.watch)) as answered:
            for answer in answered:
                self.outcomes[answer.outcome] += 1
                yield answer
                work.progress.advance(step)

    def drop(self, row: Row, reason: str, detail: str = "") -> None:
        """Write down why a row, or a part of it, brought nothing."""
        self.drops.append(
            {"key": self.key(row), "concept": None, "stage": self.stage, "reason": reason}
            | {"detail": detail[:LONGEST_DETAIL] or None}
        )

    def to_disk(self, work: Work) -> None:
        """Write the drops collected so far to disk, to bound memory; the table is sorted by key in the end."""
        self.on_disk = self.on_disk or Gathered(DROPS, work.scratch, once=True)
        self.on_disk.add(pl.DataFrame(self.drops, DROPS.schema))
        self.drops = []

    def write_drops(self, work: Work) -> dict[str, int]:
        """Write what was left out, and count it by reason."""
        if self.on_disk is not None:
            self.to_disk(work)
        return write_drops(work.out, self.on_disk or self.drops, once=True)

    def outcome(self, work: Work, counts: dict[str, int], **notes: object) -> Outcome:
        """Write the drops, and say how it went."""
        return Outcome(
            counts | unanswered(self.outcomes),
            self.write_drops(work),
            {
                "judge": self.client.model,
                "caveat": self.client.caveat,
                "outcomes": dict(sorted(self.outcomes.items())),
                **self.watch.notes(),
                **notes,
            },
        )


# The instructions that models are given, each a file of `wording/`, and the hashes that decide their answers.


GivenWording: TypeAlias = Annotated[
    Path | None, Field(description="File of instructions to give in place of the shipped ones.")
]


def wording(name: str, given: Path | None = None) -> str:
    """Read the instructions of a task, or those given in their place."""
    return _shipped_wording(name) if given is None else given.read_text(encoding="utf-8")


@cache
def _shipped_wording(name: str) -> str:
    return files("culturekit.builders").joinpath(f"wording/{name}.txt").read_text(encoding="utf-8")


def wording_digest(name: str, given: Path | None = None) -> str:
    """Hash the instructions of a task: part of what decides the answers."""
    return digest_bytes(wording(name, given).encode())
