"""Text-to-image models of diffusers from a folder or the hub: SDXL with refiner, SD 3.5, FLUX, Qwen-Image, others."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from culturekit.generation.backend import ImageBackend, ImageReply, ImageRequest
from culturekit.generation.diffusion.diffusers_calls import GUIDANCES, call_of, guider_of
from culturekit.generation.diffusion.diffusers_folder import PipelineFolder, find_pipeline, hub_lora, lora_files
from culturekit.generation.diffusion.diffusers_lane import (
    DiffusersLane,
    Place,
    Watch,
    free_memory,
    kept_threads,
    places_of,
)
from culturekit.generation.diffusion.diffusers_loading import Loaded, float32_vae, load, quiet
from culturekit.generation.diffusion.diffusers_options import DIFFUSERS, Options
from culturekit.registry import Spec
from culturekit.storage.digests import digest, digest_file
from culturekit.storage.model_files import check_safetensors
from culturekit.torch_places import needed_package

__all__ = ["DiffusersBackend", "Sources", "files_behind", "make", "sources_of"]


STATEFUL = re.compile("^tokenizer|guider$")
"""Parts of a pipeline that remember something of a call."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that decide the pictures of a SPEC."""

    base: PipelineFolder
    refiner: PipelineFolder | None
    adapters: Sequence[Path]

    def identity(self) -> dict[str, object]:
        """Hash all weights and what tells how they are used."""
        return {
            "base": self.base.digest(),
            "refiner": None if self.refiner is None else self.refiner.digest(),
            "lora": [digest_file(path) for path in self.adapters],
        }

    def check(self) -> None:
        """Make sure that no file is cut off."""
        folders = [self.base, *([self.refiner] if self.refiner else [])]
        check_safetensors(
            [*(path for folder in folders for path in folder.files() if path.suffix == ".safetensors"), *self.adapters]
        )


