"""Images that are put before a model with their prompts: which ones, and why others are not."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Concatenate, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asking import (
    AskPlan,
    asking_stage,
    cost_of,
    scratch,
    spec_of,
    unanswered,
    usd_of,
    wording_digest,
)
from culturekit.core.declared import Asks, Decides, Given, P, Reads, Seed, Typed, declaring
from culturekit.core.digests import digest
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.schemas import DROPS, IMAGES, JUDGMENTS
from culturekit.core.stage import Outcome, Progress, Stage, Work
from culturekit.core.tables import Gathered, blocks_of, read_table, write_drops
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Image, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.rows import Answered, ReplyWatch


@dataclass(frozen=True, slots=True)
class ImageSample:
    """At most so many images of each model and concept, but at least one repeat; all of them where no number is given.

    A repeat is drawn or left by a hash of the seed, its prompt and its number, so that batches of eight stay whole. It
    is the same repeats of every model, and a larger sample holds the smaller one: what was asked about is not asked
    again.
    """

    images: Annotated[
        int | None,
        Field(ge=1, description="At most so many images of each model and concept, by whole repeats. [all]"),
        Typed("sample"),
    ] = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse a sample of nothing."""
        if self.images is not None and self.images < 1:
            raise UsageError("a sample has at least one image", found=str(self.images))


EVERY_IMAGE = ImageSample()


def drawn(images: pl.DataFrame, sample: ImageSample) -> pl.DataFrame:
    """Take the images that are drawn, in their order.

    Every prompt of a concept has a repeat drawn before any has two. Images that were asked for and not made count as
    the others do, so that the same repeats are drawn of a model that refused some. An image without prompt or repeat
    is drawn by itself.
    """
    if sample.images is None:
        return images
    concept = pl.col("concept") if "concept" in images.columns else pl.lit(None, pl.String)
    loose = pl.col("prompt_id").is_null() | pl.col("repeat").is_null()
    repeat = pl.concat_str("model", "prompt_id", pl.col("repeat").cast(pl.String), separator="\n")
    placed = images.with_columns(concept_of=concept, unit=pl.when(loose).then("image_id").otherwise(repeat))
    groups = placed.partition_by("model", "concept_of", maintain_order=True)
    taken = [unit for group in groups for unit in _units_taken(group, sample.images, sample.seed)]
    return images.filter(placed["unit"].is_in(taken) if taken else pl.lit(value=False))


def _units_taken(images: pl.DataFrame, most: int, seed: int) -> Iterator[str]:
    """Name the units drawn of one model and concept, until the next would be too many."""
    units = images.group_by("unit").agg(pl.col("prompt_id", "repeat").first(), pl.len().alias("images"))

    def lot(prompt: str | None, repeat: int | None, unit: str = "") -> str:
        return digest([seed, prompt, repeat] if prompt is not None and repeat is not None else [seed, unit])

    keyed = sorted((lot(prompt, repeat, unit), prompt, unit, size) for unit, prompt, repeat, size in units.rows())
    turn: Counter[str | None] = Counter()
    order = []
    for first_lot, prompt, unit, size in keyed:
        order.append((turn[prompt], lot(prompt, turn[prompt]), first_lot, unit, size))
        turn[prompt] += 1
    total = 0
    for *_, unit, size in sorted(order):
        if total and total + size > most:
            return
        total += size
        yield unit


def sample_note(images: pl.DataFrame, taken: pl.DataFrame, sample: ImageSample) -> dict[str, object]:
    """Say in notes what was drawn; nothing where all images were taken."""
    return {"sample": {**asdict(sample), "drawn": taken.height, "of": images.height}} if sample.images else {}


ROWS_PER_BLOCK = 2**14  # images, and answers about them, that are in memory together
ID_LETTERS = 16  # of a picture's hash, by which a model knows it: file names and ids could tell what it should show

Question = TypeVar("Question")
Row: TypeAlias = dict[str, Any]

