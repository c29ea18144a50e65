"""How a pipeline is called for a batch, its refiner after it, and what is noted of each request."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from culturekit.errors import UsageError
from culturekit.generation.backend import ImageRequest
from culturekit.generation.diffusion.diffusers_loading import Loaded, defaults_of
from culturekit.generation.diffusion.diffusers_options import Options

__all__ = ["GUIDANCES", "Call", "call_of", "guidance_of", "guider_of"]

OPTIONS = {"steps": "num_inference_steps", "true_guidance": "true_cfg_scale", "tokens": "max_sequence_length"}
"""What an option is called by diffusers."""

GUIDANCES = ("guidance_scale", "distilled_guidance_scale")
"""What the option `guidance` is called: HunyuanImage has only the second."""

ENDLESS = 10**6
"""What tokenizers give as their context that know of none."""

NOTHING = " "
"""The negative prompt of a pipeline whose true guidance needs one, where there is none: as its makers advise."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """How a pipeline is told to follow the prompt; `no_negative` says why a negative prompt has no effect."""

    arguments: Mapping[str, float]
    no_negative: str
    fills: bool

    def negative(self, request: ImageRequest, options: Options) -> str | None:
        """Give the negative prompt that is sent; None where none is."""
        text = wanted_negative(request, options)
        if self.no_negative:
            return None
        return text or (NOTHING if self.fills else None)


class TextReaders:
    """The tokenizers of a pipeline, and how much of a text each text encoder reads."""

    def __init__(self, pipeline: Any, tokens: int) -> None:  # noqa: ANN401 - a pipeline
        """Find them; `tokens` is how many a long encoder reads, 0 what the pipeline does by itself."""
        usual = tokens or defaults_of(type(pipeline)).get("max_sequence_length") or 0
        chats = writes_conversations(type(pipeline))
        self.readers: dict[str, tuple[Callable[[str], Sequence[int]], int]] = {}
        self.last: tuple[str, dict[str, list[int]]] = ("", {})
        for name, part in sorted(pipeline.components.items()):
            # ByT5 reads only what a prompt has in quotes
            if not name.startswith("tokenizer") or part is None or type(part).__name__.startswith("ByT5"):
                continue
            # a processor would take a text for the address of a picture
            tokenizer = part.tokenizer if hasattr(part, "image_processor") else part
            own = int(getattr(tokenizer, "model_max_length", ENDLESS))
            is_clip = type(tokenizer).__name__.startswith("CLIP")
            long = usual or getattr(pipeline, f"{name}_max_length", 0)
            most = own if is_clip or not long else long
            if most < ENDLESS:
                system = getattr(pipeline, "system_message", "")
                read = (
                    partial(tokens_in_conversation, part, tokenizer, system) if chats else partial(tokens_of, tokenizer)
                )
                self.readers[name] = (read, most)

    def cut(self, text: str) -> dict[str, list[int]]:
        """Say by tokenizer how many tokens a text has and how many are read, where that is fewer."""
        if text != self.last[0]:  # the images of a prompt follow one another
            counts = {name: (len(read(text)), most) for name, (read, most) in self.readers.items()}
            self.last = text, {name: [count, most] for name, (count, most) in counts.items() if count > most}
        return self.last[1]


def tokens_of(tokenizer: Any, text: str) -> Sequence[int]:  # noqa: ANN401 - a tokenizer
    """Read a text as it is."""
    ids: Sequence[int] = tokenizer(text)["input_ids"]
    return ids


def tokens_in_conversation(part: Any, tokenizer: Any, system: str, text: str) -> Sequence[int]:  # noqa: ANN401
    """Read a text as what a user says, after what the pipeline itself says first."""
    if system:  # so does FLUX.2, in parts of a type each
        turns = [{"role": role, "content": [{"type": "text", "text": said}]} for role, said in
                 (("system", system), ("user", text))]  # fmt: skip
        return tokens_of(tokenizer, part.apply_chat_template(turns, tokenize=False))
    turn = {"role": "user", "content": text}
    return tokens_of(tokenizer, part.apply_chat_template([turn], tokenize=False, add_generation_prompt=True))


def writes_conversations(kind: Any) -> bool:  # noqa: ANN401 - a class of diffusers
    """Tell whether a pipeline puts prompts into a conversation, whose other words count as tokens too."""
    codes = (getattr(getattr(kind, name), "__code__", None) for name in dir(kind) if "prompt" in name)
    return any("apply_chat_template" in code.co_names for code in codes if code is not None)


@dataclass(frozen=True, slots=True)
class Call:
    """A pipeline, perhaps with a refiner, and what it is told each time."""

    loaded: Loaded
    options: Options
    guidance: Guidance
    readers: TextReaders
    arguments: Mapping[str, Any]

    @property
    def honours_seeds(self) -> bool:
        """Whether the pipeline draws its noise from the generators that it is given."""
        return "generator" in defaults_of(type(self.loaded.base))

    def numbers(self, requests: Sequence[ImageRequest]) -> tuple[Any, Sequence[bool | None]]:
        """Draw a batch: numbers of 0 to 1, and what a safety checker says of each picture."""
        generators = [seeded(request.seed) for request in requests]
        given = {**self.arguments, **self.asked(self.loaded.base, requests, generators)}
        size = {"width": requests[0].width, "height": requests[0].height}
        given |= {name: pixels for name, pixels in size.items() if pixels is not None}
        if self.loaded.refiner is None:
            return pictures(self.loaded.base(**given, output_type="np"), len(requests))
        share = self.options.share_before_refiner
        latents = self.loaded.base(**given, output_type="latent", denoising_end=share).images
        given = {**self.arguments, **self.asked(self.loaded.refiner, requests, generators)}
        refined = self.loaded.refiner(**given, image=latents, denoising_start=share, output_type="np")
        return pictures(refined, len(requests))

    def asked(self, pipeline: Any, requests: Sequence[ImageRequest], generators: Sequence[Any]) -> dict[str, Any]:  # noqa: ANN401
        """Write the prompts of a batch as a pipeline takes them."""
        given: dict[str, Any] = {"prompt": [request.text for request in requests]}
        negatives = [self.guidance.negative(request, self.options) for request in requests]
        if any(text is not None for text in negatives):
            given["negative_prompt"] = [text or "" for text in negatives]
        if "generator" in defaults_of(type(pipeline)):
            given["generator"] = generators
        return given

    def notes(self, request: ImageRequest) -> tuple[dict[str, object], list[str]]:
        """Say what was sent besides the prompt, and what of it had no effect."""
        negative, wanted = self.guidance.negative(request, self.options), wanted_negative(request, self.options)
        notes: dict[str, object] = {} if negative is None else {"negative_prompt": negative}
        odd = []
        if wanted and self.guidance.no_negative:
            notes["negative_prompt_left_out"] = wanted
            odd.append(f"the negative prompt has no effect: {self.guidance.no_negative}")
        cuts = self.readers.cut(request.text)
        if cuts:
            notes["prompt_cut"] = cuts
            odd += cut_notes(cuts)
        return notes, odd


def pictures(output: Any, count: int) -> tuple[Any, Sequence[bool | None]]:  # noqa: ANN401 - what pipelines give
    """Take the pictures out of what a pipeline gives, and what its safety checker says."""
    flags = getattr(output, "nsfw_content_detected", None)
    images = getattr(output, "images", None)
    if images is None or getattr(images, "ndim", 0) != 4 or len(images) != count or images.shape[-1] != 3:
        raise UsageError("this pipeline gives no pictures of three colours", found=type(output).__name__)
    return images, [None] * count if flags is None else [bool(flag) for flag in flags]


def seeded(seed: int) -> Any:  # noqa: ANN401 - a generator of torch
    """Make the generator of one image; on the CPU, so that a seed means the same noise on every device."""
    return importlib.import_module("torch").Generator("cpu").manual_seed(seed)


def call_of(loaded: Loaded, options: Options) -> Call:
    """Find out how a pipeline is called with some options; one that it cannot be told is refused."""
    defaults, name = defaults_of(type(loaded.base)), type(loaded.base).__name__
    for option, argument in OPTIONS.items():
        if getattr(options, option) and argument not in defaults:
            raise UsageError(f"{name} has no {argument}", found=f"{option}={getattr(options, option)}")
    if options.guidance is not None and not heeded_guidance(loaded.base) and guider_of(loaded.base) is None:
        other = "true_guidance" if "true_cfg_scale" in defaults else ""
        raise UsageError(
            "this pipeline was not trained to be told guidance_scale, and leaves it out",
            found=f"guidance={options.guidance}", hint=f"Use {other}." if other else "Leave the option away.",
        )  # fmt: skip
    if loaded.refiner is not None:
        check_refiner(loaded, name)
    guidance = guidance_of(loaded.base, options)
    arguments: dict[str, Any] = dict(guidance.arguments)
    if "num_inference_steps" in defaults:
        arguments["num_inference_steps"] = options.steps or defaults["num_inference_steps"]
    if options.tokens:
        arguments["max_sequence_length"] = options.tokens
    return Call(loaded, options, guidance, TextReaders(loaded.base, options.tokens), arguments)


def check_refiner(loaded: Loaded, name: str) -> None:
    """Make sure that one pipeline can leave off where the other goes on."""
    ends = "denoising_end" in defaults_of(type(loaded.base))
    begins = {"denoising_start", "image"} <= set(defaults_of(type(loaded.refiner)))
    if not (ends and begins):
        raise UsageError(
            "these two pipelines cannot share the steps", expected="a base and a refiner, as SDXL has them",
            found=f"{name} and {type(loaded.refiner).__name__}",
        )  # fmt: skip


def wanted_negative(request: ImageRequest, options: Options) -> str | None:
    """Give the negative prompt that was asked for: the prompt's own, or the one of the SPEC."""
    return options.negative or None if request.negative_text is None else request.negative_text


