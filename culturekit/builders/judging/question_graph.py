"""A prompt as a graph of yes/no questions: which replies are such a graph, and how a model is asked for all of them.

Each prompt ends in one of a few ways, and the reply of the model is kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import unanswered, wording, wording_digest
from culturekit.builders.asking import (
    AskPlan,
    asking_images,
    asking_stage,
    plan_to_ask,
    scratch,
)
from culturekit.builders.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    PerPrompt,
    ShownImages,
    Verdict,
    WhoLooks,
    prompted_images,
)
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles_of
from culturekit.core.layouts import prompts_table
from culturekit.core.schemas import PROMPTS, QUESTION_GRAPHS, QUESTIONS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, Typed
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.llm.answers import DEFAULTS, LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Image, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.models import quoted
from culturekit.llm.rows import Answered, ReplyWatch
from culturekit.llm.untrusted import strip_hidden

# A vision model answers the questions of each image's prompt: one row per image and question, whatever came of it.

ANSWER_TASK = "dsg"
"""The task under which answers stand among judgments."""

REQUEST = "image.dsg"
ANSWER_TOKENS = 64
NO_PROMPT, NO_QUESTIONS = "the image names no prompt", "no questions for its prompt"
ANSWER_CAVEAT = (
    "Whether an image shows what a question asks is a model's word; what it does not know, it tends to deny."
)

Questions = Mapping[str, tuple[tuple[str, str], ...]]
"""Prompt -> its questions, each an id and a text."""


class YesOrNo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers."""

    id: str
    answer: Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class AnswerReads:
    """Images, and the questions about what their prompts ask for."""

    images: ImagesToShow
    questions: Annotated[Path, Field(description="Table that `questions build` wrote.")]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Who answers, and about how many images."""

    judge: WhoLooks
    per_prompt: PerPrompt = None


def answered_images(given: AnswerReads, judge: str) -> "AnsweredImages":
    """Prepare the questions of its prompt for each image."""
    return AnsweredImages(ShownImages(given.images.parent, "ask"), judge, questions_by_prompt(given.questions))


def questions_by_prompt(path: Path) -> Questions:
    """Read the questions of each prompt."""
    table = read_table(path, QUESTIONS).sort("prompt_id", "question_id")
    if table.is_empty():
        raise UsageError("there are no questions to ask", where=str(path), expected="the table `questions build` wrote")
    found: dict[str, list[tuple[str, str]]] = {}
    for prompt, question, text in table.select("prompt_id", "question_id", "text").iter_rows():
        found.setdefault(prompt, []).append((question, text))
    return {prompt: tuple(listed) for prompt, listed in found.items()}


@dataclass
class AnsweredImages(AskedImages[tuple[str, str]]):
    """The questions about what each image's prompt asks for."""

    caveat = ANSWER_CAVEAT

    of_prompt: Questions
    answers: Counter[str] = field(init=False, default_factory=Counter)
    instructions: str = field(init=False, default_factory=partial(wording, "question_answer"))

    def notes(self, caveat: str) -> dict[str, object]:
        """Count the answers, too."""
        return {**AskedImages.notes(self, caveat), "answers": dict(sorted(self.answers.items()))}

    def questions(self, row: dict[str, Any]) -> Sequence[tuple[str, str]]:
        """List the questions of its prompt."""
        return self.of_prompt.get(row["prompt_id"] or "", ())

    def why_not(self, row: dict[str, Any]) -> str:
        """Tell an image without a prompt from a prompt without questions."""
        return NO_PROMPT if row["prompt_id"] is None else NO_QUESTIONS

    def request(self, picture: Image, row: dict[str, Any], question: tuple[str, str]) -> Request:
        """Ask one."""
        return answer_request(picture, question[1], instructions=self.instructions)

    def verdicts(self, row: dict[str, Any], question: tuple[str, str], answered: Answered) -> Sequence[Verdict]:
        """Give yes or no, and the number for it."""
        if not isinstance(answered.value, YesOrNo):
            return [Verdict(ANSWER_TASK, question[0])]
        choice = answered.value.answer
        self.answers[choice] += 1
        return [Verdict(ANSWER_TASK, question[0], value=float(choice == "yes"), choice=choice)]


def answer_request(picture: Image, question: str, *, instructions: str) -> Request:
    """Ask one question about an image, and give away nothing else about it."""
    image_id = picture.sha256[:ID_LETTERS]
    return Request(
        REQUEST,
        instructions,
        {"id": image_id, "question": question},
        YesOrNo,
        allowed={"id": (image_id,)},
        images=(picture,),
        max_tokens=ANSWER_TOKENS,
    )


TASK = "prompt.questions"
MOST_QUESTIONS = 20
REPLY_TOKENS = 2048
QUESTION_ID_LETTERS = 16

