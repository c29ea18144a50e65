from pathlib import Path

import pytest

from tests.effort import THOROUGH
from tests.faults.asking_kills import kill_and_count


@pytest.mark.parametrize(
    ("name", "kills", "size", "concurrency", "longest"),
    [
        pytest.param("filter", 50 if THOROUGH else 6, 600, 16, 6.0, marks=pytest.mark.endtoend),
        pytest.param("complete", 30 if THOROUGH else 4, 40, 4, 6.0, marks=pytest.mark.endtoend),
        pytest.param("ask", 4 if THOROUGH else 2, 60, 8, 5.0, marks=pytest.mark.slow),
        pytest.param("weigh", 4 if THOROUGH else 2, 60, 8, 5.0, marks=pytest.mark.slow),
        pytest.param("expand", 4 if THOROUGH else 2, 300, 8, 4.0, marks=pytest.mark.slow),
    ],
)
def test_a_killed_command_comes_to_the_same_and_buys_no_more_twice_than_was_under_way(
    tmp_path: Path, name: str, kills: int, size: int, concurrency: int, longest: float
) -> None:
    result = kill_and_count(tmp_path, name, kills=kills, size=size, concurrency=concurrency, seed=11, longest=longest)
    assert result.kills >= kills
    assert result.different == []
    assert result.bought_twice <= result.most_twice
