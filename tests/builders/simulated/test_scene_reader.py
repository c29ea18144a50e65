import numpy as np
import pytest

from culturekit.builders.simulated.scene_reader import read_scene
from culturekit.generation.simulated.scenes.scene import draw_scene
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
