"""The folder of a pipeline: found, made sure that nothing in it can run, and hashed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.model_files import digest_of_files, hub_folder, read_json

_INDEX = "model_index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.msgpack", "*.onnx")
_FILES_OF_WEIGHTS = (".safetensors", *(pattern.removeprefix("*") for pattern in _PICKLES))
_TOLD_BY = ("*.json", "*.txt", "*.model", "*.jinja")
_STEM = r"(?:model|diffusion_pytorch_model)"
_WEIGHTLESS = re.compile(r"Tokenizer|Scheduler|Processor|Extractor|Guidance")
_HUB_LORA = re.compile(
    r"(?P<id>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:/(?P<file>(?:[\w.-]+/)*[\w.-]+\.safetensors))?"
)
_USUAL_LORA = "pytorch_lora_weights.safetensors"  # what diffusers calls the adapters that it saves
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class _Component:
    """A part of a pipeline: where its class is from, and what lies in its folder."""

    name: str
    library: str
    kind: str
    folder: Path
    variant: str

    def weights(self) -> list[Path]:
        """List the safetensors that are loaded: those of the variant, or the plain ones where it has none."""
        return self.named(self.variant) or self.named("")

    def named(self, variant: str) -> list[Path]:
        middle = re.escape(f".{variant}") if variant else ""
        pattern = re.compile(rf"{_STEM}{middle}(-\d{{5}}-of-\d{{5}})?\.safetensors")
        return sorted(path for path in self.folder.glob("*.safetensors") if pattern.fullmatch(path.name))

    def check(self) -> None:
        """Make sure that its weights are safetensors and that it brings no code."""
        _refuse_code(self.folder)
        if self.weights() or _WEIGHTLESS.search(self.kind):
            return
        others = sorted(path.name for path in self.folder.glob("*.safetensors"))
        pickles = sorted(path.name for pattern in _PICKLES for path in self.folder.glob(pattern))
        if others or not pickles:
            raise UsageError(
                "a part of the pipeline has no weights",
                where=str(self.folder),
                expected="model.safetensors or diffusion_pytorch_model.safetensors",
                found=", ".join(others),
                hint="A name such as model.fp16.safetensors is asked for with ?variant=fp16." if others else "",
            )
        raise UsageError(
            "these weights are a pickle, which can run any code when it is opened",
            where=str(self.folder),
            expected="safetensors",
            found=pickles[0],
            hint="Where you trust them: open them yourself and save them with save_pretrained(FOLDER), "
            "which writes safetensors.",
        )


@dataclass(frozen=True, slots=True)
class PipelineFolder:
    """A folder with a pipeline in it; `revision` is the commit of a hub id, and `local` of a folder of one's own."""

    path: Path
    revision: str
    variant: str = ""

    @property
    def kind(self) -> str:
        """The class of the pipeline."""
        return str(read_json(self.path / _INDEX)["_class_name"])

    def components(self) -> Iterator[_Component]:
        """List the components of the pipeline that the folder has."""
        for name, entry in sorted(read_json(self.path / _INDEX).items()):
            if isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) for part in entry):
                yield _Component(name, entry[0], entry[1], self.path / name, self.variant)

    def files(self) -> list[Path]:
        """List what decides a picture, in alphabetical order."""
        described = {path for part in self.components() for pattern in _TOLD_BY for path in part.folder.glob(pattern)}
        weights = {path for part in self.components() for path in part.weights()}
        return sorted({self.path / _INDEX, *described, *weights})

    def digest(self) -> str:
        """Hash the names and bytes of all that decides a picture."""
        return digest_of_files(self.files(), root=self.path)

    def check(self) -> None:
        """Make sure that it is a pipeline of diffusers itself, of safetensors, with no code of its own."""
        index = read_json(self.path / _INDEX)
        if not isinstance(index.get("_class_name"), str):
            raise custom(self.path, str(index.get("_class_name")))
        _refuse_code(self.path)
        for name, entry in index.items():
            if isinstance(entry, list) and not name.isidentifier():
                raise IntegrityError("a part of the pipeline lies outside its folder", where=str(self.path), found=name)
        for part in self.components():
            part.check()


def _refuse_code(folder: Path) -> None:
    """Refuse a folder that comes with code, or asks for code from elsewhere."""
    code = sorted(path.name for path in folder.glob("*.py"))
    if code:
        raise custom(folder, code[0])
    for name in ("config.json", "tokenizer_config.json"):
        path = folder / name
        if path.is_file() and "auto_map" in read_json(path):
            raise custom(path, "auto_map")


def custom(path: Path, found: str) -> UsageError:
    """Say that code that comes with a model is not run."""
    return UsageError(
        "this pipeline brings code of its own, which is never run",
        where=str(path),
        expected="a pipeline class of diffusers, and parts of diffusers and transformers",
        found=found,
    )


def find_pipeline(target: str, *, revision: str = "", variant: str = "", asked_by: str) -> PipelineFolder:
    """Find the folder of a pipeline, a local one or that of a hub id, and make sure that it is safe to load.

    Only what the cache lacks is fetched, and nothing is when the hub is switched off (HF_HUB_OFFLINE=1).
    """
    path = Path(target).expanduser()
    if target and path.is_dir():
        if revision:
            raise UsageError("only a hub id has revisions", where=target, found=f"revision={revision}")
        if not (path / _INDEX).is_file():
            raise UsageError("there is no pipeline in this folder", where=target, expected=_INDEX)
        folder = PipelineFolder(path, "local", variant)
    elif not _HUB_ID.fullmatch(target) or path.exists():
        raise UsageError(
            "this is not a folder with a pipeline in it",
            where=target or asked_by,
            expected="diffusers:FOLDER or diffusers:OWNER/NAME of the Hugging Face hub",
            hint="A single file of weights is no pipeline: save it as a folder with save_pretrained(FOLDER)."
            if path.is_file() else "",
        )  # fmt: skip
    else:
        folder = _from_hub(target, revision, variant, asked_by)
    folder.check()
    return folder


