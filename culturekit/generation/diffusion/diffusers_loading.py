"""Pipelines of diffusers, loaded from a folder that was found safe: adapters, device, precision, what waits outside."""

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culturekit.errors import MissingDependency, UsageError
from culturekit.generation.diffusion.diffusers_folder import PipelineFolder, custom
from culturekit.generation.diffusion.diffusers_options import Options
from culturekit.torch_places import mend_torchvision, needed_package
from culturekit.version import install_line

__all__ = ["Loaded", "defaults_of", "denoiser_of", "float32_vae", "load", "loaded", "pipeline_class", "quiet"]

DENOISERS = ("transformer", "unet", "prior", "transformer_2")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The pipelines of one lane, and where they work."""

    base: Any
    refiner: Any
    device: Any
    dtype: Any


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what diffusers and transformers print: culturekit says by itself what matters."""
    loggers = [importlib.import_module(f"{name}.utils.logging") for name in ("diffusers", "transformers")]
    before = [(logger, logger.get_verbosity(), logger.is_progress_bar_enabled()) for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"diffusers\b")
        for logger in loggers:
            logger.set_verbosity_error()
            logger.disable_progress_bar()
        try:
            yield
        finally:
            for logger, level, bars in before:
                logger.set_verbosity(level)
                if bars:
                    logger.enable_progress_bar()


def pipeline_class(folder: PipelineFolder) -> Any:  # noqa: ANN401 - a class of diffusers
    """Find the class of a pipeline among those of diffusers; code that comes with a model is not run."""
    diffusers = needed_package("diffusers", kind="backend diffusers", extra="embed,generate")
    kind = getattr(diffusers, folder.kind, None)
    if not (inspect.isclass(kind) and issubclass(kind, diffusers.DiffusionPipeline)):
        raise custom(folder.path, folder.kind)
    for part in folder.components():
        if part.library not in {"diffusers", "transformers"} and not hasattr(diffusers.pipelines, part.library):
            raise custom(folder.path, f"{part.name}: {part.library}.{part.kind}")
    if "prompt" not in defaults_of(kind):
        raise UsageError("this pipeline makes no pictures of prompts", where=str(folder.path), found=folder.kind)
    return kind


def defaults_of(kind: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a class of diffusers
    """Give what a pipeline can be told when it is called, and what it does otherwise."""
    return {name: one.default for name, one in inspect.signature(kind.__call__).parameters.items()}


def denoiser_of(pipeline: Any) -> str:  # noqa: ANN401 - a pipeline
    """Name the part of a pipeline that takes the noise away."""
    return next((name for name in DENOISERS if getattr(pipeline, name, None) is not None), "")


def load(
    folder: PipelineFolder,
    refiner: PipelineFolder | None,
    adapters: Sequence[Path],
    options: Options,
    *,
    device: Any,  # noqa: ANN401 - a torch.device
    dtype: Any,  # noqa: ANN401 - a torch type
) -> Loaded:
    """Load what one lane needs."""
    base = loaded(folder, dtype)
    if adapters:
        adapt(base, adapters, options)
    settle(base, folder, options, device)
    second = None if refiner is None else loaded(refiner, dtype)
    if refiner is not None:
        settle(second, refiner, options, device)
    return Loaded(base, second, device, dtype)


def loaded(folder: PipelineFolder, dtype: Any) -> Any:  # noqa: ANN401 - a pipeline
    """Load one pipeline: safetensors of this folder, classes of diffusers and transformers, nothing else."""
    kind = pipeline_class(folder)
    own = {"add_watermarker": False} if "add_watermarker" in inspect.signature(kind.__init__).parameters else {}
    try:
        check_parts(folder)
        pipeline = kind.from_pretrained(
            folder.path,
            torch_dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            variant=folder.variant or None,
            **own,
        )
    except ImportError as error:
        raise MissingDependency(
            f"the pipeline {folder.kind} needs a package that is not installed",
            where=str(folder.path),
            found=first_line(error),
            hint=f"Install it with: {install_line_for(error)}",
        ) from error
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, KeyError) as error:
        raise UsageError(
            "diffusers cannot load this pipeline", where=str(folder.path), expected=folder.kind, found=first_line(error)
        ) from error
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def check_parts(folder: PipelineFolder) -> None:
    """Look each part's class up: where its package lacks another one, it stands for itself and says so when touched.

    Raises:
        ImportError: a package is missing; diffusers itself would only wonder at the class.
    """
    for part in folder.components():
        if part.library in {"diffusers", "transformers"}:
            getattr(getattr(importlib.import_module(part.library), part.kind, None), "from_pretrained", None)


