import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.digests import digest
from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import ARTIFACTS
from culturekit.index.encoder import EncoderIdentity, Vectors
from culturekit.index.folder.index_folder import open_index, write_index
from tests.index.picture_world import finish

IDENTITY = EncoderIdentity("tiny", "none", "1", "none", "float32", 4)


def unit(count: int, *, seed: int = 0) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def artifacts() -> pl.DataFrame:
    return pl.DataFrame(
        [
            ("Q1", "moqueca", ["cuisine"], ["BR"], ["South America"]),
            ("Q2", "shrine", ["landmarks"], ["JP"], ["Asia"]),
            ("Q3", "ceviche", ["cuisine"], ["PE", "BR"], ["South America", "South America"]),
            ("Q4", "unseen", ["art"], ["PE"], ["South America"]),
        ],
        schema=ARTIFACTS.schema,
        orient="row",
    )


ROWS = [
    ("text", "Q1", "moqueca"), ("image", "Q2", "b"), ("image", "Q1", "a"), ("image", "Q3", "c"),
    ("text", "Q2", "shrine"), ("image", "Q1", "0"),
]  # fmt: skip


NOTES: dict[str, object] = {"encoder": "tiny", "identity": IDENTITY.as_options(), "caveat": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = pl.DataFrame(ROWS, schema=["channel", "artifact_id", "source"], orient="row")
    write_index(tmp_path, rows, unit(len(ROWS)), artifacts())
    finish(tmp_path, "index", NOTES)
    return tmp_path


def test_rows_stand_by_channel_concept_country_artifact_and_source(folder: Path) -> None:
    index = open_index(folder)
    image, text = index.channels["image"], index.channels["text"]
    names = index.artifacts["artifact_id"]
    assert list(index.channels) == ["image", "text"]
    assert [names[int(owner)] for owner in image.owners] == ["Q1", "Q1", "Q3", "Q2"]
    assert image.sources.to_list() == ["0", "a", "c", "b"]
    assert image.slices.rows() == [("cuisine", "BR", 0, 2), ("cuisine", "PE", 2, 3), ("landmarks", "JP", 3, 4)]
    assert text.slices.rows() == [("cuisine", "BR", 0, 1), ("landmarks", "JP", 1, 2)]
    np.testing.assert_array_equal(image.vectors, unit(len(ROWS))[[5, 2, 3, 1]])
    np.testing.assert_array_equal(text.vectors, unit(len(ROWS))[[0, 4]])
    assert isinstance(image.vectors, np.memmap)


def test_the_order_in_which_rows_came_leaves_no_trace(folder: Path, tmp_path: Path) -> None:
    order = [3, 5, 0, 2, 4, 1]
    other = tmp_path / "other"
    other.mkdir()
    rows = pl.DataFrame([ROWS[at] for at in order], schema=["channel", "artifact_id", "source"], orient="row")
    write_index(other, rows, unit(len(ROWS))[order], artifacts().reverse())
    assert (other / "vectors.npy").exists()
    for path in other.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()


def changed_bytes(folder: Path) -> None:
    content = bytearray((folder / "vectors.npy").read_bytes())
    content[-1] ^= 1
    (folder / "vectors.npy").write_bytes(content)


def other_table(name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        change(pl.read_parquet(folder / name)).write_parquet(folder / name)
        finish(folder, "index", NOTES)

    return harm


def other_vectors(change: Callable[[Vectors], Vectors]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        np.save(folder / "vectors.npy", change(np.load(folder / "vectors.npy")))
        finish(folder, "index", NOTES)

    return harm


def edited_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    changed_bytes(folder)
    manifest["outputs"]["vectors.npy"]["sha256"] = digest("anything")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


FIVE = {**NOTES, "identity": {**IDENTITY.as_options(), "dim": 5}}
LONG, NO_NUMBER = (np.ones((6, 4), np.float32) for _ in range(2))
LONG[2], NO_NUMBER[4, 1] = 1.1, np.nan


@pytest.mark.parametrize(("harm", "reason"), [
    (changed_bytes, "not what the index was built with; expected SHA-256"),
    (other_table("ids.parquet", lambda ids: ids.with_columns(pl.col("id").reverse())), "out of order"),
    (other_vectors(lambda found: found * LONG), "not of unit norm; expected norm 1 within 0.001, found 1.1"),
    (other_vectors(lambda found: found * NO_NUMBER), "not of unit norm"),
    (other_vectors(lambda found: found[:-1]), r"expected float32 \(6, dim\), found float32 \(5, 4\)"),
    (other_table("artifacts.parquet", lambda known: known.head(2)), "Q3, which is not in artifacts.parquet"),
    (other_table("slices.parquet", lambda slices: slices.with_columns(pl.col("stop") + 1)), "slices"),
    (lambda folder: finish(folder, "index", FIVE), "expected 5 dimensions, found 4"),
    (edited_manifest, "do not add up"),
    (lambda folder: (folder / "slices.parquet").unlink(), "found no file"),
    (lambda folder: finish(folder, "embed", NOTES), "a folder of the stage index, found the stage embed"),
])  # fmt: skip
def test_a_broken_index_is_refused_with_the_reason(folder: Path, harm: Callable[[Path], None], reason: str) -> None:
    harm(folder)
    with pytest.raises(IntegrityError, match=reason):
        open_index(folder)


def test_a_change_after_the_first_opening_is_seen(folder: Path) -> None:
    open_index(folder)
    changed_bytes(folder)
    with pytest.raises(IntegrityError, match="SHA-256"):
        open_index(folder)