def _from_hub(name: str, revision: str, variant: str, asked_by: str) -> PipelineFolder:
    """Find a hub id in the local cache or fetch it: first what tells its parts, then their safetensors."""
    snapshot = hub_folder(
        name, revision, complete=lambda folder: (folder / _INDEX).is_file(), extra="generate", asked_by=asked_by,
        fetched=(_INDEX,),
    )  # fmt: skip
    if not (snapshot / _INDEX).is_file():
        raise UsageError("this is no pipeline of diffusers", where=name, expected=_INDEX)
    first = PipelineFolder(snapshot, snapshot.name, variant)
    parts = [part.name for part in first.components()]
    stems = ("model", "diffusion_pytorch_model")
    middles = ("", *((f".{variant}",) if variant else ()))
    wanted = [
        *(f"{part}/{pattern}" for part in parts for pattern in _TOLD_BY),
        *(
            f"{part}/{stem}{middle}{tail}.safetensors"
            for part in parts for stem in stems for middle in middles for tail in ("", "-*-of-*")
        ),
    ]  # fmt: skip

    def is_complete(folder: Path) -> bool:
        found = PipelineFolder(folder, folder.name, variant)
        return (folder / _INDEX).is_file() and all(
            part.weights() or (_WEIGHTLESS.search(part.kind) and part.folder.is_dir()) for part in found.components()
        )

    whole = hub_folder(
        name, revision or snapshot.name, complete=is_complete,
        extra="generate", asked_by=asked_by, fetched=(_INDEX, *wanted),
    )  # fmt: skip
    return PipelineFolder(whole, whole.name, variant)


def hub_lora(target: str) -> tuple[str, str] | None:
    """Read adapters of the hub as id and file; None where a folder or a file of one's own is named."""
    found = None if Path(target).expanduser().exists() else _HUB_LORA.fullmatch(target)
    return None if found is None or found["id"].endswith(_FILES_OF_WEIGHTS) else (found["id"], found["file"] or "")


def lora_files(target: str, revision: str = "") -> list[Path]:
    """List the adapters of a folder, or the one that is named, in a folder or on the hub."""
    path, on_hub = Path(target).expanduser(), hub_lora(target)
    if on_hub is not None:
        return [_lora_of_hub(*on_hub, revision)]
    if revision:
        raise UsageError("only a hub id has revisions", where=target, found=f"lora_revision={revision}")
    files = [path] if path.suffix == ".safetensors" and path.is_file() else sorted(path.glob("*.safetensors"))
    if files:
        return files
    pickles = sorted(name.name for pattern in _PICKLES for name in path.glob(pattern)) if path.is_dir() else []
    if pickles or path.suffix in {pattern.removeprefix("*") for pattern in _PICKLES}:
        raise UsageError(
            "these adapters are a pickle, which can run any code when it is opened",
            where=target, expected="a folder with safetensors", found=(pickles or [path.name])[0],
        )  # fmt: skip
    raise UsageError(
        "there are no adapters", where=target, expected="a folder with safetensors, or OWNER/NAME of the hub"
    )


def _lora_of_hub(name: str, file: str, revision: str) -> Path:
    """Find the adapter of a hub id in the local cache or fetch it; of several, one has to be named."""
    asked = file or _USUAL_LORA
    folder = hub_folder(
        name, revision, complete=lambda folder: (folder / asked).is_file(), extra="embed,generate",
        asked_by="lora", fetched=(file or "*.safetensors",),
    )  # fmt: skip
    if (folder / asked).is_file():
        return folder / asked
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.safetensors"))
    if len(found) == 1 and not file:
        return folder / found[0]
    raise UsageError(
        "there are several adapters under this hub id" if found else "there are no adapters under this hub id",
        where=name, expected=f"lora={name}/{found[0]}" if found else asked, found=", ".join(found[:8]) or file,
    )  # fmt: skip


def denoiser_files(target: str) -> list[Path]:
    """List the files of a denoiser that stands for a pipeline's own."""
    path = Path(target).expanduser()
    files = sorted(path.glob("diffusion_pytorch_model*.safetensors"))
    if not (files and (path / "config.json").is_file()):
        raise UsageError("there is no denoiser", where=target, expected="a folder with config.json and safetensors")
    return [path / "config.json", *files]


# What can be said of a diffusers model in its SPEC; reading it needs neither torch nor diffusers.

_Offload: TypeAlias = Literal["none", "model", "sequential"]
_Scale: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=100)]


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
        unet: Folder with a denoiser in place of the pipeline's own, as a full fine-tune writes it.
        lora_scale: How strongly adapters act, else 1.
        lora_revision: Branch, tag or commit, of a hub id.
        revision: Branch, tag or commit, of a hub id.
        variant: Which of several sets of weights in the folder is loaded, such as fp16.
    """

    steps: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    guidance: _Scale | None = None
    true_guidance: _Scale | None = None
    negative: str = ""
    tokens: Annotated[int, msgspec.Meta(ge=0, le=8192)] = 0
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    vae: Literal["auto", "float32"] = "auto"
    device: str = "auto"
    offload: _Offload = "none"
    compile: bool = False
    batch: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0
    refiner: str = ""
    high_noise: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    lora: str = ""
    unet: str = ""
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
