"""Corrected diversity of real pictures, where the mapping errs as an encoder does, not as a simulation says.

Flags of one maker are the references; five models show those of two others, tilted and placed on paper of some colour,
or animals and things.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from culturekit.metrics import audit_sample, vendi_batches, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.statistics.intervals import Interval
from tests.effort import THOROUGH
from tests.metrics.corrected.audits_by_hand import audits_of, matches_of
from tests.real.things import MAKERS, REFERENCES, codes, drawings, folder, needs, on_paper, references

pytestmark = needs(REFERENCES, *map(folder, MAKERS))

COUNTRY = (0.0, 1.0, 0.0)
DRAWS, PROMPTS, IMAGES, AUDITED = 21 if THOROUGH else 3, 3, 1200, 150
TRIES = 3  # Pictures made of each drawing


@dataclass(frozen=True)
class Pictures:
    """Pictures that models may show: the place of the country of each, -1 for things, and where it was mapped to.

    `coloured` is the mapping of another instrument, which sees 16 mean colours.
    """

    codes: tuple[str, ...]
    shown: NDArray[np.int64]
    mapped: NDArray[np.int64]
    coloured: NDArray[np.int64]


@cache
def pictures() -> Pictures:
    """Make the pictures and map each to the reference that is most like it."""
    rng, encoder = np.random.default_rng(0), EmbeddedEncoder()
    known = encoder.encode_images(references())
    drawn = [(place, on_paper(drawing, rng)) for place, drawing in drawings() for _ in range(TRIES)]
    vectors = encoder.encode_images([picture for _, picture in drawn])
    flags, seen = (colours(some) for some in (references(), [picture for _, picture in drawn]))
    nearest = np.array([np.square(flags - one).sum(axis=1).argmin() for one in seen])
    return Pictures(codes(), np.array([place for place, _ in drawn]), (vectors @ known.T).argmax(axis=1), nearest)


def colours(some: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """Give the mean colours of 16 parts of each picture."""
    sized = (Image.fromarray(one).resize((4, 4), Image.Resampling.BOX) for one in some)
    return np.array([np.asarray(one, np.float64).ravel() for one in sized])


def models(countries: int) -> NDArray[np.float64]:
    """Give the shares of countries in five models, and last of things: each more diverse than the next."""
    even, one = np.full(countries, 1 / countries), np.eye(countries)
    rank = 1 / np.arange(1, countries + 1)
    shown = [even, rank / rank.sum(), 0.5 * one[30] + 0.5 * even, one[[7, 60, 120, 200]].mean(axis=0), 0.3 * one[90]]
    return np.array([[*shares, 1 - shares.sum()] for shares in shown]).round(12)


@dataclass(frozen=True)
class Drawn:
    """A model's images as both instruments map them, and an audit of some."""

    matches: pl.DataFrame
    coloured: pl.DataFrame
    audits: pl.DataFrame
    rng: np.random.Generator

    def corrected(self, *, second: bool = False) -> Interval:
        beside = self.coloured if second else None
        return vendi_corrected(self.matches, self.audits, weights=COUNTRY, rng=self.rng, second=beside)

    @property
    def mapped(self) -> float:
        labels = self.matches.select("continent", "country", "artifact")
        return float(vendi_batches(labels, size=8, weights=COUNTRY).mean())


def drawn_of(shares: NDArray[np.float64], seed: int) -> Drawn:
    told, rng = pictures(), np.random.default_rng(seed)
    of = rng.choice(len(shares), p=shares, size=IMAGES)
    places = [np.flatnonzero(told.shown == place) for place in range(len(told.codes))] + [
        np.flatnonzero(told.shown < 0)
    ]
    drawn = np.array([rng.choice(places[label]) for label in of])
    matches, coloured = (
        matches_of([told.codes[place] for place in mapping[drawn]], prompts=PROMPTS)
        for mapping in (told.mapped, told.coloured)
    )
    names = [*told.codes, None]
    truth = dict(zip(matches["image_id"].to_list(), (names[label] for label in of), strict=True))
    asked = audit_sample(matches, n=AUDITED, rng=rng)["image_id"].to_list()
    return Drawn(matches, coloured, audits_of({image: truth[image] for image in asked}), rng)


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
        drawn = [drawn_of(one, seed) for one in shares]
        answers = [one.corrected() for one in drawn]
        assert np.argsort([-answer.value for answer in answers]).tolist() == [0, 1, 2, 3, 4]
        assert np.argsort([-one.mapped for one in drawn]).tolist() != [0, 1, 2, 3, 4]
        held += held_by(answers, truth)
    cells = len(shares) * DRAWS
    assert held >= min(0.93 * cells, cells - 2)


def held_by(answers: Sequence[Interval], truth: NDArray[np.float64]) -> int:
    return sum(answer.low <= true <= answer.high for answer, true in zip(answers, truth, strict=True))


def test_mean_colours_as_a_second_instrument_make_intervals_narrower_that_hold() -> None:
    told = pictures()
    assert 0.25 < (told.shown == told.coloured)[told.shown >= 0].mean() < 0.6
    shares = models(len(told.codes))
    diversity = expected_diversity(size=8, continent=0.0, country=1.0, q=1.0, parents=[0] * shares.shape[1])
    held, widths = 0, []
    for seed in range(DRAWS):
        drawn = [drawn_of(one, seed) for one in shares]
        both = [one.corrected(second=True) for one in drawn]
        widths.append([[each.high - each.low for each in some] for some in ([one.corrected() for one in drawn], both)])
        held += held_by(both, diversity(shares))
    assert held >= min(0.93 * len(shares) * DRAWS, len(shares) * DRAWS - 2)
    alone, beside = np.mean(widths, axis=(0, 2))
    assert beside < alone
