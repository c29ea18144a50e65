"""The pages that say how to add something, typed: their diffs are applied to a copy of the package, and it is used."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.index.embedding.vector_folder import save_vectors
from tests.outside_packages import EXAMPLES, PLUGINS

ROOT = Path(__file__).parents[1]
HUNK = re.compile(r"^--- (\S+)\n((?:(?:[-+ ].*|)\n)+?)(?=^--- |\Z)", re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    """Give the blocks of a page that are in some language."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def apply(diff: str, root: Path) -> tuple[int, int]:
    """Apply a diff whose hunks stand once in their files; how many files and lines it touches."""
    hunks, lines = HUNK.findall(diff), 0
    for name, hunk in hunks:
        path = root / name
        text = path.read_text(encoding="utf-8")
        for part in re.findall(r"(?:^(?:[ -].*|)\n)*(?:^\+.*\n)+(?:^(?: .*|)\n)*", hunk, re.MULTILINE):
            rows = part.splitlines(keepends=True)
            before, after = ("".join(row[1:] or "\n" for row in rows if row[0] not in sign) for sign in "+-")
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
            lines += sum(row[0] == "+" for row in rows)
        path.write_text(text, encoding="utf-8")
    return len(hunks), lines


def command(root: Path, *words: str | Path) -> str:
    """Run the copy of the package in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-m", "culturekit", *map(str, words)], cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.endtoend
def test_the_metric_of_the_page_is_described_scored_and_verified(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "culturekit", tmp_path / "culturekit", ignore=shutil.ignore_patterns("__pycache__"))
    (diff,) = blocks("add-a-metric.md", "diff")
    files, lines = apply(diff, tmp_path)
    assert f"{ {4: 'four'}[files] } files, {lines} lines" in (ROOT / "docs/add-a-metric.md").read_text(encoding="utf-8")
    rng, ids = np.random.default_rng(0), [f"caption {number}" for number in range(22)]
    for role in ("source", "target", "image", "captions"):
        (tmp_path / role).mkdir()
        save_vectors(tmp_path / role, rng.normal(size=(len(ids), 4)).astype(np.float32), ids)
    assert "Weakest alignment" in command(tmp_path, "metrics", "show", "c3_weakest")
    given = ("--source", "source", "--target", "target", "--image", "image", "--image-target", "captions")
    command(tmp_path, "score", "c3", *given, "--out", "scores")
    values = pl.read_parquet(tmp_path / "scores/values.parquet").pivot("metric", index="item", values="value")
    assert (
        values["c3_weakest"].to_list() == values.select(pl.min_horizontal("c3_text", "c3_image")).to_series().to_list()
    )
    verdicts = json.loads(command(tmp_path, "verify", "scores", "--json"))["scores"]
    assert {each["metric"]: each["verdict"] for each in verdicts}["c3_weakest"] == "consistent"


def test_the_page_about_plugins_shows_the_package_as_it_is() -> None:
    paths = [*sorted((EXAMPLES / "geodiv").rglob("*.py")), PLUGINS / "greys.py"]
    package = "".join(path.read_text(encoding="utf-8") for path in paths)
    for block in blocks("add-a-plugin.md", "python"):
        assert block.strip() in package, block
    (project,) = blocks("add-a-plugin.md", "toml")
    assert project == (EXAMPLES / "geodiv/pyproject.toml").read_text(encoding="utf-8")
