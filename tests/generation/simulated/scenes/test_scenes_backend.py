import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from culturekit.core.errors import UsageError
from culturekit.generation.backend import BACKENDS, Failure, ImageRequest, Picture
from culturekit.generation.simulated.scenes import scenes_backend
from culturekit.generation.simulated.scenes.scenes_backend import DIMENSIONS, read_dial, scene_of, world
from culturekit.kg.countries import countries
from culturekit.metrics.ahead import matching as dimensions
from tests.generation.simulated.scenes.scene_worlds import asked_scene, knowledge


def drawn(spec: str, *requests: ImageRequest) -> list[Picture]:
    return [reply for reply in BACKENDS.make(spec).generate(requests) if isinstance(reply, Picture)]


def truth(picture: Picture) -> dict[str, Any]:
    return json.loads(picture.truth_scene or "{}")  # type: ignore[no-any-return]


def test_the_world_is_the_papers_grid_and_a_token_means_one_thing_in_its_dimension() -> None:
    groups = {iso: known.groups["cultivate"] for iso, known in countries().items() if "cultivate" in known.groups}
    assert {iso: known.group for iso, known in world().countries.items()} == groups
    assert len(world().countries) * len(world().activities) == 576
    assert len(world().categories) == 9
    assert DIMENSIONS == dimensions.DIMENSIONS
    for dimension in DIMENSIONS:
        assert max(Counter(world().tokens(dimension)).values()) == 1
    stereotypes = Counter(token for iso in world().countries for token in world().stereotypes(iso))
    assert max(stereotypes.values()) == 1
    assert max(len(tokens) for tokens in world().expected("games", "marbles", "IR").values()) == 6


def test_a_model_that_knows_everything_shows_just_that() -> None:
    (picture,) = drawn("simulated-scenes", asked_scene(1))
    expected = world().expected("dances", "circle dance", "IR")
    assert truth(picture) == {
        "country": "IR", "category": "dances", "activity": "circle dance", "stereotypes": {},
        "shown": {dimension: [token.text for token in tokens] for dimension, tokens in expected.items()},
    }  # fmt: skip
    assert (picture.truth_country, picture.truth_artifact_id, picture.pixels.shape) == ("IR", None, (192, 192, 3))


def test_a_picture_depends_on_its_request_alone() -> None:
    spec = "simulated-scenes?knows=0.6&invents=0.2&exaggerates=0.3&size=128"
    requests = [asked_scene(seed, country=country) for seed, country in enumerate(("IR", "FR", "IR"))]
    together, backwards = drawn(spec, *requests), drawn(spec, *requests[::-1])[::-1]
    for one, other in zip(together, backwards, strict=True):
        assert one.truth_scene == other.truth_scene
        assert np.array_equal(one.pixels, other.pixels)


def shares(how: dict[str, str], country: str) -> tuple[float, float, float]:
    """Measure over many scenes how much is shown of what is expected, how much else, and how strongly stereotypes."""
    known, asked, foreign, shown, strength = 0, 0, 0, 0, 0.0
    for seed in range(200):
        scene = scene_of("dances", "sword dance", country, knowledge(**how), prompt="p", seed=seed)
        for dimension, tokens in world().expected("dances", "sword dance", country).items():
            theirs = {token.text for token in tokens}
            known, asked = known + len(theirs & set(scene.shown[dimension])), asked + len(theirs)
            foreign, shown = foreign + len(set(scene.shown[dimension]) - theirs), shown + len(scene.shown[dimension])
        strength += len(scene.stereotypes) / 5 / 200
    return known / asked, foreign / shown, strength


@pytest.mark.parametrize(("country", "knows", "exaggerates"), [("FR", 0.8, 0.1), ("BR", 0.6, 0.5), ("IR", 0.3, 0.5)])
def test_dials_are_kept_by_country(country: str, knows: float, exaggerates: float) -> None:
    how = {"knows": "0.8,GS:0.6,IR:0.3", "exaggerates": "0.1,GS:0.5", "invents": "0.25"}
    known, foreign, strength = shares(how, country)
    assert known == pytest.approx(knows * 0.75, abs=0.02)
    assert foreign == pytest.approx(0.25, abs=0.02)
    assert strength == pytest.approx(exaggerates, abs=0.05)


def test_a_model_may_vary_little_show_another_country_or_know_no_such_activity() -> None:
    alike = drawn("simulated-scenes?knows=0.5&varies=0", *map(asked_scene, range(4)))
    assert len({picture.truth_scene for picture in alike}) == 1
    assert len({picture.pixels.tobytes() for picture in alike}) == 4
    pictures = drawn("simulated-scenes?elsewhere=1", *map(asked_scene, range(4)))
    assert "IR" not in {picture.truth_country for picture in pictures}
    (picture,) = drawn("simulated-scenes", asked_scene(1, activity="moonwalk"))
    assert truth(picture)["activity"] is None
    assert truth(picture)["shown"]["objects"][:2] == ["hand drums", "small speakers"]


@pytest.mark.parametrize(("asked", "reason"), [
    (replace(asked_scene(1), concept="cuisine"), "the simulated world has no such scene: category 'cuisine'"),
    (replace(asked_scene(1), country="SE"), "country 'SE'"),
    (replace(asked_scene(1), concept="missed-nuances", text="A caption that names nothing"), "no such scene"),
    (replace(asked_scene(1), concept="missed-nuances", text="A qipao dress", country=None), "no such scene"),
    (replace(asked_scene(1), width=100, height=100), "scenes are squares of 128 to 1024 pixels, in steps of 8"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_said(asked: ImageRequest, reason: str) -> None:
    (reply,) = BACKENDS.make("simulated-scenes").generate([asked])
    assert isinstance(reply, Failure)
    assert reason in reply.reason


@pytest.mark.parametrize("text", ["1.1", "some", "0.5,SE:0.2", "0.5,GS:0.1,GS:0.2", "0.5,GS"])
def test_a_dial_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="knows"):
        read_dial("knows", text)


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
