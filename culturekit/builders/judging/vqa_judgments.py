"""VQAScore of images by a vision model: how probable it finds it that each shows its prompt."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culturekit.builders.judging.shown_images import ShownImages, judged, prompted_images
from culturekit.builders.judging.yes_probability import (
    TASK,
    probability_of_yes,
    vqa_request,
    vqa_wording,
    wording_digest,
)
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.clients.token_listing import TokenListing
from culturekit.llm.outcomes import Answered
from culturekit.metrics.questions.yes_probabilities import Share
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table

__all__ = ["ITEM", "WeighedImages", "judge_name", "texts_of", "weigh_images"]

ITEM = "prompt"
NO_TEXT, NEITHER = "the text of its prompt is not known", "neither yes nor no"
DEFAULTS = LlmOptions()
CAVEAT = 'P("Yes") is a model\'s confidence, not the share of people who would say yes.'


def judge_name(model: str, of: Share) -> str:
    """Name who says it, with what decides what is said: the question's wording, and what yes is a share of."""
    return f"vqascore:{model}?of={of}&wording={wording_digest()[:8]}"


def texts_of(images_path: Path, prompts: Path | None) -> dict[str, str]:
    """Give the text of each image's prompt: the prompt's own, or, without prompts, what was sent."""
    images = read_table(images_path, IMAGES).select("image_id", "prompt_id", "prompt_sent")
    if prompts is None:
        known = images.select("image_id", text="prompt_sent")
    else:
        own = read_table(prompts, PROMPTS).select("prompt_id", "text")
        known = images.join(own, on="prompt_id", how="inner").select("image_id", "text")
    return {image: text for image, text in known.drop_nulls().iter_rows() if text.strip()}


def weigh_images(
    work: Work,
    images_path: Path,
    client: Client | FreeClient,
    *,
    prompts: Path | None = None,
    of: Share = "yes-no",
    per_prompt: int | None = None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Ask of each image whether it shows its prompt, and keep the probability of yes; every listing is kept."""
    images = prompted_images(images_path, per_prompt)
    weighed = WeighedImages(ShownImages(images_path.parent, "vqascore"), texts_of(images_path, prompts))
    weighed.judge, weighed.of = judge_name(client.model, of), of
    notes: dict[str, object] = {"judge": weighed.judge, "caveat": " ".join(filter(None, (client.caveat, CAVEAT)))}
    return judged(work, images, weighed, client, llm=llm, notes=notes)


@dataclass
class WeighedImages:
    """Images go out in their order; the probabilities come back in the same order and become rows."""

    shown: ShownImages
    texts: Mapping[str, str]
    judge: str = ""
    of: Share = "yes-no"
    open: deque[tuple[str, str | None]] = field(default_factory=deque)
    rows: list[tuple[object, ...]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    instructions: str = field(default_factory=vqa_wording)

    def about(self, row: dict[str, Any]) -> Iterator[Request]:
        """Give the question about one image, where it can be shown and its prompt is known."""
        text = self.texts.get(row["image_id"])
        if text is None:
            self.shown.drop(row, NO_TEXT)
            return
        picture = self.shown.picture(row)
        if picture is not None:
            self.open.append((row["image_id"], row["prompt_id"]))
            yield vqa_request(picture, text, instructions=self.instructions)

    def take(self, answered: Answered) -> None:
        """Write down the probability for the first image that is still open."""
        image_id, prompt_id = self.open.popleft()
        value, outcome = None, str(answered.outcome)
        if isinstance(answered.value, TokenListing):
            value = probability_of_yes(answered.value.tokens, of=self.of)
            outcome = outcome if value is not None else "invalid"
        choice = NEITHER if isinstance(answered.value, TokenListing) and value is None else None
        raw = answered.raw.encode("utf-8", "replace").decode()
        self.rows.append((image_id, prompt_id, self.judge, TASK, ITEM, None, value, choice, raw, outcome))
        self.outcomes[outcome] += 1
