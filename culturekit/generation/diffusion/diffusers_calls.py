"""How a pipeline is called for a batch, its refiner after it, and what is noted of each request."""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.torch_places import mend_torchvision, needed_package, quiet
from culturekit.generation.backend import ImageRequest
from culturekit.generation.diffusion.diffusers_folder import Options, PipelineFolder, custom
from culturekit.version import install_line

# Pipelines of diffusers, loaded from a folder that was found safe: adapters, device, precision, what waits outside.

quietly = partial(quiet, "diffusers", "transformers", category=FutureWarning, module=r"diffusers\b")
_DENOISERS = ("transformer", "unet", "prior", "transformer_2")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The pipelines of one lane, and where they work."""

    base: Any
    refiner: Any
    device: Any
    dtype: Any


def _pipeline_class(folder: PipelineFolder) -> Any:  # noqa: ANN401 - a class of diffusers
    """Find the class of a pipeline among those of diffusers; code that comes with a model is not run."""
    diffusers = needed_package("diffusers", kind="backend diffusers", extra="embed,generate")
    kind = getattr(diffusers, folder.kind, None)
    if not (inspect.isclass(kind) and issubclass(kind, diffusers.DiffusionPipeline)):
        raise custom(folder.path, folder.kind)
    for part in folder.components():
        if part.library not in {"diffusers", "transformers"} and not hasattr(diffusers.pipelines, part.library):
            raise custom(folder.path, f"{part.name}: {part.library}.{part.kind}")
    if "prompt" not in _defaults_of(kind):
        raise UsageError("this pipeline makes no pictures of prompts", where=str(folder.path), found=folder.kind)
    return kind


def _defaults_of(kind: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a class of diffusers
    """Give what a pipeline can be told when it is called, and what it does otherwise."""
    return {name: one.default for name, one in inspect.signature(kind.__call__).parameters.items()}


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
    if options.unet:
        _replace_denoiser(base, Path(options.unet).expanduser(), dtype)
    if adapters:
        _adapt(base, adapters, options)
    _settle(base, folder, options, device)
    second = None if refiner is None else loaded(refiner, dtype)
    if refiner is not None:
        _settle(second, refiner, options, device)
    return Loaded(base, second, device, dtype)


def loaded(folder: PipelineFolder, dtype: Any) -> Any:  # noqa: ANN401 - a pipeline
    """Load one pipeline: safetensors of this folder, classes of diffusers and transformers, nothing else."""
    kind = _pipeline_class(folder)
    keywords = {"add_watermarker": False} if "add_watermarker" in inspect.signature(kind.__init__).parameters else {}
    try:
        for part in folder.components():
            if part.library in {"diffusers", "transformers"}:
                getattr(getattr(importlib.import_module(part.library), part.kind, None), "from_pretrained", None)
        pipeline = kind.from_pretrained(
            folder.path, torch_dtype=dtype, use_safetensors=True, local_files_only=True,
            variant=folder.variant or None, **keywords,
        )  # fmt: skip
    except ImportError as error:
        raise MissingDependency(
            f"the pipeline {folder.kind} needs a package that is not installed",
            where=str(folder.path),
            found=_first_line(error),
            hint=f"Install it with: {install_line_for(error)}",
        ) from error
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, KeyError) as error:
        raise UsageError(
            "diffusers cannot load this pipeline",
            where=str(folder.path),
            expected=folder.kind,
            found=_first_line(error),
        ) from error
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


_NEEDED = re.compile(r"requires (?:the )?([\w-]+) library", re.IGNORECASE)
# packages that come with the extras `embed` and `generate`; torchvision does too, if it fits
_OURS = {"accelerate", "diffusers", "huggingface_hub", "peft", "pytorch", "safetensors", "torch", "transformers"}


def install_line_for(error: ImportError) -> str:
    """Give the command that brings what an import lacks."""
    named = _NEEDED.search(str(error))
    package = named[1].lower() if named else error.name or ""
    if package == "torchvision" and mend_torchvision() == "hidden":  # installed, but made for another torch
        return install_line(packages="--force-reinstall --no-deps torchvision")
    return install_line("embed,generate") if package in {*_OURS, "torchvision", ""} else install_line(packages=package)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def _replace_denoiser(pipeline: Any, folder: Path, dtype: Any) -> None:  # noqa: ANN401 - torch things
    """Put the denoiser of a folder in place of the pipeline's own."""
    if getattr(pipeline, "unet", None) is None:
        raise UsageError("this pipeline has no unet", found=type(pipeline).__name__, where=str(folder))
    try:
        unet = type(pipeline.unet).from_pretrained(
            folder, torch_dtype=dtype, use_safetensors=True, local_files_only=True
        )
    except (OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        raise UsageError("this denoiser cannot be loaded", where=str(folder), found=_first_line(error)) from error
    if dict(unet.config)["cross_attention_dim"] != dict(pipeline.unet.config)["cross_attention_dim"]:
        raise UsageError("this denoiser does not fit the pipeline", where=str(folder),
                         expected=f"cross_attention_dim {pipeline.unet.config.cross_attention_dim}",
                         found=str(unet.config.cross_attention_dim))  # fmt: skip
    pipeline.register_modules(unet=unet.eval())


def _adapt(pipeline: Any, adapters: Sequence[Path], options: Options) -> None:  # noqa: ANN401 - a pipeline
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
                "this adapter does not fit the pipeline", where=str(path), found=_first_line(error)
            ) from error
    adapter_names = {name for some in pipeline.get_list_adapters().values() for name in some}
    for name, path in zip(names, adapters, strict=True):
        if name not in adapter_names:
            raise UsageError("this adapter changes no part of the pipeline", where=str(path))
    scale = 1.0 if options.lora_scale is None else options.lora_scale
    pipeline.set_adapters(names, [scale] * len(names))


