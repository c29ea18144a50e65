"""Commands of the guides, to be typed."""

import re
import shlex
from pathlib import Path

__all__ = ["ROOT", "typed"]

ROOT = Path(__file__).parents[1]


def typed(page: Path) -> list[list[str]]:
    """Give the commands of a page."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^\$ culturekit (.*)$", text, re.MULTILINE)]
