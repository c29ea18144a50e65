"""Prompts times repeats times slots to images: in shards, resumable, every image asked for gets a row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture
from culturekit.generation.backends import BACKENDS
from culturekit.generation.picture_files import folder_of_prompt, placed
from culturekit.records.choices import PictureFormat, PromptKind
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.digests import canonical_json, digest, digest_bytes
from culturekit.storage.picture_writing import encoded
from culturekit.storage.shard_runs import run_shards
from culturekit.storage.tables import merge_parts, read_table, save_parquet, write_table

__all__ = ["SIZE", "ImagePlan", "Maker", "derive_seed", "generate"]

REQUESTS_PER_SHARD = 100
SIZE = r"^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$"


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """What to make: `repeats` times `slots` images of every prompt; `kinds`, where given, limit the prompts.

    `size` is width x height in pixels, such as 512x512, where the backend is not to choose it. `format` is that of the
    files; both keep every pixel.
    """

    repeats: Annotated[int, Field(ge=1, le=65_535)] = 1
    slots: Annotated[int, Field(ge=1, le=255)] = 1
    kinds: tuple[PromptKind, ...] = ()
    size: Annotated[str, Field(pattern=SIZE)] | None = None
    format: PictureFormat = "png"


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


def generate(work: Work, prompts_path: Path, plan: ImagePlan, maker: Maker, *, seed: int) -> Outcome:
    """Make all images of a model, and the table that lists them."""
    prompts = read_table(prompts_path, PROMPTS)
    if plan.kinds:
        prompts = prompts.filter(pl.col("kind").is_in(list(plan.kinds)))
    requests = list_requests(prompts, plan, seed)
    shards = [
        Shard(
            maker,
            work.out,
            work.scratch / f"images-{start:09d}.parquet",
            plan.format,
            requests[start : start + REQUESTS_PER_SHARD],
        )
        for start in range(0, len(requests), REQUESTS_PER_SHARD)
    ]
    run_shards(work, shards, make_shard, size=lambda shard: len(shard.requests), unit="images")
    images = merge_parts([shard.part for shard in shards], part_schema(knows_truth=False))
    statuses = Counter(images["status"].to_list())
    write_table(work.out, IMAGES, images)
    drops = {status: count for status, count in sorted(statuses.items()) if status != "ok"}
    return Outcome({"images": images.height, "ok": statuses["ok"]}, drops)


def list_requests(prompts: pl.DataFrame, plan: ImagePlan, seed: int) -> tuple[ImageRequest, ...]:
    """List every image to make, in the order of the prompts' ids."""
    width, height = map(int, plan.size.split("x")) if plan.size else (None, None)
    return tuple(
        ImageRequest(
            prompt_id=row["prompt_id"],
            text=row["text"],
            negative_text=row["negative_text"],
            seed=derive_seed(seed, row["prompt_id"], repeat, slot),
            repeat=repeat,
            slot=slot,
            concept=row["concept"],
            country=row["country"],
            artifact_id=row["artifact_id"],
            width=width,
            height=height,
        )
        for row in prompts.sort("prompt_id").iter_rows(named=True)
        for repeat in range(plan.repeats)
        for slot in range(plan.slots)
    )


def derive_seed(run_seed: int, prompt_id: str, repeat: int, slot: int) -> int:
    """Derive the seed of one image, so that any subset can be made again; 32 bits, which every backend takes."""
    return int(digest([run_seed, prompt_id, repeat, slot])[:8], 16)


@cache
def backend_of(spec: str, cspace: Path | None) -> ImageBackend:
    """Make a backend once per process."""
    return BACKENDS.make(spec) if cspace is None else BACKENDS.make(spec, cspace=cspace)


def make_shard(shard: Shard) -> int:
    """Make the images of a shard, then its part of the table."""
    backend = backend_of(shard.maker.backend, shard.maker.cspace)
    rows = [
        image_row(request, reply, shard, backend)
        for batch in batches(shard.requests)
        for request, reply in zip(batch, backend.generate(batch), strict=True)
    ]
    save_parquet(pl.DataFrame(rows, schema=part_schema(knows_truth=backend.knows_truth)), shard.part)
    return len(rows)


def batches(requests: Sequence[ImageRequest]) -> list[list[ImageRequest]]:
    """Part requests into calls of one size each, the requests of a prompt side by side."""
    by_size: dict[tuple[int, int], list[ImageRequest]] = {}
    for request in requests:
        by_size.setdefault((request.width or 0, request.height or 0), []).append(request)
    return [sorted(some, key=lambda request: request.prompt_id) for some in by_size.values()]


def image_row(request: ImageRequest, reply: ImageReply, shard: Shard, backend: ImageBackend) -> dict[str, Any]:
    """Save a picture and describe it; a failure is a row too."""
    model = shard.maker.model
    identity = [model, request.prompt_id, request.repeat, request.slot, request.seed]
    row = {
        "image_id": digest(identity)[:16],
        "path": "",
        "prompt_id": request.prompt_id,
        "model": model,
        "model_version": backend.version,
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
    if isinstance(reply, Failure):
        return {**row, "status": reply.status, "reason": reply.reason}
    return {**row, **saved(reply, request, shard), "status": "ok"}


def saved(picture: Picture, request: ImageRequest, shard: Shard) -> dict[str, Any]:
    """Write the file of a picture; give what the table says of it."""
    place = folder_of_prompt(request.prompt_id)
    relative = f"files/{place}/{request.repeat:04d}-{request.slot:02d}.{shard.format}"
    content = encoded(picture.pixels, shard.format)
    placed(content, shard.out / relative)
    return {
        "seed_honoured": picture.seed_honoured,
        "prompt_revised": picture.prompt_revised,
        "rewriter": picture.rewriter,
        "safety": picture.safety,
        "truth_artifact_id": picture.truth_artifact_id,
        "truth_country": picture.truth_country,
        "path": relative,
        "sha256": digest_bytes(content),
        "width": picture.pixels.shape[1],
        "height": picture.pixels.shape[0],
        "provider_params": canonical_json(picture.provider_params).decode(),
    }


def part_schema(*, knows_truth: bool) -> dict[str, pl.DataType]:
    """Give the columns of a part; only a simulated model knows the truth."""
    names = ("concept", "country", *(("truth_artifact_id", "truth_country") if knows_truth else ()))
    return {**IMAGES.schema, **{name: IMAGES.optional[name].dtype for name in names}}
