"""The text channel of an index: one vector per artifact, the middle of what its names are in many wordings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.index.embedding.embedding_encoders import embed_texts
from culturekit.index.encoder import Vectors
from culturekit.index.folder.text_templates import TextTemplates
from culturekit.records.work import Work

__all__ = ["TextVectors", "text_vectors"]

SAMPLES = 5
SHORTEST = 1e-6


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Artifacts by their names.

    Attributes:
        rows: artifact_id and source of each vector; the source is the first of an artifact's texts.
        vectors: float32 (n, dim), unit norm.
        notes: how many texts were encoded, and which of them the encoder reads only in part.
    """

    rows: pl.DataFrame
    vectors: Vectors
    notes: Mapping[str, Any]


def text_vectors(
    work: Work,
    artifacts: pl.DataFrame,
    names: Mapping[str, Sequence[str]],
    templates: TextTemplates,
    encoder: str,
    *,
    countries: Mapping[str, Sequence[str]],
) -> TextVectors:
    """Give every artifact the vector of its names.

    Args:
        work: scratch, engine and progress of the stage.
        artifacts: ARTIFACTS.
        names: of each artifact, the main one first.
        templates: how they are put into words.
        encoder: SPEC of an encoder of texts.
        countries: names of each artifact's countries, where texts are to name them; empty otherwise.
    """
    texts = [
        templates.texts(checked(artifact_id, names[artifact_id]), concepts, countries.get(artifact_id, ()))
        for artifact_id, concepts in artifacts.select("artifact_id", "concepts").iter_rows()
    ]
    different = list(dict.fromkeys(text for own in texts for text in own))
    each, long = embed_texts(different, encoder, work.scratch, progress=work.progress)
    place = {text: number for number, text in enumerate(different)}
    vectors = np.stack([middle(each[[place[text] for text in own]]) for own in texts])
    cut = [different[one.place] for one in long]
    notes: dict[str, Any] = {"texts": len(different), "texts_too_long": len(cut)}
    if cut:
        notes["samples_too_long"] = cut[:SAMPLES]
        notes["context"] = long[0].most
    rows = artifacts.select("artifact_id", source=pl.Series([own[0] for own in texts], dtype=pl.String))
    return TextVectors(rows, vectors, notes)


def checked(artifact_id: str, names: Sequence[str]) -> list[str]:
    """Tidy the names of an artifact: spaces trimmed, each once whatever its capitals; refuse one without a name."""
    tidy = [" ".join(name.split()) for name in names]
    if not tidy or not tidy[0]:
        raise UsageError(
            "an artifact has no name to put into words",
            where=artifact_id,
            expected="a name in the cultural space",
            hint="Name it, or build without the text channel: --channel image.",
        )
    kept: dict[str, str] = {}
    for name in filter(None, tidy):
        kept.setdefault(name.casefold(), name)
    return list(kept.values())


def middle(vectors: Vectors) -> Vectors:
    """Give the middle of unit vectors, brought to unit length."""
    total = vectors.sum(axis=0, dtype=np.float64)
    norm = float(np.sqrt(total @ total))
    if norm < SHORTEST * len(vectors):
        raise UsageError("the texts of an artifact cancel out: the encoder sees opposites in them")
    unit: Vectors = (total / norm).astype(np.float32)
    return unit
