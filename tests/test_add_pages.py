"""The pages that say how to add something, typed: their diffs are applied to a copy of the package, and it is used."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.index.embedding.embedding import save_vectors
from tests.outside_packages import EXAMPLES, PLUGINS
from tests.typed_pages import ROOT, blocks, copy_package, run_copied

METRIC, PLUGIN = ROOT / "docs/add-a-metric.md", ROOT / "docs/add-a-plugin.md"
HUNK = re.compile(r"^--- (\S+)\n((?:(?:[-+ ].*|)\n)+?)(?=^--- |\Z)", re.MULTILINE)


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


@pytest.mark.endtoend
def test_the_metric_of_the_page_is_described_scored_and_verified(tmp_path: Path) -> None:
    copy_package(tmp_path)
    (diff,) = blocks(METRIC, "diff")
    files, lines = apply(diff, tmp_path)
    assert f"{ {1: 'one'}[files] } file, {lines} lines" in METRIC.read_text(encoding="utf-8")
    rng, ids = np.random.default_rng(0), [f"caption {number}" for number in range(22)]
    for role in ("source", "target", "image", "captions"):
        (tmp_path / role).mkdir()
        save_vectors(tmp_path / role, rng.normal(size=(len(ids), 4)).astype(np.float32), ids)
    assert "Weakest alignment" in run_copied(tmp_path, "metrics", "show", "c3_weakest")
    given = ("--source", "source", "--target", "target", "--image", "image", "--image-target", "captions")
    run_copied(tmp_path, "score", "c3", *given, "--out", "scores")
    values = pl.read_parquet(tmp_path / "scores/values.parquet").pivot("metric", index="item", values="value")
    assert (
        values["c3_weakest"].to_list() == values.select(pl.min_horizontal("c3_text", "c3_image")).to_series().to_list()
    )
    verdicts = json.loads(run_copied(tmp_path, "verify", "scores", "--json"))["scores"]
    assert {each["metric"]: each["verdict"] for each in verdicts}["c3_weakest"] == "verified"


def test_the_page_about_plugins_shows_the_package_as_it_is() -> None:
    paths = [*sorted((EXAMPLES / "evenness").rglob("*.py")), PLUGINS / "greys.py"]
    package = "".join(path.read_text(encoding="utf-8") for path in paths)
    for block in blocks(PLUGIN, "python"):
        assert block.strip() in package, block
    (project,) = blocks(PLUGIN, "toml")
    assert project == (EXAMPLES / "evenness/pyproject.toml").read_text(encoding="utf-8")
