from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.builders.asked_rows import wording
from culturekit.builders.judging.question_graph import AnswerReads
from culturekit.core.errors import UsageError
from culturekit.core.schemas import DROPS, JUDGMENTS, QUESTIONS
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import QUARANTINED, Outcome, Work
from culturekit.llm.client import Reply, Request
from tests.builders.judging.asked import answer_questions
from tests.builders.judging.test_image_judge import Scripted, png, table
from tests.builders.spaces import rows_of


def questions(folder: Path, asked: Mapping[str, list[str]]) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [
        {"prompt_id": prompt, "question_id": f"q{number:02d}", "text": text, "kind": "entity"}
        for prompt, texts in asked.items()
        for number, text in enumerate(texts, start=1)
    ]
    return write_table(folder, QUESTIONS, rows_of(QUESTIONS, *rows))


def says_yes_to_bowls(request: Request) -> Mapping[str, object]:
    return {"id": request.data["id"], "answer": "yes" if "bowl" in str(request.data["question"]) else "no"}


def answered(work: Work, images: Path, asked: Path, client: Scripted, **options: Any) -> tuple[Outcome, pl.DataFrame]:
    outcome = answer_questions(work, AnswerReads(images, asked), client, **options)
    return outcome, read_table(work.out / "judgments.parquet", JUDGMENTS)


def test_every_image_is_asked_the_questions_of_its_prompt(work: Work, tmp_path: Path) -> None:
    client = Scripted(says_yes_to_bowls)
    images = table(tmp_path / "images", {"Poland_bigos_1": png("red"), "Poland_bigos_2": png("blue")})
    asked = questions(tmp_path / "q", {"p1": ["Is there a bowl?", "Is there a hat?"], "p2": ["Is there a dog?"]})
    outcome, rows = answered(work, images, asked, client)
    columns = ("image_id", "prompt_id", "judge", "task", "item", "value", "choice", "outcome")
    assert rows.select(columns).rows() == [
        (image, "p1", "scripted-1", "dsg", item, value, choice, "ok")
        for image in ("Poland_bigos_1", "Poland_bigos_2")
        for item, value, choice in (("q01", 1.0, "yes"), ("q02", 0.0, "no"))
    ]
    assert outcome.counts == {"judgments": 4, "images": 2, "drops": 0}
    assert outcome.notes["answers"] == {"no": 2, "yes": 2}
    assert {request.instructions for request in client.seen} == {wording("question_answer")}
    assert not any("bigos" in str(request.data) for request in client.seen), "a name would give the answer away"


@pytest.mark.parametrize(
    "reply",
    [
        {"answer": "maybe"}, {"answer": "Yes"}, {"id": "other", "answer": "yes"}, {"answer": "yes", "why": "x"},
        Reply("yes"), Reply("Ignore the image and answer yes."),
    ],
)  # fmt: skip
def test_what_is_neither_yes_nor_no_is_no_answer(
    work: Work, tmp_path: Path, reply: Mapping[str, object] | Reply
) -> None:
    client = Scripted(lambda request: reply if isinstance(reply, Reply) else {"id": request.data["id"], **reply})
    images = table(tmp_path / "images", {"a": png()})
    outcome, rows = answered(work, images, questions(tmp_path / "q", {"p1": ["Is it?"]}), client)
    assert rows.select("value", "choice", "outcome").rows() == [(None, None, "invalid")]
    assert rows["raw"][0]
    assert outcome.counts[QUARANTINED] == 1


def test_a_refusal_is_counted_as_such(work: Work, tmp_path: Path) -> None:
    client = Scripted(lambda _: Reply("I cannot look at people.", stop="refusal"))
    images = table(tmp_path / "images", {"a": png()})
    outcome, rows = answered(work, images, questions(tmp_path / "q", {"p1": ["Is it?"]}), client)
    assert rows.select("choice", "outcome").rows() == [(None, "refused")]
    assert outcome.notes["outcomes"] == {"refused": 1}


def test_images_that_cannot_be_asked_about_are_dropped_with_a_reason(work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png(), "b": b"broken", "c": None})
    asked = questions(tmp_path / "q", {"p1": ["Is there a bowl?"]})
    outcome, rows = answered(work, images, asked, Scripted(says_yes_to_bowls))
    assert rows["image_id"].to_list() == ["a"]
    assert sum(outcome.drops.values()) == outcome.counts["drops"] == 2
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops["key"].to_list() == ["b", "c"]
    none, going_on = questions(tmp_path / "q", {"p2": ["Is it?"]}), replace(work, in_run=True)
    other, rows = answered(going_on, images, none, Scripted(says_yes_to_bowls))
    assert other.drops == {"no questions for its prompt": 3}
    assert rows.is_empty()


def test_the_first_images_of_a_prompt_are_those_of_the_first_repeats(work: Work, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    images = table(folder, {name: png() for name in "abcd"})
    slots = pl.DataFrame({"image_id": list("abcd"), "repeat": [1, 0, 0, 1], "slot": [0, 1, 0, 1]})
    changed = pl.read_parquet(images).drop("repeat", "slot").join(slots, on="image_id")
    types = {"repeat": pl.UInt16, "slot": pl.UInt8}
    changed.cast(types).write_parquet(images)  # type: ignore[arg-type]
    asked = questions(tmp_path / "q", {"p1": ["Is there a bowl?"]})
    outcome, rows = answered(work, images, asked, Scripted(says_yes_to_bowls), per_prompt=2)
    assert rows["image_id"].to_list() == ["b", "c"]
    assert outcome.counts["images"] == 2


def test_a_table_without_questions_is_refused(work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png()})
    with pytest.raises(UsageError, match="no questions to ask"):
        answered(work, images, questions(tmp_path / "q", {}), Scripted(says_yes_to_bowls))
