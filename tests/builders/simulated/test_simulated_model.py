"""Simulated model and encoder: right where their dials are at 0, and as wrong as they say."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from culturekit.builders.judging.image_judge import probability_of_yes, vqa_request
from culturekit.builders.judging.scene_judge import Descriptors, Rating
from culturekit.builders.simulated.simulated_encoder import SimulatedEncoder, read_scene
from culturekit.core.errors import UsageError
from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.scenes.scenes_backend import (
    DIMENSIONS,
    Scene,
    draw_scene,
    named_in,
    scene_of,
    spoken,
    world,
)
from culturekit.index.encoder import ENCODERS
from culturekit.llm.client import FreeClient, Image, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.engine import ask_free
from culturekit.llm.rows import TokenListing
from tests.generation.simulated.scenes.scene_worlds import knowledge, some_scenes

PAGE = """Greetings matter. Many people know the Circle Dance from weddings. Nobody plays marbles here.
Sword dances are for feasts!"""


def model(spec: str) -> FreeClient:
    made = CLIENTS.make(spec)
    assert isinstance(made, FreeClient)
    return made


def said(spec: str, task: str, *, image: Image | None = None, **data: Any) -> dict[str, Any]:
    request = Request(task, "", {"id": "x", **data}, TokenListing, images=(image,) if image else ())
    return msgspec.json.decode(model(spec).ask(request).text)  # type: ignore[no-any-return]


def scenes(count: int, country: str = "IR", **dials: str) -> Iterator[tuple[Scene, Image]]:
    for seed in range(count):
        scene = scene_of("dances", "mask dance", country, knowledge(**dials), prompt="p", seed=seed)
        yield scene, image_of(draw_scene(scene, size=128, seed=seed))


def test_activities_are_found_with_the_sentence_that_names_them() -> None:
    asked: dict[str, Any] = {"country": "Iran", "text": PAGE, "categories": ["dances", "games"], "at_most": 20}
    found = said("simulated", "activities.extract", **asked)["activities"]
    assert [(one["name"], one["quote"]) for one in found] == [
        ("Circle Dance", "Many people know the Circle Dance from weddings."),
        ("Sword dances", "Sword dances are for feasts!"),
        ("marbles", "Nobody plays marbles here."),
    ]
    assert said("simulated?omits=1", "activities.extract", **asked)["activities"] == []
    invented = said("simulated?invents=1", "activities.extract", **asked)["activities"]
    assert {one["name"] for one in invented if one["quote"] not in PAGE} >= {"wrestling", "mask dance"}
    assert len(said("simulated", "activities.extract", **{**asked, "at_most": 1})["activities"]) == 1


PROPOSED: dict[str, Any] = {
    "activity": "mask dance", "category": "dances", "country": "Iran", "dimension": "objects", "at_most": 10
}  # fmt: skip
KNOWN = ["painted masks", "hand drums", "small speakers", "samovar", "tea glasses on saucers", "pomegranate bowl"]


def test_a_proposer_says_what_it_knows() -> None:
    rows = said("simulated", "descriptors.propose", **PROPOSED)["descriptors"]
    assert [row["token"] for row in rows] == KNOWN
    assert rows[0] == {"token": "painted masks", "style": "neutral", "necessity": "necessary"}
    assert len(said("simulated?omits=0.5", "descriptors.propose", **PROPOSED)["descriptors"]) < 6
    wrong = said("simulated?invents=1", "descriptors.propose", **PROPOSED)["descriptors"]
    assert {row["token"] for row in wrong} - set(KNOWN) <= set(world().foreign("objects", "IR"))
    assert len(wrong) > 6
    assert said("simulated", "descriptors.propose", **{**PROPOSED, "country": "Utopia"})["descriptors"] == []
    first, second = (said(f"simulated:{name}?omits=0.5", "descriptors.propose", **PROPOSED) for name in ("a", "b"))
    assert first != second


def test_a_refiner_keeps_what_belongs_and_says_why_the_rest_goes() -> None:
    tokens = ["samovar", "A samovar", "porron jug", "soft dance shoes", "painted masks", "hand drums"]
    candidates = [{"number": str(place), "token": token} for place, token in enumerate(tokens, start=1)]
    asked: dict[str, Any] = {**PROPOSED, "at_most": 2, "candidates": candidates}
    assert said("simulated", "descriptors.refine", **asked) == {
        "id": "x",
        "kept": [{"number": "1", "merges": ["2"]}, {"number": "5", "merges": []}],
        "left_out": [
            {"number": "3", "reason": "wrong"},
            {"number": "4", "reason": "other dimension"},
            {"number": "6", "reason": "too many"},
        ],
    }
    lenient = said("simulated?lenient=1", "descriptors.refine", **{**asked, "at_most": 10})
    assert [kept["number"] for kept in lenient["kept"]] == ["1", "3", "4", "5", "6"]


def test_stereotypes_are_those_of_the_country() -> None:
    asked: dict[str, Any] = {"country": "France", "at_most": 15}
    assert said("simulated", "stereotypes.propose", **asked)["stereotypes"] == list(world().stereotypes("FR"))
    assert len(said("simulated?invents=1", "stereotypes.propose", **asked)["stereotypes"]) > 6


def test_a_judge_without_errors_says_what_is_shown() -> None:
    for scene, image in scenes(4, knows="0.6", invents="0.2", exaggerates="0.5"):
        for dimension in DIMENSIONS:
            answer = said("simulated?halo=0", "image.extract", image=image, dimension=dimension)
            assert msgspec.convert(answer, Descriptors).phrases == scene.shown[dimension]


def share_seen(spec: str, *, there: bool, country: str = "IR", **dials: str) -> float:
    """Say how much a judge names of what belongs into pictures, and is there or is not."""
    hits, asked = 0, 0
    for scene, image in scenes(12, country, **dials):
        for dimension, tokens in world().expected("dances", "mask dance", country).items():
            answer = said(spec, "image.extract", image=image, dimension=dimension)["descriptors"].split(", ")
            about = [token.text for token in tokens if (token.text in scene.shown[dimension]) == there]
            hits, asked = hits + len(set(about) & set(answer)), asked + len(about)
    return hits / asked


def test_a_judge_misses_more_in_the_countries_that_it_is_told_to() -> None:
    spec = "simulated?omits=0.1,GS:0.4,IR:0.7"
    for country, omits in (("FR", 0.1), ("BR", 0.4), ("IR", 0.7)):
        assert 1 - share_seen(spec, there=True, country=country, knows="0.8") == pytest.approx(omits, abs=0.07)


def test_a_judge_believes_more_of_a_picture_full_of_stereotypes() -> None:
    spec = "simulated?lenient=0.1,GN:0.3&halo=0.6"
    assert share_seen(spec, there=False, knows="0.4") == pytest.approx(0.1, abs=0.06)
    assert share_seen(spec, there=False, country="FR", knows="0.4") == pytest.approx(0.3, abs=0.06)
    assert share_seen(spec, there=False, knows="0.4", exaggerates="1") == pytest.approx(0.7, abs=0.06)


def rating(criterion: str, spec: str = "simulated", country: str = "Iran", **dials: str) -> float:
    prompt = "A photorealistic photo of mask dance in Iran."
    asked: dict[str, Any] = {"criterion": criterion, "prompt": prompt, "country": country}
    answers = [said(spec, "image.likert", image=image, **asked) for _, image in scenes(6, **dials)]
    return sum(float(msgspec.convert(answer, Rating).answer[-1]) for answer in answers) / len(answers)


def test_ratings_follow_what_is_shown() -> None:
    assert rating("alignment") > 4.5
    assert rating("alignment", knows="0.4") == pytest.approx(1 + 4 * 0.4, abs=0.5)
    assert rating("alignment", country="Brazil") < 4
    assert rating("hallucination") < 1.5
    assert rating("hallucination", invents="0.8") > 3.5
    assert rating("exaggeration") < 1.5
    assert rating("exaggeration", exaggerates="1") > 4.5
    assert rating("exaggeration", "simulated?halo=1", exaggerates="1") < 1.5


def probability(spec: str, image: Image, text: str) -> float:
    (answered,) = ask_free(model(spec), [vqa_request(image, text, instructions="")])
    assert isinstance(answered.value, TokenListing)
    value = probability_of_yes(answered.value.tokens, of="yes-no")
    assert value is not None
    return value


def test_yes_is_as_probable_as_a_stereotype_is_strong() -> None:
    for scene, image in scenes(3, exaggerates="0.8"):
        for token in world().stereotypes("IR"):
            wanted = 0.05 + 0.9 * scene.strengths.get(token, 0)
            assert probability("simulated", image, token) == pytest.approx(wanted, abs=0.05)
        assert probability("simulated", image, "robots") < 0.1
        assert probability("simulated", image, "A photorealistic photo of mask dance in Iran.") > 0.9


def test_a_model_is_the_same_for_ever_and_has_a_plain_name() -> None:
    spec = "simulated:b?omits=0.5&rewords=0.5&invents=0.3"
    assert said(spec, "descriptors.propose", **PROPOSED) == said(spec, "descriptors.propose", **PROPOSED)
    assert [model(name).model for name in ("simulated", "simulated:a-1")] == ["simulated", "simulated-a-1"]
    with pytest.raises(UsageError, match="plain name"):
        model("simulated:gpt 4/o")
    with pytest.raises(UsageError, match="never told of cspace"):
        said("simulated", "cspace.filter")


@pytest.mark.parametrize("size", [128, 192])
def test_a_scene_is_read_as_it_was_drawn_and_nothing_else_as_one(size: int) -> None:
    """Whatever the country, the activity and what is shown; errors are for models to make."""
    drawn = some_scenes(36)[::3]
    read = [read_scene(draw_scene(scene, size=size, seed=number)) for number, scene in enumerate(drawn)]
    assert read == drawn
    noise = np.random.default_rng(0).integers(0, 256, (size, size, 3), np.uint8)
    assert [read_scene(one) for one in (noise, np.full_like(noise, 236), noise[: size - 1])] == [None] * 3


CAPTION = "hand drums and a qipao dress in a bamboo garden"


def encoder(spec: str = "simulated") -> SimulatedEncoder:
    made = ENCODERS.make(spec)
    assert isinstance(made, SimulatedEncoder)
    return made


def drawn(caption: str) -> Pixels:
    return draw_scene(Scene("CN", "", None, named_in(caption)), size=128, seed=3)


def test_both_languages_and_pictures_share_one_space() -> None:
    english, other, less = encoder().encode_texts([CAPTION, spoken(CAPTION), "hand drums, samovar"])
    (picture,) = encoder().encode_images([drawn(CAPTION)])
    assert [english @ other, english @ picture] == pytest.approx([1, 1], abs=1e-6)
    assert 0.2 < english @ less < 0.7
    # What names or shows nothing has a direction of its own.
    nothing = encoder().encode_images([np.full((128, 128, 3), 200, np.uint8)])
    vectors = np.concatenate([encoder().encode_texts(["something else", "another", ""]), nothing])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.abs(vectors @ vectors.T - np.eye(4)).max() < 0.35
    with pytest.raises(UsageError, match="options only"):
        encoder("simulated:letters")


def test_blur_is_noise_of_its_own_in_each_vector_and_always_the_same() -> None:
    clear, blurred = encoder().encode_texts([CAPTION])[0], encoder("simulated?blur=2").encode_texts([CAPTION] * 2)
    assert clear @ blurred[0] == pytest.approx(1 / 5**0.5, abs=0.1)
    assert (blurred[0] == blurred[1]).all()
    assert abs(blurred[0] @ encoder("simulated?blur=2").encode_texts([f"{CAPTION}."])[0]) < 0.5