ImagesToShow: TypeAlias = Annotated[Path, Field(description="Images table; its pictures lie beside it.")]
WhoLooks: TypeAlias = Annotated[
    str,
    Field(description="Who looks at the images, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
    Typed("llm"),
]
PerPrompt: TypeAlias = Annotated[
    int | None,
    Field(ge=1, description="Look at so many images of each model and prompt, the first by repeat and slot. [all]"),
    Typed("per-prompt"),
]


def prompted_images(path: Path, per_prompt: int | None, scratch: Path) -> Iterator[pl.DataFrame]:
    """List images by their ids; of each model and prompt only the first ones, by repeat and slot, where told so."""
    columns = ("image_id", "model", "prompt_id", "repeat", "slot", "path", "sha256", "status", "reason",
               "prompt_sent")  # fmt: skip
    if per_prompt is None:
        yield from (block.select(columns) for block in blocks_of(path, IMAGES, rows=ROWS_PER_BLOCK, scratch=scratch))
        return
    images, order = read_table(path, IMAGES).select(columns), ("repeat", "slot", "image_id")
    first = images.sort(order, nulls_last=True).group_by("model", "prompt_id", maintain_order=True).head(per_prompt)
    yield first.select(columns).sort("image_id")


@dataclass
class ShownImages:
    """Reads the pictures of a table; those that cannot be shown are dropped with a reason."""

    root: Path
    stage: str
    drops: list[tuple[str, str | None, str, str, str | None]] = field(default_factory=list)

    def picture(self, row: dict[str, Any]) -> Image | None:
        """Read the picture of a row, at the size that judges are shown; None where there is none to show."""
        if row["status"] != "ok":
            self.drop(row, f"no picture: {row['status']}", row["reason"])
            return None
        found = read_inside(self.root, row["path"], sha256=row["sha256"])
        if isinstance(found, NoPicture):
            self.drop(row, found.reason, found.detail or None)
            return None
        return image_of(found.pixels)

    def drop(self, row: dict[str, Any], reason: str, detail: str | None = None) -> None:
        """Keep the reason why an image is not shown."""
        self.drops.append((row["image_id"], row.get("concept"), self.stage, reason, detail))


class Verdict(NamedTuple):
    """What a row of judgments says; `outcome` where it is another than that of the reply."""

    task: str
    item: str
    dimension: str | None = None
    value: float | None = None
    choice: str | None = None
    outcome: str | None = None


@dataclass
class AskedImages(Generic[Question]):
    """Images go out in their order, a request for each question; the answers come back so and become rows.

    Attributes:
        shown: reads the pictures.
        judge: who answers, as rows of judgments name it.
        questions: lists what is asked about an image.
        request: asks one question about a picture.
        verdicts: reads the answer to a question, whatever came of it: at least one verdict.
        why_not: why nothing is asked about an image; it is not dropped where this is empty.
        caveat: what a reader must know of all such answers.
        notes: what is noted besides, once all is answered.
        write: writes what answers give besides judgments, and counts it.
        open: questions without an answer yet, each with its image and whether it is the last about it.
    """

    shown: ShownImages
    judge: str
    questions: Callable[[Row], Sequence[Question]]
    request: Callable[[Image, Row, Question], Request]
    verdicts: Callable[[Row, Question, Answered], Sequence[Verdict]]
    why_not: Callable[[Row], str] = lambda row: ""
    caveat: str = ""
    notes: Callable[[], Mapping[str, object]] = dict
    write: Callable[[Work], dict[str, int]] = lambda work: {}
    open: deque[tuple[Row, Question, bool]] = field(init=False, default_factory=deque)
    rows: list[tuple[object, ...]] = field(init=False, default_factory=list)
    outcomes: Counter[str] = field(init=False, default_factory=Counter)

    def about(self, row: dict[str, Any]) -> Iterator[Request]:
        """Give the requests about one image, read once; none, and the reason kept, where it cannot be shown."""
        asked = self.questions(row)
        if not asked:
            if reason := self.why_not(row):
                self.shown.drop(row, reason)
            return
        picture = self.shown.picture(row)
        if picture is None:
            return
        for number, question in enumerate(asked, start=1):
            self.open.append((row, question, number == len(asked)))
            yield self.request(picture, row, question)

    def take(self, answered: Answered) -> bool:
        """Write down the answer to the first question that is still open; tell whether it is the last of its image."""
        image, question, last = self.open.popleft()
        raw, outcome = answered.raw.encode("utf-8", "replace").decode(), str(answered.outcome)
        for verdict in self.verdicts(image, question, answered):
            outcome = verdict.outcome or outcome
            self.rows.append((image["image_id"], image["prompt_id"], self.judge, *verdict[:5], raw, outcome))
        self.outcomes[outcome] += 1
        return last


def requests_about(
    images: Iterable[pl.DataFrame], asked: AskedImages[Any], progress: Progress | None = None
) -> Iterator[Request]:
    """Give the requests about all images that can be shown; one with a file that nothing is asked about is done."""
    for row in chain.from_iterable(block.iter_rows(named=True) for block in images):
        requests = list(asked.about(row))
        if progress is not None and not requests and row["status"] == "ok":
            progress.advance(1)
        yield from requests


def judged(
    work: Work,
    images: Callable[[], Iterable[pl.DataFrame]],
    asked: AskedImages[Any],
    client: Client | FreeClient,
    *,
    llm: LlmOptions,
) -> Outcome:
    """Put images before a judge, and write what it said and which images it was not shown, with the reason.

    An image is done when the last answer about it is there.
    """
    there = pl.concat([block.select("status") for block in images()])["status"]
    work.progress.begin(there.filter(there == "ok").len(), "images")
    rows, left_out = Gathered(JUDGMENTS, work.scratch), Gathered(DROPS, work.scratch)

    def to_disk(least: int) -> None:
        for table, waiting in ((rows, asked.rows), (left_out, asked.shown.drops)):
            if len(waiting) >= least:
                table.add(pl.DataFrame(waiting, schema=table.table.schema, orient="row"))
                waiting.clear()

    watch, requests = ReplyWatch(go_on=llm.go_on), requests_about(images(), asked, work.progress)
    with closing(answers(client, requests, work=work, llm=llm, watch=watch)) as answered:
        for answer in answered:
            if asked.take(answer):
                work.progress.advance(1)
                to_disk(ROWS_PER_BLOCK)
    to_disk(0)
    drops = write_drops(work.out, left_out)
    if not rows.rows and not work.in_run:
        why = drops or {"images that no question is about": len(there)}
        raise NothingScored.because("nothing is asked about any image", why, where=str(asked.shown.root))
    rows.write(work.out)
    counts = {"judgments": rows.rows, "images": len(there), "drops": left_out.rows}
    more = asked.write(work)
    notes = {
        "judge": asked.judge, "caveat": " ".join(filter(None, (client.caveat, asked.caveat))),
        "outcomes": dict(sorted(asked.outcomes.items())), **watch.notes(), **asked.notes(),
    }  # fmt: skip
    return Outcome(counts | unanswered(asked.outcomes) | more, drops, notes)


# Stages that ask about images, each declared by the function that prepares the questions.

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
    images: ImagesOf = lambda given, at: prompted_images(given["images"], given.get("per_prompt"), at),
    reads: Reads = lambda _: {},
    usual: Callable[[Given], Iterable[Request]] | None = None,
    plans: type[AskPlan] | None = None,
    again: str = "Ask",
) -> Callable[[Callable[Concatenate[Judge, P], AskedImages[Any]]], Asks[P]]:
    """Declare a stage that asks about images, by the function that prepares the questions.

    Some images cannot be shown; a plan looks at all of them, and asks none. Parameters are those of `asks`, but that a
    manifest names a `task` only where there is one, and says of options what `decides` gives, the instructions and
    `per_prompt`; `images` lists what is asked about, `plans` is the kind of the plan, `again` what is done once more
    with `--fresh`.
    """

    def declare(function: Callable[Concatenate[Judge, P], AskedImages[Any]]) -> Asks[P]:
        spec = spec_of(function)

        def make_stage(given: Given, inputs: dict[str, Path]) -> Stage:
            llm, client = given["llm"], CLIENTS.make(given[spec])

            def asked(at: Path) -> AskedImages[Any]:
                return function(Judge(client.model, at), **given)  # type: ignore[call-arg]

            def plan(out: Path, _: object) -> AskPlan:
                with scratch() as at:
                    questions = asked(at)
                    requests = requests_about(images(given, at), questions)
                    cost = cost_of(client, requests, out, batch=llm.batch)
                    there = sum(block.height for block in images(given, at))
                left_out, count = len(questions.shown.drops), len(questions.open)
                return (plans or AskPlan)(client.model, "images", there, left_out, count, cost)

            def answer(work: Work) -> Outcome:
                every = partial(images, given, work.scratch)
                return judged(work, every, asked(work.scratch), client, llm=llm)

            limit = {name: given[name] for name in ("per_prompt",) if name in given}
            options = {"wording": wording_digest(words, given.get("wording")), **limit, **decides(given)}
            options |= {"task": task} if task else {}
            stage = Stage(folder, kind, version, answer, {**inputs, **reads(given)}, options, packages=packages)
            each = None if usual is None else partial(usd_of, client, partial(usual, given), llm)
            return asking_stage(stage, given[spec], client, unit="images", plan=plan, each=each, llm=llm)

        return Asks(declaring(function, make_stage), example, again=again)

    return declare


SQUARE = 1024  # the side of pictures that models usually make


def usual_picture() -> Image:
    """Give a picture of the usual size."""
    return image_of(np.full((SQUARE, SQUARE, 3), 128, np.uint8))
