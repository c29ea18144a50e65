"""Text-to-image models of diffusers from a folder or the hub: SDXL with refiner, SD 3.5, FLUX, Qwen-Image, others."""

import gc
import importlib
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.core.digests import digest, digest_file
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.model_files import check_safetensors
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device, chosen_dtype, needed_package, same_bits
from culturekit.generation.backend import DIFFUSERS, Failure, ImageBackend, ImageReply, ImageRequest, Picture, Pixels
from culturekit.generation.diffusion.diffusers_calls import (
    GUIDANCES,
    Call,
    Loaded,
    call_of,
    float32_vae,
    guider_of,
    load,
    quietly,
)
from culturekit.generation.diffusion.diffusers_folder import (
    Options,
    PipelineFolder,
    denoiser_files,
    find_pipeline,
    hub_lora,
    lora_files,
)
from culturekit.generation.picture_store import FINDINGS

# One pipeline on one device: batches of one length, a generator for each image, every outcome said.

# gives a lane that decodes in float32; None where that makes no difference
_Upcast = Callable[[], "DiffusersLane | None"]
_NOT_FINITE = "the numbers of the picture are not finite"
_BATCH_ON_GPU = 4


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One picture of a batch: what was decoded was finite numbers, and what a safety checker said, if there is one."""

    pixels: Pixels
    finite: bool
    unsafe: bool | None


class _Watch:
    """Looks at what a decoder gives, before it is cut to colours: what is infinite would come out white or black."""

    def __init__(self, pipeline: Any) -> None:  # noqa: ANN401 - a pipeline
        """Listen to the decoder of a pipeline, if it has one; each thread hears of its own pictures."""
        self.heard = threading.local()
        decoder = getattr(getattr(pipeline, "vae", None), "decoder", None)
        if decoder is not None:
            decoder.register_forward_hook(self.hear)

    def hear(self, module: object, given: object, decoded: Any) -> None:  # noqa: ANN401 - a tensor
        sample = decoded if hasattr(decoded, "isfinite") else getattr(decoded, "sample", decoded[0])
        self.heard.finite = [*getattr(self.heard, "finite", []), *sample.isfinite().flatten(1).all(1).tolist()]

    def take(self, count: int) -> list[bool]:
        """Say of each picture whether it was finite; what was not heard of is taken to be."""
        heard = getattr(self.heard, "finite", [])
        self.heard.finite = []
        return heard if len(heard) == count else [all(heard)] * count


def _drawn(numbers: NDArray[np.floating[Any]], heard: Sequence[bool], unsafe: Sequence[bool | None]) -> list[_Drawn]:
    """Turn numbers of 0 to 1, (n, height, width, 3), into pictures as diffusers itself does."""
    finite = np.isfinite(numbers).all(axis=(1, 2, 3))
    scaled = (numbers if finite.all() else np.nan_to_num(numbers)) * 255
    pixels = np.rint(scaled, out=scaled).astype(np.uint8)
    return [_Drawn(pixels[index], bool(finite[index]) and heard[index], unsafe[index]) for index in range(len(numbers))]


@dataclass(slots=True)
class DiffusersLane:
    """Draws batches. `batch` is how many at once: a shorter one is filled up, for how numbers are summed depends on it.

    It halves when the memory of the device is full.
    """

    call: Call
    watch: _Watch
    batch: int
    threads: int
    facts: Mapping[str, object]
    upcast: _Upcast = lambda: None
    drawn: int = 0

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer requests of one size, all with or all without a negative prompt."""
        if self.threads:
            importlib.import_module("torch").set_num_threads(self.threads)
        replies: list[ImageReply] = []
        while len(replies) < len(requests):
            some = requests[len(replies) : len(replies) + self.batch]
            replies += self.unless_full(some) or []
        return replies

    def unless_full(self, requests: Sequence[ImageRequest]) -> list[ImageReply] | None:
        """Answer a batch; None when it did not fit, and batches are half as large from now on."""
        torch = importlib.import_module("torch")
        try:
            return self.answered(requests)
        except torch.OutOfMemoryError as error:
            if self.batch == 1:
                raise UsageError(
                    "one picture at a time is too much for the memory of the device",
                    found=str(error).partition("\n")[0],
                    hint="Choose offload=model, a smaller --size, or dtype=bfloat16.",
                ) from None
        self.batch = max(1, self.batch // 2)
        torch.cuda.empty_cache()
        return None

    def answered(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer a batch; where the pipeline refuses one of its requests, each is tried alone."""
        try:
            found = self.draw(requests)
        except ValueError as error:
            if not self.drawn and len(requests) == 1:
                raise UsageError("the pipeline refuses what it is asked for", found=str(error)) from error
            if len(requests) == 1:
                return [Failure("failed", f"the pipeline refuses it: {error}")]
            return [reply for request in requests for reply in self.answered([request])]
        self.drawn += len(requests)
        return [self.reply(*pair, "auto") for pair in zip(requests, self.mended(requests, found), strict=True)]

    def draw(self, requests: Sequence[ImageRequest]) -> list[_Drawn]:
        """Call the pipeline with a full batch, and look at what it gives for the requests."""
        filled = [*requests, *([requests[-1]] * (self.batch - len(requests)))]
        self.watch.take(0)
        try:
            with same_bits():
                numbers, flags = self.call.numbers(filled)
        except (RuntimeError, IndexError, TypeError, AttributeError) as error:
            if isinstance(error, importlib.import_module("torch").OutOfMemoryError):
                raise
            raise CultureKitError(
                "the pipeline stopped",
                where=str(self.facts.get("pipeline")),
                found=f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}",
                hint="What was made is kept, and the same command goes on from there.",
            ) from error
        return _drawn(np.asarray(numbers), self.watch.take(len(filled)), flags)[: len(requests)]

    def mended(self, requests: Sequence[ImageRequest], found: Sequence[_Drawn]) -> list[tuple[_Drawn, bool]]:
        """Draw a batch again with a decoder in float32 where some of it is no picture; tell which are from there."""
        other = None if all(one.finite for one in found) else self.upcast()
        if other is None:
            return [(one, False) for one in found]
        again = other.draw(requests)
        return [(one, False) if one.finite else (new, True) for one, new in zip(found, again, strict=True)]

    def reply(self, request: ImageRequest, outcome: tuple[_Drawn, bool], vae: str) -> ImageReply:
        """Say what came of one request."""
        one, mended = outcome
        first = one.pixels[0, 0]
        alike = bool((one.pixels[0] == first).all() and (one.pixels == first).all())
        colour = "#" + "".join(f"{part:02x}" for part in first.tolist()) if alike else None
        if not one.finite:
            tried = ", also with a decoder in float32" if mended else ""
            return Failure("failed", f"{_NOT_FINITE} in {self.facts['dtype']}{tried}")
        if one.unsafe or (one.unsafe is not None and colour == "#000000"):
            return Failure("refused", "the safety checker of the pipeline gave a black picture in place of this one")
        more, odd = self.call.notes(request)
        odd += [f"the whole picture is {colour}"] if colour else []
        odd += [f"not finite in {self.facts['dtype']}, decoded again in float32"] if mended else []
        params = {**self.facts, "batch": self.batch, **more, **({"vae": "float32"} if mended else {})}
        return Picture(
            one.pixels,
            seed_honoured=self.call.honours_seeds,
            safety=None if one.unsafe is None else "passed",
            provider_params={**params, FINDINGS: odd} if odd else params,
        )


@dataclass(frozen=True, slots=True)
class _Device:
    """A device, what it is called in tables, and in which numbers it computes.

    On a CPU `threads` is 1: with another number torch adds up in another order, and the same seed gives other bits.
    """

    device: Any
    dtype: Any
    name: str
    threads: int

    @property
    def usual_batch(self) -> int:
        """How many images are made at once unless told."""
        return 1 if self.threads else _BATCH_ON_GPU


def _devices_of(options: Options) -> list[_Device]:
    torch = importlib.import_module("torch")
    names = options.device.split(",")
    if len(names) > 1 and not {"auto", "cuda"}.isdisjoint(names):
        raise UsageError("a list of devices names each", expected="such as cuda:0,cuda:1", found=options.device)
    devices = [chosen_device(name) for name in names]
    if options.device in {"auto", "cuda"} and devices[0].type == "cuda":
        devices = [torch.device("cuda", n) for n in range(torch.cuda.device_count())]
    return [
        _Device(
            device,
            chosen_dtype(options.dtype, device),
            torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            1 if device.type == "cpu" else 0,
        )
        for device in devices
    ]


@contextmanager
def kept_threads() -> Iterator[None]:
    """Give torch back as many threads as it had."""
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


_STATEFUL = re.compile("^tokenizer|guider$")  # parts of a pipeline that remember something of a call


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that decide the pictures of a SPEC."""

    base: PipelineFolder
    refiner: PipelineFolder | None
    adapters: Sequence[Path]
    denoiser: Sequence[Path] = ()

    def identity(self) -> dict[str, object]:
        """Hash all weights and what tells how they are used."""
        return {
            "base": self.base.digest(),
            "refiner": None if self.refiner is None else self.refiner.digest(),
            "lora": [digest_file(path) for path in self.adapters],
            **({"unet": [digest_file(path) for path in self.denoiser]} if self.denoiser else {}),
        }

    def check(self) -> None:
        """Make sure that no file is cut off."""
        folders = [self.base, *([self.refiner] if self.refiner else [])]
        files = [*(path for folder in folders for path in folder.files()), *self.adapters, *self.denoiser]
        check_safetensors([path for path in files if path.suffix == ".safetensors"])


class DiffusersBackend:
    """A pipeline, held by this process; its weights are loaded when the first lane is laid ready."""

    knows_truth = False

    def __init__(self, sources: Sources, options: Options) -> None:
        """Take the files and how they are used."""
        self.sources, self.options = sources, options
        self.places = _devices_of(options)
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
            stack.enter_context(quietly())
            if not self.laid:
                self.sources.check()
                self.laid = [self.lane(device) for device in self.places]
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
        torch = importlib.import_module("torch")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer requests of one size, in order."""
        found: dict[int, ImageReply] = {}
        with self.lanes(1) as lanes:
            for without in (True, False):
                some = [n for n, one in enumerate(requests) if (one.negative_text is None) == without]
                found |= zip(some, lanes[0].generate([requests[number] for number in some]), strict=True)
        return [found[number] for number in range(len(requests))]

    def lane(self, device: _Device) -> DiffusersLane:
        """Load the weights for one device."""
        base, refiner, adapters = self.sources.base, self.sources.refiner, self.sources.adapters
        return self.around(
            load(base, refiner, adapters, self.options, device=device.device, dtype=device.dtype), device
        )

    def around(self, loaded: Loaded, device: _Device) -> DiffusersLane:
        """Make a lane of what was loaded."""
        call = call_of(loaded, self.options)
        last = loaded.refiner or loaded.base
        return DiffusersLane(
            call, _Watch(last), self.batch_size, device.threads, self.picture_facts(loaded, device, call.arguments),
            upcast=cache(lambda: self.upcast(loaded, device)),
        )  # fmt: skip

    def beside(self, lane: DiffusersLane) -> DiffusersLane:
        """Make another lane around the same weights: a pipeline keeps count of its steps and serves one at a time."""
        loaded = lane.call.loaded
        refiner = None if loaded.refiner is None else _another(loaded.refiner)
        copied = replace(loaded, base=_another(loaded.base), refiner=refiner)
        upcast = cache(lambda: self.upcast(copied, self.places[0]))
        return replace(lane, call=call_of(copied, self.options), upcast=upcast)

    def upcast(self, loaded: Loaded, device: _Device) -> DiffusersLane | None:
        """Make a lane whose decoder works in float32; None where it does already, or cannot be loaded alone."""
        last = loaded.refiner or loaded.base
        vae = getattr(last, "vae", None)
        if vae is None or str(vae.dtype) == "torch.float32":
            return None
        folder = (self.sources.refiner or self.sources.base).path
        decoder = float32_vae(last, folder).to(device.device)
        changed = _another(last, vae=decoder)
        pair = replace(loaded, refiner=changed) if loaded.refiner else replace(loaded, base=changed)
        return replace(self.around(pair, device), upcast=lambda: None)

    def picture_facts(self, loaded: Loaded, device: _Device, arguments: Mapping[str, Any]) -> dict[str, object]:
        """Say of every picture how it was made."""
        options = self.options
        facts: dict[str, object] = {
            "pipeline": type(loaded.base).__name__,
            "scheduler": type(getattr(loaded.base, "scheduler", None)).__name__,
            "steps": arguments.get("num_inference_steps"),
            "guidance": next((arguments[name] for name in GUIDANCES if name in arguments), None),
            "dtype": str(device.dtype).removeprefix("torch."),
            "device": device.name,
        }
        if "true_cfg_scale" in arguments:
            facts["true_guidance"] = arguments["true_cfg_scale"]
        if (guider := guider_of(loaded.base)) is not None:
            facts |= {"guider": type(guider).__name__, "guidance": guider.guidance_scale}
        if options.vae == "float32":
            facts["vae"] = "float32"
        if self.sources.adapters:
            scale = 1.0 if options.lora_scale is None else options.lora_scale
            facts["lora"] = [
                {"file": path.name, "sha256": digest_file(path), "scale": scale} for path in self.sources.adapters
            ]
        if self.sources.denoiser:
            facts["unet"] = [{"file": path.name, "sha256": digest_file(path)} for path in self.sources.denoiser]
        if self.sources.refiner is not None:
            facts["refiner"] = {
                "pipeline": type(loaded.refiner).__name__,
                "sha256": self.sources.refiner.digest(),
                "revision": self.sources.refiner.revision,
                "high_noise": options.share_before_refiner,
            }
        return facts


def _another(pipeline: Any, **instead: Any) -> Any:  # noqa: ANN401 - pipelines
    """Make a second pipeline around the same weights.

    It has a count of steps of its own; a guider, which counts them too; and tokenizers of its own: those remember how
    they were last told to pad.
    """
    kind = type(pipeline)
    scheduler = getattr(pipeline, "scheduler", None)
    fresh = {} if scheduler is None else {"scheduler": type(scheduler).from_config(scheduler.config)}
    fresh |= {name: deepcopy(part) for name, part in pipeline.components.items() if _STATEFUL.search(name)}
    settings = {
        name: value for name, value in pipeline.config.items()
        if name not in pipeline.components and not name.startswith("_") and name in _accepted(kind)
    }  # fmt: skip
    if "add_watermarker" in _accepted(kind):
        settings["add_watermarker"] = False
    pipe = kind(**{**settings, **pipeline.components, **fresh, **instead})
    pipe.set_progress_bar_config(disable=True)
    return pipe


def _accepted(kind: Any) -> set[str]:  # noqa: ANN401 - a class
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
    if options.unet:
        found["unet"] = [digest_file(path) for path in denoiser_files(options.unet)]
    return found


def _sources_of(spec: Spec) -> Sources:
    """Find the files of a SPEC, and make sure that they are safe to load; torch is not needed for that."""
    options = spec.read(Options)
    base = find_pipeline(spec.target, revision=options.revision, variant=options.variant, asked_by=DIFFUSERS)
    refiner = find_pipeline(options.refiner, variant=options.variant, asked_by="refiner") if options.refiner else None
    adapters = lora_files(options.lora, options.lora_revision) if options.lora else ()
    return Sources(base, refiner, adapters, denoiser_files(options.unet) if options.unet else ())


def make(spec: Spec) -> ImageBackend:
    """Make the backend of a folder or a hub id."""
    options = spec.read(Options)
    for package in ("torch", "diffusers", "transformers"):
        needed_package(package, kind="backend diffusers", extra="embed,generate")
    return DiffusersBackend(_sources_of(spec), options)