def _settle(pipeline: Any, folder: PipelineFolder, options: Options, device: Any) -> None:  # noqa: ANN401 - torch things
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
        getattr(
            pipeline, next((name for name in _DENOISERS if getattr(pipeline, name, None) is not None), "")
        ).compile()
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


# what an option is called by diffusers
_OPTIONS = {"steps": "num_inference_steps", "true_guidance": "true_cfg_scale", "tokens": "max_sequence_length"}
# what the option `guidance` is called: HunyuanImage has only the second
GUIDANCES = ("guidance_scale", "distilled_guidance_scale")
_ENDLESS = 10**6  # what tokenizers give as their context that know of none
# the negative prompt of a pipeline whose true guidance needs one, where there is none: as its makers advise
_NOTHING = " "


@dataclass(frozen=True, slots=True)
class _Guidance:
    """How a pipeline is told to follow the prompt; `no_negative` says why a negative prompt has no effect."""

    arguments: Mapping[str, float]
    no_negative: str
    fills: bool

    def negative(self, request: ImageRequest, options: Options) -> str | None:
        """Give the negative prompt that is sent; None where none is."""
        text = _wanted_negative(request, options)
        if self.no_negative:
            return None
        return text or (_NOTHING if self.fills else None)


class TextReaders:
    """The tokenizers of a pipeline, and how much of a text each text encoder reads."""

    def __init__(self, pipeline: Any, tokens: int) -> None:  # noqa: ANN401 - a pipeline
        """Find them; `tokens` is how many a long encoder reads, 0 what the pipeline does by itself."""
        usual = tokens or _defaults_of(type(pipeline)).get("max_sequence_length") or 0
        kind = type(pipeline)
        codes = (getattr(getattr(kind, name), "__code__", None) for name in dir(kind) if "prompt" in name)
        chats = any("apply_chat_template" in code.co_names for code in codes if code is not None)
        self.readers: dict[str, tuple[Callable[[str], Sequence[int]], int]] = {}
        self.last: tuple[str, dict[str, list[int]]] = ("", {})
        for name, part in sorted(pipeline.components.items()):
            # ByT5 reads only what a prompt has in quotes
            if not name.startswith("tokenizer") or part is None or type(part).__name__.startswith("ByT5"):
                continue
            # a processor would take a text for the address of a picture
            tokenizer = part.tokenizer if hasattr(part, "image_processor") else part
            longest = int(getattr(tokenizer, "model_max_length", _ENDLESS))
            is_clip = type(tokenizer).__name__.startswith("CLIP")
            long = usual or getattr(pipeline, f"{name}_max_length", 0)
            most = longest if is_clip or not long else long
            if most < _ENDLESS:
                system = getattr(pipeline, "system_message", "")
                read = (
                    partial(_tokens_in_conversation, part, tokenizer, system)
                    if chats
                    else partial(_tokens_of, tokenizer)
                )
                self.readers[name] = (read, most)

    def cut(self, text: str) -> dict[str, list[int]]:
        """Say by tokenizer how many tokens a text has and how many are read, where that is fewer."""
        if text != self.last[0]:  # the images of a prompt follow one another
            counts = {name: (len(read(text)), most) for name, (read, most) in self.readers.items()}
            self.last = text, {name: [count, most] for name, (count, most) in counts.items() if count > most}
        return self.last[1]


