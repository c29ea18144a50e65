"""Stages whose answers come from a model: rows become questions, answers are read, and what asking costs is planned."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import count, tee
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Concatenate, Generic, TypeAlias, TypeVar, get_args, get_type_hints

import msgspec
import polars as pl
from pydantic import Field

from culturekit.core.choices import ANSWERED
from culturekit.core.declared import NO_OPTIONS, Asks, Decides, Given, P, Reads, declared, declaring, settings
from culturekit.core.digests import JOURNAL, digest, digest_bytes
from culturekit.core.engines import LocalEngine
from culturekit.core.registry import parse_spec
from culturekit.core.schemas import DROPS
from culturekit.core.stage import QUARANTINED, AskedPlan, Asking, Left, Outcome, Quiet, Stage, Tried, Work
from culturekit.core.tables import Gathered, write_drops
from culturekit.kg.countries import country_files
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Quota, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_requests
from culturekit.llm.journal import FILE
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.prices import check_alive
from culturekit.llm.purse import check_asking
from culturekit.llm.rows import Answered, ReplyWatch

ID_LETTERS = 16
LONGEST_DETAIL = 2000
REPLAY = "replay"

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
    plain = get_args(hints[name])[0] if hasattr(hints[name], "__metadata__") else hints[name]
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
    number = sum(number for outcome, number in outcomes.items() if outcome not in ANSWERED)
    return {QUARANTINED: number} if number else {}


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
        self.leave_out([(self.key(row), reason, detail[:LONGEST_DETAIL] or None)])

    def leave_out(self, drops: Iterable[tuple[str, str, str | None]]) -> None:
        """Write down what is left out, by key, reason and detail."""
        stage = {"concept": None, "stage": self.stage}
        self.drops += [stage | {"key": key, "reason": reason, "detail": detail} for key, reason, detail in drops]

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
        ended = {"outcomes": dict(sorted(self.outcomes.items())), **self.watch.notes()}
        whole = {"judge": self.client.model, "caveat": self.client.caveat, **ended, **notes}
        return Outcome(counts | unanswered(self.outcomes), self.write_drops(work), whole)


@dataclass
class Asked(AskedRows[Any]):
    """Puts the questions of a stage that one function declares; a plan goes as far as the first of them.

    Where `nobody` is asked, what is read says it all.
    """

    work: Work = field(kw_only=True)
    instructions: str = field(kw_only=True)
    planning: bool = field(kw_only=True, default=False)
    nobody: bool = field(kw_only=True, default=False)

    def put(self, rows: Iterable[Any], request: Callable[[Any], Request], *, unit: str) -> Iterator[tuple[Any, Any]]:
        """Give the rows that were answered, each with its answer."""
        if self.planning:
            raise _Planned(map(request, rows), 0)
        return self.ask(self.work, rows, request, unit=unit)

    def every(
        self, rows: Sequence[Any], request: Callable[[Any], Request], *, unit: str, left_out: int = 0
    ) -> Iterator[Answered]:
        """Give how each row ended, answered or not."""
        if self.planning:
            raise _Planned(map(request, rows), left_out)
        self.work.progress.begin(len(rows), unit)
        return self.answered(self.work, map(request, rows))

    def finish(self, counts: dict[str, int], drops: Iterable[tuple[str, str, str | None]], **notes: object) -> Outcome:
        """Write what was left out, by key, reason and detail, and say how it went, also where nobody was asked."""
        self.leave_out(drops)
        if not self.nobody:
            return self.outcome(self.work, counts, **notes)
        return Outcome(counts, self.write_drops(self.work), notes)


class _Planned(Exception):
    """Carries what a plan wants to know: what would be asked, and how much is left out."""


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


def asking_stage(
    stage: Stage,
    judge: str,
    client: Client | FreeClient,
    *,
    unit: str,
    plan: Callable[[Path, Any], AskedPlan],
    pilot: Callable[[Work, int], Tried] | None = None,
    ahead: bool = False,
    each: Callable[[], float] | None = None,
    llm: LlmOptions,
) -> Stage:
    """Give a stage that asks a model what decides the answers; what `llm` says of money and speed decides none.

    So a run that was cut goes on with a larger budget, or with more requests at a time. `each` estimates what a unit
    costs before there is any. With `go_on` in it, it asks a model that is shut, and plans to.
    """
    free, quota = isinstance(client, FreeClient), Quota() if isinstance(client, FreeClient) else client.quota

    def planned(out: Path, tried: Any) -> AskedPlan:  # noqa: ANN401 - what a pilot brought
        if not isinstance(client, FreeClient):
            check_alive(client.identity, go_on=llm.go_on)
        return plan(out, tried)

    return replace(
        stage,
        inputs={**stage.inputs, **judge_inputs(judge)},
        options={**judge_options(judge, client), **stage.options},
        before=partial(check_asking, client, go_on=llm.go_on),
        asking=Asking(judge, unit, free, planned, pilot, ahead, each, None if llm.batch else quota.requests),
    )


def asks(
    kind: str,
    folder: str,
    task: str,
    *,
    words: str,
    unit: str,
    key: Callable[[Any], str],
    example: str,
    version: int = 1,
    reads: Reads = lambda _: country_files(),
    decides: Decides | None = None,
    seeds: Mapping[str, str] = NO_OPTIONS,
    packages: tuple[str, ...] = ("msgspec", "polars"),
    ahead: Callable[[Given], bool] = lambda _: False,
    plan: Callable[[Any, Given, Path, Any], AskedPlan] | None = None,
    pilot: Callable[[Asked, Given, int], Tried] | None = None,
    usual: Callable[[Given], Iterable[Request]] | None = None,
    help: Mapping[str, Any] = NO_OPTIONS,  # noqa: A002 - what it is
) -> Callable[[Callable[Concatenate[Asked, P], Outcome]], Asks[P]]:
    """Declare a stage that asks a model about rows, by the function that puts the questions and writes the answers.

    It takes who is asked, if anybody, as the option `--llm`, how answers are bought as `llm`, and may take a file of
    instructions as `wording`. Parameters that `staged` has are the same here. Requests and drops name the `task`;
    `words` are the shipped instructions, empty where there are several, which `decides` names in place of the task.
    `unit` is what is asked about, `key` names a row in drops, `ahead` tells whether the stage can be planned before
    what it reads is there. `plan` says what a client would be asked for a folder after a pilot, where the first
    questions do not tell; a `pilot` asks about so many units, and its answers lie in the journal for the run to come;
    `usual` gives the requests about one usual row, for the price of one before there are any. `help` has what the
    command says of `plan`, of a `pilot`, and of what is done `again`.
    """

    def declare(function: Callable[Concatenate[Asked, P], Outcome]) -> Asks[P]:
        spec = spec_of(function)

        def make_stage(given: Given, inputs: dict[str, Path]) -> Stage:
            judge, llm, instead = given[spec], given["llm"], given.get("wording")
            client: Any = None if judge is None else CLIENTS.make(judge)
            instructions = wording(words, instead) if words else ""

            def asked(work: Work, *, planning: bool = False) -> Asked:
                about = {"work": work, "instructions": instructions, "planning": planning, "nobody": judge is None}
                return Asked(task, client, llm, key, **about)  # type: ignore[arg-type]

            def planned(out: Path, tried: object) -> AskedPlan:
                if plan is not None:
                    return plan(client, given, out, tried)
                with _first_questions(lambda work: function(asked(work, planning=True), **given)) as (requests, more):  # type: ignore[call-arg]
                    return plan_to_ask(client, unit, requests, out, llm, left_out=more)

            elsewhere = (spec, "llm", "wording", *seeds.values())
            typed = settings(function, given) if decides is None else {}
            options = {name: value for name, value in typed.items() if name not in elsewhere}
            options |= decides(given) if decides else {}
            options |= {"task": task} if words else {}
            options |= {"wording": digest_bytes(instructions.encode())} if words and judge is not None else {}
            drawn = {role: given[name] for role, name in seeds.items()}
            stage = Stage(
                folder, kind, version, lambda work: function(asked(work), **given),  # type: ignore[call-arg]
                {**inputs, **reads(given)}, options, drawn, packages=packages,
            )  # fmt: skip
            if judge is None:
                return stage
            tries = None if pilot is None else lambda work, size: pilot(asked(work), given, size)
            each = None if usual is None else partial(usd_of, client, partial(usual, given), llm)
            return asking_stage(
                stage, judge, client, unit=unit, plan=planned, pilot=tries, ahead=ahead(given), each=each, llm=llm
            )

        return Asks(declaring(function, make_stage), example, **help)

    return declare


@contextmanager
def _first_questions(answer: Callable[[Work], object]) -> Iterator[tuple[Iterator[Request], int]]:
    """Go as far as the first questions: give them, and how much is left out."""
    with scratch() as folder:
        try:
            answer(Work({}, folder, folder, LocalEngine(1), Quiet()))
        except _Planned as planned:
            requests, left_out = planned.args
        yield requests, left_out


def spec_of(function: Callable[..., Any]) -> str:
    """Name the parameter that says who is asked."""
    (found,) = (each.name for each in declared(function) if each.typed.name == "llm")
    return found


def usd_of(client: Client | FreeClient, requests: Callable[[], Iterable[Request]], llm: LlmOptions) -> float:
    """Estimate what requests cost of which none was asked yet."""
    cost = cost_of(client, requests(), Path("nowhere"), batch=llm.batch)
    return 0.0 if cost is None else cost.usd or 0.0


def judge_options(spec: str, client: Client | FreeClient) -> Mapping[str, object]:
    """Say who judges and how: what decides the answers and nothing else, so no price, no limit and no secret."""
    if isinstance(client, FreeClient):
        parsed = parse_spec(spec)
        target = "" if parsed.name == REPLAY else parsed.target
        return {"judge": str(replace(parsed, target=target)), "model": client.model, **CLIENTS.brought_by(parsed)}
    judge = {**asdict(client.identity), **client.options}
    return {"judge": judge, "model": client.model, **CLIENTS.brought_by(spec)}


def judge_inputs(spec: str) -> dict[str, Path]:
    """Name the file whose replies are replayed as an input, where there is one: its content decides."""
    parsed = parse_spec(spec)
    if parsed.name != REPLAY:
        return {}
    path = Path(parsed.target)
    within = (path / JOURNAL / FILE, path / FILE)
    return {"replies": next((journal for journal in within if journal.is_file()), path)}


@dataclass(frozen=True, slots=True)
class AskPlan:
    """What would be asked: about how many prompts or images, how many of them not, in how many requests, at what cost.

    `cost` is None for a model that answers in this process.
    """

    judge: str
    unit: str
    units: int
    left_out: int
    requests: int
    cost: CostPlan | None

    @property
    def left(self) -> Left:
        """Say what is left to ask."""
        return Left() if self.cost is None else self.cost.left

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        asked = self.units - self.left_out
        yield f"{self.units:,} {self.unit}: {self.left_out:,} are left out, {asked:,} are asked about, by {self.judge}"
        if self.cost is None:
            yield f"{self.requests:,} requests; {self.judge} answers in this process and costs nothing"
        else:
            yield from cost_plan_lines(self.cost)

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)


def plan_to_ask(
    client: Client | FreeClient,
    unit: str,
    requests: Iterable[Request],
    out: Path,
    llm: LlmOptions,
    *,
    left_out: int = 0,
) -> AskPlan:
    """Plan requests, each about another unit, for a folder; so many units are left out."""
    number = count()
    cost = cost_of(client, (request for request, _ in zip(requests, number, strict=False)), out, batch=llm.batch)
    every = next(number)
    return AskPlan(client.model, unit, left_out + every, left_out, every, cost)


def cost_of(client: Client | FreeClient, requests: Iterable[Request], out: Path, *, batch: bool) -> CostPlan | None:
    """Plan what requests cost, by what was asked already in the folder they are for; every request is looked at."""
    if isinstance(client, FreeClient):
        for _ in requests:
            pass
        return None
    return plan_requests(client, requests, spent=read_spending(journal_for(out)), batch=batch)


@contextmanager
def scratch() -> Iterator[Path]:
    """Lend a folder to a plan."""
    with TemporaryDirectory(prefix="culturekit-plan-") as folder:
        yield Path(folder)
