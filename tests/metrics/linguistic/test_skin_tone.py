"""Skin tones of pictures, the spread of tones, and shares of tones put right by people."""

import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t

from culturekit.metrics import (
    MONK_TONES,
    CorrectedTones,
    SkinTone,
    Spread,
    corrected_tones,
    nearest_tone,
    skin_tone,
    tone_histogram,
    tone_spread,
    tone_spread_interval,
)
from culturekit.metrics.linguistic import picture_tones
from culturekit.metrics.linguistic.picture_tones import (
    DETECTORS,
    TONE_WARNINGS,
    cielab,
    dall_eval_pixels,
    ita_pixels,
    typology_angle,
    ycrcb,
)
from culturekit.metrics.linguistic.tone_histograms import Limits, SpreadKind

SKY = (135, 206, 235)


def plain(colour: tuple[int, ...], *, height: int = 4, width: int = 5) -> np.ndarray:
    return np.full((height, width, len(colour)), colour, np.uint8)


@pytest.mark.parametrize("tone", range(1, 11))
def test_a_picture_of_one_swatch_has_its_tone(tone: int) -> None:
    swatch = tuple(MONK_TONES[tone - 1].tolist())
    assert skin_tone(plain(swatch)) == SkinTone(tone, swatch, 1.0)
    published = skin_tone(plain(swatch), detector="dall-eval")
    assert (published is None) == (tone not in (4, 5, 6, 7))
    assert "only 4 to 7 pass it" in TONE_WARNINGS["dall-eval"]
    assert "ita" not in TONE_WARNINGS


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


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (200, 150, 3), dtype=np.uint8)
    whole = skin_tone(picture)
    monkeypatch.setattr(picture_tones, "BLOCK", 777)
    assert skin_tone(picture) == whole
    assert whole is not None


def test_the_nearest_tone_is_by_the_sum_of_differences_and_the_first_of_equals() -> None:
    assert [nearest_tone(tone) for tone in MONK_TONES] == list(range(1, 11))
    assert nearest_tone((255, 255, 255)) == 1
    assert nearest_tone((0, 0, 0)) == 10
    halfway = (MONK_TONES[0].astype(float) + MONK_TONES[1]) / 2
    assert nearest_tone(halfway) == 1
    for colour in np.random.default_rng(3).integers(0, 256, (50, 3)).tolist():
        distances = [sum(abs(x - y) for x, y in zip(colour, tone, strict=True)) for tone in MONK_TONES.tolist()]
        assert nearest_tone(colour) == distances.index(min(distances)) + 1


def test_a_histogram_counts_pictures_and_sums_to_one() -> None:
    histogram = tone_histogram([1, 1, 3, 10])
    assert histogram.tolist() == [0.5, 0, 0.25, 0, 0, 0, 0, 0, 0, 0.25]


def test_one_tone_only_is_0_3_and_0_18_which_the_paper_prints_swapped() -> None:
    one_hot = np.eye(10)[4]
    spread = tone_spread(one_hot)
    assert (spread.std, spread.mad) == pytest.approx((0.3, 0.18))


@given(st.lists(st.integers(1, 10), min_size=1, max_size=60))
def test_spread_is_numpys_and_does_not_know_the_tones(tones: list[int]) -> None:
    histogram = tone_histogram(tones)
    spread = tone_spread(histogram)
    assert spread.std == pytest.approx(np.std(histogram, ddof=0), abs=1e-15)
    assert spread.mad == pytest.approx(np.mean(np.abs(histogram - histogram.mean())), abs=1e-15)
    assert tone_spread(histogram[::-1]) == spread == Spread(spread.std, spread.mad)
    assert 0 <= spread.mad <= spread.std + 1e-12 <= 0.3 + 1e-9


SWATCHES = MONK_TONES.T
# cv2.cvtColor(..., cv2.COLOR_RGB2YCrCb) and skimage.color.rgb2lab of the same twelve colours.
COLOURS = [
    (241, 160, 175), (229, 148, 198), (213, 57, 14), (76, 72, 223), (233, 1, 127), (210, 33, 204),
    (30, 119, 209), (77, 87, 71), (184, 65, 253), (113, 122, 129), (149, 141, 130), (254, 206, 202),
]  # fmt: skip
SKIMAGE_LAB = [
    (74.152, 32.035, 4.686), (70.814, 37.591, -13.101), (48.397, 58.983, 56.626), (40.405, 47.223, -76.207),
    (50.55, 79.7, -2.165), (50.864, 80.2, -47.589), (49.582, 7.794, -53.418), (35.692, -7.348, 7.998),
    (53.018, 75.262, -72.042), (50.704, -1.824, -4.959), (59.022, 0.988, 6.933), (86.741, 16.303, 8.398),
]  # fmt: skip
# SHA-256 of OpenCV's Y, Cr, Cb planes of every colour whose channels are multiples of five
OPENCV_CUBE = "a7e5f44613f17ecb0ff63e63dad6b16bb14f8c5e828a14ecb2838d46496bd372"


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


