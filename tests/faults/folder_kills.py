"""Kill the intake of a folder of images at random moments, go on each time, and compare with an undisturbed run.

`python -m tests.faults.folder_kills --images 3000 --kills 30` prints each kill and ends with 0 when every file but the
run records is byte-identical.
"""

import argparse
import io
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from tests.faults.kill_and_resume import content, differences
from tests.faults.killing import killed_after


def many_pictures(root: Path, count: int) -> Path:
    """Make a folder of pictures of several kinds, some of them broken."""
    chance = np.random.default_rng(5)
    for number in range(count):
        folder = root / f"{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = chance.integers(0, 255, (24, 24, 4), dtype=np.uint8)
        form, mode = (("PNG", "RGB"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("WEBP", "RGB"))[number % 4]
        buffer = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(buffer, form)
        bytes_of = buffer.getvalue()[: 20 if number % 50 == 49 else None]
        (folder / f"dish-{number % 40}_{number}.{form.lower()}").write_bytes(bytes_of)
    return root


def command(root: Path, out: Path) -> list[str]:
    """The command that is killed."""
    spec = f"folder:{root}?pattern={{prompt}}_{{id}}"
    return [sys.executable, "-m", "culturekit", "generate", "--backend", spec, "--out", str(out), "--workers", "2"]


def kill_folder(scratch: Path, *, images: int, kills: int, seed: int, longest: float) -> tuple[list[float], list[str]]:
    """Kill and go on; give the moments of the kills and the files that differ in the end."""
    root = many_pictures(scratch / "pictures", images)
    undisturbed = scratch / "undisturbed"
    done = subprocess.run(command(root, undisturbed), capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    expected, chance = content(undisturbed), random.Random(seed)
    moments: list[float] = []
    different: list[str] = []
    out = scratch / "killed-0"
    while len(moments) < kills:
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command(root, out), stdout=quiet, stderr=quiet, start_new_session=True)
        after = chance.uniform(0.2, longest)
        if killed_after(process, after, fine=(1,), group=True):
            moments.append(after)
        else:
            different += differences(expected, content(out), out.name)
            out = scratch / f"killed-{len(moments)}-{after:.3f}"
    subprocess.run(command(root, out), capture_output=True, check=False)
    return moments, different + differences(expected, content(out), "at the end")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=6.0, help="seconds until a kill, at most")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        moments, different = kill_folder(
            Path(folder), images=arguments.images, kills=arguments.kills, seed=arguments.seed, longest=arguments.longest
        )
    for name in different:
        sys.stdout.write(f"DIFFERENT {name}\n")
    sys.stdout.write(f"{len(moments)} kills, {len(different)} files different\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
