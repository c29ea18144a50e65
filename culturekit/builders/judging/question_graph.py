"""A prompt as a graph of yes/no questions: which replies are such a graph, and how a model is asked for all of them.

Each prompt ends in one of a few ways, and the reply of the model is kept.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, asks, unanswered, wording
from culturekit.builders.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    Judge,
    PerPrompt,
    Row,
    ShownImages,
    Verdict,
    WhoLooks,
    looks,
)
from culturekit.core.declared import Typed
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.schemas import PROMPTS, QUESTION_GRAPHS, QUESTIONS
from culturekit.core.stage import Outcome
from culturekit.core.tables import prompts_table, read_table, write_table
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Image, Request
from culturekit.llm.models import quoted
from culturekit.llm.rows import Answered
from culturekit.llm.untrusted import strip_hidden

# A vision model answers the questions of each image's prompt: one row per image and question, whatever came of it.

ANSWER_TASK = "dsg"  # under which answers stand among judgments
REQUEST = "image.dsg"
ANSWER_TOKENS = 64
NO_PROMPT, NO_QUESTIONS = "the image names no prompt", "no questions for its prompt"
ANSWER_CAVEAT = (
    "Whether an image shows what a question asks is a model's word; what it does not know, it tends to deny."
)


class YesOrNo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers."""

    id: str
    answer: Literal["yes", "no"]