def test_ycrcb_is_opencvs_on_the_whole_cube() -> None:
    assert hashlib.sha256(ycrcb(cube(5)).astype(np.uint8).tobytes()).hexdigest() == OPENCV_CUBE


def test_cielab_is_that_of_scikit_image() -> None:
    assert np.stack(cielab(planes(*COLOURS)), axis=1) == pytest.approx(np.array(SKIMAGE_LAB), abs=0.02)


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


MILD = np.array([0.2, 0.18, 0.15, 0.12, 0.1, 0.08, 0.07, 0.05, 0.03, 0.02])


def drawn(
    rng: np.random.Generator, *, prompts: int = 30, per: int = 4, truth: np.ndarray = MILD
) -> tuple[np.ndarray, np.ndarray]:
    own = rng.dirichlet(truth * 8, size=prompts)
    tones = np.concatenate([rng.choice(10, size=per, p=each) for each in own])
    return np.eye(10)[tones], np.repeat(np.arange(prompts), per)


@pytest.mark.parametrize("kind", ["std", "mad"])
def test_it_is_the_jackknife_over_prompts(kind: SpreadKind) -> None:
    weights, prompts = drawn(np.random.default_rng(0), prompts=12)
    value = getattr(tone_spread(weights.mean(axis=0)), kind)
    without = np.array([getattr(tone_spread(weights[prompts != p].mean(axis=0)), kind) for p in range(12)])
    margin = t.ppf(0.975, 11) * math.sqrt(11 / 12 * ((without - without.mean()) ** 2).sum())
    corrected = 12 * value - 11 * without.mean()
    found = tone_spread_interval(weights, prompts, kind=kind)
    assert found.value == pytest.approx(value)
    assert found.low == pytest.approx(max(0, min(value, corrected) - margin))
    assert found.high == pytest.approx(max(value, corrected) + margin)


@pytest.mark.parametrize(("kind", "truth"), [("std", np.std(MILD)), ("mad", np.abs(MILD - 0.1).mean())])
def test_it_holds_the_truth_as_often_as_it_says(kind: SpreadKind, truth: float) -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        found = tone_spread_interval(*drawn(rng), kind=kind)
        held += found.low <= truth <= found.high
    assert 0.91 <= held / 300 <= 1.0


def test_order_does_not_matter_and_one_prompt_says_nothing() -> None:
    weights, prompts = drawn(np.random.default_rng(2))
    order = np.random.default_rng(3).permutation(len(prompts))
    found = tone_spread_interval(weights, prompts, kind="std")
    again = tone_spread_interval(weights[order], prompts[order], kind="std")
    assert (again.low, again.value, again.high) == pytest.approx((found.low, found.value, found.high), abs=1e-12)
    assert math.isnan(tone_spread_interval(weights, np.zeros(len(prompts)), kind="mad").low)
    assert math.isfinite(tone_spread_interval(weights, np.arange(len(prompts)) % 2, kind="mad").low)
    same = tone_spread_interval(np.eye(10)[[4] * 6], np.arange(6), kind="std")
    assert (same.low, same.value, same.high) == pytest.approx((0.3, 0.3, 0.3))


Values = NDArray[np.float64]


