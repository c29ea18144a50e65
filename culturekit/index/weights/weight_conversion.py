"""Weights that are published as pickles, made into safetensors; nothing else in culturekit reads a pickle."""

import hashlib
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from culturekit.core.atomic import whole_file
from culturekit.core.digests import digest_file
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.model_files import read_header
from culturekit.core.registry import needing
from culturekit.index.weights.known_weights import KINDS, Kind, recognised

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHARED = 4  # times the bytes of its file that all tensors may take, where some share theirs
_INSIDE = ("state_dict", "model_state_dict", "model", "module", "params", "params_ema", "net")
_PREFIXES = ("module.", "_orig_mod.", "_orig_module.")  # what wrappers put before every name
_ALIGNMENT = 8  # tensor data begins at a multiple of this many bytes

_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConvertedWeights:
    """A safetensors file and where it comes from."""

    path: Path
    sha256: str
    kind: str
    variant: str
    tensors: int
    numbers: int
    left_out: tuple[str, ...]
    source_sha256: str


def convert_weights(file: Path, *, sha256: str, out: Path, kind: Kind | None = None) -> ConvertedWeights:
    """Convert a file of a known kind, if it is the one with this SHA-256; it is hashed before anything reads it.

    `torch.load(weights_only=True)` reads it, which builds tensors and plain containers and calls nothing else.

    Raises:
        IntegrityError: another file, one that is broken, or one that holds more than tensors.
        UsageError: weights of no known kind, or of another than the one asked for.
    """
    expected = _checked(sha256, out)
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
            if found != expected:
                raise IntegrityError(
                    "not the file that was published",
                    where=str(file),
                    expected=f"SHA-256 {expected}",
                    found=found,
                    hint="Nothing in it was read. Fetch it again.",
                )
            _refuse_overwriting(out, expected)
            tensors, left_out = _weights_in(_loaded(opened, file), file)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such file", where=str(file)) from error
    _check_sizes(tensors, file)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    known = recognised(shapes, asked=kind)
    if known is None:
        shown = [f"{_printable(name)} {shape}" for name, shape in sorted(shapes.items())[:6]]
        more = ", ..." if len(shapes) > len(shown) else ""
        raise _unknown(file, f"{len(shapes)} tensors: {', '.join(shown)}{more}")
    if kind not in (None, known.kind):
        other = " ".join(filter(None, [known.kind, known.variant]))
        raise UsageError("the weights are of another kind", where=str(file), expected=str(kind), found=other)
    notes = {
        "culturekit.kind": known.kind, "culturekit.variant": known.variant, "culturekit.source": file.name,
        "culturekit.source_sha256": expected, "format": "pt",
    }  # fmt: skip
    write_tensors(out, [_stored(name, tensor) for name, tensor in tensors.items()], notes)
    numbers = sum(tensor.numel() for tensor in tensors.values())
    return ConvertedWeights(
        out, digest_file(out), known.kind, known.variant, len(tensors), numbers, tuple(left_out), expected
    )


def known_kind(text: str | None) -> Kind | None:
    """Look a kind up by its name."""
    for kind in KINDS:
        if kind == text:
            return kind
    if text is not None:
        raise UsageError(f"there is no kind of weights {text!r}", expected=" or ".join(KINDS))
    return None


def _checked(sha256: str, out: Path) -> str:
    """Check what was asked for; give the hash in lower case."""
    expected = sha256.strip().lower().removeprefix("sha256:")
    if _SHA256.fullmatch(expected) is None:
        raise UsageError("not a SHA-256", expected="64 hexadecimal digits", found=repr(sha256))
    if out.suffix != ".safetensors":
        raise UsageError("the file to write has another ending", expected="NAME.safetensors", found=out.name)
    if not out.absolute().parent.is_dir():
        raise UsageError("there is no such folder", where=str(out.parent))
    return expected


def _refuse_overwriting(out: Path, sha256: str) -> None:
    """Keep a file that is not an earlier conversion of the same weights."""
    if not out.exists():
        return
    try:
        source = read_header(out).notes.get("culturekit.source_sha256") if out.is_file() else None
    except IntegrityError:
        source = None
    if source != sha256:
        raise UsageError("something else stands there", where=str(out), hint="Name another file, or move this one.")


