"""Stages whose answers come from a model: what decides these, and what asking costs, told before any of it is sent."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from culturekit.builders.asked_rows import wording, wording_digest
from culturekit.builders.shown_images import AskedImages, judged, requests_about
from culturekit.core.digests import JOURNAL
from culturekit.core.inputs import roles_of
from culturekit.core.registry import parse_spec
from culturekit.core.stage import AskedPlan, Asking, Left, Stage, Tried
from culturekit.core.work import Outcome, Work
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Client, FreeClient, Image, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_requests
from culturekit.llm.journal_file import FILE
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.prices import check_alive
from culturekit.llm.purse import check_asking

REPLAY = "replay"
SQUARE = 1024
"""The side of pictures that models usually make, for the price of one before there are any."""

NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


def asking_stage(
    stage: Stage,
    judge: str,
    client: Client | FreeClient,
    *,
    unit: str,
    plan: Callable[[Path, Any], AskedPlan],
    pilot: Callable[[Work, int], Tried] | None = None,
    ahead: bool = False,
    go_on: bool = False,
) -> Stage:
    """Give a stage that asks a model what decides the answers; what `llm` says of money and speed decides none.

    So a run that was cut goes on with a larger budget, or with more requests at a time. With `go_on` it asks a model
    that is shut, and plans to.
    """

    def planned(out: Path, tried: Any) -> AskedPlan:  # noqa: ANN401 - what a pilot brought
        if not isinstance(client, FreeClient):
            check_alive(client.identity, go_on=go_on)
        return plan(out, tried)

    return replace(
        stage,
        inputs={**stage.inputs, **judge_inputs(judge)},
        options={**judge_options(judge, client), **stage.options},
        before=partial(check_asking, client, go_on=go_on),
        asking=Asking(judge, unit, isinstance(client, FreeClient), planned, pilot, ahead),
    )


def asking_each(
    kind: str,
    given: object,
    judge: str,
    *,
    task: str,
    words: str,
    unit: str,
    requests: Callable[[str], Iterable[Request]],
    run: Callable[[Work, Client | FreeClient], Outcome],
    llm: LlmOptions,
    name: str,
    version: int = 1,
    ahead: bool = False,
    options: Mapping[str, object] = NO_OPTIONS,
    given_words: Path | None = None,
) -> Stage:
    """Make a stage that asks one question about each unit, and leaves none out.

    `words` name its wording, in whose place `given_words` may stand.
    """
    client, instructions = CLIENTS.make(judge), wording(words, given_words)

    def plan(out: Path, _: object) -> AskPlan:
        return plan_to_ask(client, unit, requests(instructions), out, llm)

    stage = Stage(
        name,
        kind,
        version,
        lambda work: run(work, client),
        {**roles_of(given), **country_files()},
        {"task": task, "wording": wording_digest(words, given_words), **options},
        packages=("msgspec", "polars"),
    )
    return asking_stage(stage, judge, client, unit=unit, plan=plan, ahead=ahead, go_on=llm.go_on)


def asking_images(
    kind: str,
    version: int,
    given: Any,  # noqa: ANN401 - a dataclass of files, among them `images`
    judge: str,
    *,
    images: Callable[[], pl.DataFrame],
    asked: Callable[[str, Path], AskedImages[Any]],
    options: Mapping[str, object],
    llm: LlmOptions,
    name: str,
    packages: tuple[str, ...] = ("msgspec", "pillow", "polars"),
    run: Callable[[Work, Client | FreeClient], Outcome] | None = None,
    inputs: Mapping[str, Path] = MappingProxyType({}),
    usual: Callable[[], Iterable[Request]] | None = None,
    made: type["AskPlan"] | None = None,
) -> Stage:
    """Make a stage that asks about images, some of which cannot be shown; a plan looks at all of them, and asks none.

    Args:
        kind: what the stage is.
        version: of what it writes.
        given: what it reads.
        judge: who looks, as a SPEC.
        images: lists what is asked about.
        asked: prepares the questions, for the model that answers and with a folder to write in.
        options: decide the answers beside the judge.
        llm: how answers are bought.
        name: of the folder.
        packages: whose versions decide what is written.
        run: does the stage, where there is more to do than to ask.
        inputs: what it reads besides.
        usual: gives the requests about one usual image, for the price of one before there are any.
        made: the kind of the plan.
    """
    client = CLIENTS.make(judge)

    def plan(out: Path, _: object) -> AskPlan:
        with scratch() as folder:
            table, questions = images(), asked(client.model, folder)
            cost = cost_of(client, requests_about(table, questions), out, batch=llm.batch)
        left_out = len(questions.shown.drops)
        return (made or AskPlan)(client.model, "images", table.height, left_out, len(questions.open), cost)

    def answer(work: Work) -> Outcome:
        if run is not None:
            return run(work, client)
        return judged(work, images(), asked(client.model, work.scratch), client, llm=llm)

    stage = Stage(name, kind, version, answer, {**roles_of(given), **inputs}, options, packages=packages)
    stage = asking_stage(stage, judge, client, unit="images", plan=plan, go_on=llm.go_on)
    return stage if usual is None else priced_ahead(stage, client, usual, llm=llm)


def priced_ahead(
    stage: Stage, client: Client | FreeClient, usual: Callable[[], Iterable[Request]], *, llm: LlmOptions
) -> Stage:
    """Let a stage say what asking about one unit costs before there are any, by what is usually asked about one."""

    def each() -> float:
        cost = cost_of(client, usual(), Path("nowhere"), batch=llm.batch)
        return 0.0 if cost is None else cost.usd or 0.0

    return stage if stage.asking is None else replace(stage, asking=replace(stage.asking, each=each))


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
    every = list(requests)
    cost = cost_of(client, every, out, batch=llm.batch)
    return AskPlan(client.model, unit, left_out + len(every), left_out, len(every), cost)


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
                "roots": [{"qid": root.qid, "label": root.label} for root in concept.roots],
            }
            for concept in concepts
        }
    }


def released_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what a release reads: countries, languages, and the subconcepts that roots stand for, in their order."""
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                "roots": [
                    {"qid": root.qid, "subconcept": root.subconcept} for root in concept.roots if root.subconcept
                ],
            }
            for concept in concepts
        }
    }
