"""The encoder of letters: equal phrases are equal, those of one thing are near, others are far."""

import numpy as np
import pytest

from culturekit.index.encoders import ENCODERS
from culturekit.index.models.letters_encoder import LettersEncoder


def cosine(one: str, other: str) -> float:
    first, second = LettersEncoder().encode_texts([one, other])
    return float(first @ second)


def test_equal_phrases_are_equal_whatever_stands_beside_them() -> None:
    alone, together = LettersEncoder().encode_texts(["Samovar"]), LettersEncoder().encode_texts(["rug", " samovar "])
    assert np.array_equal(alone[0], together[1])


@pytest.mark.parametrize(("one", "other"), [("samovar", "a samovar"), ("painted mask", "painted masks")])
def test_phrases_of_one_thing_are_near(one: str, other: str) -> None:
    assert cosine(one, other) > 0.6


@pytest.mark.parametrize(("one", "other"), [("samovar", "carpet"), ("hand drums", "small speakers")])
def test_phrases_of_two_things_are_far(one: str, other: str) -> None:
    assert abs(cosine(one, other)) < 0.3


def test_marks_alone_have_a_vector() -> None:
    assert np.allclose(np.linalg.norm(LettersEncoder().encode_texts(["?!", "  "]), axis=1), 1)


def test_the_registry_finds_it() -> None:
    assert ENCODERS.make("letters").identity.name == "letters"
