"""Worlds in which corrected diversity is tried: models with known shares, images of prompts, a mapping that errs."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.schemas import AUDITS

__all__ = [
    "ARTIFACTS", "COUNTRIES", "NONE", "OF_COUNTRY", "RANK", "ROWS", "WORLDS", "Images", "World", "audits_of",
    "draw_images", "drawn_from", "labelled", "matches_of", "shares_of_models",
]  # fmt: skip

COUNTRIES, ARTIFACTS, NONE = 20, 5, 20
"""Artifacts are of a country; the country after the last is a picture of nothing."""

OF_COUNTRY = 1 / np.arange(1, ARTIFACTS + 1) / (1 / np.arange(1, ARTIFACTS + 1)).sum()
"""How common the artifacts of a country are in its pictures."""

BALANCED, UNBALANCED = (4, 4, 4, 4, 4), (12, 4, 2, 1, 1)
"""Countries of each continent."""

EVEN, ONE = np.full(COUNTRIES, 1 / COUNTRIES), np.eye(COUNTRIES)
RANK = 1 / np.arange(1, COUNTRIES + 1)

ROWS = {
    "usual": {
        "even": EVEN,
        "by rank": RANK / RANK.sum(),
        "half in one": 0.5 * ONE[3] + 0.5 * EVEN,
        "four of twenty": 0.9 * ONE[[0, 1, 6, 11]].mean(axis=0) + 0.1 * EVEN,
        "mostly one": 0.85 * ONE[5] + 0.15 * EVEN,
    },
    "noisy": {f"even, {noise:.0%} nothing": (1 - noise) * EVEN for noise in (0.0, 0.15, 0.3, 0.45, 0.6)},
    "few": {
        "even": EVEN,
        "two labels": ONE[[2, 9]].mean(axis=0),
        "nine in ten": 0.9 * ONE[2] + 0.1 * ONE[9],
        "one only": ONE[2],
        "nothing": 0.0 * EVEN,
    },
    "nearly one": {
        "199 in 200": 0.995 * ONE[2] + 0.005 * ONE[9],
        "99 in 100": 0.99 * ONE[2] + 0.01 * ONE[9],
        "98 in 100": 0.98 * ONE[2] + 0.02 * ONE[9],
        "96 in 100": 0.96 * ONE[2] + 0.04 * ONE[9],
        "nearly two": 0.49 * ONE[2] + 0.49 * ONE[9] + 0.02 * ONE[14],
    },
    "few and noisy": {
        "one, 20% nothing": 0.8 * ONE[2],
        "one, 60% nothing": 0.4 * ONE[2],
        "two, 30% nothing": 0.7 * ONE[[2, 9]].mean(axis=0),
        "four, 40% nothing": 0.6 * ONE[[0, 1, 6, 11]].mean(axis=0),
        "one, 2% nothing": 0.98 * ONE[5],
    },
    "three": {
        "alike": ONE[[0, 5, 10]].mean(axis=0),
        "6, 3, 1": 0.6 * ONE[0] + 0.3 * ONE[5] + 0.1 * ONE[10],
        "8, 1, 1": 0.8 * ONE[0] + 0.1 * ONE[5] + 0.1 * ONE[10],
        "two": 0.5 * ONE[0] + 0.5 * ONE[5],
        "one": ONE[10],
    },
}
"""Shares of countries of five models; what they lack shows nothing."""


@dataclass(frozen=True, slots=True)
class World:
    """What is drawn.

    Attributes:
        prompts: how many, each with its images.
        images: per prompt: the least and the most, or the sizes of all prompts.
        spread: of the Dirichlet distribution around the model's shares that a prompt's come from; infinite is alike.
        named: share of a prompt's images that show the country which the prompt names.
        accuracy: of the mapping, by country.
        uneven: by how much countries are mapped better, or worse, than that.
        near: errors fall only on neighbours in the list of countries.
        models: which five, of ROWS.
        known: countries that are in the space, all or some; nothing is mapped to others.
        drawn_to: so many countries draw all errors.
        worse: in a third of the prompts the mapping errs as many times as often: what no audit of this size sees.
        continents: how many countries each has.
        size: images per batch.
        q: the order, where kernels have no artifacts.
    """

    prompts: int
    images: tuple[int, ...]
    spread: float = np.inf
    named: float = 0.0
    accuracy: float = 0.85
    uneven: float = 0.0
    near: bool = False
    models: str = "usual"
    known: tuple[int, ...] = tuple(range(COUNTRIES))
    drawn_to: int = COUNTRIES
    worse: float = 1.0
    continents: tuple[int, ...] = BALANCED
    size: int = 8
    q: float = 1.0

    @property
    def continent(self) -> NDArray[np.int64]:
        """The continent of each country, and of nothing."""
        return np.repeat(np.arange(len(self.continents) + 1), (*self.continents, 1))


HALF = tuple(country for country in range(COUNTRIES) if country % 4 < 2)

WORLDS = {
    "1 x 400": World(1, (400, 400)),
    "1 x 400, accuracy .6": World(1, (400, 400), accuracy=0.6),
    "3 x 400": World(3, (400, 400), 20.0),
    "24 x 39": World(24, (39, 39), 5.0),
    "24 x 40": World(24, (40, 40), 5.0),
    "24 x 50, countries named": World(24, (50, 50), 20.0, named=0.8),
    "150 x 40, alike": World(150, (40, 40)),
    "150 x 40": World(150, (40, 40), 5.0),
    "150 x 8": World(150, (8, 8), 5.0),
    "300 x 4, batches of 4": World(300, (4, 4), 5.0, size=4),
    "12 x 20-400": World(12, (20, 400), 5.0),
    "errors to neighbours": World(3, (400, 400), near=True, accuracy=0.75),
    "accuracy .6": World(3, (400, 400), 20.0, accuracy=0.6),
    "noise 0-60 %": World(3, (400, 400), models="noisy"),
    "few labels": World(3, (400, 400), models="few"),
    "few labels, 1 x 20,000": World(1, (20_000, 20_000), models="few"),
    "half outside the space": World(3, (400, 400), 20.0, known=HALF),
    "1 x 20,000": World(1, (20_000, 20_000)),
    "1 x 100,000": World(1, (100_000, 100_000)),
    "a third mapped worse": World(24, (40, 40), 5.0, worse=2.0),
    "accuracy .42-.98": World(3, (400, 400), 20.0, accuracy=0.7, uneven=0.28),
    "all errors to one": World(3, (400, 400), 20.0, accuracy=0.75, drawn_to=1),
    "uneven continents": World(12, (60, 60), 8.0, continents=UNBALANCED),
    "5 x 20-2,000": World(5, (20, 60, 200, 600, 2_000), 8.0),
    "60 x 12": World(60, (12, 12), 5.0),
    "accuracy .3": World(3, (400, 400), 20.0, accuracy=0.3),
    "three labels": World(6, (100, 100), 10.0, models="three", known=(0, 5, 10)),
    "nearly one label": World(3, (400, 400), models="nearly one"),
    "few labels and noise": World(3, (400, 400), models="few and noisy"),
    "batches of 4": World(10, (60, 60), 8.0, size=4),
    "batches of 12": World(10, (60, 60), 8.0, size=12),
    "order 2": World(10, (60, 60), 8.0, q=2.0),
    "order infinite": World(10, (60, 60), 8.0, q=np.inf),
}
"""The first twenty are those that the estimator was made on; it was tried on the others when it was done."""


def shares_of_models(world: World) -> NDArray[np.float64]:
    """Give the shares of the countries in each model, float64 (5, 21)."""
    shown = np.array(list(ROWS[world.models].values()))
    return np.hstack([shown, np.maximum(1 - shown.sum(axis=1, keepdims=True), 0.0).round(12)])


def errors_of(world: World, times: float) -> NDArray[np.float64]:
    """Give how the countries are mapped, with so many times the errors, float64 (21, 20).

    Nothing is mapped to anything, half of it to three countries.
    """
    countries = np.arange(COUNTRIES)
    known = np.isin(countries, world.known)
    continent = world.continent[:-1]
    if world.near:
        wrong = np.isin((countries[None] - countries[:, None]) % COUNTRIES, (1, 2)).astype(np.float64)
    else:
        wrong = np.where(continent[:, None] == continent, 4.0, 1.0) + 4.0 * (countries < 3)
    wrong = wrong * (known & (countries < world.drawn_to))
    np.fill_diagonal(wrong, 0.0)
    places = countries * 7 % COUNTRIES / (COUNTRIES - 1) - 0.5
    accuracy = (1 - times * (1 - world.accuracy) + 2 * world.uneven * places)[:, None]
    sums = wrong.sum(axis=1, keepdims=True)
    wrong = np.divide(wrong, sums, out=np.eye(COUNTRIES), where=sums > 0)
    rows = accuracy * np.eye(COUNTRIES) * known + (1 - accuracy) * wrong
    rows = np.vstack([rows, (0.5 / COUNTRIES + np.where(countries < 3, 0.5 / 3, 0.0)) * known])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Images:
    """A model's images: the prompt of each, what it shows and what it is mapped to; artifacts are numbered."""

    shares: NDArray[np.float64]
    prompt: NDArray[np.int64]
    shown: NDArray[np.int64]
    mapped: NDArray[np.int64]


