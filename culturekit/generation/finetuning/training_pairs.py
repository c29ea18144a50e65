"""Pairs of a folder of images with `metadata.jsonl`, ours or anybody's, and their pictures as a model takes them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.errors import UsageError
from culturekit.storage.picture_limits import NoPicture
from culturekit.storage.picture_reading import read_inside

__all__ = ["Shown", "TrainingPair", "pairs_in", "shown_square"]

METADATA = "metadata.jsonl"


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A caption, and the file of its picture."""

    root: Path
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A square of a picture, float32 (3, side, side) of -1 to 1; its size before, and where the square was cut."""

    numbers: NDArray[np.float32]
    size: tuple[int, int]
    corner: tuple[int, int]


def pairs_in(folder: Path) -> list[TrainingPair]:
    """List the pairs of a folder that `select export` wrote, or of any folder of images with a list."""
    root = next((place for place in (folder / "imagefolder", folder) if (place / METADATA).is_file()), None)
    if root is None:
        raise UsageError(
            "there are no pairs to train on", where=str(folder), expected=f"a folder of images with {METADATA}",
            hint="`culturekit select export --format imagefolder` writes one.",
        )  # fmt: skip
    with (root / METADATA).open(encoding="utf-8") as lines:
        return list(read_pairs(root, lines))


def read_pairs(root: Path, lines: Iterator[str]) -> Iterator[TrainingPair]:
    """Read the list, line by line."""
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            pair = TrainingPair(root, row["file_name"], row["text"])
        except (ValueError, KeyError, TypeError):
            pair = None
        if pair is None or not all(isinstance(each, str) and each.strip() for each in (pair.file, pair.text)):
            raise UsageError(
                "a line is no pair", where=f"{root / METADATA}, line {number}",
                expected="JSON with file_name and text, neither empty", found=line.strip()[:80],
            )  # fmt: skip
        yield pair


def shown_square(pair: TrainingPair, side: int) -> Shown:
    """Read a picture, bring its shorter side to a length, and cut the middle; no mirror, which would turn writing."""
    read = read_inside(pair.root, pair.file)
    if isinstance(read, NoPicture):
        raise UsageError(
            "a picture cannot be read", where=str(pair.root / pair.file), found=f"{read.reason} {read.detail}"
        )
    height, width = read.pixels.shape[:2]
    scale = side / min(height, width)
    picture = Image.fromarray(read.pixels).resize(scaled((width, height), scale, side), Image.Resampling.LANCZOS)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = np.asarray(picture.crop((left, top, left + side, top + side)), np.float32)
    return Shown((square / 127.5 - 1).transpose(2, 0, 1), (height, width), (top, left))


def scaled(size: Sequence[int], scale: float, least: int) -> tuple[int, int]:
    """Scale width and height, neither below the side that is cut."""
    return max(least, round(size[0] * scale)), max(least, round(size[1] * scale))
