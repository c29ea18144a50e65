import hashlib
from itertools import pairwise

import numpy as np
import pytest

from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Numbers, Subject, draw


def numbers(count: int, seed: int = 0) -> Numbers:
    return np.random.default_rng(seed).random((count, DRAWING_NUMBERS))


def difference(one: Pixels, other: Pixels) -> float:
    """Mean absolute difference, in levels of 255."""
    return float(np.abs(one.astype(float) - other).mean())


SUBJECTS = [Subject("Q1", "US"), None, Subject("Q2", "IN"), Subject("Q1", "IN"), None, *[Subject("Q9", "JP")] * 20]


def test_a_picture_is_the_same_whatever_is_drawn_beside_it() -> None:
    given = numbers(len(SUBJECTS))
    together = draw(SUBJECTS, given, size=48, confusability=0.3)
    for number, subject in enumerate(SUBJECTS):
        (alone,) = draw([subject], given[number : number + 1], size=48, confusability=0.3)
        assert np.array_equal(alone, together[number])


def test_looks_are_fixed_for_ever() -> None:
    pictures = draw([Subject("Q42", "NG"), None], numbers(2), size=64)
    digests = [hashlib.sha256(pixels.tobytes()).hexdigest()[:16] for pixels in pictures]
    assert digests == ["9469999d604b7da1", "4158838ea8a88fd7"], (
        "the pictures of simulated-1 have changed; a new look needs a new version"
    )


@pytest.mark.parametrize("size", [16, 64, 200])
def test_pictures_have_the_size_asked_for(size: int) -> None:
    for pixels in draw([Subject("Q1", "US"), None], numbers(2), size=size):
        assert pixels.shape == (size, size, 3)
        assert pixels.dtype == np.uint8
        assert pixels.flags.c_contiguous


def test_a_larger_picture_shows_the_same() -> None:
    small, large = (draw([Subject("Q5", "TR")], numbers(1), size=size)[0] for size in (32, 128))
    shrunk = large.reshape(32, 4, 32, 4, 3).mean(axis=(1, 3))
    assert np.abs(shrunk - small).mean() < 8


def test_artifact_country_and_seed_each_change_the_picture() -> None:
    one, other = numbers(1), numbers(1, seed=1)
    (plain,) = draw([Subject("Q1", "US")], one, size=64)
    (artifact,) = draw([Subject("Q2", "US")], one, size=64)
    (country,) = draw([Subject("Q1", "IN")], one, size=64)
    (pose,) = draw([Subject("Q1", "US")], other, size=64)
    middle, edge = np.s_[24:40, 24:40], np.s_[:, :4]
    assert difference(plain[middle], artifact[middle]) > 20
    assert difference(plain[edge], artifact[edge]) == 0
    assert difference(plain[edge], country[edge]) > 20
    assert difference(plain[middle], country[middle]) == 0
    assert 0 < difference(plain, pose) < difference(plain, artifact) + difference(plain, country)


def test_confusion_brings_pictures_of_two_artifacts_steadily_together() -> None:
    given = np.repeat(numbers(1), 2, axis=0)
    pair = [Subject("Q1", "US"), Subject("Q2", "IN")]
    apart = [
        difference(*draw(pair, given, size=64, confusability=confusability)) for confusability in (0, 0.5, 0.8, 0.95, 1)
    ]
    assert all(more > less for more, less in pairwise(apart))
    assert apart[-1] == 0
