import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("openai")
pytest.importorskip("google.genai")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_kills_cost_no_more_images_than_were_under_way() -> None:
    command = [sys.executable, "-m", "tests.faults.image_api_kills", "--kills", "6", "--images", "200", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 kills" in done.stdout