def _tokens_of(tokenizer: Any, text: str) -> Sequence[int]:  # noqa: ANN401 - a tokenizer
    ids: Sequence[int] = tokenizer(text)["input_ids"]
    return ids


def _tokens_in_conversation(part: Any, tokenizer: Any, system: str, text: str) -> Sequence[int]:  # noqa: ANN401
    """Read a text as what a user says, after what the pipeline itself says first."""
    if system:  # so does FLUX.2, in parts of a type each
        turns = [{"role": role, "content": [{"type": "text", "text": content}]} for role, content in
                 (("system", system), ("user", text))]  # fmt: skip
        return _tokens_of(tokenizer, part.apply_chat_template(turns, tokenize=False))
    turn = {"role": "user", "content": text}
    return _tokens_of(tokenizer, part.apply_chat_template([turn], tokenize=False, add_generation_prompt=True))


@dataclass(frozen=True, slots=True)
class Call:
    """A pipeline, perhaps with a refiner, and what it is told each time."""

    loaded: Loaded
    options: Options
    guidance: _Guidance
    readers: TextReaders
    arguments: Mapping[str, Any]

    @property
    def honours_seeds(self) -> bool:
        """Whether the pipeline draws its noise from the generators that it is given."""
        return "generator" in _defaults_of(type(self.loaded.base))

    def numbers(self, requests: Sequence[ImageRequest]) -> tuple[Any, Sequence[bool | None]]:
        """Draw a batch: numbers of 0 to 1, and what a safety checker says of each picture."""
        generators = [
            importlib.import_module("torch").Generator("cpu").manual_seed(request.seed) for request in requests
        ]
        given = {**self.arguments, **self.asked(self.loaded.base, requests, generators)}
        size = {"width": requests[0].width, "height": requests[0].height}
        given |= {name: pixels for name, pixels in size.items() if pixels is not None}
        if self.loaded.refiner is None:
            return _pictures(self.loaded.base(**given, output_type="np"), len(requests))
        share = self.options.share_before_refiner
        latents = self.loaded.base(**given, output_type="latent", denoising_end=share).images
        given = {**self.arguments, **self.asked(self.loaded.refiner, requests, generators)}
        refined = self.loaded.refiner(**given, image=latents, denoising_start=share, output_type="np")
        return _pictures(refined, len(requests))

    def asked(self, pipeline: Any, requests: Sequence[ImageRequest], generators: Sequence[Any]) -> dict[str, Any]:  # noqa: ANN401
        """Write the prompts of a batch as a pipeline takes them."""
        given: dict[str, Any] = {"prompt": [request.text for request in requests]}
        negatives = [self.guidance.negative(request, self.options) for request in requests]
        if any(text is not None for text in negatives):
            given["negative_prompt"] = [text or "" for text in negatives]
        if "generator" in _defaults_of(type(pipeline)):
            given["generator"] = generators
        return given

    def notes(self, request: ImageRequest) -> tuple[dict[str, object], list[str]]:
        """Say what was sent besides the prompt, and what of it had no effect."""
        negative, wanted = self.guidance.negative(request, self.options), _wanted_negative(request, self.options)
        notes: dict[str, object] = {} if negative is None else {"negative_prompt": negative}
        odd = []
        if wanted and self.guidance.no_negative:
            notes["negative_prompt_left_out"] = wanted
            odd.append(f"the negative prompt has no effect: {self.guidance.no_negative}")
        cuts = self.readers.cut(request.text)
        if cuts:
            notes["prompt_cut"] = cuts
            odd += [
                f"the prompt is longer than the {most} tokens of {name}" for name, (_, most) in sorted(cuts.items())
            ]
        return notes, odd


def _pictures(output: Any, count: int) -> tuple[Any, Sequence[bool | None]]:  # noqa: ANN401 - what pipelines give
    """Take the pictures out of what a pipeline gives, and what its safety checker says."""
    flags = getattr(output, "nsfw_content_detected", None)
    images = getattr(output, "images", None)
    if images is None or getattr(images, "ndim", 0) != 4 or len(images) != count or images.shape[-1] != 3:
        raise UsageError("this pipeline gives no pictures of three colours", found=type(output).__name__)
    return images, [None] * count if flags is None else [bool(flag) for flag in flags]


