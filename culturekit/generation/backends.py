"""The text-to-image backends that culturekit knows by name."""

from culturekit.generation.backend import ImageBackend
from culturekit.registry import Entry, Registry

__all__ = ["BACKENDS"]

BACKENDS: Registry[ImageBackend] = Registry(
    "backend",
    [
        Entry(
            "diffusers",
            "culturekit.generation.diffusers_backend:make",
            "a text-to-image pipeline of diffusers from a folder or the hub, such as SDXL, SD 3.5, FLUX or Qwen-Image",
            options="culturekit.generation.diffusers_options:Options",
            extra="embed,generate",
        ),
        Entry(
            "folder",
            "culturekit.generation.folder_backend:make",
            "images that exist already, found by a naming pattern or a list",
            options="culturekit.generation.folder_options:Options",
        ),
        Entry(
            "simulated",
            "culturekit.generation.simulated_backend:make",
            "a model with known bias, which draws artifacts of a CSpace as emblems",
            options="culturekit.generation.simulated_backend:Options",
            needs=("cspace",),
        ),
    ],
)
