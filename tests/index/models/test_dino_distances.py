"""Fréchet and kernel distance on features of DINOv3, from pictures to scores, against their definitions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.linalg import sqrtm

from tests.command_line import culturekit

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.index.models.tiny_transformers import make_dinov3

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def embedded(images: Path, encoder: str, out: Path) -> Any:
    done = culturekit("index", "embed", "--images", str(images), "--encoder", encoder, "--out", str(out))
    assert done.returncode == 0, done.stderr
    return np.load(out / "vectors.npy").astype(np.float64)


def test_distances_on_features_of_dinov3_are_named_and_those_of_the_definition(small_run: Path, tmp_path: Path) -> None:
    make_dinov3(tmp_path / "dinov3")
    spec = f"transformers:{tmp_path / 'dinov3'}?give=features&device=cpu"
    tables = [small_run / name / "images.parquet" for name in ("references", "images-broad")]
    real, fake = (embedded(table, spec, tmp_path / table.parent.name) for table in tables)
    done = culturekit(
        "score", "realism", "--real", str(tmp_path / "references"), "--fake", str(tmp_path / "images-broad"),
        "--all", "--out", str(tmp_path / "scores"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    scores = pl.read_parquet(tmp_path / "scores/scores.parquet")
    found = {row["metric"]: (row["value"], json.loads(row["params"])) for row in scores.iter_rows(named=True)}
    apart = real.mean(axis=0) - fake.mean(axis=0)
    spread, other = np.cov(real, rowvar=False), np.cov(fake, rowvar=False)
    frechet = apart @ apart + np.trace(spread + other - 2 * np.real(sqrtm(spread @ other)))
    value, params = found["frechet_distance"]
    assert value == pytest.approx(frechet, rel=1e-3)
    assert params["called"] == "Fréchet distance on DINOv3 features"
    assert params["encoder"]["name"] == "DINOv3 features"
    n, m, dim = len(real), len(fake), real.shape[1]
    within, beside, across = ((a @ b.T / dim + 1) ** 3 for a, b in ((real, real), (fake, fake), (real, fake)))
    kernel = (within.sum() - within.trace()) / (n * (n - 1)) + (beside.sum() - beside.trace()) / (m * (m - 1))
    value, params = found["kernel_distance"]
    assert value == pytest.approx(kernel - 2 * across.mean(), rel=1e-3, abs=1e-6)
    assert params["called"] == "Kernel distance on DINOv3 features"
    refused = culturekit(
        "index", "build", "--cspace", str(small_run / "cspace/cspace.parquet"), "--encoder", spec,
        "--references", str(tables[0]), "--out", str(tmp_path / "index"),
    )  # fmt: skip
    assert refused.returncode == 2
    assert "an index is made of vectors of length one" in refused.stderr
    assert "Leave give= away" in refused.stderr