class DiffusersBackend:
    """A pipeline, held by this process; its weights are loaded when the first lane is laid ready."""

    knows_truth = False

    def __init__(self, sources: Sources, options: Options) -> None:
        """Take the files and how they are used."""
        self.sources, self.options = sources, options
        self.places = places_of(options)
        self.batch_size = options.batch or self.places[0].usual_batch
        self.laid: list[DiffusersLane] = []

    @cached_property
    def version(self) -> str:
        """What answers: a hash of all weights and settings, and the commit of a hub id."""
        return f"sha256:{digest(self.sources.identity())} revision:{self.sources.base.revision}"

    @contextmanager
    def lanes(self, workers: int) -> Iterator[Sequence[DiffusersLane]]:
        """Lay a lane ready for each device, with its own weights, or on one CPU for each worker around the same."""
        with ExitStack() as stack:
            stack.enter_context(quiet())
            if not self.laid:
                self.sources.check()
                self.laid = [self.lane(place) for place in self.places]
            if self.places[0].threads:
                stack.enter_context(kept_threads())
            if self.places[0].threads and len(self.places) == 1:
                first = self.laid[0]
                yield [first, *(self.beside(first) for _ in range(workers - 1))]
            else:
                yield self.laid

    def release(self) -> None:
        """Let go of the weights, in the memory of the devices too; lanes that are asked for later load them again."""
        self.laid = []
        free_memory()

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer requests of one size, in order."""
        found: dict[int, ImageReply] = {}
        with self.lanes(1) as lanes:
            for without in (True, False):
                some = [n for n, one in enumerate(requests) if (one.negative_text is None) == without]
                found |= zip(some, lanes[0].generate([requests[number] for number in some]), strict=True)
        return [found[number] for number in range(len(requests))]

    def lane(self, place: Place) -> DiffusersLane:
        """Load the weights for one device."""
        base, refiner, adapters = self.sources.base, self.sources.refiner, self.sources.adapters
        return self.around(load(base, refiner, adapters, self.options, device=place.device, dtype=place.dtype), place)

    def around(self, loaded: Loaded, place: Place) -> DiffusersLane:
        """Make a lane of what was loaded."""
        call = call_of(loaded, self.options)
        last = loaded.refiner or loaded.base
        return DiffusersLane(
            call, Watch(last), self.batch_size, place.threads, self.picture_facts(loaded, place, call.arguments),
            upcast=cache(lambda: self.upcast(loaded, place)),
        )  # fmt: skip

    def beside(self, lane: DiffusersLane) -> DiffusersLane:
        """Make another lane around the same weights: a pipeline keeps count of its steps and serves one at a time."""
        loaded = lane.call.loaded
        refiner = None if loaded.refiner is None else another(loaded.refiner)
        own = replace(loaded, base=another(loaded.base), refiner=refiner)
        upcast = cache(lambda: self.upcast(own, self.places[0]))
        return replace(lane, call=call_of(own, self.options), upcast=upcast)

    def upcast(self, loaded: Loaded, place: Place) -> DiffusersLane | None:
        """Make a lane whose decoder works in float32; None where it does already, or cannot be loaded alone."""
        last = loaded.refiner or loaded.base
        vae = getattr(last, "vae", None)
        if vae is None or str(vae.dtype) == "torch.float32":
            return None
        folder = (self.sources.refiner or self.sources.base).path
        decoder = float32_vae(last, folder).to(place.device)
        changed = another(last, vae=decoder)
        pair = replace(loaded, refiner=changed) if loaded.refiner else replace(loaded, base=changed)
        return replace(self.around(pair, place), upcast=lambda: None)

    def picture_facts(self, loaded: Loaded, place: Place, arguments: Mapping[str, Any]) -> dict[str, object]:
        """Say of every picture how it was made."""
        options = self.options
        told: dict[str, object] = {
            "pipeline": type(loaded.base).__name__,
            "scheduler": type(getattr(loaded.base, "scheduler", None)).__name__,
            "steps": arguments.get("num_inference_steps"),
            "guidance": next((arguments[name] for name in GUIDANCES if name in arguments), None),
            "dtype": str(place.dtype).removeprefix("torch."),
            "device": place.name,
        }
        if "true_cfg_scale" in arguments:
            told["true_guidance"] = arguments["true_cfg_scale"]
        if (guider := guider_of(loaded.base)) is not None:
            told |= {"guider": type(guider).__name__, "guidance": guider.guidance_scale}
        if options.vae == "float32":
            told["vae"] = "float32"
        if self.sources.adapters:
            scale = 1.0 if options.lora_scale is None else options.lora_scale
            told["lora"] = [
                {"file": path.name, "sha256": digest_file(path), "scale": scale} for path in self.sources.adapters
            ]
        if self.sources.refiner is not None:
            told["refiner"] = {
                "pipeline": type(loaded.refiner).__name__,
                "sha256": self.sources.refiner.digest(),
                "revision": self.sources.refiner.revision,
                "high_noise": options.share_before_refiner,
            }
        return told


def another(pipeline: Any, **instead: Any) -> Any:  # noqa: ANN401 - pipelines
    """Make a second pipeline around the same weights.

    It has a count of steps of its own; a guider, which counts them too; and tokenizers of its own: those remember how
    they were last told to pad.
    """
    kind = type(pipeline)
    scheduler = getattr(pipeline, "scheduler", None)
    fresh = {} if scheduler is None else {"scheduler": type(scheduler).from_config(scheduler.config)}
    fresh |= {name: deepcopy(part) for name, part in pipeline.components.items() if STATEFUL.search(name)}
    settings = {
        name: value for name, value in pipeline.config.items()
        if name not in pipeline.components and not name.startswith("_") and name in accepted(kind)
    }  # fmt: skip
    if "add_watermarker" in accepted(kind):
        settings["add_watermarker"] = False
    made = kind(**{**settings, **pipeline.components, **fresh, **instead})
    made.set_progress_bar_config(disable=True)
    return made


def accepted(kind: Any) -> set[str]:  # noqa: ANN401 - a class
    """Name what a pipeline's class is made of."""
    return set(inspect.signature(kind.__init__).parameters)


def files_behind(spec: Spec) -> dict[str, object]:
    """Hash the local files that a SPEC points to, so that others at the same place give another result.

    A hub id counts by its name and revision; nothing is fetched to look at it.
    """
    options = spec.read(Options)
    local = {name: target for name, target in (("base", spec.target), ("refiner", options.refiner))
             if target and Path(target).expanduser().is_dir()}  # fmt: skip
    found: dict[str, object] = {
        name: find_pipeline(target, variant=options.variant, asked_by=name).digest() for name, target in local.items()
    }
    if options.lora and hub_lora(options.lora) is None:
        found["lora"] = [digest_file(path) for path in lora_files(options.lora)]
    return found


def sources_of(spec: Spec) -> Sources:
    """Find the files of a SPEC, and make sure that they are safe to load; torch is not needed for that."""
    options = spec.read(Options)
    base = find_pipeline(spec.target, revision=options.revision, variant=options.variant, asked_by=DIFFUSERS)
    refiner = find_pipeline(options.refiner, variant=options.variant, asked_by="refiner") if options.refiner else None
    return Sources(base, refiner, lora_files(options.lora, options.lora_revision) if options.lora else ())


def make(spec: Spec) -> ImageBackend:
    """Make the backend of a folder or a hub id."""
    options = spec.read(Options)
    for package in ("torch", "diffusers", "transformers"):
        needed_package(package, kind="backend diffusers", extra="embed,generate")
    return DiffusersBackend(sources_of(spec), options)
