"""Whose own text is nearest, against a loop."""

import numpy as np

from culturekit.metrics.realism.clip_scores import nearest_own


def test_it_is_what_a_loop_over_cosines_finds() -> None:
    rng = np.random.default_rng(3)
    images, texts = rng.normal(size=(60, 8)), rng.normal(size=(4, 8)) * 7
    own = rng.integers(4, size=60)
    expected = []
    for image, place in zip(images, own, strict=True):
        cosines = [float(image @ text) / float(np.linalg.norm(text)) for text in texts]
        expected.append(all(cosines[place] > other for number, other in enumerate(cosines) if number != place))
    found = nearest_own(images, texts, own)
    assert found.tolist() == expected
    assert 0 < found.sum() < 60


def test_of_two_texts_that_are_as_near_neither_is_nearest() -> None:
    assert nearest_own(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([0])).tolist() == [False]
