"""The page "Run your own model", typed as it stands."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/run-your-own-model.md"


def commands() -> list[str]:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def test_the_page_has_commands_to_type() -> None:
    assert [line.split()[0] for line in commands()] == ["python", *["culturekit"] * 4]
    assert "--pilot" in commands()[-2]


@pytest.mark.slow
def test_the_page_works_as_typed(tmp_path: Path) -> None:
    for package in ("torch", "diffusers", "transformers"):
        pytest.importorskip(package)
    folder, tools = tmp_path / "checkout", tmp_path / "bin"
    folder.mkdir()
    tools.mkdir()
    for name in ("benchmarks", "recipes"):
        (folder / name).symlink_to(ROOT / name)
    for name, what in (("python", ""), ("culturekit", "-m culturekit")):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    outputs = []
    for line in commands():
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        outputs.append(done.stdout)
    assert re.search(r"pilot: \S+ s for an image, so about \S+ minutes for the \d+ that are left", outputs[-2])
    images = pl.read_parquet(folder / "images/images.parquet")
    assert set(images["status"]) == {"ok"}
    assert images["seed_honoured"].all()
