"""Prompts times repeats times slots to images: in shards, resumable, every image asked for gets a row."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.atomic import explained_outside, write_atomically
from culturekit.core.choices import PictureFormat, PromptKind
from culturekit.core.defaults import REQUESTS_PER_SHARD
from culturekit.core.digests import canonical_json, digest
from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.stage_folder import run_shards, seal_pictures
from culturekit.core.tables import merge_parts, read_table, save_parquet, write_table
from culturekit.core.work import Outcome, Work
from culturekit.generation.backend import BACKENDS, HeldBackend, ImageBackend, ImageRequest
from culturekit.generation.comparability import traits_of
from culturekit.generation.held_runner import Pace, held_shards, make_held, pilot_held
from culturekit.generation.picture_store import (
    Maker,
    Shard,
    batches,
    findings,
    image_row,
    part_schema,
    statuses_of,
    truth_columns,
)

PACE = "pace.json"
SIZE = r"^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$"


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """What to make: `repeats` times `slots` images of every prompt; `kinds`, where given, limit the prompts."""

    repeats: Annotated[int, Field(ge=1, le=65_535, description="How often each prompt is repeated.")] = 1
    slots: Annotated[int, Field(ge=1, le=255, description="Images per prompt and repeat.")] = 1
    kinds: tuple[PromptKind, ...] = ()
    size: Annotated[
        str | None,
        Field(
            pattern=SIZE,
            description="Width x height in pixels, such as 512x512. [what the backend makes by itself]",
        ),
    ] = None
    format: Annotated[
        PictureFormat, Field(description="Form of the files that are written; both keep every pixel.")
    ] = "png"


def generate(work: Work, prompts_path: Path, plan: ImagePlan, maker: Maker, *, seed: int) -> Outcome:
    """Make all images of a model, and the table that lists them."""
    requests = wanted(prompts_path, plan, seed)
    backend = backend_of(maker.backend, maker.cspace)
    if isinstance(backend, HeldBackend):
        shards = held_shards(work, maker, plan.format, requests, backend)
        hands = partial(make_held, backend=backend, work=work)
        try:
            run_shards(work, shards, make_shard, size=lambda shard: len(shard.requests), unit="images", hands=hands)
        finally:
            backend.release()
    else:
        shards = plan_shards(work, maker, plan.format, requests)
        run_shards(work, shards, make_shard, size=lambda shard: len(shard.requests), unit="images")
    images = merge_parts([shard.part for shard in shards], part_schema())
    write_table(work.out, IMAGES, images)
    made, drops = statuses_of(images)
    found = findings(images)
    notes: dict[str, object] = {"findings": found} if found else {}
    if isinstance(backend, HeldBackend):
        notes["traits"] = traits_of(images).noted()
    return Outcome({"images": images.height, "ok": made}, drops, notes)


def pilot(work: Work, prompts_path: Path, plan: ImagePlan, maker: Maker, *, seed: int) -> Pace | None:
    """Make two images where the run will find them, and say how long one takes; None where all are there.

    The pace is kept in the scratch folder, where a plan finds it.
    """
    backend = backend_of(maker.backend, maker.cspace)
    if not isinstance(backend, HeldBackend):
        raise UsageError("a pilot times a model that runs on this machine", found=maker.backend)
    shards = held_shards(work, maker, plan.format, wanted(prompts_path, plan, seed), backend)
    try:
        pace = pilot_held(shards, backend=backend, work=work)
    finally:
        backend.release()
    if pace is not None:
        write_atomically(work.scratch / PACE, canonical_json(asdict(pace)))
    return pace


def known_pace(final: Path) -> float | None:
    """Give the seconds an image takes, as a pilot for a stage folder measured them."""
    path = final.with_name(f".{final.name}.partial") / "scratch" / PACE
    return float(json.loads(path.read_bytes())["seconds_per_image"]) if path.is_file() else None


def plan_shards(work: Work, maker: Maker, form: PictureFormat, requests: Sequence[ImageRequest]) -> list[Shard]:
    """Cut requests into shards."""
    return [
        Shard(
            maker,
            work.out,
            work.scratch / f"images-{start:09d}.parquet",
            form,
            tuple(requests[start : start + REQUESTS_PER_SHARD]),
        )
        for start in range(0, len(requests), REQUESTS_PER_SHARD)
    ]


def wanted(prompts_path: Path, plan: ImagePlan, seed: int) -> tuple[ImageRequest, ...]:
    """List every image to make of a table of prompts."""
    prompts = read_table(prompts_path, PROMPTS)
    if plan.kinds:
        prompts = prompts.filter(pl.col("kind").is_in(list(plan.kinds)))
    return list_requests(prompts, plan, seed)


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


def backend_of(spec: str, cspace: Path | None) -> ImageBackend:
    """Give a backend, which may know the cultural space."""
    return BACKENDS.kept(spec) if cspace is None else BACKENDS.kept(spec, cspace=cspace)


def make_shard(shard: Shard) -> int:
    """Make the images of a shard, then its part of the table."""
    backend = backend_of(shard.maker.backend, shard.maker.cspace)
    with explained_outside(f"the backend {shard.maker.backend}"):
        rows = [
            image_row(request, reply, shard, backend.version)
            for batch in batches(shard.requests)
            for request, reply in zip(batch, backend.generate(batch), strict=True)
        ]
    save_parquet(pl.DataFrame(rows, schema=part_schema(truth_columns(backend))), shard.part)
    seal_pictures(shard.part, shard.out, rows)
    return len(rows)
