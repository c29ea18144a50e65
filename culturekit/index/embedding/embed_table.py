"""A table of images or of texts to a folder of vectors, in the form that scores take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.arrays import save_rows
from culturekit.core.atomic import decoding
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.schemas import IMAGES
from culturekit.core.spec_state import check_ready, spec_state
from culturekit.core.spreadsheet_cells import read_csv_texts
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand, Typed
from culturekit.core.tables import read_table, write_drops
from culturekit.core.work import Outcome, Work
from culturekit.index.embedding.embedding import embed
from culturekit.index.embedding.embedding_encoders import (
    ROWS_AT_ONCE,
    embed_texts,
    embed_tokens,
    save_vectors,
    text_encoder_of,
)
from culturekit.index.encoder import ENCODERS

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


def texts_of(paths: Sequence[Path], columns: TextColumns, *, required: bool = True) -> _TextsFound:
    """Read texts from tables, in the order of their ids; an id stands for one text wherever it appears."""
    texts: dict[str, str] = {}
    empty: set[str] = set()
    for path in paths:
        for key, text in _rows_of(path, columns):
            if text is None or not text.strip():
                empty.add(key)
            elif texts.setdefault(key, text) != text:
                raise UsageError(
                    "one id stands for two texts", where=str(path),
                    found=f"{key!r} for {texts[key]!r} and for {text!r}",
                    hint="Name the columns with --id-column and --text-column.",
                )  # fmt: skip
    if required and not texts:
        raise UsageError("there is no text to embed", where=", ".join(map(str, paths)))
    left_out: list[tuple[str, str, str | None]] = [(key, _EMPTY, None) for key in sorted(empty - texts.keys())]
    return _TextsFound({key: texts[key] for key in sorted(texts)}, left_out)


def _rows_of(path: Path, columns: TextColumns) -> list[tuple[str, str | None]]:
    """Read id and text of every row."""
    table = opened(path)
    key, text = chosen(path, table.columns, columns)
    if table[key].has_nulls() and key != text:
        raise UsageError("a text has no id", where=str(path), expected=f"a value in the column {key}")
    named = table.select(pl.col(key).cast(pl.String).fill_null(""), text=pl.col(text).cast(pl.String))
    return list(named.iter_rows())


def opened(path: Path) -> pl.DataFrame:
    """Read Parquet, CSV, JSON lines, COCO's JSON of captions, or a text a line."""
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
        return pl.read_ndjson(path) if suffix in {".jsonl", ".ndjson"} else pl.read_parquet(path)


def chosen(path: Path, names: Sequence[str], columns: TextColumns) -> tuple[str, str]:
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
    if give != "text" and getattr(loaded, "tokens_apart", False):  # in another space than texts
        identity["preprocessing"] = f"{identity['preprocessing']}; single tokens"
    notes = {"encoder": encoder, "identity": identity, "caveat": loaded.caveat, **done.notes}
    return Outcome({**done.counts, "drops": sum(done.drops.values())}, done.drops, notes)


def _embed_images_of(work: Work, path: Path, encoder: str) -> Outcome:
    """Embed the pictures of a table; the ids are image ids."""
    images = read_table(path, IMAGES).sort("image_id")
    ready = images.filter(pl.col("status") == "ok")
    answer = embed(ready, path.parent, encoder, work.scratch, engine=work.engine, progress=work.progress)
    save_vectors(work.out, answer.vectors, answer.kept["image_id"].to_list())
    if (seen := answer.probabilities) is not None:
        parts = (seen[start : start + ROWS_AT_ONCE] for start in range(0, len(seen), ROWS_AT_ONCE))
        save_rows(work.out / "probabilities.npy", parts, shape=seen.shape, dtype=np.float32)
    without = images.filter(pl.col("status") != "ok").select("image_id", "status", "reason").iter_rows()
    rows = [(image, _NO_PICTURE, reason or status) for image, status, reason in without]
    drops = write_drops(work.out, _drop_rows([*rows, *answer.unreadable.iter_rows()]))
    if answer.kept.is_empty() and not work.in_run:
        raise NothingScored.because("no image can be embedded", drops, where=str(path))
    different = answer.kept["sha256"].n_unique()
    return Outcome({"ids": answer.kept.height, "different": different}, drops, {"of": "images"})


def _embed_texts_of(work: Work, source: EmbedSource, encoder: str, give: str) -> Outcome:
    """Embed texts, or their tokens; where there is none, one is read for the width of its vector alone."""
    known, left_out = texts_of(source.texts, source.columns, required=source.required)
    texts = known or {"-": "-"}
    if give == "text":
        vectors, long = embed_texts(list(texts.values()), encoder, work.scratch, progress=work.progress)
        ids = list(texts)
    else:
        vectors, ids = embed_tokens(texts, encoder, work.scratch, mean=give == "mean", progress=work.progress)
        long = text_encoder_of(encoder).too_long(list(texts.values()))
    count = len(ids) if known else 0
    save_vectors(work.out, vectors[:count], ids[:count])
    drops = write_drops(work.out, _drop_rows(left_out))
    notes: dict[str, Any] = {"of": "texts", "texts_too_long": len(long)}
    if long:
        notes["samples_too_long"] = [list(texts)[one.place] for one in long[:_SAMPLES]]
        notes["context"] = long[0].most
    return Outcome({"ids": count, "different": len(set(known.values()))}, drops, notes)


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
