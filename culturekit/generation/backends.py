"""The text-to-image backends that culturekit knows by name."""

from typing import Any

from culturekit.generation.backend import ImageBackend
from culturekit.generation.services.image_services import IMAGE_SERVICES
from culturekit.registry import Entry, Registry

__all__ = ["BACKENDS"]

PAID: list[Entry[Any]] = list(IMAGE_SERVICES.entries.values())
"""Services have a runner of their own; here they are only known by name, with their options."""

BACKENDS: Registry[ImageBackend] = Registry(
    "backend",
    [
        Entry(
            "diffusers",
            "culturekit.generation.diffusion.diffusers_backend:make",
            "a text-to-image pipeline of diffusers from a folder or the hub, such as SDXL, SD 3.5, FLUX or Qwen-Image",
            options="culturekit.generation.diffusion.diffusers_options:Options",
            extra="embed,generate",
            packages=("torch", "diffusers"),
        ),
        Entry(
            "folder",
            "culturekit.generation.folder.folder_backend:make",
            "images that exist already, found by a naming pattern or a list",
            options="culturekit.generation.folder.folder_options:Options",
        ),
        Entry(
            "simulated",
            "culturekit.generation.simulated.simulated_backend:make",
            "a model with known bias, which draws artifacts of a CSpace as emblems",
            options="culturekit.generation.simulated.simulated_backend:Options",
            needs=("cspace",),
        ),
        *PAID,
    ],
)
