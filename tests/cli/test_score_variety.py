"""`score realism`, `score spread`, `score pairs` and `score within`, as they are typed."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import UsageError


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def data(answer: Any) -> dict[str, Any]:
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def vectors(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of the references and of two models."""
    root = tmp_path_factory.mktemp("vectors")
    for name in ("references", "images-broad", "images-narrow"):
        answer = run("index", "embed", "--images", small_run / name / "images.parquet", "--encoder", "embedded",
                     "--out", root / name, "--json")  # fmt: skip
        data(answer)
    return root


def test_models_in_folders_of_their_own_are_scored_together(small_run: Path, vectors: Path, tmp_path: Path) -> None:
    words = ["--real", vectors / "references", "--references", small_run / "references/images.parquet", "--balanced"]
    for name in ("images-broad", "images-narrow"):
        words += ["--fake", vectors / name, "--images", small_run / name / "images.parquet"]
    data(run("score", "realism", *words, "--by", "concept", "--fewest", 20, "--out", tmp_path / "scores", "--json"))
    table = pl.read_parquet(tmp_path / "scores/scores.parquet").filter(metric="frechet_distance")
    assert table.select("model", "concept").rows() == [
        ("broad", None), ("broad", "art"), ("narrow", None), ("narrow", "art"),
    ]  # fmt: skip
    assert table["n"].to_list() == [24] * 4


def test_spread_reads_the_vectors_of_several_models(small_run: Path, vectors: Path, tmp_path: Path) -> None:
    words: list[object] = []
    for name in ("images-broad", "images-narrow"):
        words += ["--vectors", vectors / name, "--images", small_run / name / "images.parquet"]
    answer = data(run("score", "spread", *words, "--out", tmp_path / "scores", "--json"))
    assert answer["counts"] == {"scores": 2, "values": 6}
    twice = run("score", "spread", *words, *words[2:], "--out", tmp_path / "twice")
    assert isinstance(twice.exception, UsageError)
    assert "same image" in str(twice.exception)
    nothing = run("score", "spread", *words[2:4], "--out", tmp_path / "nothing")
    assert "how unlike" in str(nothing.exception)


def test_pairs_without_weights_or_torch_say_what_is_missing(small_run: Path, tmp_path: Path) -> None:
    images = small_run / "images-broad/images.parquet"
    words = ("score", "pairs", "--images", images, "--out", tmp_path / "pairs", "--measure")
    assert "no such file of weights" in str(run(*words, "lpips:nowhere.safetensors").exception)
    assert "Did you mean" in str(run(*words, "lpip:x.safetensors").exception)
    assert "no option" in str(run(*words, "lpips:x.safetensors?sides=3").exception)