def _loaded(file: BinaryIO, path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Unpickle tensors and plain containers, and nothing else."""
    with needing("embed", "culturekit weights convert"):
        import torch

    size = path.stat().st_size
    file.seek(0)
    try:
        unpacked = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist()) if zipfile.is_zipfile(file) else 0
        if unpacked > size:  # torch stores tensors, it does not compress them
            raise _bomb(path, f"{unpacked:,} bytes in an archive of {size:,}")
        file.seek(0)
        with warnings.catch_warnings(action="ignore"):  # of TorchScript archives, which are refused below
            return torch.load(file, map_location="cpu", weights_only=True)
    except (CultureKitError, MemoryError):
        raise
    except Exception as error:  # a hostile file may raise anything
        raise _refusal(error, path) from error


def _refusal(error: Exception, path: Path) -> IntegrityError:
    """Say why a file could not be loaded: it holds more than tensors, or it is broken."""
    text = str(error)
    names = re.search(r"GLOBAL (\S+)|Trying to (?:instantiate|call) (?:type |function )?(\S+)", text)
    found = "a TorchScript archive" if "TorchScript" in text else (names[1] or names[2]).rstrip(".") if names else ""
    if not found and re.search("Unsupported operand|Unsupported class|Blocklisted", text):
        found = text.splitlines()[0]
    if found:
        return IntegrityError(
            "the file holds more than tensors, and nothing of it was run",
            where=str(path),
            expected="tensors and plain containers, as torch.load reads them with weights_only=True",
            found=_printable(found),
            hint="If you trust its maker, ask for a file of tensors alone, best as safetensors.",
        )
    found = _printable(f"{type(error).__name__}: {text.splitlines()[0] if text else ''}")
    problem = "the file is cut short or broken, or not made by torch.save"
    return IntegrityError(problem, where=str(path), found=found, hint="Fetch it again.")


def _bomb(path: Path, found: str) -> IntegrityError:
    """Make the error for a file that would fill the memory."""
    hint = "Nothing of it was unpacked."
    return IntegrityError("the file unpacks to more than it is", where=str(path), found=found, hint=hint)


def _unknown(path: Path, found: str) -> UsageError:
    """Make the error for weights that nobody knows."""
    return UsageError("the weights are of no known kind", where=str(path), expected=" or ".join(KINDS), found=found)


def _weights_in(content: Any, path: Path) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401 - anything
    """Find the weights in what was loaded: named tensors, without a wrapper's prefix. List what else there was."""
    import torch

    around: list[str] = []
    while isinstance(content, Mapping) and not any(isinstance(value, torch.Tensor) for value in content.values()):
        inner = next((name for name in _INSIDE if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            break
        around += [_printable(str(name)) for name in content if name != inner]
        content = content[inner]
    if not isinstance(content, Mapping):
        raise _unknown(path, f"a {type(content).__name__}, not named tensors")
    tensors = {k: v for k, v in content.items() if isinstance(k, str) and isinstance(v, torch.Tensor)}
    for tensor in tensors.values():
        if tensor.layout != torch.strided or tensor.is_quantized or _type_of(tensor) not in _TYPES:
            raise _unknown(path, f"a tensor of {tensor.dtype} with layout {tensor.layout}")
    left_out = [*around, *(_printable(str(name)) for name in content if name not in tensors)]
    if not tensors:
        raise _unknown(path, "no tensor under " + (", ".join(left_out[:8]) or "any name"))
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors, left_out


def _type_of(tensor: Any) -> str:  # noqa: ANN401 - torch is not imported at the top
    return str(tensor.dtype).removeprefix("torch.")


def _check_sizes(tensors: Mapping[str, Any], path: Path) -> None:
    """Refuse tensors that show more numbers than they have: views that repeat one number without end."""
    total, size = 0, path.stat().st_size
    for name, tensor in tensors.items():
        total += tensor.numel() * tensor.element_size()
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise _bomb(path, f"{_printable(name)}, {tuple(tensor.shape)} repeated from fewer numbers")
    if total > _SHARED * size:
        raise _bomb(path, f"tensors of {total:,} bytes in a file of {size:,}")


def _printable(text: str) -> str:
    """Make text of a stranger fit to be shown."""
    return ascii(text)[1:-1][:120]


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor to be written: the format's name of its type, its shape, and who gives its little-endian bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    content: Callable[[], bytes | memoryview]


def _stored(name: str, tensor: Any) -> StoredTensor:  # noqa: ANN401 - torch is not imported at the top
    """Describe a tensor for writing; its bytes are laid out row after row when they are asked for."""
    import torch

    def content() -> memoryview:
        return memoryview(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())

    size = tensor.numel() * tensor.element_size()
    return StoredTensor(name, _TYPES[_type_of(tensor)], tuple(tensor.shape), size, content)


def write_tensors(path: Path, tensors: Sequence[StoredTensor], notes: Mapping[str, str]) -> None:
    """Write safetensors, one tensor in memory at a time; equal tensors and notes give equal bytes."""
    widths = {"64": 8, "32": 4, "16": 2}  # the widest come first, so that all stay aligned
    ordered = sorted(tensors, key=lambda tensor: (-widths.get(tensor.dtype[-2:], 1), tensor.name))
    header: dict[str, object] = {"__metadata__": dict(sorted(notes.items()))}
    place = 0
    for tensor in ordered:
        offsets = [place, place + tensor.size]
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        place += tensor.size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in ordered:
            file.write(tensor.content())
