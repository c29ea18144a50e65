"""A model turns prompts into graphs of questions: each prompt ends in one of a few ways, and its reply is kept."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.judging.question_graph import QuestionGraph, depth_of, graph_request, graph_wording
from culturekit.errors import UsageError
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.outcomes import Answered
from culturekit.llm.reply_watch import ReplyWatch
from culturekit.records.schemas import PROMPTS, QUESTION_GRAPHS, QUESTIONS
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["ask_for_graphs", "graph_requests", "prompts_of_kinds"]

DEFAULTS = LlmOptions()
CAVEAT = "The questions are a model's reading of each prompt; what it left out or misread, no answer to them can show."
NO_TEXT = "no text"


def ask_for_graphs(
    work: Work,
    prompts_path: Path,
    client: Client | FreeClient,
    *,
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
            own = question_rows(prompt_id, answer)
            questions += own
            graphs.append(graph_row(prompt_id, client.model, answer, own))
            work.progress.advance(1)
    write_table(work.out, QUESTIONS, pl.DataFrame(questions, schema={**QUESTIONS.schema, **FACT}))
    write_table(work.out, QUESTION_GRAPHS, pl.DataFrame(graphs, schema=QUESTION_GRAPHS.schema))
    outcomes = Counter(str(row["outcome"]) for row in graphs)
    set_aside = sum(count for outcome, count in outcomes.items() if outcome not in {"ok", "repaired", NO_TEXT})
    return Outcome(
        {"questions": len(questions), "question_graphs": len(graphs)} | ({QUARANTINED: set_aside} if set_aside else {}),
        {NO_TEXT: outcomes[NO_TEXT]} if outcomes[NO_TEXT] else {},
        {
            "judge": client.model,
            "caveat": " ".join(filter(None, (client.caveat, CAVEAT))),
            "outcomes": dict(sorted(outcomes.items())),
            **watch.notes(),
        },
    )


FACT = {"fact": pl.String()}


def has_text() -> pl.Expr:
    """Tell whether a prompt says anything."""
    return pl.col("text").str.strip_chars().str.len_chars() > 0


def prompts_of_kinds(path: Path, kinds: Sequence[str]) -> pl.DataFrame:
    """List prompts by their ids, those of some kinds only where kinds are named."""
    prompts = read_table(path, PROMPTS).sort("prompt_id")
    if not kinds:
        return prompts
    own = prompts.filter(pl.col("kind").is_in(list(kinds)))
    if own.is_empty():
        raise UsageError(
            "there are no prompts of these kinds",
            where=str(path),
            expected=", ".join(sorted(set(prompts["kind"]))),
            found=", ".join(kinds),
        )
    return own


def graph_requests(prompts: pl.DataFrame) -> Iterator[Request]:
    """Give the request for each prompt that has a text."""
    instructions = graph_wording()
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
