import numpy as np
import pytest

from culturekit.builders.simulated.simulated_encoder import SimulatedEncoder, read_scene
from culturekit.core.errors import UsageError
from culturekit.generation.backend import Pixels
from culturekit.generation.simulated.scenes.scenes_backend import Scene, draw_scene, named_in, spoken
from culturekit.index.encoder import ENCODERS
from tests.generation.simulated.scenes.scene_worlds import some_scenes


@pytest.mark.parametrize("size", [128, 192])
def test_a_scene_is_read_as_it_was_drawn(size: int) -> None:
    """Whatever the country, the activity and what is shown; errors are for models to make."""
    drawn = some_scenes(36)[::3]
    read = [read_scene(draw_scene(scene, size=size, seed=number)) for number, scene in enumerate(drawn)]
    assert read == drawn


def test_what_is_no_scene_is_not_read_as_one() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (192, 192, 3), np.uint8)
    assert read_scene(noise) is None
    assert read_scene(np.full((192, 192, 3), 236, np.uint8)) is None
    assert read_scene(noise[:191]) is None


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
    assert english @ other == pytest.approx(1, abs=1e-6)
    assert english @ picture == pytest.approx(1, abs=1e-6)
    assert 0.2 < english @ less < 0.7


def test_blur_is_noise_of_its_own_in_each_vector_and_always_the_same() -> None:
    clear, blurred = encoder().encode_texts([CAPTION])[0], encoder("simulated?blur=2").encode_texts([CAPTION] * 2)
    assert clear @ blurred[0] == pytest.approx(1 / 5**0.5, abs=0.1)
    assert (blurred[0] == blurred[1]).all()
    assert abs(blurred[0] @ encoder("simulated?blur=2").encode_texts([f"{CAPTION}."])[0]) < 0.5


def test_what_names_or_shows_nothing_has_a_direction_of_its_own() -> None:
    words = encoder().encode_texts(["something else", "another", ""])
    picture = encoder().encode_images([np.full((128, 128, 3), 200, np.uint8)])
    vectors = np.concatenate([words, picture])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.abs(vectors @ vectors.T - np.eye(4)).max() < 0.35


def test_it_takes_options_only() -> None:
    with pytest.raises(UsageError, match="options only"):
        encoder("simulated:letters")
