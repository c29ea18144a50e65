import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.errors import UsageError
from culturekit.index.encoder import ENCODERS
from culturekit.index.models.embedded_encoder import EmbeddedEncoder

ENCODER = EmbeddedEncoder()


def painted(height: int, width: int, *, seed: int) -> NDArray[np.uint8]:
    """A picture of coarse random patches, so that a resampled one is much like it."""
    patches = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    return np.asarray(Image.fromarray(patches).resize((width, height), Image.Resampling.BICUBIC))


SIZES = [(64, 64), (1, 1), (1, 300), (300, 1), (63, 65), (128, 128), (480, 640), (64, 32)]
PICTURES = [painted(*size, seed=seed) for seed, size in enumerate(SIZES)]


def test_vectors_are_unit_float32_of_the_dimension_in_the_identity() -> None:
    extremes = [np.full((64, 64, 3), level, np.uint8) for level in (0, 128, 255)]
    vectors = ENCODER.encode_images([*PICTURES, *extremes])
    assert vectors.shape == (len(PICTURES) + 3, ENCODER.identity.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(range(len(PICTURES))), max_size=20))
def test_a_vector_is_the_same_bits_in_any_batch(places: list[int]) -> None:
    alone = [ENCODER.encode_images([PICTURES[position]])[0] for position in places]
    together = ENCODER.encode_images([PICTURES[position] for position in places])
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


@pytest.mark.parametrize("spec", ["embedded:clip", "embedded?size=3"])
def test_what_it_does_not_take_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="embedded"):
        ENCODERS.make(spec)