@looks(
    "answers", "answers", words="question_answer", task=REQUEST, version=2,
    example=f"--images images/images.parquet --questions questions/questions.parquet --llm {quoted('vision')} --out "
    "answers --budget 20",
)  # fmt: skip
def answer(
    by: Judge,
    images: ImagesToShow,
    questions: Annotated[Path, Field(description="Table that `questions build` wrote.")],
    *,
    judge: WhoLooks,
    per_prompt: PerPrompt = None,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[tuple[str, str]]:
    """Ask a vision model the questions of each image's prompt.

    `score questions` makes DSG of the answers.
    """
    table = read_table(questions, QUESTIONS).sort("prompt_id", "question_id")
    if table.is_empty():
        raise UsageError(
            "there are no questions to ask", where=str(questions), expected="the table `questions build` wrote"
        )
    of_prompt: dict[str, list[tuple[str, str]]] = {}
    for prompt, question, text in table.select("prompt_id", "question_id", "text").iter_rows():
        of_prompt.setdefault(prompt, []).append((question, text))
    words, counts = wording("question_answer"), Counter[str]()

    def request(picture: Image, _: Row, question: tuple[str, str]) -> Request:
        image_id = picture.sha256[:ID_LETTERS]  # nothing else about the image is given away
        data, allowed = {"id": image_id, "question": question[1]}, {"id": (image_id,)}
        return Request(REQUEST, words, data, YesOrNo, allowed=allowed, images=(picture,), max_tokens=ANSWER_TOKENS)

    def verdicts(_: Row, question: tuple[str, str], answered: Answered) -> Sequence[Verdict]:
        if not isinstance(answered.value, YesOrNo):
            return [Verdict(ANSWER_TASK, question[0])]
        choice = answered.value.answer
        counts[choice] += 1
        return [Verdict(ANSWER_TASK, question[0], value=float(choice == "yes"), choice=choice)]

    return AskedImages(
        ShownImages(images.parent, "ask"), by.model, lambda row: of_prompt.get(row["prompt_id"] or "", ()), request,
        verdicts, lambda row: NO_PROMPT if row["prompt_id"] is None else NO_QUESTIONS, ANSWER_CAVEAT,
        notes=lambda: {"answers": dict(sorted(counts.items()))},
    )  # fmt: skip


TASK = "prompt.questions"
MOST_QUESTIONS = 20
REPLY_TOKENS = 2048
CAVEAT = "The questions are a model's reading of each prompt; what it left out or misread, no answer to them can show."
NO_TEXT = "no text"

Number = Annotated[int, msgspec.Meta(ge=1, le=MOST_QUESTIONS)]


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
    prompt_id = digest_bytes(text.encode())[:ID_LETTERS]
    data, allowed = {"id": prompt_id, "prompt": text}, {"id": (prompt_id,)}
    return Request(TASK, instructions, data, QuestionGraph, allowed=allowed, max_tokens=REPLY_TOKENS)


def depth_of(parents: Mapping[int, Sequence[int]]) -> int:
    """Count the questions on the longest way from one without parents."""
    depths: dict[int, int] = {}
    for number in TopologicalSorter(dict(parents)).static_order():
        depths[number] = 1 + max((depths[parent] for parent in parents[number]), default=0)
    return max(depths.values(), default=0)


@asks(
    "questions", "questions", TASK, words="question_graph", unit="prompts", version=2, key=str, reads=lambda _: {},
    decides=lambda given: {"kinds": sorted(given["kinds"])},
    example=f"--prompts prompts/prompts.parquet --llm {quoted('text-small')} --out questions --budget 5",
)  # fmt: skip
def build(
    asked: Asked,
    prompts: Annotated[Path, Field(description="Prompts table, or a file in the public layout.")],
    *,
    writer: Annotated[
        str,
        Field(description="Who writes the questions, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ],
    kinds: Annotated[
        tuple[str, ...],
        Field(description="Kind of prompts to ask about: cube, underspecified, within-country. Repeatable. [all]"),
        Typed("kind"),
    ] = (),
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Turn each prompt into a graph of yes/no questions (DSG).

    A reply that is no such graph is set aside.
    """
    table = prompts_of_kinds(prompts_table(prompts, asked.work.scratch), kinds)
    says = pl.col("text").str.strip_chars().str.len_chars() > 0
    described, silent = table.filter(says), table.filter(~says)
    model = asked.client.model
    questions: list[dict[str, Any]] = []
    graphs = [graph_row(prompt_id, model, NO_TEXT) for prompt_id in silent["prompt_id"]]
    request = partial(graph_request, instructions=asked.instructions)
    came = asked.every(described["text"].to_list(), request, unit="prompts", left_out=silent.height)
    for prompt_id, answered in zip(described["prompt_id"], came, strict=True):
        questions += [
            {
                "prompt_id": prompt_id, "question_id": f"q{one.number:02d}",  # names sort as numbers do
                "parents": [f"q{parent:02d}" for parent in sorted(one.parents)],
                "text": one.question, "kind": one.kind, "fact": one.fact,
            }
            for one in (answered.value.questions if isinstance(answered.value, QuestionGraph) else ())
        ]  # fmt: skip
        graphs.append(graph_row(prompt_id, model, answered.outcome, answered))
    write_table(asked.work.out, QUESTIONS, pl.DataFrame(questions, schema={**QUESTIONS.schema, "fact": pl.String()}))
    write_table(asked.work.out, QUESTION_GRAPHS, pl.DataFrame(graphs, schema=QUESTION_GRAPHS.schema))
    counts = {"questions": len(questions), "question_graphs": len(graphs)} | unanswered(asked.outcomes)
    outcomes = Counter(row["outcome"] for row in graphs)
    notes = {
        "judge": model, "caveat": " ".join(filter(None, (asked.client.caveat, CAVEAT))),
        "outcomes": dict(sorted(outcomes.items())), **asked.watch.notes(),
    }  # fmt: skip
    return Outcome(counts, {NO_TEXT: silent.height} if silent.height else {}, notes)


def prompts_of_kinds(path: Path, kinds: Sequence[str]) -> pl.DataFrame:
    """List prompts by their ids, those of some kinds only where kinds are named."""
    prompts = read_table(path, PROMPTS).sort("prompt_id")
    chosen = prompts.filter(pl.col("kind").is_in(list(kinds))) if kinds else prompts
    if chosen.is_empty():
        raise UsageError(
            "there are no prompts of these kinds" if kinds else "there are no prompts to ask about",
            where=str(path), expected=", ".join(sorted(set(prompts["kind"]))), found=", ".join(kinds) or "no rows",
        )  # fmt: skip
    return chosen


def graph_row(prompt_id: str, writer: str, outcome: str, answer: Answered | None = None) -> dict[str, Any]:
    """Write how a prompt ended."""
    detail, raw = (answer.detail, answer.raw.encode("utf-8", "replace").decode()) if answer else ("", "")
    value = answer.value if answer else None
    parents = {one.number: one.parents for one in value.questions} if isinstance(value, QuestionGraph) else {}
    return {"prompt_id": prompt_id, "writer": writer, "outcome": outcome, "questions": len(parents),
            "depth": depth_of(parents), "detail": detail or None, "raw": raw}  # fmt: skip
