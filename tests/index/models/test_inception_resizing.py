"""Resizings held against scipy and plain slices, and against torchvision where it is installed."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from culturekit.core.torch_places import mend_torchvision
from culturekit.index.models.inception_encoder import Resizing, resized

SIZES = [(64, 64), (299, 299), (400, 333), (30, 500), (1, 1), (598, 598), (300, 298)]


def picture_of(size: tuple[int, int], seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("resizing", "middle"), [("tensorflow", 0.0), ("torch", 0.5)])
def test_pixels_are_mixed_where_scipy_mixes_them(size: tuple[int, int], resizing: Resizing, middle: float) -> None:
    picture = picture_of(size, 2)
    rows, columns = ((np.arange(299) + middle) * length / 299 - middle for length in size)
    places = np.meshgrid(rows, columns, indexing="ij")
    peer = [
        map_coordinates(plane, places, order=1, mode="nearest")
        for plane in np.moveaxis(picture, 2, 0).astype(np.float64)
    ]
    np.testing.assert_allclose(resized(picture, resizing), np.stack(peer, axis=2), atol=1e-2)


def test_tensorflows_resizing_takes_whole_steps_from_the_upper_left() -> None:
    picture = picture_of((598, 897), 3)
    assert np.array_equal(resized(picture, "tensorflow"), picture[::2, ::3])


def test_clean_resizing_keeps_a_flat_picture_flat_and_within_range() -> None:
    assert np.unique(resized(np.full((77, 500, 3), 200, np.uint8), "clean")).tolist() == [200]
    edges = np.random.default_rng(4).integers(0, 2, (90, 90, 3), np.uint8) * np.uint8(255)
    sharp = resized(edges, "clean")
    assert (sharp.min(), sharp.max()) == (0, 255)
    assert len(np.unique(sharp)) > 1000, "nothing is rounded"


@pytest.mark.parametrize("size", [(342, 342), (450, 342), (400, 700), (700, 400), (50, 60), (1, 9)])
def test_cropping_is_torchvisions_transform(size: tuple[int, int]) -> None:
    if mend_torchvision() in ("absent", "hidden"):
        pytest.skip("needs torchvision")
    presets = pytest.importorskip("torchvision.transforms._presets")
    from PIL import Image

    picture = picture_of(size, 5)
    transform = presets.ImageClassification(crop_size=299, resize_size=342, mean=(0, 0, 0), std=(1, 1, 1))
    peer = transform(Image.fromarray(picture)).permute(1, 2, 0).numpy() * 255
    np.testing.assert_allclose(resized(picture, "crop"), peer, atol=1e-3)