NEEDED = re.compile(r"requires (?:the )?([\w-]+) library", re.IGNORECASE)
OURS = {"accelerate", "diffusers", "huggingface_hub", "peft", "pytorch", "safetensors", "torch", "transformers"}
"""Packages that come with the extras `embed` and `generate`; torchvision does too, if it fits."""


def install_line_for(error: ImportError) -> str:
    """Give the command that brings what an import lacks."""
    named = NEEDED.search(str(error))
    package = named[1].lower() if named else error.name or ""
    if package == "torchvision" and mend_torchvision() == "hidden":  # installed, but made for another torch
        return install_line(packages="--force-reinstall --no-deps torchvision")
    return install_line("embed,generate") if package in {*OURS, "torchvision", ""} else install_line(packages=package)


def first_line(error: Exception) -> str:
    """Give the beginning of what an error says."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def adapt(pipeline: Any, adapters: Sequence[Path], options: Options) -> None:  # noqa: ANN401 - a pipeline
    """Put LoRA adapters on a pipeline, all of them at once."""
    needed_package("peft", kind="option lora of diffusers", extra="generate")
    if not hasattr(pipeline, "load_lora_weights"):
        raise UsageError("this pipeline takes no adapters", found=type(pipeline).__name__, where=str(adapters[0]))
    names = [f"adapter-{number}" for number in range(len(adapters))]
    for name, path in zip(names, adapters, strict=True):
        try:
            pipeline.load_lora_weights(
                str(path.parent), weight_name=path.name, adapter_name=name, use_safetensors=True, local_files_only=True
            )
        except (OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
            raise UsageError(
                "this adapter does not fit the pipeline", where=str(path), found=first_line(error)
            ) from error
    told = {name for some in pipeline.get_list_adapters().values() for name in some}
    for name, path in zip(names, adapters, strict=True):
        if name not in told:
            raise UsageError("this adapter changes no part of the pipeline", where=str(path))
    scale = 1.0 if options.lora_scale is None else options.lora_scale
    pipeline.set_adapters(names, [scale] * len(names))


def settle(pipeline: Any, folder: PipelineFolder, options: Options, device: Any) -> None:  # noqa: ANN401 - torch things
    """Bring a pipeline to its device, and compile what takes the noise away."""
    if options.vae == "float32" and getattr(pipeline, "vae", None) is not None:
        pipeline.register_modules(vae=float32_vae(pipeline, folder.path))
    if options.offload != "none" and device.type == "cpu":
        raise UsageError("there is nothing to keep out of a CPU's memory", found=f"offload={options.offload}",
                         hint="Leave the option away, or choose device=cuda.")  # fmt: skip
    if options.guidance is not None:
        for name in ("guider", "ocr_guider"):
            if (guider := getattr(pipeline, name, None)) is not None:
                pipeline.register_modules(**{name: guider.new(guidance_scale=options.guidance)})
    if options.compile:
        getattr(pipeline, denoiser_of(pipeline)).compile()
    if options.offload == "model":
        pipeline.enable_model_cpu_offload(device=device)
    elif options.offload == "sequential":
        pipeline.enable_sequential_cpu_offload(device=device)
    else:
        pipeline.to(device)


def float32_vae(pipeline: Any, folder: Path) -> Any:  # noqa: ANN401 - torch things
    """Load the part that turns numbers into a picture once more, in float32; it takes what the rest computed."""
    torch = importlib.import_module("torch")
    kind = type(pipeline.vae)
    vae = kind.from_pretrained(folder / "vae", torch_dtype=torch.float32, use_safetensors=True, local_files_only=True)
    decode = vae.decode
    vae.decode = lambda latents, *given, **named: decode(latents.float(), *given, **named)
    return vae.eval()
