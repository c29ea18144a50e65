"""What becomes of a prompt in a pipeline: a negative prompt that has no effect, a text longer than an encoder reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.generation.backend import ImageRequest
from culturekit.generation.diffusion.diffusers_loading import defaults_of
from culturekit.generation.diffusion.diffusers_options import Options

__all__ = ["Guidance", "TextReaders", "guidance_of"]

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


def wanted_negative(request: ImageRequest, options: Options) -> str | None:
    """Give the negative prompt that was asked for: the prompt's own, or the one of the SPEC."""
    return options.negative or None if request.negative_text is None else request.negative_text


def guidance_of(pipeline: Any, options: Options) -> Guidance:  # noqa: ANN401 - a pipeline
    """Find out what a pipeline makes of guidance and negative prompts."""
    defaults, name = defaults_of(type(pipeline)), type(pipeline).__name__
    arguments = {
        key: float(value)
        for key, value in {
            "guidance_scale": options.guidance if options.guidance is not None else defaults.get("guidance_scale"),
            "true_cfg_scale": (
                options.true_guidance if options.true_guidance is not None else defaults.get("true_cfg_scale")
            ),
        }.items()
        if value is not None and key in defaults
    }
    if "negative_prompt" not in defaults:
        return Guidance(arguments, f"{name} has no negative prompts", fills=False)
    deciding = "true_cfg_scale" if "true_cfg_scale" in defaults else "guidance_scale"
    strength = arguments.get(deciding)
    if strength is not None and strength <= 1:
        option = "true_guidance" if deciding == "true_cfg_scale" else "guidance"
        return Guidance(arguments, f"{name} heeds them only with {option} above 1", fills=False)
    return Guidance(arguments, "", fills=deciding == "true_cfg_scale")


class TextReaders:
    """The tokenizers of a pipeline, and how much of a text each text encoder reads."""

    def __init__(self, pipeline: Any, tokens: int) -> None:  # noqa: ANN401 - a pipeline
        """Find them; `tokens` is how many a long encoder reads, 0 what the pipeline does by itself."""
        long = tokens or defaults_of(type(pipeline)).get("max_sequence_length") or 0
        self.readers: dict[str, tuple[Any, int]] = {}
        self.last: tuple[str, dict[str, list[int]]] = ("", {})
        for name, part in sorted(pipeline.components.items()):
            if not name.startswith("tokenizer") or part is None or not callable(part):
                continue
            own = int(getattr(part, "model_max_length", ENDLESS))
            is_clip = type(part).__name__.startswith("CLIP")
            most = own if is_clip or not long else long
            if most < ENDLESS:
                self.readers[name] = (part, most)

    def cut(self, text: str) -> dict[str, list[int]]:
        """Say by tokenizer how many tokens a text has and how many are read, where that is fewer."""
        if text != self.last[0]:  # the images of a prompt follow one another
            counts = {name: (len(reader(text)["input_ids"]), most) for name, (reader, most) in self.readers.items()}
            self.last = text, {name: [count, most] for name, (count, most) in counts.items() if count > most}
        return self.last[1]


def told_about_cuts(cuts: Mapping[str, Sequence[int]]) -> list[str]:
    """Say which text encoders did not read all of a prompt."""
    return [f"the prompt is longer than the {most} tokens of {name}" for name, (_, most) in sorted(cuts.items())]