Number = Annotated[int, msgspec.Meta(ge=1, le=MOST_QUESTIONS)]

CAVEAT = "The questions are a model's reading of each prompt; what it left out or misread, no answer to them can show."
NO_TEXT = "no text"


FACT = {"fact": pl.String()}


class AskedFact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact of a prompt, the facts it depends on, and the question that asks about it."""

    number: Number
    kind: Literal["entity", "attribute", "relation", "global"]
    fact: Annotated[str, msgspec.Meta(min_length=1, max_length=160)]
    parents: Annotated[list[Number], msgspec.Meta(max_length=MOST_QUESTIONS)]
    question: Annotated[str, msgspec.Meta(min_length=5, max_length=240)]

    def __post_init__(self) -> None:
        """Refuse texts that are not one plain line, and what is no question."""
        for name in ("fact", "question"):
            text = getattr(self, name)
            if text != strip_hidden(text) or text != " ".join(text.split()):
                raise ValueError(f"{name} is one line of text, with nothing in it that is not seen")
        if not self.question.endswith("?"):
            raise ValueError("a question ends with a question mark")
        if len(set(self.parents)) < len(self.parents):
            raise ValueError("a parent is named twice")


class QuestionGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model makes of one prompt."""

    id: str
    questions: Annotated[list[AskedFact], msgspec.Meta(min_length=1, max_length=MOST_QUESTIONS)]

    def __post_init__(self) -> None:
        """Refuse what is no graph: numbers out of order, parents that are not there, questions in a circle or twice."""
        numbers = [asked.number for asked in self.questions]
        if numbers != list(range(1, len(numbers) + 1)):
            raise ValueError("questions are numbered from 1, each by the next number")
        if any(parent > len(numbers) for asked in self.questions for parent in asked.parents):
            raise ValueError("a question depends on one that is not there")
        if len({asked.question.casefold() for asked in self.questions}) < len(numbers):
            raise ValueError("a question is asked twice")
        try:
            TopologicalSorter({asked.number: asked.parents for asked in self.questions}).prepare()
        except CycleError:
            raise ValueError("questions depend on each other in a circle") from None


def graph_request(text: str, *, instructions: str) -> Request:
    """Ask for the questions of a prompt; its id is made of its text, so that equal prompts are asked about once."""
    prompt_id = digest_bytes(text.encode())[:QUESTION_ID_LETTERS]
    return Request(
        TASK,
        instructions,
        {"id": prompt_id, "prompt": text},
        QuestionGraph,
        allowed={"id": (prompt_id,)},
        max_tokens=REPLY_TOKENS,
    )


