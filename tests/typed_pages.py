"""Commands of the guides, to be typed, and changes to the package that they show, to be made to a copy of it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def typed(page: Path) -> list[list[str]]:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^\$ culturekit (.*)$", text, re.MULTILINE)]


def blocks(page: Path, language: str) -> list[str]:
    """Give the blocks of a page that are in some language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def copy_package(root: Path) -> None:
    shutil.copytree(ROOT / "culturekit", root / "culturekit", ignore=shutil.ignore_patterns("__pycache__"))


def run_copied(root: Path, *words: str | Path) -> str:
    """Run a command of the copy in a process of its own, and give what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "culturekit", *map(str, words)], cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
