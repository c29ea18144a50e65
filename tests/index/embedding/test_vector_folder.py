"""Folders of vectors: those that point nowhere are refused, and blocks of a large table give what the whole gives."""

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding import embed_table
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.embedding.embedding import load_vectors, save_vectors
from tests.builders.picture_tables import pictures_of_one_colour
from tests.conftest import stage_here


@pytest.mark.parametrize("wrong", [0.0, float("nan"), float("inf")])
def test_a_vector_without_a_direction_is_refused(tmp_path: Path, wrong: float) -> None:
    vectors = np.ones((4, 3), np.float32)
    vectors[2] = wrong
    save_vectors(tmp_path, vectors, ["a", "b", "c", "d"])
    with pytest.raises(IntegrityError, match=r"vectors\.npy, row 2: 1 of 4 vectors have no direction.* of 'c'"):
        load_vectors(tmp_path)


def test_zeros_among_numbers_and_no_vectors_at_all_are_taken(tmp_path: Path) -> None:
    save_vectors(tmp_path, np.eye(3, dtype=np.float32), ["a", "b", "c"])
    assert load_vectors(tmp_path)[1] == ["a", "b", "c"]
    save_vectors(tmp_path, np.empty((0, 3), np.float32), [])
    assert load_vectors(tmp_path)[1] == []


@pytest.mark.parametrize(
    ("give", "wanted"), [("text", "letters"), ("tokens", "letters"), ("mean", "letters"), ("text", "embedded")]
)
def test_blocks_give_the_vectors_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, give: Literal["text", "tokens", "mean"], wanted: str
) -> None:
    """Texts, empty ones and repeated ones among them, and for `embedded` pictures, some of which were not made."""
    if wanted == "embedded":
        pictures = read_table(pictures_of_one_colour(tmp_path / "images", 20), IMAGES)
        status = pl.when(pl.col("image_id").is_in(["000003", "000017"])).then(pl.lit("failed")).otherwise("status")
        source = EmbedSource(images=write_table(tmp_path / "images", IMAGES, pictures.with_columns(status=status)))
    else:
        texts = ["a drum", " ", "tea", "a drum", *map("{} bells".format, range(15))]
        table = pl.DataFrame({"id": [f"{n:03}" for n in range(len(texts))], "text": texts})
        table.write_parquet(tmp_path / "texts.parquet")
        source = EmbedSource(texts=(tmp_path / "texts.parquet",))
    stage = embed_stage(source, encoder=wanted, give=give)
    whole = stage_here(stage, tmp_path / "whole")
    monkeypatch.setattr(embed_table, "ROWS_PER_BLOCK", 6)
    blocks = stage_here(stage, tmp_path / "blocks")
    for name in ("vectors.npy", "drops.parquet"):
        assert (whole.folder / name).read_bytes() == (blocks.folder / name).read_bytes()
    assert load_vectors(whole.folder)[1] == load_vectors(blocks.folder)[1]
    assert whole.manifest.counts["ids"] == blocks.manifest.counts["ids"]
    assert whole.manifest.drops == blocks.manifest.drops


def test_texts_in_another_order_and_ids_that_repeat_are_put_in_order_as_ever(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": ["c", "a", "b", "a"], "text": ["three", "one", "two", "one"]})
    table.write_parquet(tmp_path / "texts.parquet")
    (found,) = embed_table.text_blocks([tmp_path / "texts.parquet"], embed_table.USUAL, rows=2)
    assert found.texts == {"a": "one", "b": "two", "c": "three"}
    only = embed_table.texts_of([tmp_path / "texts.parquet"], embed_table.USUAL, only=pl.Series(["b", "z"]))
    assert only.texts == {"b": "two"}
