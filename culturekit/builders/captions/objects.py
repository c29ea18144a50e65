"""Objects of pictures and of captions: from a table, a vision model, a detector, or a model that reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, row_id
from culturekit.builders.captions.caption_files import NO_OBJECT, Dropped, finished, read_captions
from culturekit.builders.folded_names import folded
from culturekit.builders.judging.shown_images import prompted_images
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.index.embedding.embed_table import USUAL, TextColumns, opened
from culturekit.index.models.object_detector import DETECTORS, OwlDetector
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.untrusted.untrusted import strip_hidden
from culturekit.records.choices import ANSWERED
from culturekit.records.schemas import JUDGMENTS, OBJECTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest
from culturekit.storage.picture_reading import NoPicture, read_inside
from culturekit.storage.tables import read_table, write_table

__all__ = ["OBJECTS_OF", "ObjectsOptions", "ObjectsReads", "list_objects", "object_request"]

OBJECTS_OF = "captions.objects"
UNSURE = "probability not above the threshold"
REPLY_TOKENS = 512
MOST_READ = 100
SHARD, DIGITS = 64, 6


class Found(NamedTuple):
    """An object of an item, None where it has none; or the reason why an item or an object is left out."""

    item: str
    text: str | None = None
    probability: float | None = None
    reason: str = ""


class NamedObjects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers."""

    id: str
    objects: Annotated[list[str], msgspec.Meta(max_length=MOST_READ)]


@dataclass(frozen=True, slots=True)
class ObjectsReads:
    """What objects are of: one of these."""

    table: Annotated[
        Path | None, Field(description="Objects as they are given: item, text, and probability where it is known.")
    ] = None
    judgments: Annotated[
        Path | None, Field(description="Table that `judge extract` wrote: what a vision model says it sees.")
    ] = None
    images: Annotated[Path | None, Field(description="Images that --detector looks at, for --labels.")] = None
    captions: Annotated[Path | None, Field(description="Captions whose objects --llm names, in any file.")] = None
    labels: Annotated[Path | None, Field(description="Text file with what a detector looks for, one a line.")] = None
    columns: TextColumns = USUAL

    def __post_init__(self) -> None:
        """Take one of them."""
        sources = [name for name in ("table", "judgments", "images", "captions") if getattr(self, name) is not None]
        if len(sources) != 1 or (self.images is None) != (self.labels is None):
            expected = "--table, --judgments, --images with --labels, or --captions"
            raise UsageError("objects are of one source", expected=expected, found=", ".join(sources) or "none")


@dataclass(frozen=True, slots=True)
class ObjectsOptions:
    """Who looks or reads, and how sure it must be."""

    lister: Annotated[
        str | None,
        Field(description="Who names the objects of --captions, as a SPEC: openai:MODEL, ...."),
        Typed("llm"),
    ] = None
    detector: Annotated[
        str | None, Field(description="What looks at --images, as a SPEC: owl:FOLDER, an OWL-ViT or OWLv2.")
    ] = None
    threshold: Annotated[
        float, Field(ge=0, lt=1, description="Objects of which a probability is known count above this one.")
    ] = 0.5


