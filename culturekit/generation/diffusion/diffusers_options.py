"""What can be said of a diffusers model in its SPEC; reading it needs neither torch nor diffusers."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec

__all__ = ["DIFFUSERS", "Offload", "Options"]

DIFFUSERS = "diffusers"

Offload: TypeAlias = Literal["none", "model", "sequential"]

Scale: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]


@dataclass(frozen=True, slots=True)
class Options:
    """How a pipeline is loaded and called; what is not given is the pipeline's own choice.

    An option that a pipeline does not have, or that would do nothing, is refused. Each row records `model_version` (the
    hash of weights and settings, with the commit), the seed and `seed_honoured`, and in `provider_params` pipeline,
    scheduler, steps, guidance, dtype, device, batch, negative prompt, adapters, refiner, and `findings`:

    - a negative prompt that the pipeline does not have, or does not heed;
    - a prompt longer than a text encoder reads, with the tokens and the limit;
    - numbers that are not finite in half precision: decoded again in float32, else the status is `failed`;
    - a picture of one colour. One that a safety checker blacked out has the status `refused`.

    Attributes:
        steps: How often the noise is taken away.
        guidance: `guidance_scale`, or what the pipeline has in its place: how closely the picture follows the prompt.
        true_guidance: `true_cfg_scale`, for pipelines such as FLUX and Qwen-Image that have it: how far the picture is
            pushed away from the negative prompt.
        negative: The negative prompt of prompts that have none of their own.
        tokens: `max_sequence_length`: how many tokens a long text encoder reads.
        dtype: The numbers it is computed in; `auto` is float32 on a CPU and bfloat16 on a GPU.
        vae: `float32` decodes every picture in float32, whatever the rest is computed in.
        device: `auto`, `cpu`, `mps`, `cuda`, `cuda:N`; `auto` and `cuda` take every GPU there is, each with weights of
            its own, and so does a list such as `cuda:0,cuda:2` with those that it names.
        offload: What waits in the memory of the computer while it is not needed: nothing, whole models, or every layer.
        compile: Compile the part that takes the noise away.
        batch: Images computed at once, on each device; 0 is 1 on a CPU and 4 on a GPU. Halved when memory is full.
        refiner: Folder or hub id of the pipeline that takes the last of the noise away, as SDXL has one.
        high_noise: The share of the steps that is done before the refiner takes over, else 0.8.
        lora: Folder, or one file of it, with adapters in safetensors; or a hub id, with `/FILE.safetensors` where there
            are several.
        lora_scale: How strongly these act, else 1.
        lora_revision: Branch, tag or commit, of a hub id.
        revision: Branch, tag or commit, of a hub id.
        variant: Which of several sets of weights in the folder is loaded, such as fp16.
    """

    steps: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    guidance: Scale | None = None
    true_guidance: Scale | None = None
    negative: str = ""
    tokens: Annotated[int, msgspec.Meta(ge=0, le=8192)] = 0
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    vae: Literal["auto", "float32"] = "auto"
    device: str = "auto"
    offload: Offload = "none"
    compile: bool = False
    batch: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0
    refiner: str = ""
    high_noise: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    lora: str = ""
    lora_scale: Annotated[float, msgspec.Meta(ge=-10, le=10)] | None = None
    lora_revision: str = ""
    revision: str = ""
    variant: Annotated[str, msgspec.Meta(pattern=r"^\w*$")] = ""

    def __post_init__(self) -> None:
        """Refuse what would do nothing."""
        if self.high_noise is not None and not self.refiner:
            raise ValueError("high_noise is the share of the steps before a refiner, and there is none")
        if self.lora_scale is not None and not self.lora:
            raise ValueError("lora_scale is how strongly adapters act, and there are none")
        if self.lora_revision and not self.lora:
            raise ValueError("lora_revision is of adapters from the hub, and there are none")

    @property
    def share_before_refiner(self) -> float:
        """The share of the steps that the first pipeline does; the published one of SDXL unless told."""
        return 0.8 if self.high_noise is None else self.high_noise
