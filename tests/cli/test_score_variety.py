"""`score realism`, `score spread`, `score pairs` and `score within`, as they are typed."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit


@pytest.fixture(scope="module")
def vectors(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vectors")
    for name in ("references", "images-broad", "images-narrow"):
        images = small_run / name / "images.parquet"
        culturekit("index", "embed", "--images", images, "--encoder", "embedded", "--out", root / name, ends=0)
    return root


def test_models_in_folders_of_their_own_are_scored_together(small_run: Path, vectors: Path, tmp_path: Path) -> None:
    words: list[str | Path] = [
        "--real", vectors / "references", "--references", small_run / "references/images.parquet", "--balanced",
    ]  # fmt: skip
    for name in ("images-broad", "images-narrow"):
        words += ["--fake", vectors / name, "--images", small_run / name / "images.parquet"]
    culturekit("score", "realism", *words, "--by", "concept", "--fewest", "20", "--out", tmp_path / "scores", ends=0)
    table = pl.read_parquet(tmp_path / "scores/scores.parquet").filter(metric="frechet_distance")
    assert table.select("model", "concept").rows() == [
        ("broad", None), ("broad", "art"), ("narrow", None), ("narrow", "art"),
    ]  # fmt: skip
    assert table["n"].to_list() == [24] * 4


def test_spread_reads_the_vectors_of_several_models(small_run: Path, vectors: Path, tmp_path: Path) -> None:
    words: list[str | Path] = []
    for name in ("images-broad", "images-narrow"):
        words += ["--vectors", vectors / name, "--images", small_run / name / "images.parquet"]
    answer = json.loads(culturekit("score", "spread", *words, "--out", tmp_path / "scores", "--json", ends=0).stdout)
    assert answer["counts"] == {"scores": 2, "values": 6}
    twice = culturekit("score", "spread", *words, *words[2:], "--out", tmp_path / "twice", ends=2)
    assert "same image" in twice.stderr
    assert "how unlike" in culturekit("score", "spread", *words[2:4], "--out", tmp_path / "nothing").stderr


def test_pairs_without_weights_or_torch_say_what_is_missing(small_run: Path, tmp_path: Path) -> None:
    images = small_run / "images-broad/images.parquet"
    words = ("score", "pairs", "--images", images, "--out", tmp_path / "pairs", "--measure")
    for spec, spoken in (
        ("lpips:nowhere.safetensors", "no such file of weights"), ("lpip:x.safetensors", "Did you mean"),
        ("lpips:x.safetensors?sides=3", "no option"),
    ):  # fmt: skip
        assert spoken in culturekit(*words, spec, ends=2).stderr
