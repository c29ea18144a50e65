"""Embed the images of a folder, and print the most memory that it took, in MiB: run as a program of its own."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

import polars as pl

from culturekit.core.digests import digest_file
from culturekit.index.embedding import embedding
from culturekit.index.embedding.embedding import embed
from culturekit.index.encoder import Encoder
from tests.peak_memory import peak_mebibytes

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """An engine that speaks of many workers; that of the tests would bring all of a recipe's modules with it."""

    workers = 8

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        return map(function, items)


class Unheard:
    def begin(self, total: int, unit: str) -> None:
        pass

    def advance(self, done: int) -> None:
        pass

    def tell(self, totals: str) -> None:
        pass


def in_threads(encoder: Encoder) -> bool:
    return False


if __name__ == "__main__":
    folder, scratch, way = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if way == "threads":
        embedding.weightless = in_threads
    rows = [
        {"image_id": path.name, "path": path.name, "sha256": digest_file(path)} for path in sorted(folder.iterdir())
    ]
    answer = embed(pl.DataFrame(rows), folder, "embedded", scratch, engine=Workers(), progress=Unheard())
    sys.stdout.write(f"{answer.kept.height} {peak_mebibytes():.0f}\n")
