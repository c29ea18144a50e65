"""Captions from files of any usual kind, and how many, how long and how full of objects they are."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, asks, row_id, wording
from culturekit.builders.country_names import country_code, folded
from culturekit.builders.filtering.cspace_filter import shares
from culturekit.builders.shown_images import prompted_images
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import ANSWERED
from culturekit.core.declared import Given, Seed, Typed, builds
from culturekit.core.digests import digest
from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.registry import spec_state
from culturekit.core.schemas import CAPTION_STATS, CAPTIONS, DROPS, IMAGES, JUDGMENTS, OBJECTS, PROMPTS, TRANSLATIONS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import Gathered, blocks_of, read_table, scan_table, whole_groups, write_drops, write_table
from culturekit.index.embedding.embed_table import USUAL, TextColumns, opened, text_blocks, texts_by_id
from culturekit.index.models.transformers_encoder import DETECTORS, OwlDetector
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.llm.untrusted import strip_hidden

NO_OBJECT = "no object"
ROWS_PER_BLOCK = 2**14  # captions and objects that are in memory together
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


def read_captions(
    path: Path, columns: TextColumns, *, rows: int = sys.maxsize
) -> Iterator[tuple[pl.DataFrame, list[Dropped]]]:
    """Read captions as id, text and category, null where a file has none, and those that are left out.

    Parquet of more `rows` comes in blocks, where its ids are in order.
    """
    for found in text_blocks((path,), columns, rows=rows):
        captions = pl.DataFrame({"id": list(found.texts), "text": list(found.texts.values())})
        every = texts_by_id(path, columns, "category")
        if "category" in every.collect_schema():
            there = _among(captions["id"])
            of_block = every.filter(there).select("id", pl.col("category").cast(pl.String)).collect()
            categories = of_block.unique("id", keep="first", maintain_order=True)
            yield captions.join(categories, on="id", how="left", maintain_order="left"), found.left_out
        else:
            yield captions.with_columns(category=pl.lit(None, pl.String)), found.left_out


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
    blocks, left_out = [], list[Dropped]()
    for found, empty in read_captions(captions, columns, rows=ROWS_PER_BLOCK):
        left_out += empty
        named = found.join(_counted(objects, found["id"]), on="id", how="left").with_columns(
            words=pl.col("text").str.count_matches(r"\S*[\p{L}\p{N}]\S*")
        )
        groups = pl.concat([named.with_columns(category=pl.lit("all")), named.drop_nulls("category")])
        sums, word = pl.col("words", "objects").sum().cast(pl.Int64), pl.col("words")
        blocks.append(groups.group_by("category").agg(pl.len().alias("captions"), sums, fewest=word.min(),
                                                      most=word.max(), counted=pl.col("objects").count()))  # fmt: skip
    counts, some = pl.col("captions", "words", "counted", "objects").sum(), pl.col("counted") > 0
    table = pl.concat(blocks).group_by("category").agg(counts, pl.col("fewest").min(), pl.col("most").max())
    total = table.row(by_predicate=pl.col("category") == "all", named=True)
    if objects is not None and not total["counted"]:
        raise UsageError("the objects are of no caption that is counted", where=str(objects))
    means = {
        "words": pl.col("words") / pl.col("captions"),
        "objects": pl.when(some).then(pl.col("objects") / pl.col("counted")),
    }
    cast = [pl.col(name).cast(kind) for name, kind in CAPTION_STATS.schema.items()]
    write_table(work.out, CAPTION_STATS, table.with_columns(**means).select(cast))
    drops = [(key, None, "captions.stats", reason, detail) for key, reason, detail in left_out]
    counted = {name: int(total[name]) for name in ("captions", "words", "objects")}
    return Outcome(counted, write_drops(work.out, drops, once=True))


def _among(ids: pl.Series) -> pl.Expr:
    """Take rows between the first and the last of some ids, which statistics of Parquet find quickly."""
    return pl.col("id").is_between(pl.lit(ids.min()), pl.lit(ids.max()))


def _counted(path: Path | None, ids: pl.Series) -> pl.DataFrame:
    """Count the objects of some captions; those in which none was found are among the drops beside the table."""
    if path is None:
        return pl.DataFrame(schema={"id": pl.String, "objects": pl.UInt32})
    drops = path.parent / f"{DROPS.name}.parquet"
    found = scan_table(path, OBJECTS).select("item", objects=pl.lit(1, pl.UInt32))
    none = scan_table(drops, DROPS) if drops.is_file() else pl.LazyFrame(schema=DROPS.schema)
    none = none.filter(reason=NO_OBJECT).select("key", objects=pl.lit(0, pl.UInt32))
    named = pl.concat([found.rename({"item": "id"}), none.rename({"key": "id"})])
    of_these = named.filter(_among(ids))
    return of_these.group_by("id").agg(pl.col("objects").sum()).collect(engine="streaming")


# Objects of pictures and of captions: from a table, a vision model, a detector, or a model that reads.

OBJECTS_OF = "captions.objects"
UNSURE = "probability not above the threshold"
OBJECT_TOKENS = 512
MOST_READ = 100
SHARD, DIGITS = 64, 6


# An object of an item, without a text where it has none; or the reason why an item or an object is left out.
_FOUND = {"item": pl.String, "text": pl.String, "probability": pl.Float64, "reason": pl.String}


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
        found = _in_judgments(judgments, asked.work)
    elif images is not None and labels is not None and detector is not None:
        found = _in_images(asked.work, images, labels, detector, threshold)
    elif captions is None or asked.nobody:
        raise UsageError("nobody looks", expected="--detector SPEC for images, --llm SPEC for captions")
    else:
        found = _in_captions(_Captions(captions, columns), asked)
    listed, items = Gathered(OBJECTS, asked.work.scratch), 0
    for block in found:
        named, none = _once_each(block.filter(pl.col("reason").is_null()))
        listed.add(named)
        items += named["item"].n_unique() + len(none)
        mentioned, key = (
            pl.col("text").replace("", None),
            pl.concat_str("item", "said", separator="/", ignore_nulls=True),
        )
        gone = block.drop_nulls("reason").with_columns(said=mentioned).select(key, "reason")
        asked.leave_out((key, reason, None) for key, reason in gone.iter_rows())
        asked.leave_out((key, NO_OBJECT, None) for key in none)
        asked.to_disk(asked.work)
    listed.write(asked.work.out)
    return asked.finish({"items": items, "objects": listed.rows}, ())


def _once_each(found: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Give the objects of each item, each once, and the items without any."""
    texts = found["text"].drop_nulls().unique().to_list()
    clean = {text: " ".join(strip_hidden(text).split()) for text in texts}
    same = {text: folded(clean[text]) for text in texts}
    named = found.with_columns(
        text=pl.col("text").replace_strict(clean, return_dtype=pl.String),
        same=pl.col("text").replace_strict(same, return_dtype=pl.String),
    ).filter(pl.col("same") != "")
    named = named.unique(["item", "same"], keep="first", maintain_order=True)
    number = pl.int_range(1, pl.len() + 1).over("item")
    none = found.select(pl.col("item").unique()).join(named, on="item", how="anti")["item"]
    return named.select("item", "text", "probability", id=pl.format("{}#{}", "item", number)), none


