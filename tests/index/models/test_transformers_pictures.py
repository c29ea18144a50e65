"""Preparing pictures without torch: against transformers' own processors where they run, and by rules that hold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.errors import UsageError
from culturekit.index.models import transformers_pictures
from culturekit.index.models.transformers_encoder import canonical
from culturekit.index.models.transformers_pictures import patch_plan, picture_plan, shape_of

SIZES = st.tuples(st.integers(1, 90), st.integers(1, 90))


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
@given(size=SIZES)
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
@given(size=SIZES)
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
