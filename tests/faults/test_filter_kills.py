from pathlib import Path

import pytest

from tests.effort import examples
from tests.faults.filter_kills import kill_and_count


@pytest.mark.endtoend
def test_a_killed_filter_buys_no_more_twice_than_was_under_way(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=examples(50), rows=600, concurrency=16, seed=11, longest=6.0)
    assert result.kills >= examples(50)
    assert result.different == []
    assert result.bought_twice <= result.most_twice
