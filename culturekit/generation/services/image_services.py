"""The paid image services that culturekit knows by name."""

from culturekit.generation.services.image_client import ImageClient
from culturekit.registry import Entry, Registry, parse_spec

__all__ = ["IMAGE_SERVICES", "is_paid"]

OPTIONS = "culturekit.generation.image_options"

IMAGE_SERVICES: Registry[ImageClient] = Registry(
    "backend",
    [
        Entry(
            "openai",
            "culturekit.generation.services.openai_image_client:make",
            "image models of OpenAI, or with base_url of any server that speaks its protocol",
            options=f"{OPTIONS}:OpenAIImageOptions",
            extra="llm",
        ),
        Entry(
            "google",
            "culturekit.generation.services.google_image_client:make",
            "Gemini models that make images",
            options=f"{OPTIONS}:GoogleImageOptions",
            extra="llm",
        ),
    ],
)


def is_paid(spec: str) -> bool:
    """Tell whether a backend is a service that costs money."""
    return parse_spec(spec).name in IMAGE_SERVICES.entries
