"""The oldest SDKs that are supported hold the same conversation, in an environment of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_TALKS = ("test_openai_wire.py", "test_google_wire.py", "test_faults.py")


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.parametrize("sdks", [("openai==2.0.0", "google-genai==2.0.0"), ("openai>=2,<3", "google-genai>=2,<3")])
def test_older_sdks_hold_the_same_conversation(tmp_path: Path, sdks: tuple[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needed = ["pytest", "msgspec", "orjson"]
    subprocess.run([*install, "-c", str(_ROOT / "constraints.txt"), *sdks, *needed], check=True)
    talks = [str(Path(__file__).with_name(name)) for name in _TALKS]
    options = ["-q", "-p", "no:cacheprovider", "-W", "default", "--noconftest"]
    done = subprocess.run(
        [str(python), "-m", "pytest", *options, *talks], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
