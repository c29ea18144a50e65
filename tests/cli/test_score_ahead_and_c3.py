"""`score ahead` and `score c3`, run as commands on small tables."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.digests import Manifest
from culturekit.core.errors import IntegrityError
from culturekit.core.schemas import DESCRIPTOR_MATCHES, EXAGGERATIONS, SCORES
from culturekit.core.tables import read_table
from culturekit.index.embedding.embedding_encoders import load_vectors, save_vectors
from tests.command_line import culturekit
from tests.recipes.cultivate.ahead_world import world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a small world, images and judgments in two files each."""
    root = tmp_path_factory.mktemp("ahead")
    world().stored(root)
    return root


def arguments(*models: str, phrases: Path | str = "phrases") -> Sequence[str | Path]:
    images = [word for model in models for word in ("--images", f"{model}/images.parquet")]
    judged = [word for model in models for word in ("--extracted", f"{model}/judgments.parquet")]
    files = ("--prompts", "prompts.parquet", "--descriptors", "descriptors.parquet", "--phrases", phrases)
    return "score", "ahead", *images, *judged, *files


def test_ahead_is_scored_end_to_end(folder: Path) -> None:
    stereotypes = [word for model in ("made", "real") for word in ("--stereotypes", f"{model}/judgments.parquet")]
    done = culturekit(
        *arguments("made", "real"), *stereotypes, "--real", "real", "--out", "all", "--json", cwd=folder, ends=0
    )
    answer = json.loads(done.stdout)
    assert (answer["stage"], answer["state"]) == ("score-ahead", "built")
    assert any("people" in reason for reason in answer["drops"])
    scores = read_table(folder / "all/scores.parquet", SCORES)
    assert set(scores["metric"]) == {"align", "hal", "empty", "exag", "faith", "ddiv", "sdiv"}
    assert set(scores["group"]) == {None, "GN", "GS"}
    assert set(scores["country"]) == {None, "FR", "IN", "NG"}
    assert set(scores["model"]) == {"ann", "bob", "real"}
    assert read_table(folder / "all/descriptor_matches.parquet", DESCRIPTOR_MATCHES).height > 0
    assert set(read_table(folder / "all/exaggerations.parquet", EXAGGERATIONS)["country"]) == {"FR", "IN", "NG"}
    again = culturekit(*arguments("made", "real"), *stereotypes, "--real", "real", "--out", "all", "--json", cwd=folder)
    assert json.loads(again.stdout)["state"] == "reused"


def made_by(folder: Path, **identity: str) -> None:
    """Say in the manifest of a folder which encoder made its vectors."""
    manifest = Manifest(
        stage="encode", version=1, key="", sha256="", code={}, packages={}, inputs={}, options={}, seeds={}, counts={},
        drops={}, notes={"identity": identity}, outputs={},
    )  # fmt: skip
    (folder / "manifest.json").write_bytes(manifest.encode())


def test_an_encoder_that_the_manifest_names_stands_in_the_params(folder: Path, tmp_path: Path) -> None:
    from culturekit.scores.inputs import NamedVectors

    assert NamedVectors(folder / "phrases").encoder == ""
    made_by(tmp_path, name="minilm", revision="abc")
    assert NamedVectors(tmp_path).encoder == "minilm abc"


WRONG = [
    (("--tau", "0.5", "--quantile", "0.5"), "Give one of the two"),
    (("--scheme", "undp?"), "there is no scheme 'undp?' of country groups; expected cultivate or un-m49-region"),
    (("--quantile", "0.5"), "real must be the model whose images are real"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_wrong_question_is_answered_with_what_to_do(folder: Path, options: Sequence[str], message: str) -> None:
    done = culturekit(*arguments("made"), *options, "--out", "wrong", cwd=folder, ends=2)
    assert message in " ".join(done.stderr.split())


def test_a_phrase_without_a_vector_is_named(folder: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    save_vectors(few, np.eye(2, dtype=np.float32), ["thing 0", "thing 1"])
    done = culturekit(*arguments("made", phrases=few), "--out", tmp_path / "out", cwd=folder, ends=2)
    assert "38 of 40 phrases have no vector" in " ".join(done.stderr.split())


def test_c3_is_scored_end_to_end(tmp_path: Path) -> None:
    rng, ids = np.random.default_rng(0), [f"caption {number}" for number in range(22)]
    for role, width in {"source": 6, "target": 6, "objects": 6, "image": 4, "captions": 4}.items():
        names = [f"{name}#{k}" for name in ids[:20] for k in range(2)] if role == "objects" else ids
        (tmp_path / role).mkdir()
        save_vectors(tmp_path / role, rng.normal(size=(len(names), width)).astype(np.float32), names)
    texts = ("--source", "source", "--target", "target", "--objects", "objects")
    images = ("--image", "image", "--image-target", "captions", "--keep", "4", "--strategy", "clip", "--out", "out")
    done = culturekit("score", "c3", *texts, *images, "--json", cwd=tmp_path, ends=0)
    assert json.loads(done.stdout)["drops"] == {"items without the term object": 2}
    scores = read_table(tmp_path / "out/scores.parquet", SCORES)
    assert dict(scores.select("metric", "n").iter_rows()) == {"c3": 22, "c3_text": 22, "c3_image": 22, "c3_object": 20}
    assert pl.read_parquet(tmp_path / "out/selection.parquet").height == 4
    assert pl.read_parquet(tmp_path / "out/values.parquet").height == 88


def test_vectors_are_found_by_their_rows_in_whatever_order_ids_stand(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    folder.mkdir()
    save_vectors(folder, np.eye(3, dtype=np.float32), ["b", "c", "a"])
    ids = folder / "ids.parquet"
    pl.read_parquet(ids).sort("id").write_parquet(ids)  # a table that was sorted by somebody
    assert load_vectors(folder)[1] == ["b", "c", "a"]
    pl.read_parquet(ids).with_columns(row=pl.col("row") + 1).write_parquet(ids)
    with pytest.raises(IntegrityError, match=r"an id says which vector is its own.*counts the vectors from 0"):
        load_vectors(folder)


def test_folders_of_one_space_are_of_one_encoder(tmp_path: Path) -> None:
    for role, name in (("source", "labse"), ("target", "minilm")):
        folder = tmp_path / role
        folder.mkdir()
        save_vectors(folder, np.eye(3, dtype=np.float32), ["a", "b", "c"])
        made_by(folder, name=name)
    done = culturekit("score", "c3", "--source", "source", "--target", "target", "--out", "out", cwd=tmp_path, ends=2)
    assert "made by different encoders; expected name labse, found name minilm" in " ".join(done.stderr.split())


def test_a_table_given_twice_is_named(folder: Path, tmp_path: Path) -> None:
    done = culturekit(*arguments("made", "made"), "--out", tmp_path / "out", cwd=folder, ends=2)
    said = " ".join(done.stderr.split())
    assert "made/images.parquet, made/images.parquet: two tables of images have the same rows; found image_id" in said
    assert "Give each table once" in said
