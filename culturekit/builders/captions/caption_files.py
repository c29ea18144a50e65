"""Captions from files of any usual kind, and how many, how long and how full of objects they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import row_id, wording
from culturekit.builders.asking import Asked, asks
from culturekit.builders.built import Given, builds
from culturekit.builders.country_names import country_code, folded
from culturekit.builders.filtering.cspace_filter import shares
from culturekit.builders.shown_images import prompted_images
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import ANSWERED
from culturekit.core.digests import digest
from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.schemas import CAPTION_STATS, CAPTIONS, DROPS, JUDGMENTS, OBJECTS, PROMPTS, TRANSLATIONS
from culturekit.core.spec_state import spec_state
from culturekit.core.stage_command import Seed, Typed
from culturekit.core.tables import read_part, read_table, save_part, write_drops, write_frames, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.embedding.embed_table import (
    USUAL,
    TextColumns,
    chosen,
    opened,
    text_blocks,
    texts_by_id,
    texts_of,
)
from culturekit.index.models.transformers_encoder import DETECTORS, OwlDetector
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.llm.untrusted import strip_hidden

NO_OBJECT = "no object"
# As long as captions usually are, for the price of one before there are any.
USUAL_CAPTION = (
    "Three neighbours in quilted jackets share sweet rice balls at a lantern fair beside the old stone bridge at dusk"
)
USUAL_ROW = {"id": "usual", "text": USUAL_CAPTION}

Dropped: TypeAlias = tuple[str, str, str | None]  # key, reason and detail of what is left out

CaptionsToRead: TypeAlias = Annotated[
    Path,
    Field(
        description="Captions by id: a table (Parquet, CSV, JSON lines), COCO's JSON, or a text file with one a line."
    ),
]


def read_captions(path: Path, columns: TextColumns) -> tuple[pl.DataFrame, list[Dropped]]:
    """Read captions as id, text and category, null where a file has none; and those that are left out."""
    found = texts_of((path,), columns)
    captions = pl.DataFrame({"id": list(found.texts), "text": list(found.texts.values())})
    table = opened(path)
    if "category" not in table.columns:
        return captions.with_columns(category=pl.lit(None, pl.String)), found.left_out
    key, _ = chosen(path, table.columns, columns)
    categories = table.select(pl.col(key).cast(pl.String).alias("id"), pl.col("category").cast(pl.String))
    return captions.join(
        categories.unique("id", keep="first"), on="id", how="left", maintain_order="left"
    ), found.left_out


def _drops_beside(given: Given) -> dict[str, Path]:
    """Name the list of captions without objects, where there is one, or where a stage is still to write both."""
    objects = given["objects"]
    beside = None if objects is None else objects.parent / f"{DROPS.name}.parquet"
    return {"no-objects": beside} if beside is not None and (beside.is_file() or not objects.exists()) else {}


@builds(
    "caption-stats", "stats", packages=("msgspec", "polars"), reads=_drops_beside,
    example="--captions captions/captions.parquet --out stats",
)  # fmt: skip
def stats(
    work: Work,
    captions: CaptionsToRead,
    objects: Annotated[
        Path | None, Field(description="Table that `captions objects` wrote about these captions. [none are counted]")
    ] = None,
    *,
    columns: TextColumns = USUAL,
) -> Outcome:
    """Count captions, their words and objects, by error.

    It takes any file of captions.
    """
    found, left_out = read_captions(captions, columns)
    found = found.join(_counted(objects), on="id", how="left").with_columns(
        words=pl.col("text").str.count_matches(r"\S*[\p{L}\p{N}]\S*").cast(pl.UInt32)
    )
    if objects is not None and found["objects"].null_count() == found.height:
        raise UsageError("the objects are of no caption that is counted", where=str(objects))
    groups = pl.concat([found.with_columns(category=pl.lit("all")), found.drop_nulls("category")])
    table = groups.group_by("category").agg(
        captions=pl.len().cast(pl.UInt32), words=pl.col("words").mean(), fewest=pl.col("words").min(),
        most=pl.col("words").max(), counted=pl.col("objects").count().cast(pl.UInt32),
        objects=pl.col("objects").mean(),
    )  # fmt: skip
    write_table(work.out, CAPTION_STATS, table)
    counts = {"captions": found.height} | {name: int(found[name].sum()) for name in ("words", "objects")}
    drops = [(key, None, "captions.stats", reason, detail) for key, reason, detail in left_out]
    return Outcome(counts, write_drops(work.out, drops, once=True))


def _counted(path: Path | None) -> pl.DataFrame:
    """Count the objects of each caption; those in which none was found are among the drops beside the table."""
    if path is None:
        return pl.DataFrame(schema={"id": pl.String, "objects": pl.UInt32})
    found = read_table(path, OBJECTS).group_by("item").agg(objects=pl.len().cast(pl.UInt32)).rename({"item": "id"})
    drops = path.parent / f"{DROPS.name}.parquet"
    none = read_table(drops, DROPS).filter(reason=NO_OBJECT) if drops.is_file() else pl.DataFrame(schema=DROPS.schema)
    return pl.concat([found, none.select(pl.col("key").alias("id"), objects=pl.lit(0, pl.UInt32))])


# Objects of pictures and of captions: from a table, a vision model, a detector, or a model that reads.

OBJECTS_OF = "captions.objects"
UNSURE = "probability not above the threshold"
OBJECT_TOKENS = 512
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


def _objects_decide(given: Given) -> dict[str, object]:
    sources = [name for name in ("table", "judgments", "images", "captions") if given[name] is not None]
    if len(sources) != 1 or (given["images"] is None) != (given["labels"] is None):
        expected = "--table, --judgments, --images with --labels, or --captions"
        raise UsageError("objects are of one source", expected=expected, found=", ".join(sources) or "none")
    detector = given["detector"]
    decided = {} if detector is None else {"detector": detector, **spec_state(DETECTORS, detector)}
    return {"threshold": given["threshold"], "columns": asdict(given["columns"]), **decided}


@asks(
    "list-objects", "objects", OBJECTS_OF, words="captions_objects", unit="captions", key=lambda row: str(row["id"]),
    reads=lambda _: {}, decides=_objects_decide, usual=lambda _: [_object_request(USUAL_ROW)],
    example="--images images/images.parquet --detector owl:owlv2 --labels things.txt --out objects",
)  # fmt: skip
def objects(
    asked: Asked,
    table: Annotated[
        Path | None, Field(description="Objects as they are given: item, text, and probability where it is known.")
    ] = None,
    judgments: Annotated[
        Path | None, Field(description="Table that `judge extract` wrote: what a vision model says it sees.")
    ] = None,
    images: Annotated[Path | None, Field(description="Images that --detector looks at, for --labels.")] = None,
    captions: Annotated[Path | None, Field(description="Captions whose objects --llm names, in any file.")] = None,
    labels: Annotated[Path | None, Field(description="Text file with what a detector looks for, one a line.")] = None,
    *,
    columns: TextColumns = USUAL,
    lister: Annotated[
        str | None,
        Field(description="Who names the objects of --captions, as a SPEC: openai:MODEL or another."),
        Typed("llm", needs="captions"),
    ] = None,
    detector: Annotated[
        str | None, Field(description="What looks at --images, as a SPEC: owl:FOLDER, an OWL-ViT or OWLv2.")
    ] = None,
    threshold: Annotated[
        float, Field(ge=0, lt=1, description="Objects of which a probability is known count above this one.")
    ] = 0.5,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """List the objects of pictures or captions.

    `score c3` and `captions stats` take them.
    """
    if table is not None:
        found = _in_table(table, threshold)
    elif judgments is not None:
        found = _in_judgments(judgments)
    elif images is not None and labels is not None and detector is not None:
        found = _in_images(asked.work, images, labels, detector, threshold)
    elif captions is None or asked.nobody:
        raise UsageError("nobody looks", expected="--detector SPEC for images, --llm SPEC for captions")
    else:
        found = _in_captions(*read_captions(captions, columns), asked)
    return _write_objects(asked, found)


def _write_objects(asked: Asked, found: Iterable[Found]) -> Outcome:
    """Write the objects of each item, each once; an item without any is a drop."""
    of_items: dict[str, dict[str, Found]] = {}
    left_out: list[Dropped] = []
    for one in found:
        if one.reason:
            left_out.append((f"{one.item}/{one.text}" if one.text else one.item, one.reason, None))
            continue
        of_item = of_items.setdefault(one.item, {})
        text = " ".join(strip_hidden(one.text or "").split())
        if folded(text):
            of_item.setdefault(folded(text), one._replace(text=text))
    rows = [
        {"id": f"{item}#{number}", "item": item, "text": one.text, "probability": one.probability}
        for item, of_item in of_items.items()
        for number, one in enumerate(of_item.values(), start=1)
    ]
    write_table(asked.work.out, OBJECTS, pl.DataFrame(rows, schema=OBJECTS.schema))
    left_out += [(item, NO_OBJECT, None) for item, of_item in of_items.items() if not of_item]
    return asked.finish({"items": len(of_items), "objects": len(rows)}, left_out)


def _in_table(path: Path, threshold: float) -> Iterator[Found]:
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


def _in_judgments(path: Path) -> Iterator[Found]:
    """Read what a vision model said that it sees."""
    extracted = read_table(path, JUDGMENTS).filter(task="extract")
    judges = extracted["judge"].unique().sort().to_list()
    if not judges:
        hint = f"{path.with_name('drops.parquet')} has the reason of each image."
        raise UsageError("no image was looked at, so no objects are known", where=str(path), hint=hint)
    if len(judges) != 1:
        expected = "what one judge said in `judge extract`"
        raise UsageError("objects are of one judge", where=str(path), expected=expected, found=", ".join(judges))
    for image, item, outcome in extracted.select("image_id", "item", "outcome").iter_rows():
        yield Found(image, item) if outcome in ANSWERED else Found(image, reason=outcome)


def _in_images(work: Work, path: Path, labels: Path, spec: str, threshold: float) -> Iterator[Found]:
    """Look at pictures with a detector; what it saw in some of them outlives a kill."""
    detector, images = DETECTORS.make(spec), prompted_images(path, None)
    lines = labels.read_text(encoding="utf-8").splitlines()
    looked_for = list(dict.fromkeys(filter(None, map(str.strip, lines))))
    work.progress.begin(images.height, "images")
    for shard in images.iter_slices(SHARD):
        kept = work.scratch / f"{digest([detector.name, looked_for, shard['sha256'].to_list()])}.json"
        if not kept.is_file():
            seen = [_seen_by(detector, row, path.parent, looked_for) for row in shard.iter_rows(named=True)]
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


def _seen_by(detector: OwlDetector, row: Mapping[str, Any], root: Path, labels: Sequence[str]) -> list[float] | str:
    """Give the probability of each label in a picture, or say why there is none to look at."""
    if row["status"] != "ok":
        return f"no picture: {row['status']}"
    picture = read_inside(root, row["path"], sha256=row["sha256"])
    if isinstance(picture, NoPicture):
        return picture.reason
    return [round(float(one), DIGITS) for one in detector.probabilities(picture.pixels, labels)]


def _in_captions(captions: pl.DataFrame, empty: Sequence[Dropped], asked: Asked) -> Iterator[Found]:
    """Have a model name what captions name."""
    for key, reason, _ in empty:
        yield Found(key, reason=reason)
    for row, value in asked.put(list(captions.iter_rows(named=True)), _object_request, unit="captions"):
        yield from (Found(row["id"], name) for name in (*value.objects, None))


def _object_request(row: Mapping[str, Any]) -> Request:
    """Ask what objects a caption names."""
    asked = row_id(row["id"])
    data = {"id": asked, "caption": row["text"]}
    words = wording("captions_objects")
    return Request(OBJECTS_OF, words, data, NamedObjects, allowed={"id": (asked,)}, max_tokens=OBJECT_TOKENS)


# A sample of captions in which each category of error has its share, and prompts that ask for their pictures.

BENCHMARK, OTHER = "c3", "other"


def _size_decides(given: Given) -> dict[str, object]:
    columns = given["columns"]
    more = {} if columns == USUAL else {"columns": asdict(columns)}
    return {"size": given["size"], **more} | ({"culture": given["culture"]} if given["culture"] else {})


@builds(
    "sample-captions", "sample", seeds={"seed": "seed"}, packages=("numpy", "polars"), decides=_size_decides,
    reads=lambda _: country_files(), example="--captions captions/captions.parquet --out sample",
)  # fmt: skip
def sample(
    work: Work,
    captions: CaptionsToRead,
    *,
    columns: TextColumns = USUAL,
    size: Annotated[
        int,
        Field(
            ge=1,
            description="Captions of the sample. Each category of error gives one; each further place goes to the one "
            "that lacks most of its share, the first of the alphabet where two lack as much.",
        ),
    ] = 500,
    culture: Annotated[
        str, Field(description="Culture of the people who rate pictures of captions that are of none, such as COCO's.")
    ] = "",
    seed: Seed = 0,
) -> Outcome:
    """Draw captions by category of error, and write prompts.

    Each category has its share; each caption gets a prompt.
    """
    found = _captions_of(captions, columns).with_columns(pl.col("culture").replace("", culture)).sort(CAPTIONS.key)
    if found.height < size:
        raise UsageError(
            "there are fewer captions than the sample asks for", where=str(captions),
            expected=f"at least {size:,}", found=f"{found.height:,}", hint="Choose a smaller --size.",
        )  # fmt: skip
    sizes = dict(found["category"].value_counts().sort("category").iter_rows())
    wanted = shares(sizes, size)
    order = np.random.default_rng(seed).permutation(found.height)
    place = pl.int_range(pl.len()).over("category")
    drawn = found[order.tolist()].filter(place < pl.col("category").replace_strict(wanted)).sort(CAPTIONS.key)
    write_table(work.out, CAPTIONS, drawn)
    write_table(work.out, PROMPTS, _prompts_of(drawn))
    categories = {name: {"captions": count, "drawn": wanted[name]} for name, count in sizes.items()}
    return Outcome({"captions": drawn.height, "prompts": drawn.height}, {}, {"categories": categories})


def _captions_of(path: Path, columns: TextColumns) -> pl.DataFrame:
    """Read captions that were expanded, or any others, such as COCO's, whose category and culture nobody says."""
    if columns == USUAL and path.suffix == ".parquet":
        with suppress(pl.exceptions.PolarsError, OSError):
            if set(CAPTIONS.columns) <= set(pl.read_parquet_schema(path)):
                return read_table(path, CAPTIONS)
    found = read_captions(path, columns)[0].with_columns(pl.col("category").fill_null(OTHER))
    known = {"culture": "", "language": "en", "round": 0, "proposer": None}
    missing = [pl.lit(value).alias(name) for name, value in known.items()]
    return found.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in CAPTIONS.schema.items())


