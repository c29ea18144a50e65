import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.endtoend

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kills", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_kills_cost_no_more_than_what_was_under_way(kills: int) -> None:
    command = [sys.executable, "-m", "tests.faults.llm_kills", "--kills", str(kills), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kills} kills" in done.stdout
