"""The one question of geo-tagging, and the closed form of its answer."""

from typing import Annotated, Literal

import msgspec

from culturekit.builders.wordings import wording
from culturekit.llm.client import Image, Request

__all__ = ["TASK", "GeoTag", "NamedArtifact", "geo_tag_request", "geo_tag_wording"]

TASK = "image.geo-tag"
MOST_NAMED = 5
REPLY_TOKENS = 512
ID_LETTERS = 16


class NamedArtifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An artifact that the image may show."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
    country: Annotated[str, msgspec.Meta(max_length=80)] | None
    sure: Annotated[int, msgspec.Meta(ge=0, le=100)]


class GeoTag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers about one image."""

    id: str
    shown: Literal["yes", "no", "unsure"]
    artifacts: Annotated[list[NamedArtifact], msgspec.Meta(max_length=MOST_NAMED)]


def geo_tag_wording() -> str:
    """Read the instructions; their hash is part of what decides a tag."""
    return wording("geo_tag")


def geo_tag_request(image: Image, *, instructions: str) -> Request:
    """Ask what an image shows.

    Nothing goes along that could tell: the id is made of the picture's own hash, not of its file's name or prompt.
    """
    image_id = image.sha256[:ID_LETTERS]
    allowed = {"id": (image_id,)}
    return Request(
        TASK, instructions, {"id": image_id}, GeoTag, allowed=allowed, images=(image,), max_tokens=REPLY_TOKENS
    )
