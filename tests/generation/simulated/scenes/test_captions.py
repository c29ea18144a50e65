import json
from dataclasses import replace

import pytest

from culturekit.generation.backend import BACKENDS, ImageRequest, Picture
from culturekit.generation.simulated.scenes import scenes_backend
from tests.generation.simulated.scenes.scene_worlds import asked_scene

CAPTION = "A Qipao dress beside hand  drums in a bamboo garden, guests toasting in turn; no pandas"


def asked(text: str, country: str | None = "CN") -> ImageRequest:
    return replace(asked_scene(1), text=text, country=country, concept="missed-nuances")


def test_a_text_names_whole_things_in_any_case_each_once() -> None:
    assert scenes_backend.named_in(CAPTION) == {
        "background": ("bamboo garden",), "objects": ("hand drums",), "attire": ("qipao dress",),
        "interaction": ("toasting in turn",), "spatial": (),
    }  # fmt: skip
    assert not scenes_backend.all_named(scenes_backend.named_in("handdrums, bamboo gardens and a qipao"))
    for dimension in scenes_backend.DIMENSIONS:
        for token in scenes_backend.world().tokens(dimension):
            assert token in scenes_backend.named_in(f"See: {token}!")[dimension]


def test_what_is_spoken_is_understood_and_is_no_english() -> None:
    words = scenes_backend.spoken(CAPTION)
    assert scenes_backend.understood(words) == CAPTION
    assert not scenes_backend.all_named(scenes_backend.named_in(words))


def test_sets_of_things_are_compared() -> None:
    a, b = frozenset({"samovar", "qipao dress"}), frozenset({"samovar"})
    assert scenes_backend.dice(a, b) == pytest.approx(2 / 3)
    assert scenes_backend.dice(a, a) == scenes_backend.dice(frozenset(), frozenset()) == 1
    assert scenes_backend.dice(a, frozenset()) == 0
    assert scenes_backend.foreign_share(a, "CN") == 0.5
    assert scenes_backend.foreign_share(frozenset(), "CN") == 0


def test_a_caption_is_drawn_as_far_as_it_is_known() -> None:
    full, nothing = (BACKENDS.make(spec) for spec in ("simulated-scenes", "simulated-scenes?knows=0"))
    (picture,), (blank,) = full.generate([asked(CAPTION)]), nothing.generate([asked(CAPTION)])
    assert isinstance(picture, Picture)
    assert isinstance(blank, Picture)
    assert {k: tuple(v) for k, v in json.loads(picture.truth_scene or "")["shown"].items()} == scenes_backend.named_in(
        CAPTION
    )
    assert not scenes_backend.all_named(json.loads(blank.truth_scene or "")["shown"])
