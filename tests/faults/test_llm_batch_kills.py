"""Nothing is bought twice in batches, whenever the process that asks is killed."""

from pathlib import Path

import pytest

from tests.faults.llm_batch_kills import kill_and_resume

pytestmark = pytest.mark.endtoend

PROVIDERS = pytest.mark.parametrize("provider", ["openai", "google"])


@PROVIDERS
def test_a_killed_batch_is_never_bought_twice(provider: str, tmp_path: Path) -> None:
    result = kill_and_resume(provider, tmp_path, kills=2, seed=5)
    assert len(result.kills) == 2 and result.bought > 0
    assert (result.bought_twice, result.unlike) == (0, 0)


@pytest.mark.slow
@PROVIDERS
def test_a_hundred_kills_of_batches_buy_nothing_twice(provider: str, tmp_path: Path) -> None:
    result = kill_and_resume(provider, tmp_path, kills=100, seed=6)
    assert len(result.kills) == 100 and result.before_storing > 20
    assert (result.bought_twice, result.unlike) == (0, 0)