def _in_table(path: Path, threshold: float) -> Iterator[pl.DataFrame]:
    """Read objects that are given, items together; an empty text is an item without any."""
    scan = pl.scan_parquet(path) if path.suffix.lower() == ".parquet" and path.is_file() else opened(path).lazy()
    names = scan.collect_schema().names()
    if not {"item", "text"} <= set(names):
        found = ", ".join(names)
        raise UsageError("the table lacks a column", where=str(path), expected="item and text", found=found)
    known = pl.col("probability") if "probability" in names else pl.lit(None)
    rows = scan.select(pl.col("item", "text").cast(pl.String), known.cast(pl.Float64).alias("probability"))
    count = rows.select(pl.len()).collect().item()
    if not rows.select(pl.col("item").is_sorted()).collect(engine="streaming").item():
        rows = rows.sort("item", maintain_order=True).collect().lazy()
    blocks = (rows.slice(start, ROWS_PER_BLOCK).collect() for start in range(0, count, ROWS_PER_BLOCK))
    unsure = (pl.col("probability") <= threshold).fill_null(value=False)
    for block in whole_groups(blocks, "item"):
        sure = block.with_columns(text=pl.when(~unsure).then("text"), reason=pl.lit(None, pl.String))
        yield pl.concat([sure, block.filter(unsure).with_columns(reason=pl.lit(UNSURE))])


