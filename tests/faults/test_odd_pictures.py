from pathlib import Path

import pytest

from tests.faults.large_pictures import KINDS, MOST_MEMORY, peak_of
from tests.faults.odd_pictures import read_odd_pictures


def test_odd_and_hostile_pictures_are_right_or_refused() -> None:
    tally = read_odd_pictures(300, seed=77)
    assert tally.wrong == []
    assert tally.outcomes.total() == 300
    assert tally.outcomes["read"] > 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_pictures_take_no_more_memory_than_allowed(kind: str, tmp_path: Path) -> None:
    peak, outcome, _ = peak_of(kind, tmp_path)
    assert outcome in {"read", "picture too costly to decode"}
    assert peak <= MOST_MEMORY
