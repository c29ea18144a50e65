"""A judge looks at images: one row per image and question, whatever came of it."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from culturekit.builders.judging.image_questions import ImageQuestion, check_questions, image_request, number_and_choice
from culturekit.builders.judging.shown_images import ShownImages, judged
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.outcomes import Answered
from culturekit.records.schemas import IMAGES
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table

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
    asked = AskedImages(ShownImages(images_path.parent, "judge"), questions, judge=client.model)
    notes: dict[str, object] = {"judge": client.model, "caveat": client.caveat}
    return judged(work, images, asked, client, llm=llm, notes=notes)


class AskedImages:
    """Questions go out image by image; their answers come back in the same order and become rows."""

    def __init__(self, shown: ShownImages, questions: Sequence[ImageQuestion], *, judge: str) -> None:
        """Sort the questions by the prompt whose images they are about."""
        self.shown = shown
        self.judge = judge
        self.instructions = judge_wording()
        self.of_prompt: dict[str | None, list[ImageQuestion]] = {}
        for question in questions:
            self.of_prompt.setdefault(question.prompt_id, []).append(question)
        self.open: deque[tuple[str, str | None, ImageQuestion]] = deque()
        self.rows: list[tuple[object, ...]] = []
        self.outcomes: Counter[str] = Counter()

    def about(self, row: dict[str, Any]) -> Iterator[Request]:
        """Give the questions about one image; it is read once for all of them."""
        questions = self.questions(row["prompt_id"])
        if not questions:
            return
        picture = self.shown.picture(row)
        if picture is None:
            return
        for question in questions:
            self.open.append((row["image_id"], row["prompt_id"], question))
            yield image_request(question, row["image_id"], picture, instructions=self.instructions)

    def questions(self, prompt_id: str | None) -> list[ImageQuestion]:
        """List what is asked about the images of a prompt."""
        own = [] if prompt_id is None else self.of_prompt.get(prompt_id, [])
        return [*self.of_prompt.get(None, []), *own]

    def take(self, answered: Answered) -> None:
        """Write down the answer to the first question that is still open."""
        image_id, prompt_id, question = self.open.popleft()
        value, choice = number_and_choice(answered.value)
        raw = answered.raw.encode("utf-8", "replace").decode()
        place = (image_id, prompt_id, self.judge, question.task, question.item, question.dimension)
        self.rows.append((*place, value, choice, raw, answered.outcome))
        self.outcomes[answered.outcome] += 1
