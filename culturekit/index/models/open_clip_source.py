"""Where a model of open_clip comes from: a folder, a file of weights, or a name; safetensors only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culturekit.errors import UsageError
from culturekit.index.weights.weights_identity import check_safetensors, digest_of_files, read_json
from culturekit.registry import Spec
from culturekit.storage.digests import digest
from culturekit.storage.hub import hub_folder

__all__ = ["OpenClipSource", "find_source"]

CONFIG = "open_clip_config.json"
WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors")
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "tokenizer.model", "sentencepiece.bpe.model",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenClipSource:
    """A model's settings and its weights.

    Attributes:
        model: open_clip's `model_cfg`.
        preprocessing: open_clip's `preprocess_cfg`.
        weights: a safetensors file.
        tokenizer: what `open_clip.get_tokenizer` is asked for.
        revision: the commit of a hub id; `local` otherwise.
        files: what else decides a vector, such as the files of a tokenizer.
    """

    model: Mapping[str, Any]
    preprocessing: Mapping[str, object]
    weights: Path
    tokenizer: str
    revision: str = "local"
    files: tuple[Path, ...] = field(default=())

    def digest(self) -> str:
        """Hash the weights, the model's settings, and the files of its tokenizer."""
        weights = digest_of_files([self.weights], root=self.weights.parent)
        others = [digest_of_files([file], root=file.parent) for file in self.files]
        return digest([weights, dict(self.model), others])


def find_source(spec: Spec, *, model: str, pretrained: str, revision: str, package: Any) -> OpenClipSource:  # noqa: ANN401 - open_clip
    """Find what a SPEC names: `FOLDER`, `FILE.safetensors?model=NAME`, `NAME?pretrained=FILE-or-tag`, or a hub id."""
    path = Path(spec.target).expanduser()
    if spec.target and path.is_dir():
        refuse(spec, model=model, pretrained=pretrained, revision=revision)
        return in_folder(path)
    if spec.target and path.is_file():
        refuse(spec, pretrained=pretrained, revision=revision)
        return of_file(path, model, spec, package)
    if spec.target.replace("/", "-") in package.list_models():
        refuse(spec, model=model)
        return of_name(spec.target.replace("/", "-"), pretrained, revision, spec, package)
    if spec.target.count("/") == 1 and not path.is_absolute() and not spec.target.startswith("."):
        refuse(spec, model=model, pretrained=pretrained)
        folder = fetched(spec.target, revision)
        return in_folder(folder, revision=folder.name)
    raise UsageError(
        "this is neither a folder, a file, a hub id, nor a model that open_clip knows",
        where=str(spec),
        expected=f"a folder with {CONFIG}, FILE.safetensors?model=NAME, or NAME?pretrained=FILE.safetensors",
    )


def refuse(spec: Spec, **given: str) -> None:
    """Refuse an option that does not go with what the SPEC names."""
    useless = [name for name, value in given.items() if value]
    if useless:
        raise UsageError(f"{useless[0]} does not go with what is named here", where=str(spec))


def in_folder(folder: Path, *, revision: str = "local") -> OpenClipSource:
    """Read a folder as open_clip's own tools write it."""
    config = read_json(folder / CONFIG)
    model = config.get("model_cfg")
    if not isinstance(model, dict):
        raise UsageError("the settings hold no model", where=str(folder / CONFIG), expected="the key model_cfg")
    preprocessing = config.get("preprocess_cfg")
    weights = weights_in(folder)
    check_safetensors([weights])
    return OpenClipSource(
        model,
        preprocessing if isinstance(preprocessing, dict) else {},
        weights,
        f"local-dir:{folder}",
        revision,
        tuple(folder / name for name in TOKENIZER if (folder / name).is_file()),
    )


def weights_in(folder: Path) -> Path:
    """Find the weights of a folder; pickles beside them are never opened."""
    found = sorted(folder.glob("*.safetensors"))
    named = [folder / name for name in WEIGHTS if folder / name in found]
    if named:
        return named[0]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError("which of these are the weights?", where=str(folder), found=", ".join(p.name for p in found),
                         hint=f"Name one of them {WEIGHTS[0]}.")  # fmt: skip
    pickles = sorted(path for path in folder.iterdir() if path.suffix in PICKLES)
    if pickles:
        raise is_pickle(pickles[0], folder / WEIGHTS[0])
    raise UsageError("there are no weights in this folder", where=str(folder), expected=WEIGHTS[0])


def is_pickle(path: Path, out: Path) -> UsageError:
    """Say what to do with a pickle."""
    return UsageError(
        "these weights are a pickle, which can run any code when it is opened",
        where=str(path),
        expected="safetensors",
        hint=f"Convert a checkpoint that you trust: culturekit weights convert {path} --sha256 HEX --out {out}",
    )


def of_file(path: Path, model: str, spec: Spec, package: Any) -> OpenClipSource:  # noqa: ANN401 - open_clip
    """Take a file of weights; its settings are those of a named model, or lie beside it."""
    if path.suffix != ".safetensors":
        raise is_pickle(path, path.with_suffix(".safetensors"))
    check_safetensors([path])
    if not model and (path.parent / CONFIG).is_file():
        beside = in_folder(path.parent)
        return OpenClipSource(beside.model, beside.preprocessing, path, beside.tokenizer, files=beside.files)
    if model not in package.list_models():
        raise UsageError(
            "a file of weights needs the name of its model" if not model else f"open_clip knows no model {model!r}",
            where=str(spec),
            expected="?model=NAME, such as ViT-B-32; open_clip.list_models() lists all",
        )
    return OpenClipSource(package.get_model_config(model), usual_preprocessing(model, package), path, model)


def of_name(name: str, pretrained: str, revision: str, spec: Spec, package: Any) -> OpenClipSource:  # noqa: ANN401 - open_clip
    """Take a model by its name, with weights from a file or by their tag on the hub."""
    path = Path(pretrained).expanduser()
    if pretrained and path.is_file():
        refuse(spec, revision=revision)
        return of_file(path, name, spec, package)
    tagged = package.get_pretrained_cfg(name, pretrained) if pretrained else {}
    hub_id = str(tagged.get("hf_hub", "")).rstrip("/")
    if hub_id.count("/") != 1:
        tags = package.list_pretrained_tags_by_model(name)
        raise UsageError(
            "a name needs its weights" if not pretrained else "these weights are neither a file nor on the hub",
            where=str(spec),
            expected=f"?pretrained=FILE.safetensors, or a tag: {' or '.join(tags) or 'there is none'}",
        )
    folder = fetched(hub_id, revision)
    weights = weights_in(folder)
    check_safetensors([weights])
    return OpenClipSource(package.get_model_config(name), tagged, weights, name, folder.name)


def usual_preprocessing(model: str, package: Any) -> Mapping[str, object]:  # noqa: ANN401 - open_clip
    """Give the preprocessing that all published weights of a model share; open_clip's default where they differ."""
    keys = ("mean", "std", "interpolation", "resize_mode")
    shared: list[Mapping[str, object]] = []
    for tag in package.list_pretrained_tags_by_model(model):
        config = package.get_pretrained_cfg(model, tag)
        settings = {key: config.get(key) for key in keys}
        if settings not in shared:
            shared.append(settings)
    return shared[0] if len(shared) == 1 else {}


def fetched(name: str, revision: str) -> Path:
    """Find a hub id in the local cache, or fetch its safetensors and settings where that is allowed."""
    return hub_folder(
        name,
        revision,
        complete=lambda folder: any(folder.glob("*.safetensors")),
        extra="openclip",
        asked_by="open_clip",
    )
