import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.diffusers_kills import DiffusersKills

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_killed_runs_end_in_the_same_bytes_and_make_little_again() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    command = [sys.executable, "-m", "tests.faults.diffusers_kills", "--kills", "3", "--images", "60", "--whole", "3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills" in done.stdout


def test_the_count_fails_where_more_was_made_again_than_was_in_flight() -> None:
    assert DiffusersKills(kills=1, again=20, most_again=20).fine
    assert not DiffusersKills(kills=1, again=21, most_again=20).fine
    assert not DiffusersKills(different=["images.parquet"]).fine
