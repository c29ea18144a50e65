import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["threads", "processes"])
def test_large_pictures_take_at_most_512_mib_together(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (tmp_path / "scratch").mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (707, 707, 3), dtype=np.uint8)
    large = np.tile(noise, (10, 10, 1))
    Image.fromarray(large).save(folder / "0.jpg", quality=80)
    Image.fromarray(large[:5000, :5000]).save(folder / "1.png", compress_level=1)
    for number in range(12):
        Image.fromarray(np.roll(large[:3000, :4000], number, 0)).save(folder / f"photo-{number}.jpg", quality=80)
    command = [
        sys.executable, "-m", "tests.index.embedding.embedding_peak", str(folder), str(tmp_path / "scratch"), way,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    kept, peak = map(int, answer.split())
    assert kept == 14
    assert peak <= 512
