import time
from pathlib import Path

import pytest

from culturekit.llm.client import Identity
from culturekit.llm.dispatch import DurableHold
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.llm.fake_client import FakeClient, questions

SERVER = Identity("openai", "http://127.0.0.1:9/v1", "/chat", "m")
DAY = 86_400.0
YEARS = 2 * 365 * DAY


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock on the wall, to be set by hand."""
    now = [1_790_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def left(journal: Journal, patience: float = 900.0) -> float:
    return DurableHold(journal, SERVER, patience).left()


def test_a_hint_is_held_across_a_kill_until_it_has_passed(tmp_path: Path, wall: list[float]) -> None:
    with Journal(tmp_path) as journal:
        assert left(journal) == 0.0
        DurableHold(journal, SERVER, 900.0).keep(30.0)
        assert left(journal) == pytest.approx(30.0)
        wall[0] += 10.0
        assert left(journal) == pytest.approx(20.0)
        wall[0] += 21.0
        assert left(journal) == 0.0


@pytest.mark.parametrize("jump", [-YEARS, -DAY, -60.0])
def test_a_clock_that_was_ahead_makes_no_wait_longer_than_the_hint(
    tmp_path: Path, wall: list[float], jump: float
) -> None:
    with Journal(tmp_path) as journal:
        DurableHold(journal, SERVER, 900.0).keep(30.0)
        wall[0] += jump
        assert left(journal) == 30.0


@pytest.mark.parametrize("wait", [901.0, DAY, 1e9, 1e300])
def test_a_hint_longer_than_patience_is_not_waited_for_by_the_next_run(
    tmp_path: Path, wall: list[float], wait: float, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal(tmp_path) as journal:
        DurableHold(journal, SERVER, 900.0).keep(wait)
        wall[0] += 5.0
        assert left(journal) == 0.0
    assert "earlier the server asked to be left alone" in caplog.text


@pytest.mark.parametrize(
    ("kept", "expected"),
    [(f"{1_790_000_030.0!r}", 30.0), (f"{1_790_000_000.0 + YEARS!r}", 0.0), ("nan", 0.0), ("inf", 0.0), ("x y", 0.0)],
)
def test_what_an_earlier_version_or_nobody_wrote_is_read_with_care(
    tmp_path: Path, wall: list[float], kept: str, expected: float
) -> None:
    with Journal(tmp_path) as journal:
        journal.remember(f"held:{SERVER.base_url} {SERVER.model}", kept.encode())
        assert left(journal) == expected


@pytest.mark.parametrize("kept", ["86400", "1e9", str(YEARS)])
def test_a_run_after_a_long_hint_asks_and_ends(tmp_path: Path, kept: str) -> None:
    with Journal(tmp_path / "journal") as journal:
        journal.remember("held: fake-1", repr(time.time() + float(kept)).encode())
        answers = list(AskEngine(FakeClient(), journal, AskOptions(), run="one").ask_all(questions(3)))
    assert [answered.outcome for answered in answers] == ["ok"] * 3
