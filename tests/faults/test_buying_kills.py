import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import examples

pytest.importorskip("openai")
pytest.importorskip("google.genai")

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("what", "kills"),
    [
        pytest.param("replies", examples(60), marks=pytest.mark.endtoend),
        pytest.param("images", 6, marks=pytest.mark.slow),
    ],
)
def test_kills_cost_no_more_than_what_was_under_way(what: str, kills: int) -> None:
    command = [sys.executable, "-m", "tests.faults.buying_kills", what, "--kills", str(kills), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kills} kills" in done.stdout
