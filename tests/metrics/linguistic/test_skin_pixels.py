"""The two rules for skin pixels, against figures that OpenCV and scikit-image gave for the same colours."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.metrics import MONK_TONES
from culturekit.metrics.linguistic.picture_tones import (
    DETECTORS,
    cielab,
    dall_eval_pixels,
    ita_pixels,
    typology_angle,
    ycrcb,
)

SWATCHES = MONK_TONES.T

# cv2.cvtColor(..., cv2.COLOR_RGB2YCrCb) and skimage.color.rgb2lab of the same twelve colours.
COLOURS = [
    (241, 160, 175), (229, 148, 198), (213, 57, 14), (76, 72, 223), (233, 1, 127), (210, 33, 204),
    (30, 119, 209), (77, 87, 71), (184, 65, 253), (113, 122, 129), (149, 141, 130), (254, 206, 202),
]  # fmt: skip
OPENCV_YCRCB = [
    (186, 167, 122), (178, 164, 139), (99, 209, 80), (90, 118, 203), (85, 234, 152), (105, 203, 184),
    (103, 76, 188), (82, 124, 122), (122, 172, 202), (120, 123, 133), (142, 133, 121), (220, 152, 118),
]  # fmt: skip
SKIMAGE_LAB = [
    (74.152, 32.035, 4.686), (70.814, 37.591, -13.101), (48.397, 58.983, 56.626), (40.405, 47.223, -76.207),
    (50.55, 79.7, -2.165), (50.864, 80.2, -47.589), (49.582, 7.794, -53.418), (35.692, -7.348, 7.998),
    (53.018, 75.262, -72.042), (50.704, -1.824, -4.959), (59.022, 0.988, 6.933), (86.741, 16.303, 8.398),
]  # fmt: skip

OPENCV_CUBE = "a7e5f44613f17ecb0ff63e63dad6b16bb14f8c5e828a14ecb2838d46496bd372"
"""SHA-256 of OpenCV's Y, Cr, Cb planes of every colour whose channels are multiples of five."""


def planes(*colours: tuple[int, int, int]) -> np.ndarray:
    return np.array(colours, np.uint8).T


def cube(step: int) -> np.ndarray:
    values = np.arange(0, 256, step)
    return np.stack(np.meshgrid(values, values, values, indexing="ij")).reshape(3, -1).astype(np.uint8)


def published_rule(red: int, green: int, blue: int) -> bool:
    """The published conditions one by one, in plain numbers, on OpenCV's converted values."""
    y, cr, cb = map(int, ycrcb(planes((red, green, blue)))[:, 0])
    return (
        red > 95 and green > 40 and blue > 20 and red > green and red > blue and abs(red - green) > 15
        and cr > 135 and cb > 85 and y > 80 and cr <= 1.5862 * cb + 20 and cr >= 0.3448 * cb + 76.2069
        and cr >= -4.5652 * cb + 234.5652 and cr <= -1.15 * cb + 301.75 and cr <= -2.2857 * cb + 432.85
    )  # fmt: skip


def test_ycrcb_is_opencvs_on_single_colours() -> None:
    assert ycrcb(planes(*COLOURS)).T.tolist() == [list(row) for row in OPENCV_YCRCB]


def test_ycrcb_is_opencvs_on_the_whole_cube() -> None:
    assert hashlib.sha256(ycrcb(cube(5)).astype(np.uint8).tobytes()).hexdigest() == OPENCV_CUBE


def test_cielab_is_that_of_scikit_image() -> None:
    assert np.stack(cielab(planes(*COLOURS)), axis=1) == pytest.approx(np.array(SKIMAGE_LAB), abs=0.02)


def test_grey_has_no_chroma_and_white_the_full_lightness() -> None:
    lightness, a, b = cielab(planes((0, 0, 0), (119, 119, 119), (255, 255, 255)))
    assert lightness == pytest.approx([0, 50.03, 100], abs=0.01)
    assert np.hypot(a, b).max() < 0.01


def test_the_published_rule_sees_four_of_the_ten_swatches() -> None:
    assert np.flatnonzero(dall_eval_pixels(SWATCHES)).tolist() == [3, 4, 5, 6]


def test_the_rule_in_cielab_sees_all_ten_swatches() -> None:
    assert ita_pixels(SWATCHES).all()


def test_swatches_between_and_around_the_ten_pass_too() -> None:
    between = np.concatenate(
        [np.linspace(first, second, 9) for first, second in itertools.pairwise(MONK_TONES.astype(float))]
    )
    shaded = np.concatenate([between * factor for factor in (0.95, 1.0, 1.03)])
    assert ita_pixels(np.clip(np.rint(shaded), 0, 255).astype(np.uint8).T).mean() > 0.95


BACKGROUNDS = {
    "white": (255, 255, 255), "near white": (250, 250, 248), "light grey": (200, 200, 200), "grey": (128, 128, 128),
    "warm grey": (130, 126, 120), "dark grey": (60, 60, 60), "black": (0, 0, 0), "near black": (12, 11, 10),
    "sky": (135, 206, 235), "deep sky": (70, 130, 200), "sea": (20, 60, 100), "grass": (60, 120, 40),
    "leaf": (34, 139, 34), "olive": (107, 142, 35), "dry grass": (170, 160, 90), "signal red": (220, 20, 20),
    "orange": (240, 140, 30), "lemon": (240, 220, 60), "violet": (120, 40, 160), "pink": (255, 105, 180),
}  # fmt: skip


@pytest.mark.parametrize("name", BACKGROUNDS)
def test_backgrounds_do_not_pass_the_rule_in_cielab(name: str) -> None:
    assert not ita_pixels(planes(BACKGROUNDS[name]))[0]


def test_what_the_colour_alone_cannot_tell_apart_passes() -> None:
    sand_and_wood = planes((210, 180, 140), (150, 100, 60))
    assert ita_pixels(sand_and_wood).all()
    assert dall_eval_pixels(sand_and_wood).all()


def test_typology_angles_fall_along_the_monk_scale() -> None:
    lightness, _, b = cielab(SWATCHES)
    angles = typology_angle(lightness, b)
    assert (np.diff(angles) < 0).all()
    assert angles[[0, -1]] == pytest.approx([83.0, -84.3], abs=0.1)


CHANNEL = st.integers(0, 255)


@given(st.tuples(CHANNEL, CHANNEL, CHANNEL))
def test_the_published_rule_is_its_conditions_one_by_one(colour: tuple[int, int, int]) -> None:
    assert bool(dall_eval_pixels(planes(colour))[0]) == published_rule(*colour)


def test_the_published_rule_holds_at_its_limits() -> None:
    around = [tuple(np.clip(np.array(tone) + step, 0, 255)) for tone in MONK_TONES.tolist() for step in (-8, -3, 2, 9)]
    assert [bool(each) for each in dall_eval_pixels(planes(*around))] == [published_rule(*each) for each in around]
    assert not dall_eval_pixels(planes((95, 60, 40), (96, 81, 40)))[:].any()


@pytest.mark.parametrize("detector", list(DETECTORS))
def test_a_pixel_is_judged_by_itself(detector: str) -> None:
    colours = cube(17)
    together = DETECTORS[detector](colours)  # type: ignore[index]
    order = np.random.default_rng(0).permutation(colours.shape[1])
    assert (DETECTORS[detector](np.ascontiguousarray(colours[:, order])) == together[order]).all()  # type: ignore[index]
    assert 0 < together.mean() < 0.2
