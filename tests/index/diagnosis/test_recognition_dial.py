"""The instrument: how often the mapping errs can be chosen, and where its errors go."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.generation.simulated.simulated_backend import Attraction, Dial, Drawing, drawn_share, knob_for, rows_of
from culturekit.index.encoder import Vectors
from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from tests.generation.simulated.simulated_models import COUNTRIES, model, portraits, space

ENCODER = EmbeddedEncoder()
REFERENCES = 4
DIALS: tuple[Dial, ...] = ("confusability", "hub_skew", "drift")


@dataclass(frozen=True)
class World:
    """A CSpace of one concept and eight countries, and vectors of its references."""

    folder: Path
    cspace: pl.DataFrame
    references: Vectors

    @classmethod
    def made(cls, artifacts: int, folder: Path, *, first: int) -> Self:
        rows = [(f"Q{first + k}", "cuisine", COUNTRIES[k % len(COUNTRIES)], 1.0) for k in range(artifacts)]
        cspace = space(*rows)
        ids = cspace["artifact_id"].to_list() * REFERENCES
        drawn = portraits(model(folder, cspace), ids, first_seed=first)
        return cls(folder, cspace, ENCODER.encode_images([picture.pixels for picture in drawn]))

    def nearest(self, images: list[NDArray[np.uint8]]) -> NDArray[np.intp]:
        vectors, found = ENCODER.encode_images(images), []
        for start in range(0, len(vectors), 500):
            likeness = vectors[start : start + 500] @ self.references.T
            found.append(likeness.reshape(len(likeness), REFERENCES, -1).max(axis=1).argmax(axis=1))
        return np.concatenate(found)

    def drawn(self, options: str, *, times: int, seed: int) -> list[NDArray[np.uint8]]:
        ids = self.cspace["artifact_id"].to_list() * times
        return [picture.pixels for picture in portraits(model(self.folder, self.cspace, options), ids, first_seed=seed)]

    def accuracy(self, images: list[NDArray[np.uint8]]) -> float:
        return float((self.nearest(images) == np.arange(len(images)) % self.cspace.height).mean())

    def dialled(self, dial: Dial, accuracy: float) -> str:
        knob = knob_for(dial, accuracy, artifacts=self.cspace.height, drawn=drawn_share(dial, self.cspace))
        return f"{dial}={knob}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.made(300, tmp_path_factory.mktemp("300"), first=2_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("dial", DIALS)
def test_an_accuracy_can_be_dialled_in(world: World, dial: Dial) -> None:
    found = world.accuracy(world.drawn(world.dialled(dial, 0.82), times=8, seed=5_000_000))
    assert found == pytest.approx(0.82, abs=0.025)


def skewness(counts: NDArray[np.intp]) -> float:
    apart = counts - counts.mean()
    return float((apart**3).mean() / (apart**2).mean() ** 1.5)


@pytest.mark.slow
def test_hubs_draw_the_errors_and_skew_the_counts_of_nearest_neighbours(world: World) -> None:
    ids = world.cspace["artifact_id"].to_list()
    hubs = Attraction(rows_of(world.cspace), Drawing(0, 3, 0, ())).hubs["cuisine"]
    skews = []
    for options in ("confusability=0.55", "hub_skew=0.04", "hub_skew=0.2"):
        nearest = world.nearest(world.drawn(options, times=4, seed=6_000_000))
        wrong = nearest[nearest != np.arange(len(nearest)) % len(ids)]
        share = np.isin(np.array(ids)[wrong], hubs).mean()
        assert share > 0.55 if "hub" in options else share < 0.2
        skews.append(skewness(np.bincount(nearest, minlength=len(ids))))
    assert skews[0] < 3 < skews[1] < skews[2]


def test_drift_costs_precision_where_pictures_drift_to_and_recall_elsewhere(world: World) -> None:
    countries = np.array(world.cspace["country"].to_list())
    for named, dominant in (("", ("BR", "FR")), ("&drift_to=JP", ("JP",))):
        nearest = countries[world.nearest(world.drawn(f"drift=0.25{named}", times=4, seed=7_000_000))]
        truth = np.tile(countries, 4)
        home = np.isin(countries, dominant)
        wrong = nearest != truth
        assert np.isin(nearest[wrong], dominant).mean() > 0.7
        precision = {code: (truth[nearest == code] == code).mean() for code in COUNTRIES}
        recall = {code: (nearest[truth == code] == code).mean() for code in COUNTRIES}
        elsewhere = sorted(set(countries[~home]))
        assert max(precision[code] for code in dominant) < min(precision[code] for code in elsewhere) - 0.1
        assert min(recall[code] for code in dominant) > max(recall[code] for code in elsewhere) + 0.1


def stored(picture: NDArray[np.uint8], form: str) -> NDArray[np.uint8]:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, form, quality=60)
    return np.asarray(Image.open(file).convert("RGB"))


def resized(picture: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BICUBIC))


@pytest.mark.slow
def test_of_three_thousand_artifacts_nearly_all_are_recognised_however_stored(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    world = World.made(3000, tmp_path_factory.mktemp("3000"), first=3_000_000)
    fresh = world.drawn("", times=1, seed=8_000_000)
    assert world.accuracy(fresh) >= 0.99
    for form in ("JPEG", "WEBP"):
        assert world.accuracy([stored(picture, form) for picture in fresh]) >= 0.99
    for side in (96, 128):
        assert world.accuracy([resized(picture, side) for picture in fresh]) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("artifacts", "times", "first"),
    [
        (300, 10, 4_000_000),
        (1000, 3, 4_000_000),
        (1000, 3, 4_500_000),
        (3000, 1, 4_500_000),
        pytest.param(3000, 1, 4_000_000, marks=pytest.mark.xfail(reason="confusability at .75 gives .773")),
        pytest.param(300, 10, 4_500_000, marks=pytest.mark.xfail(reason="confusability at .87 gives .838")),
    ],
)
def test_every_dial_holds_to_two_points(
    artifacts: int, times: int, first: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """To three points in fewer than 3,000 artifacts: always the same ones are confused, and sets of them differ."""
    world = World.made(artifacts, tmp_path_factory.mktemp("dial"), first=first)
    near = 0.02 if artifacts == 3000 else 0.03
    for dial in DIALS:
        for wanted in (0.92, 0.87, 0.82, 0.75):
            found = world.accuracy(world.drawn(world.dialled(dial, wanted), times=times, seed=9_000_000))
            assert found == pytest.approx(wanted, abs=near), (dial, wanted)
