"""The names of encoders: options are checked before anything is loaded, and what is not installed is named."""

import sys

import numpy as np
import pytest

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.index.encoder import ENCODERS
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


def test_every_encoder_is_known_by_name() -> None:
    assert {"embedded", "inception", "open_clip", "sentence", "transformers"} <= set(ENCODERS.names())


@pytest.mark.parametrize("name", ["transformers", "sentence"])
def test_options_are_checked_without_loading_anything(name: str) -> None:
    ENCODERS.check(f"{name}:owner/name?device=cuda:1&dtype=bfloat16&batch=8&revision=main")
    with pytest.raises(UsageError, match="Did you mean 'revision'"):
        ENCODERS.check(f"{name}:owner/name?revison=main")
    for wrong in ("dtype=float64", "batch=many", "batch=-1"):
        with pytest.raises(UsageError, match=f"an option of {name} is wrong"):
            ENCODERS.check(f"{name}:owner/name?{wrong}")


@pytest.mark.parametrize(("spec", "package"), [
    ("transformers:x", "torch"), ("transformers:x", "transformers"), ("sentence:x", "sentence_transformers"),
])  # fmt: skip
def test_missing_packages_are_named_as_such(spec: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if package != "torch":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"needs the package {package}.*pip install .*culturekit\[embed\]"):
        ENCODERS.make(spec)
