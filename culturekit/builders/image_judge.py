"""A judge looks at images: one row per image and question, whatever came of it."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.image_questions import ImageQuestion, check_questions, image_request, said
from culturekit.builders.picture_files import read_picture
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.outcomes import Answered
from culturekit.records.schemas import DROPS, IMAGES, JUDGMENTS
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.picture_reading import NoPicture
from culturekit.storage.tables import read_table, write_table

__all__ = ["judge_images", "judge_wording"]

DEFAULTS = LlmOptions()


def judge_wording() -> str:
    """Read the judge's instructions; their hash is part of what decides a judgment."""
    return files("culturekit.builders").joinpath("wording/image_judge.txt").read_text(encoding="utf-8")


def judge_images(
    work: Work,
    images_path: Path,
    questions: Sequence[ImageQuestion],
    client: Client | FreeClient,
    *,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Put questions about images to a judge; images that cannot be shown to it are dropped with a reason."""
    check_questions(questions)
    images = read_table(images_path, IMAGES).select("image_id", "prompt_id", "path", "sha256", "status", "reason")
    images = images.sort("image_id")
    work.progress.begin(images.height, "images")
    asked = AskedImages(images_path.parent, questions, judge=client.model)
    with closing(answers(client, asked.requests(work, images), work=work, llm=llm)) as answered:
        for answer in answered:
            asked.take(answer)
    write_table(work.out, JUDGMENTS, pl.DataFrame(asked.rows, schema=JUDGMENTS.schema, orient="row"))
    write_table(work.out, DROPS, pl.DataFrame(asked.drops, schema=DROPS.schema, orient="row"))
    outcomes = dict(sorted(asked.outcomes.items()))
    set_aside = sum(count for outcome, count in outcomes.items() if outcome not in {"ok", "repaired"})
    counts = {"judgments": len(asked.rows), "images": images.height, "drops": len(asked.drops)}
    return Outcome(
        counts | ({QUARANTINED: set_aside} if set_aside else {}),
        dict(sorted(Counter(reason for _, _, _, reason, _ in asked.drops).items())),
        {"judge": client.model, "caveat": client.caveat, "outcomes": outcomes},
    )


class AskedImages:
    """Questions go out image by image; their answers come back in the same order and become rows."""

    def __init__(self, root: Path, questions: Sequence[ImageQuestion], *, judge: str) -> None:
        """Sort the questions by the prompt whose images they are about."""
        self.root = root
        self.judge = judge
        self.of_prompt: dict[str | None, list[ImageQuestion]] = {}
        for question in questions:
            self.of_prompt.setdefault(question.prompt_id, []).append(question)
        self.open: deque[tuple[str, str | None, ImageQuestion]] = deque()
        self.rows: list[tuple[object, ...]] = []
        self.drops: list[tuple[str, str | None, str, str, str | None]] = []
        self.outcomes: Counter[str] = Counter()

    def requests(self, work: Work, images: pl.DataFrame) -> Iterator[Request]:
        """Give the questions about each image that can be read."""
        instructions = judge_wording()
        for row in images.iter_rows(named=True):
            yield from self.about(row, instructions)
            work.progress.advance(1)

    def about(self, row: dict[str, Any], instructions: str) -> Iterator[Request]:
        """Give the questions about one image; it is read once for all of them."""
        questions = self.questions(row["prompt_id"])
        if not questions:
            return
        if row["status"] != "ok":
            self.drops.append((row["image_id"], None, "judge", f"no picture: {row['status']}", row["reason"]))
            return
        picture = read_picture(self.root, row["path"], sha256=row["sha256"])
        if isinstance(picture, NoPicture):
            self.drops.append((row["image_id"], None, "judge", picture.reason, picture.detail or None))
            return
        for question in questions:
            self.open.append((row["image_id"], row["prompt_id"], question))
            yield image_request(question, row["image_id"], picture, instructions=instructions)

    def questions(self, prompt_id: str | None) -> list[ImageQuestion]:
        """List what is asked about the images of a prompt."""
        own = [] if prompt_id is None else self.of_prompt.get(prompt_id, [])
        return [*self.of_prompt.get(None, []), *own]

    def take(self, answered: Answered) -> None:
        """Write down the answer to the first question that is still open."""
        image_id, prompt_id, question = self.open.popleft()
        value, choice = said(answered.value)
        raw = answered.raw.encode("utf-8", "replace").decode()
        place = (image_id, prompt_id, self.judge, question.task, question.item, question.dimension)
        self.rows.append((*place, value, choice, raw, answered.outcome))
        self.outcomes[answered.outcome] += 1
