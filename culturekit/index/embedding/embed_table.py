"""A table of images or of texts to a folder of vectors, in the form that scores take."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import polars as pl
from pydantic import Field

from culturekit.core.atomic import decoding
from culturekit.core.declared import StageCommand, Typed
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.registry import check_ready, spec_state
from culturekit.core.schemas import IMAGES, VECTOR_IDS
from culturekit.core.spreadsheet_cells import read_csv_texts
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import Gathered, blocks_of, write_drops
from culturekit.index.embedding.embedding import embed, embed_texts, embed_tokens, save_blocks, text_encoder_of
from culturekit.index.encoder import ENCODERS, Vectors

# pairs of id and text that are found without being named: of prompts, of any table, of captions, and of phrases, which
# are their own ids; those that a model extracted are the items of judgments
_KNOWN = (
    ("prompt_id", "text"), ("id", "text"), ("id", "caption"),
    ("token", "token"), ("phrase", "phrase"), ("item", "item"),
)  # fmt: skip

_EMPTY = "empty text"
_COCO = {"id": pl.Int64, "caption": pl.String}
_LINES = {"id": pl.String, "text": pl.String}
_SAMPLES = 5
_STAGE = "embed"
ROWS_PER_BLOCK = 2**20  # pictures or texts that are in memory together
_NO_PICTURE = "image without a picture"


class _Caption(msgspec.Struct, frozen=True):
    id: int
    caption: str


class _CocoFile(msgspec.Struct, frozen=True):
    """As much of a COCO file of captions as is read."""

    annotations: list[_Caption]


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns that are read; where none is named, the first pair that a table has of the usual ones."""

    key: Annotated[
        str,
        Field(description="Column with the id of each text. [prompt_id, id, or the text itself]"),
        Typed("id-column"),
    ] = ""
    text: Annotated[str, Field(description="Column with the texts. [text, token or phrase]"), Typed("text-column")] = ""


USUAL = TextColumns()


class _TextsFound(NamedTuple):
    """Texts by id, and id, reason and detail of what has none."""

    texts: Mapping[str, str]
    left_out: list[tuple[str, str, str | None]]


def texts_of(
    paths: Sequence[Path], columns: TextColumns, *, required: bool = True, only: pl.Series | None = None
) -> _TextsFound:
    """Read texts from tables, in the order of their ids, or `only` some; an id stands for one text wherever it is."""
    found = _gathered((path, row) for path in paths for row in _rows_of(path, columns, only))
    if required and not found.texts:
        raise UsageError("there is no text to embed", where=", ".join(map(str, paths)))
    return found


def _gathered(rows: Iterable[tuple[Path, tuple[str, str | None]]]) -> _TextsFound:
    """Put texts in order of their ids, and apart those that are empty."""
    texts: dict[str, str] = {}
    empty: set[str] = set()
    for path, (key, text) in rows:
        if text is None or not text.strip():
            empty.add(key)
        elif texts.setdefault(key, text) != text:
            raise UsageError(
                "one id stands for two texts", where=str(path),
                found=f"{key!r} for {texts[key]!r} and for {text!r}",
                hint="Name the columns with --id-column and --text-column.",
            )  # fmt: skip
    left_out: list[tuple[str, str, str | None]] = [(key, _EMPTY, None) for key in sorted(empty - texts.keys())]
    return _TextsFound({key: texts[key] for key in sorted(texts)}, left_out)


def text_blocks(
    paths: Sequence[Path], columns: TextColumns, *, rows: int, required: bool = True
) -> Iterator[_TextsFound]:
    """Read texts in order of their ids, block by block where one Parquet of more rows has them in that order."""
    if len(paths) == 1 and (scan := _in_order(paths[0], columns, rows)) is not None:
        for start in range(0, int(scan.select(pl.len()).collect().item()), rows):
            yield _gathered((paths[0], row) for row in scan.slice(start, rows).collect().iter_rows())
    else:
        yield texts_of(paths, columns, required=required)


def texts_by_id(path: Path, columns: TextColumns, *beside: str) -> pl.LazyFrame:
    """Give id and text of every row, and the columns `beside` that there are, of Parquet without reading it."""
    there = path.suffix.lower() == ".parquet" and path.is_file()
    scan = pl.scan_parquet(path) if there else opened(path).lazy()
    names = scan.collect_schema().names()
    key, text = _chosen(path, names, columns)
    also = [name for name in beside if name in names]
    return scan.select(pl.col(key).cast(pl.String).alias("id"), pl.col(text).cast(pl.String).alias("text"), *also)


