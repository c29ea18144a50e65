"""Embed the images of a folder, and print the most memory that it took, in MiB: run as a program of its own."""

import sys
from pathlib import Path

import polars as pl

from culturekit.index.embedding import embedding
from culturekit.index.embedding.embedding import embed
from culturekit.index.encoder import Encoder
from culturekit.storage.digests import digest_file
from tests.conftest import HeardProgress, HereEngine
from tests.peak_memory import peak_mebibytes


class Workers(HereEngine):
    """An engine with many workers."""

    workers = 8


def in_threads(encoder: Encoder) -> bool:
    """Have any encoder work as one with weights does."""
    return False


if __name__ == "__main__":
    folder, scratch, way = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if way == "threads":
        embedding.weightless = in_threads  # type: ignore[attr-defined]
    rows = [
        {"image_id": path.name, "path": path.name, "sha256": digest_file(path)} for path in sorted(folder.iterdir())
    ]
    answer = embed(pl.DataFrame(rows), folder, "embedded", scratch, engine=Workers(), progress=HeardProgress())
    sys.stdout.write(f"{answer.kept.height} {peak_mebibytes():.0f}\n")