def draw_images(world: World, shares: NDArray[np.float64], rng: np.random.Generator) -> Images:
    """Draw the shares of prompts, images, what they show, and their mapping."""
    chosen = np.tile(shares, (world.prompts, 1))
    if np.isfinite(world.spread):
        drawn = rng.gamma(np.maximum(world.spread * chosen, 1e-300)) * (chosen > 0)
        chosen = drawn / drawn.sum(axis=1, keepdims=True)
    if world.named:
        chosen = (1 - world.named) * chosen + world.named * np.eye(COUNTRIES + 1)[np.arange(world.prompts) % COUNTRIES]
    least, most = min(world.images), max(world.images)
    sizes = world.images if len(world.images) > 2 else rng.integers(least, most, endpoint=True, size=world.prompts)
    prompt = np.repeat(np.arange(world.prompts), sizes)
    country = drawn_from(chosen[prompt], rng)
    usual, worse = (errors_of(world, times) for times in (1.0, world.worse))
    seen = drawn_from(np.where((prompt % 3 == 0)[:, None], worse[country], usual[country]), rng)
    artifact = drawn_from(np.tile(OF_COUNTRY, (len(prompt), 1)), rng)
    guess = drawn_from(np.tile(OF_COUNTRY, (len(prompt), 1)), rng)
    kept = (seen == country) & (rng.random(len(prompt)) < 0.8)
    shown = np.where(country == NONE, NONE * ARTIFACTS, country * ARTIFACTS + artifact)
    return Images(chosen, prompt, shown, seen * ARTIFACTS + np.where(kept, artifact, guess))