def _in_order(path: Path, columns: TextColumns, rows: int) -> pl.LazyFrame | None:
    """Open a Parquet of more rows than these, of which each has an id that comes after the one before; else None."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return None
    with decoding(path, "the texts cannot be read", expected="a whole Parquet file"):
        scan = texts_by_id(path, columns)
        last, count = None, int(scan.select(pl.len()).collect().item())
        for start in range(0, count if count > rows else 0, rows):
            ids = scan.select("id").slice(start, rows).collect()["id"]
            if ids.has_nulls() or not ids.is_sorted() or ids.n_unique() < len(ids) or (last and not last < ids[0]):
                return None
            last = ids[-1]
    return scan if count > rows else None


def _rows_of(path: Path, columns: TextColumns, only: pl.Series | None) -> list[tuple[str, str | None]]:
    """Read id and text of every row."""
    table = opened(path, lambda names: _chosen(path, names, columns)[0], only)
    key, text = _chosen(path, table.columns, columns)
    if table[key].has_nulls() and key != text:
        raise UsageError("a text has no id", where=str(path), expected=f"a value in the column {key}")
    named = table.select(pl.col(key).cast(pl.String).fill_null(""), text=pl.col(text).cast(pl.String))
    return list(named.iter_rows())


def opened(
    path: Path, key: Callable[[list[str]], str] = lambda names: names[0], only: pl.Series | None = None
) -> pl.DataFrame:
    """Read Parquet, CSV, JSON lines, COCO's JSON of captions, or a text a line; of Parquet `only` rows of some ids."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    suffix = path.suffix.lower()
    expected = "Parquet, CSV, JSON lines, COCO's JSON or a text a line"
    with decoding(path, "the texts cannot be read", expected=expected):
        if suffix == ".csv":
            return read_csv_texts(path)
        if suffix == ".json":
            listed = msgspec.json.decode(path.read_bytes(), type=_CocoFile).annotations
            return pl.DataFrame([(one.id, one.caption) for one in listed], schema=_COCO, orient="row")
        if suffix == ".txt":
            lines = path.read_text(encoding="utf-8").splitlines()
            return pl.DataFrame([(str(n), line) for n, line in enumerate(lines, 1)], schema=_LINES, orient="row")
        if suffix in {".jsonl", ".ndjson"}:
            return pl.read_ndjson(path)
        if only is None:
            return pl.read_parquet(path)
        named = pl.col(key(list(pl.read_parquet_schema(path)))).cast(pl.String)
        return pl.scan_parquet(path).filter(named.is_in(only.implode())).collect(engine="streaming")


def _chosen(path: Path, names: Sequence[str], columns: TextColumns) -> tuple[str, str]:
    """Decide which columns are id and text."""
    usual = next(((key, text) for key, text in _KNOWN if {key, text} <= set(names)), ("", ""))
    key, text = columns.key or usual[0], columns.text or usual[1]
    if columns.text and not columns.key and key not in names:
        key = text
    if key not in names or text not in names:
        raise UsageError(
            "the table has no such columns of ids and texts",
            where=str(path),
            expected=" or ".join(f"{one} and {other}" if one != other else one for one, other in _KNOWN)
            if not (columns.key or columns.text)
            else f"{key or 'an id column'} and {text or 'a text column'}",
            found=", ".join(names),
            hint="Name the columns with --id-column and --text-column.",
        )
    return key, text


@dataclass(frozen=True, slots=True)
class EmbedSource:
    """What is embedded: a table of images, or tables of texts."""

    images: Annotated[Path | None, Field(description="Images table whose pictures are embedded.")] = None
    texts: Annotated[
        tuple[Path, ...],
        Field(description="Texts instead: a table, COCO's JSON, or a file with one a line; may be repeated."),
    ] = ()
    columns: TextColumns = USUAL
    required: bool = True  # whether tables without any text are refused; else there are no vectors

    def __post_init__(self) -> None:
        """Take either images or texts."""
        if (self.images is None) == (not self.texts):
            raise UsageError("a folder of vectors is made of images or of texts", expected="--images or --texts")
        if self.images is not None and self.columns != USUAL:
            raise UsageError("--id-column and --text-column are of texts", expected="--texts", found="--images")

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        if self.images is not None:
            return {"images": self.images}
        return {f"texts-{number}": path for number, path in enumerate(self.texts)}

    @property
    def options(self) -> dict[str, object]:
        """Which columns are read, where texts are."""
        return {} if self.images is not None else {"id": self.columns.key, "text": self.columns.text}


def embed_table(work: Work, source: EmbedSource, encoder: str, give: str = "text") -> Outcome:
    """Write `vectors.npy` and `ids.parquet`, and what has no vector."""
    done = (
        _embed_texts_of(work, source, encoder, give)
        if source.images is None
        else _embed_images_of(work, source.images, encoder)
    )
    loaded = ENCODERS.kept(encoder)
    identity = loaded.identity.as_options()
    identity["dim"] = loaded.identity.dim // getattr(loaded, "patches", 1)
    if give != "text" and getattr(loaded, "tokens_apart", False):  # in another space than texts
        identity["preprocessing"] = f"{identity['preprocessing']}; single tokens"
    notes = {"encoder": encoder, "identity": identity, "caveat": loaded.caveat, **done.notes}
    return Outcome({**done.counts, "drops": sum(done.drops.values())}, done.drops, notes)


