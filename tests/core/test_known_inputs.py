import os
from pathlib import Path

import pytest

from culturekit.core import run as known_inputs
from culturekit.core import stage
from culturekit.core.digests import digest_file
from culturekit.core.run import run_stage
from culturekit.core.stage import Outcome, Stage, Work
from tests.conftest import HeardProgress, HereEngine


def nothing(work: Work) -> Outcome:
    (work.out / "x").write_bytes(b"")
    return Outcome()


def state(path: Path, out: Path) -> str:
    what = Stage("s", "s", 1, nothing, {"dump": path})
    return run_stage(what, out, engine=HereEngine(), progress=HeardProgress(), replace=True).state


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Hear of every file that is hashed as an input; everything counts as large."""
    seen: list[Path] = []

    def heard(path: Path) -> str:
        seen.append(path)
        return digest_file(path)

    monkeypatch.setattr(stage, "digest_file", heard)
    monkeypatch.setattr(known_inputs, "WORTH_REMEMBERING", 0)
    return seen


def test_a_large_input_is_hashed_once_and_a_changed_one_again(tmp_path: Path, hashed: list[Path]) -> None:
    dump = tmp_path / "dump"
    dump.write_bytes(b"large")
    assert [state(dump, tmp_path / "out") for _ in range(3)] == ["built", "reused", "reused"]
    assert hashed == [dump]
    dump.write_bytes(b"LARGE")
    os.utime(dump, ns=(1, 1))
    assert state(dump, tmp_path / "out") == "built"
    assert hashed == [dump, dump]


def test_a_small_input_is_always_hashed(tmp_path: Path, hashed: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_inputs, "WORTH_REMEMBERING", 10)
    dump = tmp_path / "dump"
    dump.write_bytes(b"small")
    assert [state(dump, tmp_path / "out") for _ in range(2)] == ["built", "reused"]
    assert hashed == [dump, dump]
