import json
from dataclasses import replace

import pytest

from culturekit.generation.backend import BACKENDS, Failure, ImageRequest, Picture
from culturekit.generation.simulated.scenes.scenes_backend import (
    DIMENSIONS,
    all_named,
    dice,
    foreign_share,
    named_in,
    spoken,
    understood,
    world,
)
from tests.generation.simulated.scenes.scene_worlds import asked_scene

CAPTION = "A Qipao dress beside hand  drums in a bamboo garden, guests toasting in turn; no pandas"


def asked(text: str, country: str | None = "CN") -> ImageRequest:
    return replace(asked_scene(1), text=text, country=country, concept="missed-nuances")


def test_a_text_names_whole_things_in_any_case_each_once() -> None:
    assert named_in(CAPTION) == {
        "background": ("bamboo garden",), "objects": ("hand drums",), "attire": ("qipao dress",),
        "interaction": ("toasting in turn",), "spatial": (),
    }  # fmt: skip
    assert not all_named(named_in("handdrums, bamboo gardens and a qipao"))
    for dimension in DIMENSIONS:
        for token in world().tokens(dimension):
            assert token in named_in(f"See: {token}!")[dimension]


def test_what_is_spoken_is_understood_and_is_no_english() -> None:
    said = spoken(CAPTION)
    assert understood(said) == CAPTION
    assert not all_named(named_in(said))


def test_sets_of_things_are_compared() -> None:
    a, b = frozenset({"samovar", "qipao dress"}), frozenset({"samovar"})
    assert dice(a, b) == pytest.approx(2 / 3)
    assert dice(a, a) == dice(frozenset(), frozenset()) == 1
    assert dice(a, frozenset()) == 0
    assert foreign_share(a, "CN") == 0.5
    assert foreign_share(frozenset(), "CN") == 0


def test_a_caption_is_drawn_as_far_as_it_is_known() -> None:
    full, nothing = (BACKENDS.make(spec) for spec in ("simulated-scenes", "simulated-scenes?knows=0"))
    (picture,), (blank,) = full.generate([asked(CAPTION)]), nothing.generate([asked(CAPTION)])
    assert isinstance(picture, Picture)
    assert isinstance(blank, Picture)
    assert {k: tuple(v) for k, v in json.loads(picture.truth_scene or "")["shown"].items()} == named_in(CAPTION)
    assert not all_named(json.loads(blank.truth_scene or "")["shown"])


@pytest.mark.parametrize("request_", [asked("A caption that names nothing"), asked(CAPTION, None)])
def test_what_cannot_be_drawn_is_said(request_: ImageRequest) -> None:
    (reply,) = BACKENDS.make("simulated-scenes").generate([request_])
    assert isinstance(reply, Failure)
    assert "no such scene" in reply.reason