def _embed_images_of(work: Work, path: Path, encoder: str) -> Outcome:
    """Embed the pictures of a table; the ids are image ids."""
    patches, blocks, rows, different = getattr(ENCODERS.kept(encoder), "patches", 1), _Blocks(work), [], 0
    for block in blocks_of(path, IMAGES, rows=ROWS_PER_BLOCK, scratch=work.scratch):
        images = block.select("image_id", "path", "sha256", "status", "reason")
        del block  # what scenes truly show is ten times as large
        ready = images.filter(pl.col("status") == "ok")
        answer = embed(ready, path.parent, encoder, work.scratch, engine=work.engine, progress=work.progress)
        ids = answer.kept["image_id"].to_list()
        if patches > 1:
            ids = [f"{image}#{patch}" for image in ids for patch in range(1, patches + 1)]
        blocks.add(answer.vectors.reshape(len(ids), -1) if ids else answer.vectors, ids, answer.probabilities)
        without = images.filter(pl.col("status") != "ok").select("image_id", "status", "reason").iter_rows()
        rows += [(image, _NO_PICTURE, reason or status) for image, status, reason in without]
        rows += answer.unreadable.iter_rows()
        different += answer.kept["sha256"].n_unique()
    blocks.save(work.out)
    drops = write_drops(work.out, _drop_rows(rows))
    if not blocks.ids.rows and not work.in_run:
        raise NothingScored.because("no image can be embedded", drops, where=str(path))
    return Outcome({"ids": blocks.ids.rows, "different": different}, drops, {"of": "images"})


class _Blocks:
    """Vectors that come in blocks, with their ids in parts on disk."""

    def __init__(self, work: Work) -> None:
        """Begin without any."""
        self.ids = Gathered(VECTOR_IDS, work.scratch)
        self.vectors, self.seen = list[Vectors](), list[Vectors]()

    def add(self, vectors: Vectors, ids: Sequence[str], seen: Vectors | None = None) -> None:
        """Take a block, with what an encoder that classifies saw."""
        start = self.ids.rows
        self.ids.add(pl.DataFrame({"row": range(start, start + len(ids)), "id": ids}, VECTOR_IDS.schema))
        self.vectors.append(vectors)
        self.seen += [] if seen is None else [seen]

    def save(self, out: Path) -> None:
        """Write all of them, a few rows at a time."""
        for name, blocks in (("vectors", self.vectors), ("probabilities", self.seen)):
            if blocks:
                save_blocks(out / f"{name}.npy", blocks)
        self.ids.write(out)


def _embed_texts_of(work: Work, source: EmbedSource, encoder: str, give: str) -> Outcome:
    """Embed texts, or their tokens; where there is none, one is read for the width of its vector alone."""
    blocks, left_out, different, long, named = _Blocks(work), [], 0, [], list[str]()
    for found in text_blocks(source.texts, source.columns, rows=ROWS_PER_BLOCK, required=source.required):
        left_out += found.left_out
        different += len(set(found.texts.values()))
        texts = found.texts or {"-": "-"}
        if give == "text":
            vectors, cut = embed_texts(list(texts.values()), encoder, work.scratch, progress=work.progress)
            ids = list(texts)
        else:
            vectors, ids = embed_tokens(texts, encoder, work.scratch, mean=give == "mean", progress=work.progress)
            cut = text_encoder_of(encoder).too_long(list(texts.values()))
        named += [list(texts)[one.place] for one in cut[: _SAMPLES - len(named)]]
        long += cut
        count = len(ids) if found.texts else 0
        blocks.add(vectors[:count], ids[:count])
    blocks.save(work.out)
    drops = write_drops(work.out, _drop_rows(left_out))
    notes: dict[str, Any] = {"of": "texts", "texts_too_long": len(long)}
    if long:
        notes |= {"samples_too_long": named, "context": long[0].most}
    return Outcome({"ids": blocks.ids.rows, "different": different}, drops, notes)


def _drop_rows(left_out: Sequence[tuple[str, str, str | None]]) -> list[tuple[str | None, ...]]:
    """Say what has no vector, and why."""
    return [(key, None, _STAGE, reason, detail) for key, reason, detail in left_out]


# The stage that embeds images or texts.


def embed_stage(
    source: EmbedSource,
    *,
    encoder: Annotated[str, Field(description="Who turns pictures or texts into vectors, as a SPEC.")],
    give: Annotated[
        Literal["text", "tokens", "mean"],
        Field(description="Of each text one vector, one of each token as ID#k, or the mean of these."),
    ] = "text",
) -> Stage:
    """Embed images or texts into a folder of vectors.

    Scores and `index map` take it.
    """
    if give != "text" and source.images is not None:
        raise UsageError("pictures have no tokens here", expected="--texts beside --give", found="--images")
    stated = {"encoder": encoder} | ({} if give == "text" else {"give": give})
    return Stage(
        "vectors", "embed", 1, lambda work: embed_table(work, source, encoder, give), source.inputs,
        {**source.options, **stated, **spec_state(ENCODERS, encoder)}, packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, ENCODERS, encoder),
    )  # fmt: skip


EMBED = StageCommand(
    embed_stage,
    "--images images/images.parquet --encoder embedded --out vectors",
    workers=True,
    engine=True,
    also=False,
)
