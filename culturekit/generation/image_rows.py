"""One image to one row: the file is written, and the table says what is known of it; a failure is a row too."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.counting import counted
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.picture_store import folder_of_prompt, placed
from culturekit.records.choices import PictureFormat
from culturekit.records.schemas import IMAGES
from culturekit.storage.digests import canonical_json, digest, digest_bytes
from culturekit.storage.picture_files import encoded

__all__ = [
    "FINDINGS",
    "Maker",
    "Shard",
    "asked_row",
    "batches",
    "findings",
    "image_id_of",
    "image_row",
    "part_schema",
    "statuses_of",
    "truth_columns",
]


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes the images: a backend by SPEC, under the name its images carry."""

    model: str
    backend: str
    cspace: Path | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of requests, as a work item."""

    maker: Maker
    out: Path
    part: Path
    format: PictureFormat
    requests: tuple[ImageRequest, ...]


def batches(requests: Sequence[ImageRequest]) -> list[list[ImageRequest]]:
    """Part requests into calls of one size each, the requests of a prompt side by side."""
    by_size: dict[tuple[int, int], list[ImageRequest]] = {}
    for request in requests:
        by_size.setdefault((request.width or 0, request.height or 0), []).append(request)
    return [sorted(some, key=lambda request: request.prompt_id) for some in by_size.values()]


def image_row(request: ImageRequest, reply: ImageReply, shard: Shard, version: str | None) -> dict[str, Any]:
    """Save a picture and describe it; a failure is a row too."""
    row = asked_row(request, shard.maker.model, version)
    if isinstance(reply, Failure):
        return {**row, "status": reply.status, "reason": reply.reason}
    return {**row, **saved(reply, request, shard), "status": "ok"}


def image_id_of(model: str, request: ImageRequest, pixels: Pixels | None = None) -> str:
    """Name an image by who made it, what was asked for, and its pixels.

    Answers of people about an image say nothing of one that other options or weights draw in its place.
    """
    drawn = [] if pixels is None else [list(pixels.shape), digest_bytes(pixels.tobytes())]
    return digest([model, request.prompt_id, request.repeat, request.slot, request.seed, *drawn])[:16]


def asked_row(request: ImageRequest, model: str, version: str | None) -> dict[str, Any]:
    """Describe an image that is asked for, before anything of it is there."""
    return {
        "image_id": image_id_of(model, request),
        "path": "",
        "prompt_id": request.prompt_id,
        "model": model,
        "model_version": version,
        "seed": request.seed,
        "repeat": request.repeat,
        "slot": request.slot,
        "prompt_sent": request.text,
        "rewriter": "unknown",
        "provider_params": "{}",
        "sha256": "",
        "width": 0,
        "height": 0,
        "concept": request.concept,
        "country": request.country,
    }


def saved(picture: Picture, request: ImageRequest, shard: Shard) -> dict[str, Any]:
    """Write the file of a picture; give what the table says of it."""
    place = folder_of_prompt(request.prompt_id)
    relative = f"files/{place}/{request.repeat:04d}-{request.slot:02d}.{shard.format}"
    content = encoded(picture.pixels, shard.format)
    placed(content, shard.out / relative)
    return {
        "image_id": image_id_of(shard.maker.model, request, picture.pixels),
        "seed_honoured": picture.seed_honoured,
        "prompt_revised": picture.prompt_revised,
        "rewriter": picture.rewriter,
        "safety": picture.safety,
        "truth_artifact_id": picture.truth_artifact_id,
        "truth_country": picture.truth_country,
        "truth_scene": picture.truth_scene,
        "path": relative,
        "sha256": digest_bytes(content),
        "width": picture.pixels.shape[1],
        "height": picture.pixels.shape[0],
        "provider_params": canonical_json(picture.provider_params).decode(),
    }


def truth_columns(backend: ImageBackend) -> tuple[str, ...]:
    """Name the columns that say what a picture shows; only a simulated model knows it, of artifacts or as it says."""
    columns: tuple[str, ...] = getattr(backend, "truth_columns", ("truth_artifact_id", "truth_country"))
    return columns if backend.knows_truth else ()


def part_schema(truths: Sequence[str] = ()) -> dict[str, pl.DataType]:
    """Give the columns of a part."""
    names = ("concept", "country", *truths)
    return {**IMAGES.schema, **{name: IMAGES.optional[name].dtype for name in names}}


def statuses_of(images: pl.DataFrame) -> tuple[int, dict[str, int]]:
    """Count the images that were made, and the others by how they ended."""
    statuses = Counter(images["status"].to_list())
    return statuses.pop("ok", 0), dict(statuses)


FINDINGS = "findings"
"""Under this key the `provider_params` of an image list what was odd about it."""


def findings(images: pl.DataFrame) -> list[str]:
    """Count what was odd, the most frequent first; before it, whether no image was made at all."""
    none = []
    if images.height and "ok" not in images["status"]:
        first = images.row(0, named=True)
        none = [f"none of {counted(images.height, 'images')} was made: {first['status']}, {first['reason']}"]
    told = images.filter(pl.col("provider_params").str.contains(f'"{FINDINGS}"', literal=True))["provider_params"]
    counts = Counter(name for text in told for name in json.loads(text).get(FINDINGS, []))
    return none + [
        f"{counted(count, 'images')}: {name}"
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
