"""Nothing is bought twice in batches, whenever the process that asks is killed."""

from pathlib import Path

import pytest

from tests.effort import THOROUGH
from tests.faults.llm_batch_kills import kill_and_resume

KILLS = 100 if THOROUGH else 8


@pytest.mark.endtoend
@pytest.mark.parametrize("provider", ["openai", "google"])
def test_a_killed_batch_is_never_bought_twice(provider: str, tmp_path: Path) -> None:
    result = kill_and_resume(provider, tmp_path, kills=KILLS, seed=6)
    assert len(result.kills) == KILLS and result.bought > 0
    assert result.before_storing > (20 if THOROUGH else 0)
    assert (result.bought_twice, result.unlike) == (0, 0)