def _prompts_of(captions: pl.DataFrame) -> pl.DataFrame:
    """Ask for a picture of each caption, in its own words."""
    countries = {culture: country_code(culture) if culture else None for culture in captions["culture"].unique()}
    nothing = pl.lit(None, pl.String)
    prompts = captions.select(
        "text", "language", prompt_id="id", concept="category", benchmark=pl.lit(BENCHMARK), kind=pl.lit("caption"),
        template_id=pl.lit("caption"), negative_text=nothing, group=nothing, artifact_id=nothing,
        country=pl.col("culture").replace_strict(countries, return_dtype=pl.String),
    )  # fmt: skip
    return prompts.select(list(PROMPTS.schema))


# Captions in another language, by a model or as somebody gives them; what is no translation says why.

TRANSLATE = "captions.translate"
MISSING, EMPTY, SAME = "no translation", "empty translation", "translation is the caption itself"


class Translation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers."""

    id: str
    translation: str


@asks(
    "translate-captions", "translations", TRANSLATE, words="captions_translate", unit="captions",
    key=lambda row: str(row["id"]), reads=lambda _: {},
    decides=lambda given: {"language": given["language"], "columns": asdict(given["columns"])},
    usual=lambda given: [_translation_request(USUAL_ROW, given["language"])],
    example=f"--captions alt-texts.csv --llm {quoted('text-small')} --out translations --budget 20",
)  # fmt: skip
def translate(
    asked: Asked,
    captions: CaptionsToRead,
    table: Annotated[
        Path | None, Field(description="Table with id and text of their translations, where no model is asked.")
    ] = None,
    *,
    columns: TextColumns = USUAL,
    translator: Annotated[
        str | None,
        Field(description="Who translates, as a SPEC: openai:MODEL, google:MODEL or another. [those of --table]"),
        Typed("llm"),
    ] = None,
    language: Annotated[
        str,
        Field(
            pattern="^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", description="Language to translate into, such as fr or pt-BR."
        ),
    ] = "en",
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Translate captions by a model, or take translations.

    What is no translation says why.
    """
    if asked.nobody:
        _refuse_strangers(captions, table, columns)
    blocks = iter([texts_of((captions,), columns)]) if asked.planning else text_blocks((captions,), columns)
    translated_by, parts = "given" if asked.nobody else asked.client.model, list[Path]()
    left_out, rows, translated = list[Dropped](), 0, 0
    for texts, empty in blocks:
        left_out += empty
        found, said = [], _said_of(asked, texts, table, columns, language)
        for key, caption in texts.items():
            text = " ".join(strip_hidden(said.get(key) or "").split())
            problem = "" if text else EMPTY if key in said else MISSING
            if text and folded(text) == folded(caption):
                problem = SAME
            if not problem:
                found.append((key, text, caption, language, translated_by))
            elif problem != MISSING or asked.nobody:
                left_out.append((key, problem, caption))
        parts.append(asked.work.scratch / f"translated-{len(parts):06d}.arrow")
        columns_of = ("id", "text", "source", "language", "translator")
        save_part(pl.DataFrame(found, dict.fromkeys(columns_of, pl.String), orient="row"), parts[-1])
        rows, translated = rows + len(texts), translated + len(found)
    if len(parts) == 1:
        write_table(asked.work.out, TRANSLATIONS, read_part(parts[0]))
    else:
        write_frames(asked.work.out, TRANSLATIONS, map(read_part, parts))
    lacking = f"{rows - translated:,} of {rows:,} captions have no translation"
    findings = {"findings": [lacking]} if translated < rows else {}
    return asked.finish({"captions": rows, "translations": translated}, left_out, **findings)


