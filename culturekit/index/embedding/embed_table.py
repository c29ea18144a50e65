"""A table of images or of texts to a folder of vectors, in the form that scores take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.embedding.embedding import embed
from culturekit.index.embedding.embedding_encoders import made_encoder
from culturekit.index.embedding.embedding_texts import embed_texts
from culturekit.index.models.text_files import TextColumns, texts_of
from culturekit.records.schemas import DROPS, IMAGES, VECTOR_IDS
from culturekit.records.work import Outcome, Work
from culturekit.storage.arrays import save_rows
from culturekit.storage.tables import read_table, write_table

__all__ = ["EmbedOptions", "EmbedSource", "embed_table"]

SAMPLES = 5
ROWS_AT_ONCE = 16_384
STAGE = "embed"
NO_PICTURE = "image without a picture"


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """Who embeds."""

    encoder: Annotated[str, Field(description="Who turns pictures or texts into vectors, as a SPEC.")]


@dataclass(frozen=True, slots=True)
class EmbedSource:
    """What is embedded: a table of images, or tables of texts."""

    images: Annotated[Path | None, Field(description="Images table whose pictures are embedded.")] = None
    texts: Annotated[
        tuple[Path, ...],
        Field(description="Table of texts instead: Parquet, CSV or JSON lines; may be repeated."),
    ] = ()
    columns: TextColumns = TextColumns()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        """Take either images or texts."""
        if (self.images is None) == (not self.texts):
            raise UsageError("a folder of vectors is made of images or of texts", expected="--images or --texts")

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


def embed_table(work: Work, source: EmbedSource, encoder: str) -> Outcome:
    """Write `vectors.npy` and `ids.parquet`, and what has no vector."""
    counts, notes = (
        embed_texts_of(work, source, encoder)
        if source.images is None
        else embed_images_of(work, source.images, encoder)
    )
    made = made_encoder(encoder)
    notes = {"encoder": encoder, "identity": made.identity.as_options(), "caveat": made.caveat, **notes}
    drops = read_table(work.out / "drops.parquet", DROPS)
    counts = {**counts, "drops": drops.height}
    return Outcome(counts, dict(drops["reason"].value_counts().sort("reason").iter_rows()), notes)


def embed_images_of(work: Work, path: Path, encoder: str) -> tuple[dict[str, int], dict[str, Any]]:
    """Embed the pictures of a table; the ids are image ids."""
    images = read_table(path, IMAGES).sort("image_id")
    ready = images.filter(pl.col("status") == "ok")
    answer = embed(ready, path.parent, encoder, work.scratch, engine=work.engine, progress=work.progress)
    save(work.out / "vectors.npy", answer.vectors)
    if answer.probabilities is not None:
        save(work.out / "probabilities.npy", answer.probabilities)
    write_ids(work.out, answer.kept["image_id"].to_list())
    without = images.filter(pl.col("status") != "ok").select("image_id", "status", "reason").iter_rows()
    rows = [(image, NO_PICTURE, reason or status) for image, status, reason in without]
    write_drops(work.out, [*rows, *answer.unreadable.iter_rows()])
    different = answer.kept["sha256"].n_unique()
    return {"ids": answer.kept.height, "different": different}, {"of": "images"}


def embed_texts_of(work: Work, source: EmbedSource, encoder: str) -> tuple[dict[str, int], dict[str, Any]]:
    """Embed the texts of tables."""
    found = texts_of(source.texts, source.columns)
    vectors, long = embed_texts(
        list(found.texts.values()), encoder, work.scratch, engine=work.engine, progress=work.progress
    )
    save(work.out / "vectors.npy", vectors)
    write_ids(work.out, list(found.texts))
    write_drops(work.out, found.left_out)
    notes: dict[str, Any] = {"of": "texts", "texts_too_long": len(long)}
    if long:
        ids = list(found.texts)
        notes["samples_too_long"] = [ids[one.place] for one in long[:SAMPLES]]
        notes["context"] = long[0].most
    return {"ids": len(found.texts), "different": len(set(found.texts.values()))}, notes


def save(path: Path, array: Any) -> None:  # noqa: ANN401 - an array of any kind of float
    """Copy an array into the folder, a few rows at a time."""
    parts = (array[start : start + ROWS_AT_ONCE] for start in range(0, len(array), ROWS_AT_ONCE))
    save_rows(path, parts, shape=array.shape, dtype=np.float32)


def write_ids(out: Path, ids: Sequence[str]) -> None:
    """Say what each row of the vectors belongs to."""
    write_table(out, VECTOR_IDS, pl.DataFrame({"row": range(len(ids)), "id": ids}, schema=VECTOR_IDS.schema))


def write_drops(out: Path, rows: Sequence[tuple[str, str, str | None]]) -> None:
    """Say what has no vector, and why."""
    dropped: list[Mapping[str, Any]] = [
        {"key": key, "concept": None, "stage": STAGE, "reason": reason, "detail": detail}
        for key, reason, detail in rows
    ]
    write_table(out, DROPS, pl.DataFrame(dropped, schema=DROPS.schema))