def world(seed: int, n: int = 300, asked: int = 150, right: float = 0.5) -> tuple[Values, Values, Values]:
    """A rule that is right so often and else says tone 5, people who are right: judged, people, the true shares."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 11, n)
    found = np.where(rng.random(n) < right, true, 5)
    rows = np.vstack([np.zeros(10), np.eye(10)])
    people = np.full((n, 10), np.nan)
    drawn = rng.permutation(n)[:asked]
    people[drawn] = rows[true[drawn]]
    return rows[found], people, rows[true].sum(axis=0) / (true > 0).sum()


def walked(judged: Values, people: Values) -> list[float]:
    """Say the same in loops."""
    asked = [i for i in range(len(judged)) if not np.isnan(people[i]).any()]
    said = [sum(people[i][t] for i in asked) / len(asked) for t in range(10)]
    found = [sum(judged[i][t] for i in asked) / len(asked) for t in range(10)]
    together = sum((people[i][t] - said[t]) * (judged[i][t] - found[t]) for i in asked for t in range(10))
    trust = min(max(together / sum((judged[i][t] - found[t]) ** 2 for i in asked for t in range(10)), 0.0), 1.0)
    everywhere = [sum(row[t] for row in judged) / len(judged) for t in range(10)]
    totals = [said[t] + trust * (everywhere[t] - found[t]) for t in range(10)]
    return [min(max(total / sum(totals), 0.0), 1.0) for total in totals]


def values(found: CorrectedTones) -> list[float]:
    return [share.value for share in found.shares]


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_a_plain_walk(seed: int) -> None:
    judged, people, _ = world(seed, n=120, asked=60)
    assert values(corrected_tones(judged, people)) == pytest.approx(walked(judged, people), abs=1e-12)


def test_limits_hold_the_shares_as_often_as_they_say() -> None:
    """Second answers that never differ leave open what the draw leaves open."""
    held = []
    for seed in range(60):
        judged, people, true = world(seed)
        found = corrected_tones(judged, people, answers=np.full(300, 3))
        held += [share.low <= one <= share.high for share, one in zip(found.shares, true, strict=True)]
    assert 0.92 <= np.mean(held) <= 0.98


def test_where_people_saw_everything_the_rule_does_not_matter() -> None:
    """What is left open then is how people err: not at all where second answers never differ."""
    judged, people, true = world(6, asked=300)
    alone, held = (corrected_tones(judged, people, answers=np.full(300, count)) for count in (1, 3))
    assert values(alone) == values(held) == pytest.approx(true, abs=1e-12)
    assert values(corrected_tones(np.zeros_like(judged), people)) == pytest.approx(true, abs=1e-12)
    for share in alone.shares:
        assert 0.001 < share.value - share.low < 0.01
        assert 0.001 < share.high - share.value < 0.01
    assert [share.low for share in held.shares] == pytest.approx([share.high for share in held.shares], abs=1e-3)
    assert (alone.held, held.held) == (False, True)
    assert held.std.low == pytest.approx(held.std.high, abs=1e-3)
    assert held.std.value == pytest.approx(true.std())
    assert held.mad.value == pytest.approx(np.abs(true - 0.1).mean())


def test_a_tone_that_only_errors_name_may_not_be_there() -> None:
    """One name in a hundred beside a frequent tone; a second answer that agrees, or many names, tell otherwise."""
    people = np.tile(np.eye(10)[[3, 4]], (60, 1))
    people[0] = np.eye(10)[5]
    assert corrected_tones(people, people).shares[5].low == 0
    people[2] = people[4] = people[6] = people[8] = people[10] = people[12] = people[14] = np.eye(10)[5]
    assert corrected_tones(people, people).shares[5].low > 0
    two = np.tile(np.eye(10)[[3, 4]], (60, 1))
    two[0] = (np.eye(10)[5] + np.eye(10)[4]) / 2
    assert corrected_tones(two, two, answers=np.full(120, 2)).shares[5].low == 0
    two[2] = two[4] = two[6] = np.eye(10)[5]
    assert corrected_tones(two, two, answers=np.full(120, 2)).shares[5].low > 0


def test_a_share_next_to_nothing_has_no_limit_next_to_all() -> None:
    """What the rule sees and people do not may leave a share of 1e-17 that scatters."""
    judged = np.tile(np.eye(10)[[3, 8, 4, 4]], (100, 1))
    people = judged.copy()
    people[:100:4] = np.eye(10)[8]
    people[1:100:4] = np.eye(10)[3]
    people[100:] = np.nan
    for shift in np.linspace(-1e-3, 1e-3, 9):
        share = Limits(1.98, 150, 400).around(max(0.0, shift), 1e-4, 0.0, 0.0, 1.0)
        assert share.high < 0.05
    assert max(share.high for share in corrected_tones(judged, people).shares) < 0.8


def test_limits_reach_as_far_as_second_answers_differ() -> None:
    judged, people, _ = world(8)
    rng, apart = np.random.default_rng(0), people.copy()
    for row in np.flatnonzero(~np.isnan(people[:, 0]))[:60]:
        apart[row] = (people[row] + np.eye(10)[rng.integers(10)]) / 2
    sure, doubtful = (corrected_tones(judged, said, answers=np.full(300, 2)) for said in (people, apart))
    assert sum(s.high - s.low for s in doubtful.shares) > 1.25 * sum(s.high - s.low for s in sure.shares)
    assert doubtful.std.high - doubtful.std.low > sure.std.high - sure.std.low


def test_a_rule_that_is_right_is_trusted_and_one_of_noise_is_not() -> None:
    assert corrected_tones(*world(7, right=1.0)[:2]).trust == pytest.approx(1)
    judged, people, _ = world(7)
    noise = np.eye(10)[np.random.default_rng(0).integers(0, 10, len(judged))]
    assert corrected_tones(noise, people).trust < 0.15
    widths = [
        sum(s.high - s.low for s in corrected_tones(rule, people).shares) for rule in (world(7, right=1.0)[0], noise)
    ]
    assert widths[0] < 0.6 * widths[1]


def test_a_tone_that_nobody_met_may_not_be_there() -> None:
    """The rule sees it in many pictures."""
    judged = np.tile(np.eye(10)[[4, 8]], (100, 1))
    people = np.full((200, 10), np.nan)
    people[:100] = np.tile(np.eye(10)[[4, 3]], (50, 1))
    share = corrected_tones(judged, people).shares[8]
    assert share.low == 0
    assert 0.005 < share.high < 0.1
