"""The names of encoders: options are checked before anything is loaded, and what is not installed is named."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import map_coordinates

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.torch_places import mend_torchvision
from culturekit.index.encoder import ENCODERS
from culturekit.index.models import transformers_pictures
from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from culturekit.index.models.inception_encoder import Resizing, resized
from culturekit.index.models.letters_encoder import LettersEncoder
from culturekit.index.models.transformers_encoder import canonical
from culturekit.index.models.transformers_pictures import patch_plan, picture_plan, shape_of


def cosine(one: str, other: str) -> float:
    first, second = LettersEncoder().encode_texts([one, other])
    return float(first @ second)


def test_phrases_of_one_thing_are_near_those_of_two_far_and_equal_ones_equal_whatever_stands_beside_them() -> None:
    alone, together = LettersEncoder().encode_texts(["Samovar"]), LettersEncoder().encode_texts(["rug", " samovar "])
    assert np.array_equal(alone[0], together[1])
    assert min(cosine("samovar", "a samovar"), cosine("painted mask", "painted masks")) > 0.6
    assert max(abs(cosine("samovar", "carpet")), abs(cosine("hand drums", "small speakers"))) < 0.3


@pytest.mark.parametrize(("spec", "package"), [
    ("transformers:x", "torch"), ("transformers:x", "transformers"), ("sentence:x", "sentence_transformers"),
])  # fmt: skip
def test_missing_packages_are_named_as_such(spec: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if package != "torch":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"needs the package {package}.*pip install .*culturekit\[embed\]"):
        ENCODERS.make(spec)


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
    assert (ENCODER.identity.name, "64x64" in ENCODER.identity.preprocessing) == ("embedded", True)
    assert "not a cultural encoder" in ENCODER.caveat


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


@pytest.mark.parametrize("spec", ["embedded:clip", "embedded?size=3"])
def test_what_it_does_not_take_is_refused(spec: str) -> None:
    with pytest.raises(UsageError, match="embedded"):
        ENCODERS.make(spec)


RESIZED_FROM = [(64, 64), (299, 299), (400, 333), (30, 500), (1, 1), (598, 598), (300, 298)]


def picture_of(size: tuple[int, int], seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)


@pytest.mark.parametrize("size", RESIZED_FROM)
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


SIDES = st.tuples(st.integers(1, 90), st.integers(1, 90))


def noise(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, 3), np.uint8)


def normal(prepared: NDArray[np.uint8], plan: Any) -> NDArray[np.float32]:
    """The numbers a model reads, as the encoder computes them on its device."""
    colours = plan.normalisation
    numbers = prepared.astype(np.float32) * np.float32(colours.scale)
    centred: NDArray[np.float32] = numbers - np.array(colours.mean, np.float32)
    centred /= np.array(colours.deviation, np.float32)
    return centred


PROCESSORS: dict[str, dict[str, Any]] = {
    "CLIPImageProcessor": {"size": {"shortest_edge": 20}, "crop_size": {"height": 20, "width": 20}},
    "BitImageProcessor": {"size": {"shortest_edge": 26}, "crop_size": {"height": 18, "width": 22}, "resample": 2},
    "SiglipImageProcessor": {"size": {"height": 24, "width": 17}, "image_mean": [0.1, 0.2, 0.3]},
    "ViTImageProcessor": {"size": {"height": 16, "width": 16}, "do_rescale": True, "rescale_factor": 1 / 127.5},
}


@pytest.mark.parametrize("name", PROCESSORS)
@settings(max_examples=25, deadline=None)
@given(size=SIDES)
def test_numbers_are_those_of_transformers(name: str, size: tuple[int, int]) -> None:
    pytest.importorskip("torch")
    from tests.index.models.tiny_transformers import packages

    _, transformers, _ = packages()
    theirs = getattr(transformers, f"{name}Pil")(**PROCESSORS[name])
    plan = picture_plan(theirs.to_dict(), processor="CLIPImageProcessor", where="here")
    picture = noise(*size)
    expected = theirs(Image.fromarray(picture), return_tensors="np")["pixel_values"][0].transpose(1, 2, 0)
    assert np.abs(normal(plan.prepare(picture), plan) - expected).max() < 2e-6
    assert plan.prepare(picture).shape == (*plan.size, 3)


@settings(max_examples=40, deadline=None)
@given(size=SIDES)
def test_patches_are_those_of_transformers(size: tuple[int, int]) -> None:
    pytest.importorskip("torch")
    from tests.index.models.tiny_transformers import packages

    _, transformers, _ = packages()
    theirs = transformers.Siglip2ImageProcessorPil(patch_size=4, max_num_patches=30)
    plan = patch_plan(theirs.to_dict(), processor="Siglip2ImageProcessor", where="here")
    picture = noise(*size)
    expected = theirs(Image.fromarray(picture), return_tensors="np")
    prepared = plan.prepare(picture)
    assert shape_of(prepared).tolist() == expected["spatial_shapes"][0].tolist()
    there = int(shape_of(prepared).prod())
    numbers = normal(prepared[1 : 1 + there].reshape(there, -1, 3), plan).reshape(there, -1)
    assert not prepared[1 + there :].any()
    assert np.abs(numbers - expected["pixel_values"][0, :there]).max() < 2e-6


def test_only_the_middle_of_a_long_picture_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = picture_plan({}, processor="CLIPImageProcessor", where="here")
    smooth = np.asarray(Image.fromarray(noise(3, 9)).resize((700, 30), Image.Resampling.BICUBIC))
    whole = plan.prepare(smooth)
    monkeypatch.setattr(transformers_pictures, "LARGEST", 1)
    assert np.abs(whole.astype(int) - plan.prepare(smooth)).max() <= 2
    monkeypatch.undo()
    for long in (np.zeros((1, 3_000_000, 3), np.uint8), np.zeros((3_000_000, 1, 3), np.uint8)):
        assert plan.prepare(long).shape == (224, 224, 3)


def test_a_picture_smaller_than_the_crop_stands_on_black() -> None:
    settings_ = {"do_resize": False, "do_center_crop": True, "crop_size": 9}
    plan = picture_plan(settings_, processor="CLIPImageProcessor", where="here")
    prepared = plan.prepare(np.full((4, 20, 3), 200, np.uint8))
    assert prepared.shape == (9, 9, 3)
    assert prepared[:3].max() == 0
    assert prepared[3:7].min() == 200
    assert prepared[7:].max() == 0


@pytest.mark.parametrize("shown", [
    {"do_center_crop": False}, {"do_resize": False, "do_center_crop": False},
    {"size": {"shortest_edge": 9, "longest_edge": 11}}, {"size": {"longest_edge": 11}}, {"size": 0}, {"size": True},
    {"size": "large"}, {"crop_size": {"height": -1, "width": 4}}, {"image_mean": [0.5]}, {"image_std": [0, 1, 1]},
    {"resample": 99}, {"do_pad": True},
])  # fmt: skip
def test_settings_that_cannot_be_followed_are_refused(shown: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="here: pictures are prepared in a way that this encoder cannot follow"):
        picture_plan(shown, processor="CLIPImageProcessor", where="here")


def test_texts_are_canonical_as_siglip_was_taught() -> None:
    assert canonical("  A Photo,  of\tKyïv! ") == "a photo of kyïv"
    assert canonical("!?") == ""