def _in_judgments(path: Path, work: Work) -> Iterator[pl.DataFrame]:
    """Read what a vision model said that it sees."""
    scan = scan_table(path, JUDGMENTS).filter(task="extract")
    judges = scan.select(pl.col("judge").unique().sort()).collect()["judge"]
    if judges.is_empty():
        hint = f"{path.with_name('drops.parquet')} has the reason of each image."
        raise UsageError("no image was looked at, so no objects are known", where=str(path), hint=hint)
    if len(judges) != 1:
        expected = "what one judge said in `judge extract`"
        raise UsageError("objects are of one judge", where=str(path), expected=expected, found=", ".join(judges))
    answered = pl.col("outcome").is_in(ANSWERED)
    for block in whole_groups(blocks_of(path, JUDGMENTS, rows=ROWS_PER_BLOCK, scratch=work.scratch), "image_id"):
        yield block.filter(task="extract").select(
            item="image_id", text=pl.when(answered).then("item"), probability=pl.lit(None, pl.Float64),
            reason=pl.when(~answered).then("outcome"),
        )  # fmt: skip


def _in_images(work: Work, path: Path, labels: Path, spec: str, threshold: float) -> Iterator[pl.DataFrame]:
    """Look at pictures with a detector; what it saw in some of them outlives a kill."""
    detector = DETECTORS.make(spec)
    lines = labels.read_text(encoding="utf-8").splitlines()
    looked_for = list(dict.fromkeys(filter(None, map(str.strip, lines))))
    work.progress.begin(scan_table(path, IMAGES).select(pl.len()).collect().item(), "images")
    blocks = prompted_images(path, None, work.scratch)
    for shard in (shard for block in blocks for shard in block.iter_slices(SHARD)):
        kept = work.scratch / f"{digest([detector.name, looked_for, shard['sha256'].to_list()])}.json"
        if not kept.is_file():
            seen = [_seen_by(detector, row, path.parent, looked_for) for row in shard.iter_rows(named=True)]
            write_atomically(kept, msgspec.json.encode(seen))
        rows: list[tuple[object, ...]] = []
        for image, there in zip(shard["image_id"], msgspec.json.decode(kept.read_bytes()), strict=True):
            if isinstance(there, str):
                rows.append((image, None, None, there))
                continue
            sure = ((label, seen) for label, seen in zip(looked_for, there, strict=True) if seen > threshold)
            rows += [(image, None, None, None), *((image, *one, None) for one in sure)]
        yield pl.DataFrame(rows, _FOUND, orient="row")
        work.progress.advance(shard.height)


def _seen_by(detector: OwlDetector, row: Mapping[str, Any], root: Path, labels: Sequence[str]) -> list[float] | str:
    """Give the probability of each label in a picture, or say why there is none to look at."""
    if row["status"] != "ok":
        return f"no picture: {row['status']}"
    picture = read_inside(root, row["path"], sha256=row["sha256"])
    if isinstance(picture, NoPicture):
        return picture.reason
    return [round(float(one), DIGITS) for one in detector.probabilities(picture.pixels, labels)]


