"""The instructions that models are given, each a file of `wording/`."""

from functools import cache
from importlib.resources import files

__all__ = ["wording"]


@cache
def wording(name: str) -> str:
    """Read the instructions of a task; their hash is part of what decides the answers."""
    return files("culturekit.builders").joinpath(f"wording/{name}.txt").read_text(encoding="utf-8")
