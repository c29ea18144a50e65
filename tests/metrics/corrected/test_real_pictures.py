"""Corrected diversity of real pictures: flags as three makers draw them, and drawings that show no culture.

    npm install --prefix pictures svg-country-flags@1.2.10 emoji-datasource-{google,twitter}@16.0.0
    CULTUREKIT_PICTURES=pictures/node_modules python -m pytest -m external tests/metrics/corrected/test_real_pictures.py

Flags of one maker are the references; five models show those of two others, tilted and placed on paper of some colour.
The mapping errs as an encoder does, not as a simulation says.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from culturekit.metrics import audit_sample, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.statistics.intervals import Interval
from tests.metrics.corrected.audits_by_hand import audits_of, matches_of

ENVIRONMENT = "CULTUREKIT_PICTURES"

pytestmark = [
    pytest.mark.external,
    pytest.mark.slow,
    pytest.mark.skipif(ENVIRONMENT not in os.environ, reason=f"{ENVIRONMENT} names no node_modules with pictures"),
]

COUNTRY = (0.0, 1.0, 0.0)
DRAWS, PROMPTS, IMAGES, AUDITED = 21, 3, 1200, 150
THINGS = ("Animals & Nature", "Objects")
MAKERS = ("google", "twitter")
TRIES = 3
"""Pictures made of each drawing."""


@dataclass(frozen=True)
class Pictures:
    """Pictures that models may show: the place of the country of each, -1 for things, and where it was mapped to."""

    codes: tuple[str, ...]
    shown: NDArray[np.int64]
    mapped: NDArray[np.int64]


def folder(maker: str) -> Path:
    return Path(os.environ[ENVIRONMENT]) / f"emoji-datasource-{maker}/img/{maker}/64"


def emoji_of(code: str) -> str:
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
def pictures() -> Pictures:
    """Make the pictures and map each to the reference that is most like it."""
    rng, encoder = np.random.default_rng(0), EmbeddedEncoder()
    references = Path(os.environ[ENVIRONMENT]) / "svg-country-flags/png250px"
    every = sorted(path.stem.upper() for path in references.glob("??.png"))
    codes = tuple(code for code in every if all((folder(maker) / emoji_of(code)).exists() for maker in MAKERS))
    flags = [on_paper(opened(references / f"{code.lower()}.png"), np.random.default_rng(1)) for code in codes]
    known = encoder.encode_images(flags)
    drawn = [(place, on_paper(drawing, rng)) for place, drawing in drawings(codes) for _ in range(TRIES)]
    vectors = encoder.encode_images([picture for _, picture in drawn])
    return Pictures(codes, np.array([place for place, _ in drawn]), (vectors @ known.T).argmax(axis=1))


def drawings(codes: tuple[str, ...]) -> Iterator[tuple[int, Image.Image]]:
    """Give what two makers draw: the place of a flag's country, and -1 for animals and things."""
    told = pl.read_json(folder("google").parents[2] / "emoji.json", infer_schema_length=None)
    things = told.filter(pl.col("category").is_in(THINGS))["image"].sort().to_list()
    for maker in MAKERS:
        yield from ((place, opened(folder(maker) / emoji_of(code))) for place, code in enumerate(codes))
        yield from ((-1, opened(folder(maker) / name)) for name in things if (folder(maker) / name).exists())


def models(countries: int) -> NDArray[np.float64]:
    """Give the shares of countries in five models, and last of things: each more diverse than the next."""
    even, one = np.full(countries, 1 / countries), np.eye(countries)
    rank = 1 / np.arange(1, countries + 1)
    shown = [even, rank / rank.sum(), 0.5 * one[30] + 0.5 * even, one[[7, 60, 120, 200]].mean(axis=0), 0.3 * one[90]]
    return np.array([[*shares, 1 - shares.sum()] for shares in shown]).round(12)


def corrected_and_mapped(shares: NDArray[np.float64], seed: int) -> tuple[Interval, float]:
    """Draw a model's images, correct their diversity by an audit, and give what the mapping says beside it."""
    told, rng = pictures(), np.random.default_rng(seed)
    of = rng.choice(len(shares), p=shares, size=IMAGES)
    places = [np.flatnonzero(told.shown == place) for place in range(len(told.codes))] + [
        np.flatnonzero(told.shown < 0)
    ]
    drawn = np.array([rng.choice(places[label]) for label in of])
    matches = matches_of([told.codes[place] for place in told.mapped[drawn]], prompts=PROMPTS)
    names = [*told.codes, None]
    truth = dict(zip(matches["image_id"].to_list(), (names[label] for label in of), strict=True))
    asked = audit_sample(matches, n=AUDITED, rng=rng)["image_id"].to_list()
    answer = vendi_corrected(matches, audits_of({image: truth[image] for image in asked}), weights=COUNTRY, rng=rng)
    labels = matches.select("continent", "country", "artifact")
    return answer, float(vendi_batches(labels, size=8, weights=COUNTRY).mean())


def test_what_real_pictures_show_is_ranked_and_held_where_the_mapping_misleads() -> None:
    told = pictures()
    flags = told.shown >= 0
    assert 0.6 < (told.shown == told.mapped)[flags].mean() < 0.95
    shares = models(len(told.codes))
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * shares.shape[1])
    truth = diversity(shares)
    assert (np.diff(truth) < -0.02).all()
    held = 0
    for seed in range(DRAWS):
        answers = [corrected_and_mapped(one, seed) for one in shares]
        assert np.argsort([-answer.value for answer, _ in answers]).tolist() == [0, 1, 2, 3, 4]
        assert np.argsort([-mapped for _, mapped in answers]).tolist() != [0, 1, 2, 3, 4]
        held += sum(answer.low <= true <= answer.high for (answer, _), true in zip(answers, truth, strict=True))
    assert held >= 0.93 * len(shares) * DRAWS
