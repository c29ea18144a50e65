"""Weights in a folder: where they lie, that nothing in them can run, and a hash that says which they are."""

import re
from dataclasses import dataclass
from pathlib import Path

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.model_files import digest_of_files, hub_folder, read_json

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
# what decides a vector besides the weights
_TOLD_BY = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
)

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder with a model in it; `revision` is the commit of a hub id, and `local` of a folder of one's own."""

    path: Path
    revision: str

    def files(self) -> list[Path]:
        """List what decides a vector, in alphabetical order: the weights that are loaded, and what tells how."""
        told = {path for pattern in _TOLD_BY for path in self.path.glob(pattern) if path.is_file()}
        return sorted({*told, *weight_files(self.path)})

    def digest_of_texts(self) -> str:
        """Hash what decides how texts are read, of a folder that may have no weights."""
        told = {path for pattern in _TOLD_BY for path in self.path.glob(pattern) if path.is_file()}
        return digest_of_files(sorted(told), root=self.path)

    def digest(self) -> str:
        """Hash the names and bytes of all that decides a vector."""
        return digest_of_files(self.files(), root=self.path)


def find_model(target: str, *, revision: str = "", kind: str) -> ModelFolder:
    """Find the folder of a model: a local one, or that of a hub id in the local cache.

    Only what the cache lacks is fetched, and nothing is when the hub is switched off (HF_HUB_OFFLINE=1). Pickles are
    neither fetched nor read.

    Args:
        target: a folder, or a hub id such as `openai/clip-vit-base-patch32`.
        revision: a branch, tag or commit of the hub id.
        kind: who asks, for messages, such as `transformers`.
    """
    path = Path(target).expanduser()
    if path.is_dir() and target:
        if revision:
            raise UsageError("only a hub id has revisions", where=target, found=f"revision={revision}")
        return ModelFolder(path, "local")
    if not _HUB_ID.fullmatch(target) or path.exists():
        raise UsageError(
            "this is not a folder with a model in it",
            where=target or kind,
            expected=f"{kind}:FOLDER or {kind}:OWNER/NAME of the Hugging Face hub",
        )
    folder = hub_folder(target, revision, complete=_weight_names, extra="embed", asked_by=kind)
    return ModelFolder(folder, folder.name)


def weight_files(folder: Path) -> list[Path]:
    """List the weights of a folder as they are loaded: one safetensors file, or those that an index names.

    Raises:
        UsageError: there are none, or only pickles.
        IntegrityError: one that an index names is missing.
    """
    names = _weight_names(folder)
    if not names:
        raise no_weights(folder)
    for name in names:
        if not (folder / name).is_file():
            raise IntegrityError("a part of the weights is missing", where=str(folder), expected=name)
    return [folder / name for name in names]


def _weight_names(folder: Path) -> list[str]:
    """Name the weights that a folder promises; what else lies there, pickles included, is never opened."""
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    listed = read_json(index).get("weight_map", {})
    names = sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []
    outside = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
    if outside:
        raise IntegrityError("an index of weights names what is no safetensors file beside it", where=str(index),
                             found=outside[0])  # fmt: skip
    return names


def no_weights(folder: Path) -> UsageError:
    """Say that a folder has no weights that may be read."""
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if not pickles:
        return UsageError("there are no weights in this folder", where=str(folder), expected="model.safetensors")
    return UsageError(
        "these weights are a pickle, which can run any code when it is opened",
        where=str(folder),
        expected="model.safetensors",
        found=pickles[0],
        hint=f"Convert a checkpoint that you trust: culturekit weights convert {folder / pickles[0]} --sha256 HEX "
        f"--out {folder / 'model.safetensors'}",
    )
