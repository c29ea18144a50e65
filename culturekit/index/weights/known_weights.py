"""A file of weights of a known kind: found, held to be of that kind, and loaded; nothing but safetensors is opened."""

import importlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from culturekit.errors import IntegrityError, UsageError
from culturekit.index.weights.weight_kinds import Kind, recognised
from culturekit.registry import Spec, needing
from culturekit.storage.model_files import check_safetensors, read_header

__all__ = ["known_weights", "loaded_tensors"]


def known_weights(
    target: str, spec: Spec, kinds: Collection[Kind], *, of: str, expected: str, convert: str
) -> tuple[Path, Kind]:
    """Find a file of weights, and say which of some kinds it is.

    Args:
        target: the file.
        spec: that names it, for messages.
        kinds: what it may be.
        of: whose weights they are, such as `InceptionV3`.
        expected: the kinds in words.
        convert: what `culturekit weights convert FILE --sha256 HEX` is told besides.
    """
    path = Path(target).expanduser()
    if not target or not path.is_file():
        expected = f"{spec.name}:FILE.safetensors"
        raise UsageError("there is no such file of weights", where=str(spec), expected=expected, found=target)
    if path.suffix != ".safetensors":
        raise UsageError(
            "these weights are not safetensors, and nothing else is opened",
            where=str(path),
            hint=f"Convert a checkpoint that you trust: culturekit weights convert {path} --sha256 HEX {convert}",
        )
    check_safetensors([path])
    shapes = {name: entry.shape for name, entry in read_header(path).tensors.items()}
    known = recognised(shapes)
    if known is None or known.kind not in kinds:
        found = known.kind if known else f"{len(shapes)} tensors of no known kind"
        raise IntegrityError(f"the weights are not those of {of}", where=str(path), expected=expected, found=found)
    return path, known.kind


def loaded_tensors(path: Path, *, asked_by: str) -> dict[str, Any]:
    """Load the tensors of a file as float32, or say which command installs what that needs."""
    with needing("embed", asked_by):
        importlib.import_module("torch")
        load_file = importlib.import_module("safetensors.torch").load_file
    return {name: tensor.float() for name, tensor in load_file(path).items()}
