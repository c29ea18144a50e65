from pathlib import Path

import pytest

from tests.faults.filter_kills import kill_and_count

pytestmark = pytest.mark.endtoend


def test_a_killed_filter_buys_no_more_twice_than_was_under_way(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=2, rows=100, concurrency=8, seed=5, longest=5.0)
    assert result.kills >= 2
    assert result.different == []
    assert result.bought_twice <= result.most_twice


@pytest.mark.slow
def test_fifty_kills_of_the_filter(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=50, rows=600, concurrency=16, seed=11, longest=6.0)
    assert result.kills >= 50
    assert result.different == []
    assert result.bought_twice <= result.most_twice
