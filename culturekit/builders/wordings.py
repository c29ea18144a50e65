"""The instructions that models are given, each a file of `wording/`, and the hashes that decide their answers."""

from functools import cache
from importlib.resources import files

from culturekit.storage.digests import digest_bytes

__all__ = ["wording", "wording_digest"]


@cache
def wording(name: str) -> str:
    """Read the instructions of a task."""
    return files("culturekit.builders").joinpath(f"wording/{name}.txt").read_text(encoding="utf-8")


def wording_digest(name: str) -> str:
    """Hash the instructions of a task: part of what decides the answers."""
    return digest_bytes(wording(name).encode())
