from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from culturekit.core.errors import UsageError
from culturekit.index.raters.quality import SCORERS, noise
from tests.generation.simulated.simulated_models import model, portraits, wide_space

SCORER = SCORERS.make("embedded")
ARTIFACTS = 60


@pytest.fixture(scope="module", params=["", "noise=1"], ids=["artifacts", "culture-free"])
def pictures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[NDArray[np.uint8]]:
    space = wide_space(ARTIFACTS)
    backend = model(tmp_path_factory.mktemp("cspace"), space, request.param)
    return [picture.pixels for picture in portraits(backend, space["artifact_id"].to_list(), first_seed=0)]


def blurred(picture: NDArray[np.uint8], radius: float) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(radius)))


def noisy(picture: NDArray[np.uint8], deviation: float) -> NDArray[np.uint8]:
    grain = np.random.default_rng(0).normal(0, deviation, picture.shape)
    return np.clip(picture + grain, 0, 255).astype(np.uint8)


def faded(picture: NDArray[np.uint8], contrast: float) -> NDArray[np.uint8]:
    return (128 + (picture.astype(float) - 128) * contrast).astype(np.uint8)


def test_simulated_pictures_score_in_the_middle_of_the_range(pictures: list[NDArray[np.uint8]]) -> None:
    scores = SCORER.score(pictures)
    assert scores.dtype == np.float64
    assert np.quantile(scores, 0.05) > 0.3
    assert np.quantile(scores, 0.95) < 0.9


@pytest.mark.parametrize(
    ("worsened", "steps", "first"), [(blurred, (0, 0.8, 2), 1.2), (noisy, (0, 12, 60), 1.05), (faded, (1, 0.4, 0.1), 1)]
)
def test_blur_noise_and_lack_of_contrast_score_lower_in_every_picture(
    pictures: list[NDArray[np.uint8]], worsened: Callable[..., NDArray[np.uint8]], steps: tuple[float, ...],
    first: float,
) -> None:  # fmt: skip
    clear, worse, worst = (SCORER.score([worsened(picture, step) for picture in pictures]) for step in steps)
    assert (clear > first * worse).all()
    assert (worse > worst).all()
    assert clear.mean() > 1.5 * worst.mean()


def test_a_score_does_not_depend_on_the_batch(pictures: list[NDArray[np.uint8]]) -> None:
    together = SCORER.score(pictures)
    alone = [SCORER.score([picture])[0] for picture in pictures]
    assert together.tolist() == alone
    assert SCORER.score(pictures[::-1]).tolist() == alone[::-1]
    assert SCORER.score([]).shape == (0,)


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (900, 30), (300, 500)])
def test_any_size_can_be_scored(size: tuple[int, int]) -> None:
    grain = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    (score,) = SCORER.score([grain])
    assert 0 <= score <= 1


@pytest.mark.parametrize("level", [0, 100, 255])
def test_a_picture_without_any_edge_scores_nothing(level: int) -> None:
    assert SCORER.score([np.full((40, 50, 3), level, np.uint8)]).tolist() == [0]


def test_the_sharpest_edge_scores_best_and_an_even_ramp_nothing() -> None:
    columns = np.arange(64)
    edges = np.broadcast_to((columns // 16 % 2 * 255)[:, np.newaxis], (64, 64, 3)).astype(np.uint8)
    ramp = np.broadcast_to((columns * 4)[:, np.newaxis], (64, 64, 3)).astype(np.uint8)
    sharp, smooth = SCORER.score([edges, ramp])
    assert sharp == pytest.approx(1 / 1.1)
    assert smooth == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("deviation", [0.02, 0.1])
def test_noise_is_estimated_by_its_standard_deviation(deviation: float) -> None:
    ramp = np.linspace(0, 1, 200)
    grain = np.random.default_rng(1).normal(0, deviation, (200, 200))
    assert noise((ramp + grain).astype(np.float32)) == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("spec", ["embedded:hps", "embedded?size=3"])
def test_what_it_does_not_take_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="embedded"):
        SCORERS.make(spec)
