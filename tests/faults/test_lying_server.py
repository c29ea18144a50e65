from pathlib import Path

import pytest

from tests.effort import THOROUGH
from tests.faults.asking_kills import dishes
from tests.faults.lies import KEY, MODES
from tests.faults.lying_server import ROWS, TOO_LONG, Ended, keys_in, lied_to, problems

# One that believed numbers made cheaper than nothing, and one that no journal could hold.
QUICK = ["cached 1e18", "prompt 1e15"]
# A thorough run tells all; others tell some, as `python -m tests.faults.lying_server` takes most of an hour.
OTHERS = [name for name in MODES if name not in QUICK]


def wrong_with(name: str, folder: Path) -> tuple[str, ...]:
    """Tell one lie; how long it takes depends on the machine, so that only a hang counts."""
    table = dishes(folder / "candidates", ROWS)
    return lied_to(MODES[name], folder / "told", table, usual=TOO_LONG, patience=30.0).wrong


def test_there_are_lies_of_every_kind() -> None:
    assert len(MODES) >= 100


@pytest.mark.parametrize(("run", "told"), [
    (Ended(0, 9.0, "done"), []),
    (Ended(0, 11.0, "done"), ["budget: 11 s"]),
    (Ended(None, 180.0, ""), ["budget: hung"]),
    (Ended(1, 9.0, "Traceback (most recent call last)"), ["budget: exit 1, not 0/5", "budget: traceback"]),
    (Ended(5, 9.0, f"the key {KEY} was refused"), ["budget: key shown"]),
])  # fmt: skip
def test_what_is_wrong_with_the_end_of_a_run_is_told(run: Ended, told: list[str]) -> None:
    assert list(problems("budget", run, frozenset({0, 5}), longest=10.0)) == told


def escaped(form: str) -> str:
    return "".join(form.format(ord(sign)) for sign in KEY)


@pytest.mark.parametrize("form", [KEY, KEY[:20], escaped("\\u{:04x}"), escaped("\\\\u{:04X}")])
def test_a_key_that_was_written_is_found(form: str, tmp_path: Path) -> None:
    (tmp_path / "harmless.txt").write_text("done", encoding="utf-8")
    assert keys_in(tmp_path) == []
    (tmp_path / "log.txt").write_text(f"asked with {form}", encoding="utf-8")
    assert keys_in(tmp_path) == ["key in log.txt"]


@pytest.mark.endtoend
@pytest.mark.parametrize("name", QUICK)
def test_a_lie_costs_no_more_than_the_budget_and_poisons_nothing(name: str, tmp_path: Path) -> None:
    assert wrong_with(name, tmp_path) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS if THOROUGH else OTHERS[::12])
def test_every_other_lie_likewise(name: str, tmp_path: Path) -> None:
    assert wrong_with(name, tmp_path) == ()