def guidance_of(pipeline: Any, options: Options) -> Guidance:  # noqa: ANN401 - a pipeline
    """Find out what a pipeline makes of guidance and negative prompts."""
    defaults, name = defaults_of(type(pipeline)), type(pipeline).__name__
    heeded = heeded_guidance(pipeline)
    stated = {heeded: options.guidance, "true_cfg_scale": options.true_guidance}
    arguments = {
        key: float(defaults[key] if value is None else value)
        for key, value in stated.items()
        if key in defaults and (value is not None or defaults[key] is not None)
    }
    if "negative_prompt" not in defaults:
        return Guidance(arguments, f"{name} has no negative prompts", fills=False)
    if "true_cfg_scale" in defaults:
        idle = arguments.get("true_cfg_scale", 2.0) <= 1
        return Guidance(arguments, f"{name} heeds them only with true_guidance above 1" if idle else "", fills=True)
    if "guider" in pipeline.components:
        idle = (guider := guider_of(pipeline)) is None or guider.num_conditions < 2
        return Guidance(arguments, f"{name} heeds them only with a guider at work" if idle else "", fills=False)
    least = 0 if is_classifier_free(pipeline, 0.5) else 1
    idle = arguments.get(heeded, 2.0) <= least
    return Guidance(arguments, f"{name} heeds them only with guidance above {least}" if idle else "", fills=False)


STRONG = 100.0
"""Guidance at which every pipeline that can be guided is."""


def heeded_guidance(pipeline: Any) -> str:  # noqa: ANN401 - a pipeline
    """Name the argument of a pipeline that says how closely to follow the prompt; empty where it has no effect.

    A pipeline either computes every step with and without the prompt, or was trained to be told a number.
    """
    name = next((name for name in GUIDANCES if name in defaults_of(type(pipeline))), "")
    trained = [
        getattr(getattr(pipeline, part, None), "config", {}).get(key)
        for part, key in (("transformer", "guidance_embeds"), ("unet", "time_cond_proj_dim"))
    ]
    if any(trained):
        return name
    if hasattr(type(pipeline), "do_classifier_free_guidance"):
        return name if is_classifier_free(pipeline, STRONG) else ""
    return "" if trained[0] is False else name


def is_classifier_free(pipeline: Any, strength: float) -> bool:  # noqa: ANN401 - a pipeline
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


def cut_notes(cuts: Mapping[str, Sequence[int]]) -> list[str]:
    """Say which text encoders did not read all of a prompt."""
    return [f"the prompt is longer than the {most} tokens of {name}" for name, (_, most) in sorted(cuts.items())]
