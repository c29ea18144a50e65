"""Stages whose answers come from a model: what decides these, and what asking costs, told before any of it is sent."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from culturekit.builders.asked_rows import AskedRows, wording, wording_digest
from culturekit.builders.built import NO_OPTIONS, Asks, Decides, Given, P, Reads, declaring, settings
from culturekit.builders.shown_images import AskedImages, judged, prompted_images, requests_about
from culturekit.core.declared import declared
from culturekit.core.digests import JOURNAL
from culturekit.core.engines import LocalEngine
from culturekit.core.registry import parse_spec
from culturekit.core.stage import AskedPlan, Asking, Left, Stage, Tried
from culturekit.core.work import Outcome, Quiet, Work
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Client, FreeClient, Image, Quota, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_requests
from culturekit.llm.journal_file import FILE
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.prices import check_alive
from culturekit.llm.purse import check_asking
from culturekit.llm.rows import Answered

REPLAY = "replay"
SQUARE = 1024  # the side of pictures that models usually make


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


@dataclass
class Asked(AskedRows[Any]):
    """Puts the questions of a stage that one function declares; a plan goes as far as the first of them.

    Where `nobody` is asked, what is read says it all.
    """

    work: Work = field(kw_only=True)
    instructions: str = field(kw_only=True)
    planning: bool = field(kw_only=True)
    nobody: bool = field(kw_only=True)

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

    def leave_out(self, drops: Iterable[tuple[str, str, str | None]]) -> None:
        """Write down what is left out, by key, reason and detail."""
        stage = {"concept": None, "stage": self.stage}
        self.drops += [{"key": key, "reason": reason, "detail": detail} | stage for key, reason, detail in drops]


class _Planned(Exception):
    """Carries what a plan wants to know: what would be asked, and how much is left out."""


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
    left: Callable[[Given, Path], tuple[str, Iterable[Request]]] | None = None,
    usual: Callable[[Given], Iterable[Request]] | None = None,
) -> Callable[[Callable[Concatenate[Asked, P], Outcome]], Asks[P]]:
    """Declare a stage that asks a model about rows, by the function that puts the questions and writes the answers.

    It takes who is asked, if anybody, as the option `--llm`, how answers are bought as `llm`, and may take a file of
    instructions as `wording`.

    Args:
        kind: what the stage is.
        folder: its name outside a run.
        task: as requests and drops name it.
        words: the shipped instructions.
        unit: what is asked about.
        key: names a row in drops.
        example: what follows the command in an example that works.
        version: of what it writes.
        reads: inputs besides those that are typed.
        decides: what the manifest says of options, of everything given; by default each that is typed.
        seeds: options that are seeds, by what the manifest calls them.
        packages: whose versions decide what is written.
        ahead: whether it can be planned before what it reads is there.
        left: says what is left to ask for a folder, and in which unit, where the first questions do not tell.
        usual: gives the requests about one usual row, for the price of one before there are any.
    """

    def declare(function: Callable[Concatenate[Asked, P], Outcome]) -> Asks[P]:
        spec = _spec_of(function)

        def made(given: Given, inputs: dict[str, Path]) -> Stage:
            judge, llm, own = given[spec], given["llm"], given.get("wording")
            client: Any = None if judge is None else CLIENTS.make(judge)

            def answer(work: Work, *, planning: bool = False) -> Outcome:
                asked = Asked(
                    task, client, llm, key, work=work, instructions=wording(words, own), planning=planning,
                    nobody=judge is None,
                )  # fmt: skip
                return function(asked, **given)  # type: ignore[call-arg]

            def plan(out: Path, _: object) -> AskPlan:
                if left is not None:
                    return plan_to_ask(client, *left(given, out), out, llm)
                with scratch() as place:
                    requests, left_out = _first_questions(partial(answer, planning=True), place)
                    return plan_to_ask(client, unit, requests, out, llm, left_out=left_out)

            typed = settings(function, given) if decides is None else decides(given)
            elsewhere = (spec, "llm", "wording", *seeds.values())
            options = {"task": task, **{name: value for name, value in typed.items() if name not in elsewhere}}
            options |= {} if judge is None else {"wording": wording_digest(words, own)}
            drawn = {role: given[name] for role, name in seeds.items()}
            stage = Stage(folder, kind, version, answer, {**inputs, **reads(given)}, options, drawn, packages=packages)
            if judge is None:
                return stage
            each = None if usual is None else partial(_usd_of, client, partial(usual, given), llm)
            return asking_stage(stage, judge, client, unit=unit, plan=plan, ahead=ahead(given), each=each, llm=llm)

        return Asks(declaring(function, made), example)

    return declare


def _first_questions(answer: Callable[[Work], object], place: Path) -> tuple[Iterator[Request], int]:
    """Go as far as the first questions: give them, and how much is left out."""
    try:
        answer(Work({}, place, place, LocalEngine(1), Quiet()))
    except _Planned as planned:
        requests, left_out = planned.args
    return requests, left_out


def _spec_of(function: Callable[..., Any]) -> str:
    """Name the parameter that says who is asked."""
    (found,) = (each.name for each in declared(function) if each.typed.name == "llm")
    return found


ImagesOf: TypeAlias = Callable[[Given, Path], Iterable[pl.DataFrame]]
"""Lists images, block by block, with a folder to prepare them in."""


class Judge(NamedTuple):
    """Who looks at images, and a folder to prepare questions in."""

    model: str
    scratch: Path


def looks(
    kind: str,
    folder: str,
    *,
    words: str,
    example: str,
    task: str = "",
    decides: Decides = lambda _: {},
    version: int = 1,
    packages: tuple[str, ...] = ("msgspec", "pillow", "polars"),
    images: ImagesOf = lambda given, place: prompted_images(given["images"], given.get("per_prompt"), place),
    reads: Reads = lambda _: {},
    usual: Callable[[Given], Iterable[Request]] | None = None,
    plans: type["AskPlan"] | None = None,
    again: str = "Ask",
) -> Callable[[Callable[Concatenate[Judge, P], AskedImages[Any]]], Asks[P]]:
    """Declare a stage that asks about images, by the function that prepares the questions.

    Some images cannot be shown; a plan looks at all of them, and asks none. Parameters are those of `asks`, but that a
    manifest names a `task` only where there is one, and says of options what `decides` gives, the instructions and
    `per_prompt`; `images` lists what is asked about, `plans` is the kind of the plan, `again` what is done once more
    with `--fresh`.
    """

    def declare(function: Callable[Concatenate[Judge, P], AskedImages[Any]]) -> Asks[P]:
        spec = _spec_of(function)

        def made(given: Given, inputs: dict[str, Path]) -> Stage:
            llm, client = given["llm"], CLIENTS.make(given[spec])

            def asked(place: Path) -> AskedImages[Any]:
                return function(Judge(client.model, place), **given)  # type: ignore[call-arg]

            def plan(out: Path, _: object) -> AskPlan:
                with scratch() as place:
                    questions = asked(place)
                    requests = requests_about(images(given, place), questions)
                    cost = cost_of(client, requests, out, batch=llm.batch)
                    there = sum(block.height for block in images(given, place))
                left_out, count = len(questions.shown.drops), len(questions.open)
                return (plans or AskPlan)(client.model, "images", there, left_out, count, cost)

            def answer(work: Work) -> Outcome:
                every = partial(images, given, work.scratch)
                return judged(work, every, asked(work.scratch), client, llm=llm)

            limit = {name: given[name] for name in ("per_prompt",) if name in given}
            options = {"wording": wording_digest(words, given.get("wording")), **limit, **decides(given)}
            options |= {"task": task} if task else {}
            stage = Stage(folder, kind, version, answer, {**inputs, **reads(given)}, options, packages=packages)
            each = None if usual is None else partial(_usd_of, client, partial(usual, given), llm)
            return asking_stage(stage, given[spec], client, unit="images", plan=plan, each=each, llm=llm)

        return Asks(declaring(function, made), example, again=again)

    return declare


def _usd_of(client: Client | FreeClient, requests: Callable[[], Iterable[Request]], llm: LlmOptions) -> float:
    """Estimate what requests cost of which none was asked yet."""
    cost = cost_of(client, requests(), Path("nowhere"), batch=llm.batch)
    return 0.0 if cost is None else cost.usd or 0.0


def usual_picture() -> Image:
    """Give a picture of the usual size."""
    return image_of(np.full((SQUARE, SQUARE, 3), 128, np.uint8))


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


@contextmanager
def scratch() -> Iterator[Path]:
    """Lend a folder to a plan."""
    with TemporaryDirectory(prefix="culturekit-plan-") as folder:
        yield Path(folder)


def cost_of(client: Client | FreeClient, requests: Iterable[Request], out: Path, *, batch: bool) -> CostPlan | None:
    """Plan what requests cost, by what was asked already in the folder they are for; every request is looked at."""
    if isinstance(client, FreeClient):
        for _ in requests:
            pass
        return None
    return plan_requests(client, requests, spent=read_spending(journal_for(out)), batch=batch)


# Which part of a root config each stage depends on, as it stands in its manifest.
#
# A stage that named the whole config would be made again for a key that it never reads.


def judged_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what rules and judge read: languages, countries, and what the roots are called."""
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                **({"description": concept.description} if concept.description else {}),
                "roots": [{"qid": root.qid, "label": root.label} for root in concept.roots],
            }
            for concept in concepts
        }
    }
