"""A disk that fills up, for real: a run in a small tmpfs, in a mount namespace of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SMALL
from tests.effort import THOROUGH

pytestmark = pytest.mark.endtoend

SCRIPT = """
run() {{
    {python} -m culturekit run {recipe} --workdir {mount}/run --workers 1 > {out}/$1 2>&1
    echo $? > {out}/$1.code
}}
mount -t tmpfs -o size={size} none {mount}
run first
mount -o remount,size=200m {mount}
run second
"""

STEP = 400 if THOROUGH else 1_400


def can_mount() -> bool:
    """Whether this process may make a mount namespace with a tmpfs in it."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        return False
    probe = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "size", ["300k", "2m", *(pytest.param(f"{size}k", marks=pytest.mark.slow) for size in range(500, 3_300, STEP))]
)
def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(tmp_path: Path, size: str) -> None:
    if not can_mount():
        pytest.skip("needs the right to mount a tmpfs in a namespace of its own")
    mount, out = tmp_path / "mount", tmp_path / "out"
    mount.mkdir()
    out.mkdir()
    script = SCRIPT.format(size=size, mount=mount, python=sys.executable, recipe=SMALL, out=out)
    subprocess.run(["unshare", "--mount", "sh", "-c", script], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    said = (out / "first").read_text(encoding="utf-8")
    assert (out / "first.code").read_text(encoding="ascii").strip() == "3", said
    assert "No space left on device" in said
    assert "Traceback" not in said
    assert (out / "second.code").read_text(encoding="ascii").strip() == "0", (out / "second").read_text(
        encoding="utf-8"
    )
