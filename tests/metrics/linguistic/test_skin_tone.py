"""Skin tones of pictures, their histogram and its spread."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from culturekit.core.errors import UsageError
from culturekit.metrics import MONK_TONES, SkinTone, Spread, nearest_tone, skin_tone, tone_histogram, tone_spread
from culturekit.metrics.linguistic import picture_tones
from culturekit.metrics.linguistic.picture_tones import DETECTORS, TONE_WARNINGS

SKY = (135, 206, 235)


def plain(colour: tuple[int, ...], *, height: int = 4, width: int = 5) -> np.ndarray:
    return np.full((height, width, len(colour)), colour, np.uint8)


@pytest.mark.parametrize("tone", range(1, 11))
def test_a_picture_of_one_swatch_has_its_tone(tone: int) -> None:
    swatch = tuple(MONK_TONES[tone - 1].tolist())
    assert skin_tone(plain(swatch)) == SkinTone(tone, swatch, 1.0)
    published = skin_tone(plain(swatch), detector="dall-eval")
    assert (published is None) == (tone not in (4, 5, 6, 7))


def test_only_the_pixels_that_pass_are_averaged() -> None:
    picture = plain(SKY)
    picture[0, :2] = (160, 126, 86)
    picture[1, 0] = (130, 92, 67)
    for detector in DETECTORS:
        found = skin_tone(picture, detector=detector)
        assert found is not None
        assert found.rgb == pytest.approx((150, 344 / 3, 239 / 3))
        assert found.index == 6
        assert found.share == pytest.approx(3 / 20)


@pytest.mark.parametrize("colour", [(255, 255, 255), (0, 0, 0), (128, 128, 128), SKY])
def test_without_skin_there_is_no_tone(colour: tuple[int, ...]) -> None:
    assert skin_tone(plain(colour)) is None
    assert skin_tone(plain(colour), detector="dall-eval") is None


def test_transparent_pixels_do_not_count_and_stay_in_the_share() -> None:
    picture = plain((160, 126, 86, 255))
    picture[:2, :, 3] = 15
    picture[0, 0, 3] = 16
    found = skin_tone(picture)
    assert found is not None
    assert found.share == pytest.approx(11 / 20)
    assert skin_tone(plain((160, 126, 86, 15))) is None


def test_the_warning_names_the_swatches_that_the_published_rule_passes() -> None:
    passing = [tone for tone in range(1, 11) if skin_tone(plain(tuple(MONK_TONES[tone - 1])), detector="dall-eval")]
    assert passing == [4, 5, 6, 7]
    assert "only 4 to 7 pass it" in TONE_WARNINGS["dall-eval"]
    assert "ita" not in TONE_WARNINGS


@settings(max_examples=40, deadline=None)
@given(arrays(np.uint8, (7, 6, 3)), st.sampled_from(sorted(DETECTORS)))
def test_the_order_of_pixels_does_not_matter(picture: np.ndarray, detector: Any) -> None:
    shuffled = np.random.default_rng(0).permutation(picture.reshape(-1, 3)).reshape(6, 7, 3)
    assert skin_tone(shuffled, detector=detector) == skin_tone(picture, detector=detector)
    assert skin_tone(picture.transpose(1, 0, 2), detector=detector) == skin_tone(picture, detector=detector)
    twice = np.repeat(picture, 2, axis=0)
    assert skin_tone(twice, detector=detector) == skin_tone(picture, detector=detector)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (200, 150, 3), dtype=np.uint8)
    whole = skin_tone(picture)
    monkeypatch.setattr(picture_tones, "BLOCK", 777)
    assert skin_tone(picture) == whole
    assert whole is not None


WRONG = [
    (np.zeros((2, 2), np.uint8), "uint8 (2, 2)"),
    (np.zeros((2, 2, 3)), "float64 (2, 2, 3)"),
    (np.zeros((2, 2, 2), np.uint8), "uint8 (2, 2, 2)"),
    (np.zeros((0, 2, 3), np.uint8), "uint8 (0, 2, 3)"),
]


@pytest.mark.parametrize(("picture", "found"), WRONG)
def test_a_picture_of_another_shape_is_refused(picture: np.ndarray, found: str) -> None:
    with pytest.raises(UsageError, match="image must be uint8") as caught:
        skin_tone(picture)
    assert found in str(caught.value)


def test_an_unknown_detector_is_refused() -> None:
    with pytest.raises(UsageError, match="detector must be 'ita' or 'dall-eval'"):
        skin_tone(plain(SKY), detector="hsv")  # type: ignore[arg-type]


def calls_of(picture: np.ndarray) -> int:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        skin_tone(picture)
    finally:
        sys.setprofile(None)
    return calls


def test_a_megapixel_takes_a_few_steps_a_row_and_none_a_pixel() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    skin_tone(picture)
    assert calls_of(picture) < 10 * len(picture)


def test_the_nearest_tone_is_by_the_sum_of_differences_and_the_first_of_equals() -> None:
    assert [nearest_tone(tone) for tone in MONK_TONES] == list(range(1, 11))
    assert nearest_tone((255, 255, 255)) == 1
    assert nearest_tone((0, 0, 0)) == 10
    halfway = (MONK_TONES[0].astype(float) + MONK_TONES[1]) / 2
    assert nearest_tone(halfway) == 1
    for colour in np.random.default_rng(3).integers(0, 256, (50, 3)).tolist():
        distances = [sum(abs(x - y) for x, y in zip(colour, tone, strict=True)) for tone in MONK_TONES.tolist()]
        assert nearest_tone(colour) == distances.index(min(distances)) + 1
    with pytest.raises(UsageError, match="rgb must be three numbers"):
        nearest_tone((1, 2, 300))


def test_a_histogram_counts_pictures_and_sums_to_one() -> None:
    histogram = tone_histogram([1, 1, 3, 10])
    assert histogram.tolist() == [0.5, 0, 0.25, 0, 0, 0, 0, 0, 0, 0.25]
    reference = np.histogram([1, 1, 3, 10], bins=np.arange(0.5, 11))[0] / 4
    assert (histogram == reference).all()
    for wrong in ([], [0], [11], [1.5]):
        with pytest.raises(UsageError, match="indices must be"):
            tone_histogram(wrong)  # type: ignore[arg-type]


def test_one_tone_only_is_0_3_and_0_18_which_the_paper_prints_swapped() -> None:
    one_hot = np.eye(10)[4]
    spread = tone_spread(one_hot)
    assert (spread.std, spread.mad) == pytest.approx((0.3, 0.18))
    printed = {"MAD": 0.3, "STD": 0.18}
    assert (printed["MAD"], printed["STD"]) == pytest.approx((spread.std, spread.mad))


PRINTED = {
    "minDALL-E": [(0.1268, 0.1509), (0.1307, 0.1904), (0.1302, 0.1877), (0.1259, 0.1872)],
    "Stable Diffusion": [(0.1433, 0.2087), (0.1742, 0.2531), (0.1562, 0.2167), (0.1808, 0.2614)],
    "Midjourney": [(0.1174, 0.1408), (0.1653, 0.2139), (0.1196, 0.1499), (0.1642, 0.2201)],
}
"""Table 2 of the paper: (MAD, STD) for SAE and AAE by machine, then by people."""


def test_one_printed_mad_is_more_than_ten_shares_can_have() -> None:
    most = tone_spread(np.eye(10)[0])
    beyond = [mad for pairs in PRINTED.values() for mad, _ in pairs if mad > most.mad + 5e-5]
    assert beyond == [0.1808], "Stable Diffusion, AAE, by people"
    assert all(mad < std <= most.std for pairs in PRINTED.values() for mad, std in pairs)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=60))
def test_spread_is_numpys_and_does_not_know_the_tones(tones: list[int]) -> None:
    histogram = tone_histogram(tones)
    spread = tone_spread(histogram)
    assert spread.std == pytest.approx(np.std(histogram, ddof=0), abs=1e-15)
    assert spread.mad == pytest.approx(np.mean(np.abs(histogram - histogram.mean())), abs=1e-15)
    assert tone_spread(histogram[::-1]) == spread
    assert 0 <= spread.mad <= spread.std + 1e-12 <= 0.3 + 1e-9


def test_an_even_histogram_has_no_spread() -> None:
    assert tone_spread(np.full(10, 0.1)) == Spread(0.0, 0.0)


@pytest.mark.parametrize("wrong", [[0.5, 0.5], [0.2] * 10, [1.5, -0.5] + [0.0] * 8, [float("nan")] * 10])
def test_what_is_no_histogram_is_refused(wrong: list[float]) -> None:
    with pytest.raises(UsageError, match="histogram"):
        tone_spread(wrong)
