"""Guides typed: their commands in order, held against how each is said to end, and the files that they show."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from tests.command_line import culturekit

ROOT = Path(__file__).parents[1]


def typed(page: Path | str) -> list[list[str]]:
    """Give the words after `culturekit` of each command of a page, or of a part of its text."""
    return [shlex.split(line.partition(" #")[0]) for line in _lines(page)]


def _lines(page: Path | str) -> list[str]:
    text = page if isinstance(page, str) else page.read_text(encoding="utf-8")
    return re.findall(r"^\$ (?:\.venv/bin/)?culturekit (.*)$", text.replace("\\\n", " "), re.MULTILINE)


def blocks(page: Path | str, language: str) -> list[str]:
    """Give the blocks of a page, or of a part of its text, that are in some language."""
    text = page if isinstance(page, str) else page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def follow(
    page: Path | str, folder: Path, *, change: Callable[[list[str]], list[str]] = list, refused: str = " "
) -> list[str]:
    """Type the commands, changed, with what `>` does, and give what each said.

    One beside which the page says so ends with 1, one that begins with `refused` with 2.
    """
    said = []
    for line in _lines(page):
        command, _, comment = line.partition(" #")
        words = change(shlex.split(command))
        *words, into = words if ">" in words else [*words, ">", ""]
        ends = 2 if command.startswith(refused) else int("leaves with 1" in comment)
        said.append(culturekit(*words[:-1], cwd=folder, ends=ends).stdout)
        if into:
            (folder / into).write_text(said[-1], encoding="utf-8")
    return said


def by_simulated_models(words: list[str]) -> list[str]:
    """Have simulated models answer in place of paid ones, and letters tell near-duplicates."""
    return [re.sub("^openai:.*", "simulated", re.sub("^sentence:.*", "letters", word)) for word in words]
