from pathlib import Path

import pytest

from tests.faults.llm_kills import CONCURRENCY, kill_and_count


@pytest.mark.parametrize("kills", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_cost_no_more_than_what_was_under_way(kills: int, tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=kills, seed=3, longest=0.6)
    assert result.kills == kills
    assert min(result.lost) >= 0
    assert max(result.lost) <= CONCURRENCY
    assert result.twice <= sum(result.lost)
    assert result.different == []
    assert result.broken == []
