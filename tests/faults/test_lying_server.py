from pathlib import Path

import pytest

from tests.effort import THOROUGH
from tests.faults.filter_kills import dishes
from tests.faults.lies import MODES
from tests.faults.lying_server import ROWS, TOO_LONG, lied_to

QUICK = ["cached 1e18", "prompt 1e15"]
"""One that believed numbers made cheaper than nothing, and one that no journal could hold."""

OTHERS = [name for name in MODES if name not in QUICK]
"""A thorough run tells all; others tell some, as `python -m tests.faults.lying_server` takes most of an hour."""


def tell_lie(name: str, folder: Path) -> None:
    """Tell one lie; how long it takes depends on the machine, so that only a hang counts."""
    table = dishes(folder / "candidates", ROWS)
    assert lied_to(MODES[name], folder / "told", table, usual=TOO_LONG, patience=30.0).wrong == ()


def test_there_are_lies_of_every_kind() -> None:
    assert len(MODES) >= 100


@pytest.mark.endtoend
@pytest.mark.parametrize("name", QUICK)
def test_a_lie_costs_no_more_than_the_budget_and_poisons_nothing(name: str, tmp_path: Path) -> None:
    tell_lie(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS if THOROUGH else OTHERS[::12])
def test_every_other_lie_likewise(name: str, tmp_path: Path) -> None:
    tell_lie(name, tmp_path)
