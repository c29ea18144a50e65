from pathlib import Path

from tests.faults.llm_kills import CONCURRENCY, kill_and_count


def test_fifty_kills_cost_no_more_than_what_was_under_way(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=50, seed=3, longest=0.6)
    assert result.kills == 50
    assert min(result.lost) >= 0
    assert max(result.lost) <= CONCURRENCY
    assert result.twice <= sum(result.lost)
    assert result.different == []
    assert result.broken == []