def call_of(loaded: Loaded, options: Options) -> Call:
    """Find out how a pipeline is called with some options; one that it cannot be told is refused."""
    defaults, name = _defaults_of(type(loaded.base)), type(loaded.base).__name__
    for option, argument in _OPTIONS.items():
        if getattr(options, option) and argument not in defaults:
            raise UsageError(f"{name} has no {argument}", found=f"{option}={getattr(options, option)}")
    if options.guidance is not None and not _heeded_guidance(loaded.base) and guider_of(loaded.base) is None:
        other = "true_guidance" if "true_cfg_scale" in defaults else ""
        raise UsageError(
            "this pipeline was not trained to be told guidance_scale, and leaves it out",
            found=f"guidance={options.guidance}", hint=f"Use {other}." if other else "Leave the option away.",
        )  # fmt: skip
    begins = () if loaded.refiner is None else _defaults_of(type(loaded.refiner))
    if loaded.refiner is not None and not ("denoising_end" in defaults and {"denoising_start", "image"} <= set(begins)):
        raise UsageError(
            "these two pipelines cannot share the steps", expected="a base and a refiner, as SDXL has them",
            found=f"{name} and {type(loaded.refiner).__name__}",
        )  # fmt: skip
    guidance = guidance_of(loaded.base, options)
    arguments: dict[str, Any] = dict(guidance.arguments)
    if "num_inference_steps" in defaults:
        arguments["num_inference_steps"] = options.steps or defaults["num_inference_steps"]
    if options.tokens:
        arguments["max_sequence_length"] = options.tokens
    return Call(loaded, options, guidance, TextReaders(loaded.base, options.tokens), arguments)


def _wanted_negative(request: ImageRequest, options: Options) -> str | None:
    """Give the negative prompt that was asked for: the prompt's own, or the one of the SPEC."""
    return options.negative or None if request.negative_text is None else request.negative_text


def guidance_of(pipeline: Any, options: Options) -> _Guidance:  # noqa: ANN401 - a pipeline
    """Find out what a pipeline makes of guidance and negative prompts."""
    defaults, name = _defaults_of(type(pipeline)), type(pipeline).__name__
    heeded = _heeded_guidance(pipeline)
    stated = {heeded: options.guidance, "true_cfg_scale": options.true_guidance}
    arguments = {
        key: float(defaults[key] if value is None else value)
        for key, value in stated.items()
        if key in defaults and (value is not None or defaults[key] is not None)
    }
    if "negative_prompt" not in defaults:
        return _Guidance(arguments, f"{name} has no negative prompts", fills=False)
    if "true_cfg_scale" in defaults:
        idle = arguments.get("true_cfg_scale", 2.0) <= 1
        return _Guidance(arguments, f"{name} heeds them only with true_guidance above 1" if idle else "", fills=True)
    if "guider" in pipeline.components:
        idle = (guider := guider_of(pipeline)) is None or guider.num_conditions < 2
        return _Guidance(arguments, f"{name} heeds them only with a guider at work" if idle else "", fills=False)
    least = 0 if _is_classifier_free(pipeline, 0.5) else 1
    idle = arguments.get(heeded, 2.0) <= least
    return _Guidance(arguments, f"{name} heeds them only with guidance above {least}" if idle else "", fills=False)


_STRONG = 100.0  # guidance at which every pipeline that can be guided is


def _heeded_guidance(pipeline: Any) -> str:  # noqa: ANN401 - a pipeline
    """Name the argument of a pipeline that says how closely to follow the prompt; empty where it has no effect.

    A pipeline either computes every step with and without the prompt, or was trained to be told a number.
    """
    name = next((name for name in GUIDANCES if name in _defaults_of(type(pipeline))), "")
    trained = [
        getattr(getattr(pipeline, part, None), "config", {}).get(key)
        for part, key in (("transformer", "guidance_embeds"), ("unet", "time_cond_proj_dim"))
    ]
    if any(trained):
        return name
    if hasattr(type(pipeline), "do_classifier_free_guidance"):
        return name if _is_classifier_free(pipeline, _STRONG) else ""
    return "" if trained[0] is False else name


def _is_classifier_free(pipeline: Any, strength: float) -> bool:  # noqa: ANN401 - a pipeline
    """Ask a pipeline whether with some guidance it computes every step also without the prompt."""
    try:
        pipeline._guidance_scale = strength
        return bool(pipeline.do_classifier_free_guidance)
    except AttributeError:  # it knows only while it is called
        return strength > 1


def guider_of(pipeline: Any) -> Any:  # noqa: ANN401 - parts of pipelines
    """Give the part of a pipeline that guides, as HunyuanImage has one, if it is at work."""
    guider = getattr(pipeline, "guider", None)
    return guider if getattr(guider, "_enabled", False) else None
