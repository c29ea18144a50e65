"""A prompt as a graph of yes/no questions: what a model is asked for, and which replies are such a graph."""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

from culturekit.llm.client import Request
from culturekit.llm.untrusted.untrusted import strip_hidden
from culturekit.storage.digests import digest_bytes

__all__ = ["MOST_QUESTIONS", "TASK", "AskedFact", "QuestionGraph", "depth_of", "graph_request", "graph_wording"]

TASK = "prompt.questions"
MOST_QUESTIONS = 20
REPLY_TOKENS = 2048
ID_LETTERS = 16

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


def graph_wording() -> str:
    """Read the instructions; their hash is part of what decides a graph."""
    return files("culturekit.builders").joinpath("wording/question_graph.txt").read_text(encoding="utf-8")


def graph_request(text: str, *, instructions: str) -> Request:
    """Ask for the questions of a prompt; its id is made of its text, so that equal prompts are asked about once."""
    prompt_id = digest_bytes(text.encode())[:ID_LETTERS]
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
