import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.errors import UsageError
from culturekit.index.encoder import ENCODERS
from culturekit.index.models.embedded_encoder import (
    EmbeddedEncoder,
    block_means,
    described,
    edge_planes,
    opponent_planes,
    ring_means_and_spread,
)

ENCODER = EmbeddedEncoder()


def painted(height: int, width: int, *, seed: int) -> NDArray[np.uint8]:
    """A picture of coarse random patches, so that a resampled one is much like it."""
    patches = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    return np.asarray(Image.fromarray(patches).resize((width, height), Image.Resampling.BICUBIC))


def stripes(*, across: int, down: int) -> NDArray[np.uint8]:
    """A picture with stripes that change along this direction."""
    place = np.arange(64)
    bright = (across * place[np.newaxis, :] + down * place[:, np.newaxis]) // 6 % 2 == 0
    return np.repeat(bright[:, :, np.newaxis] * np.uint8(255), 3, axis=2)


SIZES = [(64, 64), (1, 1), (1, 300), (300, 1), (63, 65), (128, 128), (480, 640), (64, 32)]
PICTURES = [painted(*size, seed=seed) for seed, size in enumerate(SIZES)]


def test_vectors_are_unit_float32_of_the_dimension_in_the_identity() -> None:
    extremes = [np.full((64, 64, 3), level, np.uint8) for level in (0, 128, 255)]
    vectors = ENCODER.encode_images([*PICTURES, *extremes, stripes(across=1, down=0)])
    assert vectors.shape == (len(PICTURES) + 4, ENCODER.identity.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(range(len(PICTURES))), max_size=20))
def test_a_vector_is_the_same_bits_in_any_batch(places: list[int]) -> None:
    alone = [ENCODER.encode_images([PICTURES[place]])[0] for place in places]
    together = ENCODER.encode_images([PICTURES[place] for place in places])
    assert together.shape[0] == len(places)
    for one, other in zip(alone, together, strict=True):
        assert one.tobytes() == other.tobytes()


def test_how_a_picture_lies_in_memory_does_not_matter() -> None:
    picture = painted(64, 64, seed=3)
    flipped_twice = np.ascontiguousarray(picture[::-1, ::-1])[::-1, ::-1]
    by_channel = np.ascontiguousarray(picture.transpose(2, 0, 1)).transpose(1, 2, 0)
    one, *others = ENCODER.encode_images([picture, flipped_twice, by_channel])
    for other in others:
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("size", [(128, 128), (320, 320), (96, 640)])
def test_a_picture_at_another_size_has_nearly_the_same_vector(size: tuple[int, int]) -> None:
    small, large, other = ENCODER.encode_images(
        [painted(64, 64, seed=1), painted(*size, seed=1), painted(64, 64, seed=2)]
    )
    assert small @ large > 0.99
    assert small @ other < 0.9


def test_the_identity_says_what_is_done_before_encoding() -> None:
    assert ENCODER.identity.as_options()["name"] == "embedded"
    assert "64x64" in ENCODER.identity.preprocessing
    assert "not a cultural encoder" in ENCODER.caveat


def test_directions_of_edges_are_told_apart() -> None:
    expected = {(1, 0): (1, 0, 1, 0), (0, 1): (-1, 0, 1, 0), (1, 1): (0, 1, -1, 0), (1, -1): (0, -1, -1, 0)}
    for (across, down), turns in expected.items():
        planes = edge_planes(opponent_planes(stripes(across=across, down=down))[0])[:, 1:-1, 1:-1]
        strength, *found = planes.mean(axis=(1, 2))
        assert strength > 0.1
        assert np.array(found) / strength == pytest.approx(np.array(turns), abs=0.1)


def test_opponent_planes_of_plain_colours() -> None:
    plain = np.array([[[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]]], np.uint8)
    lightness, redness, yellowness = opponent_planes(plain)
    assert lightness[0] == pytest.approx(np.array([0.5, -0.5, -1 / 6, -1 / 6]), abs=1e-6)
    assert redness[0] == pytest.approx(np.array([0, 0, 1, 0]), abs=1e-6)
    assert yellowness[0] == pytest.approx(np.array([0, 0, 0.5, -1]), abs=1e-6)


def test_block_means_agree_with_a_loop() -> None:
    planes = np.random.default_rng(0).random((2, 12, 12), np.float32)
    expected = [
        [[plane[3 * row : 3 * row + 3, 3 * column : 3 * column + 3].mean() for column in range(4)] for row in range(4)]
        for plane in planes
    ]
    assert block_means(planes, 4) == pytest.approx(np.array(expected), abs=1e-6)


def test_rings_agree_with_masks() -> None:
    planes = np.random.default_rng(0).random((2, 64, 64), np.float32)
    centres = (np.arange(64) + 0.5) / 32 - 1
    ring = np.minimum((np.hypot(*np.meshgrid(centres, centres)) * 5).astype(int), 4)
    means, spread = ring_means_and_spread(planes, 5)
    for place in range(5):
        inside = planes[:, ring == place]
        assert means[:, place] == pytest.approx(inside.mean(axis=1), abs=1e-5)
        assert spread[:, place] == pytest.approx(inside.std(axis=1), abs=1e-4)


def test_turning_a_picture_upside_down_leaves_its_rings_but_not_its_vector() -> None:
    picture = painted(64, 64, seed=5)
    turned = np.ascontiguousarray(picture[::-1, ::-1])
    means, other = (ring_means_and_spread(opponent_planes(one), 10)[0] for one in (picture, turned))
    assert means == pytest.approx(other, abs=1e-6)
    assert described(picture) @ described(turned) < 0.95


@pytest.mark.parametrize("spec", ["embedded:clip", "embedded?size=3"])
def test_what_it_does_not_take_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="embedded"):
        ENCODERS.make(spec)
