import gzip
import random
import zlib
from pathlib import Path

import pytest

from culturekit.core.errors import IntegrityError, MissingDependency, UsageError
from culturekit.kg.dump.members import read_chunks
from tests.kg.dump.dumps import packed

PLAIN = b"".join(b'{"id":"Q%d"},\n' % number for number in range(4000))
PIECES = [PLAIN[:20_000], PLAIN[20_000:20_001], PLAIN[20_001:]]


def content(path: Path) -> bytes:
    return b"".join(chunk.content for chunk in read_chunks(path))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst", ".json"])
def test_chunks_know_their_member_and_their_offset_in_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"dump{suffix}"
    path.write_bytes(packed(suffix, PIECES))
    members: dict[int, bytes] = {}
    for chunk in read_chunks(path):
        assert chunk.offset == len(members.get(chunk.member, b""))
        members[chunk.member] = members.get(chunk.member, b"") + chunk.content
    assert list(members.values()) == ([PLAIN] if suffix == ".json" else PIECES)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_cut_is_always_an_error_unless_it_falls_between_members(tmp_path: Path, suffix: str) -> None:
    whole = packed(suffix, PIECES)
    starts, position = set(), 0
    for piece in PIECES:
        position += len(gzip.compress(piece, mtime=0)) if suffix == ".gz" else 0
        starts.add(position)
    path = tmp_path / f"dump{suffix}"
    places = sorted({*random.Random(1).sample(range(len(whole)), 60), 0, 1, len(whole) - 1})
    for cut in places:
        if suffix == ".gz" and cut in starts:
            continue
        path.write_bytes(whole[:cut])
        with pytest.raises(IntegrityError, match="damaged"):
            content(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path: Path, suffix: str) -> None:
    whole = packed(suffix, PIECES)
    path = tmp_path / f"dump{suffix}"
    chance = random.Random(2)
    noticed = 0
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        try:
            assert content(path) == PLAIN
        except IntegrityError:
            noticed += 1
    assert noticed > 120


def test_bytes_after_the_last_member_are_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "dump.gz"
    path.write_bytes(packed(".gz", PIECES) + b"rubbish")
    with pytest.raises(IntegrityError, match="member 3"):
        content(path)


def test_a_deflate_stream_without_a_gzip_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.gz"
    path.write_bytes(zlib.compress(PLAIN))
    with pytest.raises(IntegrityError):
        content(path)


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such dump file"):
        content(tmp_path / "none.gz")


def test_zst_without_its_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    path = tmp_path / "dump.zst"
    path.write_bytes(packed(".zst", PIECES))
    with pytest.raises(MissingDependency, match=r"culturekit\[kg\]"):
        content(path)
