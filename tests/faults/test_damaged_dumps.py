"""Cut dumps short and flip their bits, and see that none is taken for a whole one.

A small dump is damaged in every form that is read, member boundaries included, and ingested: refused, harmless (the
tables are those of the whole dump), accepted silently, or failed in another way. Plain JSON and zstd without its
checksum are held to a SHA-256, for nothing in them tells.
"""

import bz2
import gzip
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard

from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError
from culturekit.kg.dump import read_dump
from culturekit.kg.dump.ingest import IngestOptions, ingest_stage
from tests.conftest import stage_here
from tests.effort import THOROUGH

Pack = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Form:
    """A way to write a dump, and whether it needs a checksum from outside."""

    suffix: str
    pack: Pack
    outside: bool = False


FORMS = {
    "gz": Form(".json.gz", lambda data: gzip.compress(data, mtime=0)),
    "bz2": Form(".json.bz2", bz2.compress),
    "zst": Form(".json.zst", lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data)),
    "zst without checksum": Form(".json.zst", lambda data: zstandard.ZstdCompressor().compress(data), outside=True),
    "plain": Form(".json", lambda data: data, outside=True),
}


def dump_of(form: Form, members: int = 6) -> tuple[bytes, list[int]]:
    rng = random.Random(1)
    lines = []
    for number in range(1, 91):
        value = {"snaktype": "value", "datavalue": {"value": {"id": f"Q{rng.randrange(1, 91)}"}}}
        label = {"en": {"language": "en", "value": "".join(rng.choices("abcdefgh", k=rng.randrange(60)))}}
        claims = {"P279": [{"mainsnak": value}]}
        lines.append(json.dumps({"id": f"Q{number}", "type": "item", "labels": label, "claims": claims}).encode())
    whole, ends = b"", []
    for member in range(members):
        part = lines[member * 15 : member * 15 + 15]
        whole += form.pack(
            (b"[\n" if not member else b",\n") + b",\n".join(part) + (b"\n]\n" if member == members - 1 else b"")
        )
        ends.append(len(whole))
    return whole, ends


def damage_dumps(form: Form, count: int, folder: Path, *, seed: int = 0) -> Counter[str]:
    whole, ends = dump_of(form)
    path = folder / f"dump{form.suffix}"
    path.write_bytes(whole)
    published = digest_file(path)
    expected = ingested(path, published if form.outside else None, folder)
    chance = random.Random(seed)
    cuts = [*range(0, len(whole), max(1, len(whole) // (count // 2))), *ends[:-1], *(end + 1 for end in ends[:-1])]
    results: Counter[str] = Counter()
    for number in range(count):
        damaged = whole[: cuts[number // 2 % len(cuts)]] if number % 2 else flipped(whole, chance, ends)
        path.write_bytes(damaged)
        results[outcome_of(path, published if form.outside else None, folder, expected)] += 1
    return results


def flipped(whole: bytes, chance: random.Random, ends: list[int]) -> bytes:
    """Flip a bit anywhere, one time in four near where a member ends."""
    position = chance.randrange(len(whole))
    if chance.random() < 0.25:
        position = min(len(whole) - 1, max(0, chance.choice(ends) + chance.randrange(-12, 12)))
    changed = bytearray(whole)
    changed[position] ^= 1 << chance.randrange(8)
    return bytes(changed)


def outcome_of(path: Path, published: str | None, folder: Path, expected: dict[str, str]) -> str:
    try:
        found = ingested(path, published, folder)
    except IntegrityError:
        return "published something" if (folder / "graph").exists() else "refused"
    except Exception as error:
        return f"failed: {type(error).__name__}"
    return "harmless" if found == expected else "accepted silently"


def ingested(path: Path, published: str | None, folder: Path) -> dict[str, str]:
    for name in ("graph", ".graph.partial"):
        shutil.rmtree(folder / name, ignore_errors=True)
    stage = ingest_stage([path], IngestOptions(max_malformed=0), sha256=[published] if published else [])
    run = stage_here(stage, folder / "graph")
    return {name: record.sha256 for name, record in run.manifest.outputs.items()}


@pytest.mark.endtoend
@pytest.mark.parametrize("name", sorted(FORMS))
def test_no_damaged_dump_is_taken_for_a_whole_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_dump, "_SMALLEST_RANGE", 1_500)  # several runs of lines even in a small dump
    monkeypatch.setattr(read_dump, "_LARGEST_RANGE", 1_500)
    results = damage_dumps(FORMS[name], 2_000 if THOROUGH else 40, tmp_path)
    assert set(results) <= {"refused", "harmless"}, results
    assert results["refused"] >= 25
