from pathlib import Path

import pytest

from tests.faults.image_api_kills import CONCURRENCY, kill_and_count

pytest.importorskip("openai")
pytest.importorskip("google.genai")


@pytest.mark.slow
def test_ten_kills_cost_no_more_images_than_were_under_way(tmp_path: Path) -> None:
    result = kill_and_count(tmp_path, kills=10, images=200, seed=3, longest=2.5)
    assert result.kills == 10
    assert min(result.lost) >= 0
    assert max(result.lost) <= CONCURRENCY
    assert result.twice <= sum(result.lost)
    assert result.different == []
    assert result.broken == []
