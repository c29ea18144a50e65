"""Real pictures: flags as three makers draw them, and drawings that show no culture, tilted on coloured paper."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from tests.real.things import MODULES

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
