from pathlib import Path

import pytest

from tests.faults.question_kills import kill_and_count


@pytest.mark.slow
def test_killed_questions_buy_no_more_twice_than_was_under_way(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=4, images=60, concurrency=8, seed=3, longest=5.0)
    assert result.kills >= 8
    assert result.different == []
    assert result.bought_twice <= result.most_twice
