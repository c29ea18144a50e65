from pathlib import Path

import pytest

from tests.faults.completion_kills import kill_and_count

pytestmark = pytest.mark.endtoend


def test_a_killed_completion_buys_no_more_twice_than_was_under_way(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=2, concurrency=4, seed=3, longest=6.0)
    assert result.kills >= 2
    assert result.different == []
    assert result.bought_twice <= result.most_twice


@pytest.mark.slow
def test_thirty_kills_of_the_completion(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=30, concurrency=4, seed=11, longest=7.0)
    assert result.kills >= 30
    assert result.different == []
    assert result.bought_twice <= result.most_twice