def list_objects(
    work: Work,
    given: ObjectsReads,
    options: ObjectsOptions,
    client: Client | FreeClient | None = None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Write the objects of each item, each once; an item without any is a drop."""
    asked: AskedRows[Mapping[str, Any]] | None = None
    if client is not None:
        asked = AskedRows(OBJECTS_OF, client, llm, lambda row: str(row["id"]))
    of_items: dict[str, dict[str, Found]] = {}
    left_out: list[Dropped] = []
    for one in found_in(work, given, options, asked):
        if one.reason:
            left_out.append((f"{one.item}/{one.text}" if one.text else one.item, one.reason, None))
            continue
        own = of_items.setdefault(one.item, {})
        text = " ".join(strip_hidden(one.text or "").split())
        if folded(text):
            own.setdefault(folded(text), one._replace(text=text))
    rows = [
        {"id": f"{item}#{number}", "item": item, "text": one.text, "probability": one.probability}
        for item, own in of_items.items()
        for number, one in enumerate(own.values(), start=1)
    ]
    write_table(work.out, OBJECTS, pl.DataFrame(rows, schema=OBJECTS.schema))
    left_out += [(item, NO_OBJECT, None) for item, own in of_items.items() if not own]
    return finished(work, {"items": len(of_items), "objects": len(rows)}, left_out, OBJECTS_OF, asked)


def found_in(
    work: Work, given: ObjectsReads, options: ObjectsOptions, asked: AskedRows[Mapping[str, Any]] | None
) -> Iterator[Found]:
    """Find objects in the source that there is."""
    if given.table is not None:
        return in_table(given.table, options.threshold)
    if given.judgments is not None:
        return in_judgments(given.judgments)
    if given.images is not None and given.labels is not None and options.detector is not None:
        return in_images(work, given.images, given.labels, options.detector, options.threshold)
    if given.captions is None or asked is None:
        raise UsageError("nobody looks", expected="--detector SPEC for images, --llm SPEC for captions")
    return in_captions(work, *read_captions(given.captions, given.columns), asked)


def in_table(path: Path, threshold: float) -> Iterator[Found]:
    """Read objects that are given; an empty text is an item without any."""
    table = opened(path)
    if not {"item", "text"} <= set(table.columns):
        found = ", ".join(table.columns)
        raise UsageError("the table lacks a column", where=str(path), expected="item and text", found=found)
    known = pl.col("probability") if "probability" in table.columns else pl.lit(None)
    rows = table.select(pl.col("item", "text").cast(pl.String), known.cast(pl.Float64).alias("probability"))
    for item, text, probability in rows.iter_rows():
        sure = probability is None or probability > threshold
        yield Found(item, text if sure else None, probability)
        if not sure:
            yield Found(item, text, probability, UNSURE)


def in_judgments(path: Path) -> Iterator[Found]:
    """Read what a vision model said that it sees."""
    said = read_table(path, JUDGMENTS).filter(task="extract")
    judges = said["judge"].unique().sort().to_list()
    if not judges:
        hint = f"{path.with_name('drops.parquet')} has the reason of each image."
        raise UsageError("no image was looked at, so no objects are known", where=str(path), hint=hint)
    if len(judges) != 1:
        expected = "what one judge said in `judge extract`"
        raise UsageError("objects are of one judge", where=str(path), expected=expected, found=", ".join(judges))
    for image, item, outcome in said.select("image_id", "item", "outcome").iter_rows():
        yield Found(image, item) if outcome in ANSWERED else Found(image, reason=outcome)


def in_images(work: Work, path: Path, labels: Path, spec: str, threshold: float) -> Iterator[Found]:
    """Look at pictures with a detector; what it saw in some of them outlives a kill."""
    detector, images = DETECTORS.make(spec), prompted_images(path, None)
    lines = labels.read_text(encoding="utf-8").splitlines()
    looked_for = list(dict.fromkeys(filter(None, map(str.strip, lines))))
    work.progress.begin(images.height, "images")
    for shard in images.iter_slices(SHARD):
        kept = work.scratch / f"{digest([detector.name, looked_for, shard['sha256'].to_list()])}.json"
        if not kept.is_file():
            seen = [seen_by(detector, row, path.parent, looked_for) for row in shard.iter_rows(named=True)]
            write_atomically(kept, msgspec.json.encode(seen))
        for image, there in zip(shard["image_id"], msgspec.json.decode(kept.read_bytes()), strict=True):
            if isinstance(there, str):
                yield Found(image, reason=there)
                continue
            yield Found(image)
            for label, probability in zip(looked_for, there, strict=True):
                if probability > threshold:
                    yield Found(image, label, probability)
        work.progress.advance(shard.height)


def seen_by(detector: OwlDetector, row: Mapping[str, Any], root: Path, labels: Sequence[str]) -> list[float] | str:
    """Give the probability of each label in a picture, or say why there is none to look at."""
    if row["status"] != "ok":
        return f"no picture: {row['status']}"
    picture = read_inside(root, row["path"], sha256=row["sha256"])
    if isinstance(picture, NoPicture):
        return picture.reason
    return [round(float(one), DIGITS) for one in detector.probabilities(picture.pixels, labels)]


def in_captions(
    work: Work, captions: pl.DataFrame, empty: Sequence[Dropped], asked: AskedRows[Mapping[str, Any]]
) -> Iterator[Found]:
    """Have a model name what captions name."""
    for key, reason, _ in empty:
        yield Found(key, reason=reason)
    for row, value in asked.ask(work, list(captions.iter_rows(named=True)), object_request, unit="captions"):
        assert isinstance(value, NamedObjects)
        yield from (Found(row["id"], name) for name in (*value.objects, None))


def object_request(row: Mapping[str, Any]) -> Request:
    """Ask what objects a caption names."""
    asked = row_id(row["id"])
    data = {"id": asked, "caption": row["text"]}
    words = wording("captions_objects")
    return Request(OBJECTS_OF, words, data, NamedObjects, allowed={"id": (asked,)}, max_tokens=REPLY_TOKENS)
