import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import examples

ROOT = Path(__file__).parents[2]


@pytest.mark.endtoend
def test_kills_cost_no_more_than_what_was_under_way() -> None:
    command = [sys.executable, "-m", "tests.faults.llm_kills", "--kills", str(examples(60)), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{examples(60)} kills" in done.stdout