@dataclass
class _Captions:
    """Captions to ask about, read block by block; those without a text are `empty`."""

    path: Path
    columns: TextColumns
    empty: list[Dropped] = field(default_factory=list)

    def __len__(self) -> int:
        """Count those with a text."""
        there = texts_by_id(self.path, self.columns).filter(pl.col("text").str.strip_chars() != "")
        return int(there.select(pl.col("id").n_unique()).collect(engine="streaming").item())

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Give id and text of each."""
        for texts, empty in text_blocks((self.path,), self.columns, rows=ROWS_PER_BLOCK):
            self.empty += empty
            yield from ({"id": key, "text": text} for key, text in texts.items())


def _in_captions(captions: _Captions, asked: Asked) -> Iterator[pl.DataFrame]:
    """Have a model name what captions name."""
    came = asked.put(captions, _object_request, unit="captions")
    while answered := list(islice(came, ROWS_PER_BLOCK)):
        rows = [(row["id"], name, None, None) for row, value in answered for name in (*value.objects, None)]
        yield pl.DataFrame(rows, _FOUND, orient="row")
    yield pl.DataFrame([(key, None, None, reason) for key, reason, _ in captions.empty], _FOUND, orient="row")


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
    number = pl.int_range(pl.len()).over("category")
    drawn = found[order.tolist()].filter(number < pl.col("category").replace_strict(wanted)).sort(CAPTIONS.key)
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
    ((found, _),) = read_captions(path, columns)
    found = found.with_columns(pl.col("category").fill_null(OTHER))
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
    every, by = _Captions(captions, columns), "given" if asked.nobody else asked.client.model
    translated: Translations
    if not asked.nobody:
        came = asked.put(every, partial(_translation_request, language=language), unit="captions")
        translated = ((row["id"], row["text"], value.translation) for row, value in came)
    elif table is None:
        raise UsageError("nobody translates", expected="--llm SPEC, or --table TABLE with translations")
    else:
        _refuse_strangers(captions, table, columns)
        translated = _given_in(table, every)
    written, rows = Gathered(TRANSLATIONS, asked.work.scratch), 0
    while block := list(islice(translated, ROWS_PER_BLOCK)):
        found = []
        for key, caption, translation in block:
            text = " ".join(strip_hidden(translation or "").split())
            if not text:
                asked.leave_out([(key, MISSING if translation is None else EMPTY, caption)])
            elif folded(text) == folded(caption):
                asked.leave_out([(key, SAME, caption)])
            else:
                found.append((key, text, caption, language, by))
        written.add(pl.DataFrame(found, TRANSLATIONS.schema, orient="row"))
        asked.to_disk(asked.work)
        rows += len(block)
    written.write(asked.work.out)
    rows = rows if asked.nobody else asked.outcomes.total()
    lacking = f"{rows - written.rows:,} of {rows:,} captions have no translation"
    findings = {"findings": [lacking]} if written.rows < rows else {}
    return asked.finish({"captions": rows, "translations": written.rows}, every.empty, **findings)


Translations: TypeAlias = Iterator[tuple[str, str, str | None]]  # id and text, with a translation where there is one


def _given_in(table: Path, captions: _Captions) -> Translations:
    """Read the translations of a table beside the captions, as both stand in order of their ids."""
    blocks = text_blocks((table,), captions.columns, rows=ROWS_PER_BLOCK, required=False)
    texts = ({**found.texts, **{key: "" for key, _, _ in found.left_out}} for found in blocks)
    given = (one for block in texts for one in sorted(block.items()))
    ahead = next(given, None)
    for row in captions:
        translation = None
        if ahead is not None and ahead[0] == row["id"]:
            translation, ahead = ahead[1], next(given, None)
        yield row["id"], row["text"], translation


def _translation_request(row: Mapping[str, Any], language: str) -> Request:
    """Ask for the translation of a caption."""
    asked = row_id(row["id"])
    data = {"id": asked, "caption": row["text"], "language": language}
    words = wording("captions_translate")
    return Request(TRANSLATE, words, data, Translation, allowed={"id": (asked,)}, max_tokens=1024)


def _refuse_strangers(captions: Path, table: Path, columns: TextColumns) -> None:
    """Refuse a table with translations of captions that are not there."""
    there = texts_by_id(captions, columns).filter(pl.col("text").str.strip_chars() != "")
    strange = texts_by_id(table, columns).join(there, on="id", how="anti").select(pl.col("id").unique().sort())
    if (found := strange.collect(engine="streaming")["id"]).len():
        raise UsageError(
            f"{len(found)} translations are of captions that are not there", where=str(table),
            found=", ".join(found.head(5)), expected=f"ids of {captions}",
        )  # fmt: skip