def depth_of(parents: Mapping[int, Sequence[int]]) -> int:
    """Count the questions on the longest way from one without parents."""
    depths: dict[int, int] = {}
    for number in TopologicalSorter(dict(parents)).static_order():
        depths[number] = 1 + max((depths[parent] for parent in parents[number]), default=0)
    return max(depths.values(), default=0)


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """Who writes questions, and about which prompts."""

    writer: Annotated[
        str,
        Field(description="Who writes the questions, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ]
    kinds: Annotated[
        tuple[str, ...],
        Field(description="Kind of prompts to ask about: cube, underspecified, within-country. Repeatable. [all]"),
        Typed("kind"),
    ] = ()


def ask_for_graphs(
    work: Work,
    prompts_path: Path,
    client: Client | FreeClient,
    kinds: Sequence[str] = (),
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Ask a model for the questions of each prompt, of some kinds or all; write questions and how each prompt ended."""
    prompts = prompts_of_kinds(prompts_path, kinds)
    asked = prompts.filter(has_text())
    work.progress.begin(asked.height, "prompts")
    watch = ReplyWatch(go_on=llm.go_on)
    questions: list[dict[str, Any]] = []
    graphs = [ended(row["prompt_id"], client.model, NO_TEXT) for row in prompts.filter(~has_text()).to_dicts()]
    with closing(answers(client, graph_requests(asked), work=work, llm=llm, watch=watch)) as answered:
        for prompt_id, answer in zip(asked["prompt_id"], answered, strict=True):
            rows = question_rows(prompt_id, answer)
            questions += rows
            graphs.append(graph_row(prompt_id, client.model, answer, rows))
            work.progress.advance(1)
    write_table(work.out, QUESTIONS, pl.DataFrame(questions, schema={**QUESTIONS.schema, **FACT}))
    write_table(work.out, QUESTION_GRAPHS, pl.DataFrame(graphs, schema=QUESTION_GRAPHS.schema))
    outcomes = Counter(str(row["outcome"]) for row in graphs)
    asked_about = {outcome: count for outcome, count in outcomes.items() if outcome != NO_TEXT}
    return Outcome(
        {"questions": len(questions), "question_graphs": len(graphs)} | unanswered(asked_about),
        {NO_TEXT: outcomes[NO_TEXT]} if outcomes[NO_TEXT] else {},
        {
            "judge": client.model,
            "caveat": " ".join(filter(None, (client.caveat, CAVEAT))),
            "outcomes": dict(sorted(outcomes.items())),
            **watch.notes(),
        },
    )


def has_text() -> pl.Expr:
    """Tell whether a prompt says anything."""
    return pl.col("text").str.strip_chars().str.len_chars() > 0


def prompts_of_kinds(path: Path, kinds: Sequence[str]) -> pl.DataFrame:
    """List prompts by their ids, those of some kinds only where kinds are named."""
    prompts = read_table(path, PROMPTS).sort("prompt_id")
    chosen = prompts.filter(pl.col("kind").is_in(list(kinds))) if kinds else prompts
    if chosen.is_empty():
        raise UsageError(
            "there are no prompts of these kinds" if kinds else "there are no prompts to ask about",
            where=str(path),
            expected=", ".join(sorted(set(prompts["kind"]))),
            found=", ".join(kinds) or "no rows",
        )
    return chosen


def graph_requests(prompts: pl.DataFrame) -> Iterator[Request]:
    """Give the request for each prompt that has a text."""
    instructions = wording("question_graph")
    for text in prompts.filter(has_text())["text"]:
        yield graph_request(text, instructions=instructions)


def question_rows(prompt_id: str, answer: Answered) -> list[dict[str, Any]]:
    """Write the questions of a prompt; none where the reply was no graph."""
    if not isinstance(answer.value, QuestionGraph):
        return []
    return [
        {
            "prompt_id": prompt_id,
            "question_id": question_id(asked.number),
            "parents": [question_id(parent) for parent in sorted(asked.parents)],
            "text": asked.question,
            "kind": asked.kind,
            "fact": asked.fact,
        }
        for asked in answer.value.questions
    ]


def question_id(number: int) -> str:
    """Name a question within its prompt; names sort as numbers do."""
    return f"q{number:02d}"


def graph_row(prompt_id: str, writer: str, answer: Answered, questions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Write how a prompt ended."""
    raw = answer.raw.encode("utf-8", "replace").decode()
    row = ended(prompt_id, writer, answer.outcome) | {"detail": answer.detail or None, "raw": raw}
    if not isinstance(answer.value, QuestionGraph):
        return row
    depth = depth_of({asked.number: asked.parents for asked in answer.value.questions})
    return row | {"questions": len(questions), "depth": depth}


def ended(prompt_id: str, writer: str, outcome: str) -> dict[str, Any]:
    """Write a prompt that has no questions."""
    about = {"prompt_id": prompt_id, "writer": writer, "outcome": outcome}
    return about | {"questions": 0, "depth": 0, "detail": None, "raw": ""}


@dataclass(frozen=True, slots=True)
class GraphReads:
    """Prompts that questions are written about."""

    prompts: Annotated[Path, Field(description="Prompts table, or a file in the public layout.")]


def graphs_stage(given: GraphReads, options: GraphOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Turn each prompt into a graph of yes/no questions (DSG).

    A reply that is no such graph is set aside.
    """
    client, kinds = CLIENTS.make(options.writer), options.kinds

    def plan(out: Path, _: object) -> AskPlan:
        with scratch() as folder:
            table = prompts_of_kinds(prompts_table(given.prompts, folder), kinds)
        requests = list(graph_requests(table))
        return plan_to_ask(client, "prompts", requests, out, llm, left_out=table.height - len(requests))

    stage = Stage(
        "questions",
        "questions",
        2,
        lambda work: ask_for_graphs(work, prompts_table(given.prompts, work.scratch), client, kinds, llm),
        roles_of(given),
        {
            "task": TASK,
            "wording": wording_digest("question_graph"),
            "kinds": sorted(kinds),
        },
        packages=("msgspec", "polars"),
    )
    return asking_stage(stage, options.writer, client, unit="prompts", plan=plan, go_on=llm.go_on)


BUILD = AskingCommand(
    graphs_stage, f"--prompts prompts/prompts.parquet --llm {quoted('text-small')} --out questions --budget 5"
)


def answers_stage(given: AnswerReads, options: AnswerOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model the questions of each image's prompt.

    `score questions` makes DSG of the answers.
    """
    wording_of_answers = wording_digest("question_answer")
    return asking_images(
        "answers",
        2,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=lambda model, _: answered_images(given, model),
        options={"task": REQUEST, "wording": wording_of_answers, "per_prompt": options.per_prompt},
        llm=llm,
        name="answers",
    )


ASK = AskingCommand(
    answers_stage,
    f"--images images/images.parquet --questions questions/questions.parquet --llm {quoted('vision')} --out answers "
    "--budget 20",
)
