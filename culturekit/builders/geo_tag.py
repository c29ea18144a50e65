"""A vision model says what each image shows: the alternative to mapping by nearest vectors."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.geo_tag_question import TASK, GeoTag, geo_tag_request, geo_tag_wording
from culturekit.builders.geo_tag_rows import reconciled, tag_rows
from culturekit.builders.image_sample import ImageSample, drawn, sample_note
from culturekit.builders.known_artifacts import KnownArtifacts
from culturekit.builders.picture_files import read_picture
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.outcomes import Answered
from culturekit.records.schemas import DROPS, IMAGES, JUDGMENTS, MATCHES
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.picture_reading import NoPicture
from culturekit.storage.tables import read_table, write_table

__all__ = ["TaggedImages", "image_rows", "tag_images"]

DEFAULTS = LlmOptions()
CAVEAT = "What an image shows is a model's word; its scores are how sure it says it is, and calibrated by nothing."
UNRECONCILED = "No cultural space was given: the artifacts are named as the model named them, and have no ids."


def tag_images(
    work: Work,
    images_path: Path,
    client: Client | FreeClient,
    *,
    cspace: Path | None = None,
    sample: ImageSample | None = None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Ask a model what each image shows, and write its answers as matches; every reply is kept as it came.

    With a sample only the images drawn are asked about, and nothing is said of the others.
    """
    every = image_rows(images_path)
    images = drawn(every, sample)
    work.progress.begin(images.height, "images")
    tagged = TaggedImages(images_path.parent, client.model, None if cspace is None else KnownArtifacts(cspace))
    with closing(answers(client, tagged.requests(work, images), work=work, llm=llm)) as answered:
        for answer in answered:
            tagged.take(answer)
    matches = pl.DataFrame(tagged.matches, schema=MATCHES.schema)
    write_table(work.out, MATCHES, matches)
    write_table(work.out, JUDGMENTS, pl.DataFrame(tagged.judgments, schema=JUDGMENTS.schema, orient="row"))
    write_table(work.out, DROPS, pl.DataFrame(tagged.drops, schema=DROPS.schema, orient="row"))
    set_aside = sum(count for outcome, count in tagged.outcomes.items() if outcome not in {"ok", "repaired"})
    counts = {
        "matches": matches.height,
        "judgments": len(tagged.judgments),
        "drops": len(tagged.drops),
        "images": images.height,
        "abstained": matches.filter(pl.col("rank") == 1, pl.col("abstained")).height,
    }
    return Outcome(
        counts | ({QUARANTINED: set_aside} if set_aside else {}),
        dict(sorted(Counter(reason for _, _, _, reason, _ in tagged.drops).items())),
        {**tagged.notes(client.caveat), **sample_note(every, images, sample)},
    )


def image_rows(images_path: Path) -> pl.DataFrame:
    """List the images of a table, with the concept and country of their prompts where it has them."""
    images = read_table(images_path, IMAGES).sort("image_id")
    columns = ("image_id", "model", "prompt_id", "repeat", "slot", "path", "sha256", "status", "reason")
    return images.select(*columns, *(name for name in ("concept", "country") if name in images.columns))


@dataclass
class TaggedImages:
    """Images go out in their order; the answers come back in the same order and become rows."""

    root: Path
    judge: str
    space: KnownArtifacts | None
    open: deque[dict[str, Any]] = field(default_factory=deque)
    matches: list[dict[str, Any]] = field(default_factory=list)
    judgments: list[tuple[object, ...]] = field(default_factory=list)
    drops: list[tuple[str, str | None, str, str, str | None]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    reconciling: Counter[str] = field(default_factory=Counter)

    def requests(self, work: Work, images: pl.DataFrame) -> Iterator[Request]:
        """Give the question about each image that can be read."""
        instructions = geo_tag_wording()
        for row in images.iter_rows(named=True):
            request = self.about(row, instructions)
            if request is not None:
                yield request
            work.progress.advance(1)

    def about(self, row: dict[str, Any], instructions: str) -> Request | None:
        """Give the question about one image; None, and the reason kept, where it cannot be shown."""
        if row["status"] != "ok":
            self.drop(row, f"no picture: {row['status']}", row["reason"])
            return None
        picture = read_picture(self.root, row["path"], sha256=row["sha256"])
        if isinstance(picture, NoPicture):
            self.drop(row, picture.reason, picture.detail or None)
            return None
        self.open.append(row)
        return geo_tag_request(picture, instructions=instructions)

    def drop(self, row: dict[str, Any], reason: str, detail: str | None) -> None:
        """Keep the reason why an image is not asked about."""
        self.drops.append((row["image_id"], row.get("concept"), "tag", reason, detail))

    def take(self, answered: Answered) -> None:
        """Write down the answer about the first image that is still open."""
        image = self.open.popleft()
        tag = answered.value if isinstance(answered.value, GeoTag) else None
        shown = [] if tag is None else reconciled(image, tag, self.space)
        abstained = tag is None or tag.shown != "yes" or not shown
        self.matches += tag_rows(image, shown, abstained=abstained)
        self.reconciling.update(one.how for one in shown)
        self.outcomes[answered.outcome] += 1
        if tag is not None:
            self.shown[tag.shown] += 1
        raw = answered.raw.encode("utf-8", "replace").decode()
        place = (image["image_id"], image["prompt_id"], self.judge, TASK, "artifact", None)
        sure = 100 * shown[0].sure if shown else None
        self.judgments.append((*place, sure, None if tag is None else tag.shown, raw, answered.outcome))

    def notes(self, caveat: str) -> dict[str, object]:
        """Say who tagged, how it went, and what a reader must know."""
        words = [caveat, CAVEAT, *([UNRECONCILED] if self.space is None else [])]
        return {
            "judge": self.judge,
            "caveat": " ".join(filter(None, words)),
            "outcomes": dict(sorted(self.outcomes.items())),
            "shown": dict(sorted(self.shown.items())),
            "reconciling": dict(sorted(self.reconciling.items())),
        }
