import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.schemas import DROPS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.index.embedding.embed_table import EmbedSource, TextColumns, embed_table, texts_of
from culturekit.index.embedding.embedding import load_vectors
from culturekit.scores.inputs import labelled, vector_inputs
from tests.builders.counting_encoder import CountingEncoder, drawn, register
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.command_line import culturekit


@pytest.fixture(autouse=True)
def counting() -> None:
    register()


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    rows: list[Mapping[str, object]] = []
    for number in range(5):
        path = save_picture(folder / f"i{number}.png", seed=number % 4)
        if number == 1:
            path.write_bytes(b"")
        rows.append(image_row(folder, path.name))
    rows.append({**rows[0], "image_id": "i9", "path": "", "status": "failed", "reason": "no answer"})
    return images_table(folder, rows)


def test_images_become_a_folder_that_scores_take(tmp_path: Path, images: Path) -> None:
    out = tmp_path / "vectors"
    result = culturekit("index", "embed", "--images", images, "--encoder", "embedded", "--out", out, "--json", ends=0)
    vectors, ids = load_vectors(out)
    assert ids == ["i0", "i2", "i3", "i4"]
    np.testing.assert_array_equal(vectors[0], vectors[3])
    drops = read_table(out / "drops.parquet", DROPS).select("key", "reason", "detail")
    assert drops.rows() == [("i1", "picture file is empty", ""), ("i9", "image without a picture", "no answer")]
    assert json.loads(result.stdout)["counts"] == {"different": 3, "drops": 2, "ids": 4}
    manifest = manifest_of(out)
    assert manifest.notes["identity"]["name"] == "embedded"
    assert "not a cultural encoder" in manifest.notes["caveat"]


def test_images_of_which_none_can_be_embedded_are_refused(tmp_path: Path, images: Path) -> None:
    unread = pl.read_parquet(images).filter(pl.col("image_id").is_in(["i1", "i9"]))
    for table, words in ((unread, "1 image without a picture, 1 picture file is empty"), (unread.clear(), "no rows")):
        table.write_parquet(images)
        done = culturekit(
            "index", "embed", "--images", images, "--encoder", "embedded", "--out", tmp_path / "o", ends=2
        )
        assert f"no image can be embedded; found {words}" in done.stderr


def test_texts_become_a_folder_too(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("id,text\nb,a plate of rice\na,one two three four five six seven\nc,\n", encoding="utf-8")
    out = tmp_path / "vectors"
    culturekit("index", "embed", "--texts", table, "--encoder", "counting", "--out", out, ends=0)
    vectors, ids = load_vectors(out)
    assert ids == ["a", "b"]
    np.testing.assert_array_equal(vectors[1], drawn(b"a plate of rice"))
    manifest = manifest_of(out)
    assert manifest.notes["samples_too_long"] == ["a"]
    assert manifest.drops == {"empty text": 1}


def test_phrases_are_their_own_ids(tmp_path: Path) -> None:
    pl.DataFrame({"prompt_id": ["p", "p"], "token": ["feather headdress", "red"]}).write_parquet(tmp_path / "d.parquet")
    pl.DataFrame({"phrase": ["red", "drum"]}).write_ndjson(tmp_path / "more.jsonl")
    found = texts_of([tmp_path / "d.parquet", tmp_path / "more.jsonl"], TextColumns())
    assert dict(found.texts) == {"drum": "drum", "feather headdress": "feather headdress", "red": "red"}


@pytest.mark.parametrize(("content", "columns", "problem"), [
    ("id,text\na,x\na,y\n", TextColumns(), "one id stands for two texts; found 'a' for 'x' and for 'y'"),
    ("name,words\na,x\n", TextColumns(), "no such columns"),
    ("name,words\na,x\n", TextColumns("name", "text"), "expected name and text, found name, words"),
    ("id,text\na,\n", TextColumns(), "no text to embed"),
    ("id,text\n,x\n", TextColumns(), "a text has no id"),
])  # fmt: skip
def test_texts_that_are_not_clear_are_refused(tmp_path: Path, content: str, columns: TextColumns, problem: str) -> None:
    (tmp_path / "texts.csv").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=problem):
        texts_of([tmp_path / "texts.csv"], columns)


def test_columns_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("name,words\na,x\n", encoding="utf-8")
    assert texts_of([tmp_path / "texts.csv"], TextColumns("name", "words")).texts == {"a": "x"}
    assert texts_of([tmp_path / "texts.csv"], TextColumns(text="words")).texts == {"x": "x"}


@pytest.mark.parametrize("given", [[], ["--images", "x.parquet", "--texts", "y.parquet"]])
def test_either_images_or_texts_are_embedded(given: list[str], tmp_path: Path) -> None:
    done = culturekit("index", "embed", "--encoder", "embedded", "--out", tmp_path / "o", *given, ends=2)
    assert "expected --images or --texts" in done.stderr


class Describing(CountingEncoder):
    give = "features"

    def describe(self, pictures: list[np.ndarray]) -> "Described":
        return Described(self.encode_prepared(pictures) * 3, np.full((len(pictures), 5), 0.2, np.float32))


class Described:
    def __init__(self, features: np.ndarray, probabilities: np.ndarray) -> None:
        self.features, self.probabilities = features, probabilities


def test_a_classifier_leaves_probabilities_as_well(work: Work, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.builders.counting_encoder.CountingEncoder", Describing)
    embed_table(work, EmbedSource(images), "counting?batch=3")
    features, probabilities = labelled(work.out), labelled(work.out, role="probs")
    np.testing.assert_allclose(np.linalg.norm(features.vectors, axis=1), 3, rtol=1e-5)
    assert probabilities.vectors.shape == (4, 5)
    assert probabilities.ids == features.ids
    assert vector_inputs({"probs": work.out, "real": work.out})["probs-vectors"].name == "probabilities.npy"
