from pathlib import Path

import pytest

from tests.faults.caption_kills import kill_and_count


@pytest.mark.slow
def test_a_killed_expansion_comes_to_the_same_captions_and_buys_hardly_anything_twice(
    tmp_path: Path,
) -> None:
    result = kill_and_count(tmp_path, kills=4, captions=300, concurrency=8, seed=3, longest=4.0)
    assert result.kills >= 4
    assert result.different == []
    assert result.bought_twice <= result.most_twice
