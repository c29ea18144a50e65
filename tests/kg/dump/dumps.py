"""Small dumps in every form, cut into members anywhere, and their graphs."""

import bz2
import gzip
import json
import random
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
import zstandard

from culturekit.core.atomic import clear_folder
from culturekit.core.schemas import ITEMS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table
from culturekit.kg.dump import read_dump
from culturekit.kg.dump.ingest import IngestOptions, ingest
from tests.conftest import HeardProgress, HereEngine

__all__ = ["FORMS", "array", "cut", "cut_small", "entity", "ingested", "packed"]

FORMS = (".json", ".json.gz", ".json.bz2", ".json.zst")


def packed(suffix: str, pieces: list[bytes]) -> bytes:
    """Compress pieces to members; what is not compressed is one."""
    if suffix.endswith(".gz"):
        return b"".join(gzip.compress(piece, mtime=0) for piece in pieces)
    if suffix.endswith(".bz2"):
        return b"".join(bz2.compress(piece) for piece in pieces)
    if suffix.endswith(".zst"):
        return b"".join(zstandard.ZstdCompressor(write_checksum=True).compress(piece) for piece in pieces)
    return b"".join(pieces)


def entity(number: int, rng: random.Random) -> bytes:
    label = {
        "en": {"language": "en", "value": f"{number} " + "".join(rng.choices("abcdefgh \u00e9", k=rng.randrange(90)))}
    }
    return json.dumps({"id": f"Q{number}", "type": "item", "labels": label, "claims": []}).encode()


def array(count: int, *, seed: int = 0) -> bytes:
    rng = random.Random(seed)
    return b"[\n" + b",\n".join(entity(number, rng) for number in range(1, count + 1)) + b"\n]\n"


def cut(content: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % len(content) for place in places} - {0}), len(content)]
    return [content[a:b] for a, b in pairwise(edges)]


def ingested(folder: Path, path: Path) -> tuple[pl.DataFrame, Outcome]:
    work = Work({}, folder / "out", folder / "scratch", HereEngine(), HeardProgress())
    clear_folder(work.out)
    clear_folder(work.scratch)
    outcome = ingest(work, [path], IngestOptions(max_malformed=1))
    return read_table(work.out / "items.parquet", ITEMS), outcome


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small dumps be read in several ranges and runs."""
    for name, size in (("_SMALLEST_RANGE", 700), ("_LARGEST_RANGE", 700), ("_RUN_BYTES", 900)):
        monkeypatch.setattr(read_dump, name, size)