def drawn_from(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a number from each row of chances."""
    sums = np.cumsum(chances, axis=-1)
    passed = (sums < rng.random(len(sums))[:, None] * sums[:, -1:]).sum(axis=-1)
    return np.asarray(np.minimum(passed, sums.shape[-1] - 1))


def matches_of(world: World, images: Images) -> pl.DataFrame:
    """Write what is read of matches."""
    return labelled(world, images.mapped).with_columns(
        model=pl.lit("model"),
        concept=pl.lit("cuisine"),
        prompt_id=pl.format("p{}", pl.Series(images.prompt)),
        repeat=pl.lit(0),
        slot=pl.int_range(pl.len()),
        rank=pl.lit(1),
        artifact=pl.col("artifact_id"),
    )


def audits_of(world: World, images: Images, ids: pl.Series) -> pl.DataFrame:
    """Write what a person who is always right says of some images."""
    said = labelled(world, images.shown).filter(pl.col("image_id").is_in(ids.implode()))
    return said.with_columns(
        pool=pl.lit("people"), annotator=pl.lit("a"), none_of_these=pl.col("country").is_null()
    ).select(list(AUDITS.columns))


def labelled(world: World, artifacts: NDArray[np.int64]) -> pl.DataFrame:
    """Name images and labels."""
    country = np.minimum(artifacts // ARTIFACTS, NONE)
    there = pl.Series(country < NONE)
    return pl.DataFrame(
        {
            "image_id": pl.Series(np.arange(len(artifacts))).cast(pl.String).str.zfill(7),
            "country": pl.Series(country).cast(pl.String).str.zfill(2),
            "continent": pl.Series(world.continent[country]).cast(pl.String),
            "artifact_id": pl.Series(artifacts).cast(pl.String).str.zfill(3),
        }
    ).with_columns(pl.when(there).then(pl.col(name)) for name in ("country", "continent", "artifact_id"))
