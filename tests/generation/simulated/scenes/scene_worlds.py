"""Scenes and models of the simulated world, for tests."""

from culturekit.generation.backend import ImageRequest
from culturekit.generation.simulated.scenes.scenes_backend import Knowledge, Scene, read_dial, scene_of, world

__all__ = ["asked_scene", "knowledge", "some_scenes"]


def knowledge(
    knows: str = "1", invents: str = "0", exaggerates: str = "0", elsewhere: str = "0", varies: str = "1"
) -> Knowledge:
    return Knowledge(*(read_dial("a dial", text) for text in (knows, invents, exaggerates, elsewhere, varies)))


def some_scenes(count: int) -> list[Scene]:
    """Put scenes of every activity and country together, as a model does that errs in every way."""
    how, countries = knowledge("0.8", "0.1", "0.4", "0.1"), list(world().countries)
    return [
        scene_of(category, activity, countries[number % 16], how, prompt=f"p{number}", seed=number)
        for number, (activity, category) in zip(range(count), world().activities, strict=False)
    ]


def asked_scene(
    seed: int, activity: str = "circle dance", category: str = "dances", country: str = "IR"
) -> ImageRequest:
    text = f"A photorealistic photo of {activity} in its country."
    return ImageRequest(f"{country} {activity}", text, None, seed, 0, 0, category, country, None)