def _said_of(
    asked: Asked, texts: Mapping[str, str], table: Path | None, columns: TextColumns, language: str
) -> Mapping[str, str]:
    """Give translations of some captions: those of a table, or what a model answers."""
    if asked.nobody:
        found = texts_of((table,) if table else (), columns, required=False, only=pl.Series(list(texts)))
        return {**found.texts, **{key: "" for key, _, _ in found.left_out}}
    rows = [{"id": key, "text": text} for key, text in texts.items()]
    came = asked.put(rows, partial(_translation_request, language=language), unit="captions")
    return {row["id"]: value.translation for row, value in came}


def _translation_request(row: Mapping[str, Any], language: str) -> Request:
    """Ask for the translation of a caption."""
    asked = row_id(row["id"])
    data = {"id": asked, "caption": row["text"], "language": language}
    words = wording("captions_translate")
    return Request(TRANSLATE, words, data, Translation, allowed={"id": (asked,)}, max_tokens=1024)


def _refuse_strangers(captions: Path, table: Path | None, columns: TextColumns) -> None:
    """Refuse a table with translations of captions that are not there."""
    if table is None:
        raise UsageError("nobody translates", expected="--llm SPEC, or --table TABLE with translations")
    there = texts_by_id(captions, columns).filter(pl.col("text").str.strip_chars() != "")
    strange = texts_by_id(table, columns).join(there, on="id", how="anti").select(pl.col("id").unique().sort())
    if (found := strange.collect(engine="streaming")["id"]).len():
        raise UsageError(
            f"{len(found)} translations are of captions that are not there", where=str(table),
            found=", ".join(found.head(5)), expected=f"ids of {captions}",
        )  # fmt: skip
