"""The one place where a pickle is opened: a process of its own, with bounded memory, no network and no children.

It is started as `python -m culturekit.index.weights.weight_unpickling`, reads a job, and answers on its output.
"""

import json
import os
import re
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from culturekit.index.weights.weight_kinds import Kind, recognised
from culturekit.storage.atomic import whole_file

__all__ = ["Refused"]

ALIGNMENT = 8
"""Tensor data begins at a multiple of this many bytes."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor to be written: the format's name of its type, its shape, and who gives its little-endian bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    content: Callable[[], bytes | memoryview]


def write_tensors(path: Path, tensors: Sequence[StoredTensor], notes: Mapping[str, str]) -> None:
    """Write tensors in the order of their names, one in memory at a time; the file is there whole or not at all."""
    ordered = sorted(tensors, key=lambda tensor: (-width(tensor), tensor.name))
    header: dict[str, object] = {"__metadata__": dict(sorted(notes.items()))}
    place = 0
    for tensor in ordered:
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.size],
        }
        place += tensor.size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in ordered:
            file.write(tensor.content())


def width(tensor: StoredTensor) -> int:
    """Give the bytes of one number: the widest come first, so that all stay aligned."""
    numbers = 1
    for side in tensor.shape:
        numbers *= side
    return tensor.size // numbers if numbers else 0


SPARE = 2 * 2**30
"""Bytes of memory beyond the tensors themselves, which are held at most twice."""

SHARED = 4
"""How many times the bytes of its file all tensors may take, where some share theirs."""

INSIDE = ("state_dict", "model_state_dict", "model", "module", "params", "params_ema", "net")
"""Under which names checkpoints keep the weights themselves."""

PREFIXES = ("module.", "_orig_mod.", "_orig_module.")
"""What wrappers put before every name."""

FORBIDDEN = re.compile(
    r"socket\.|subprocess\.|os\.(system|exec|fork|posix_spawn|spawn|startfile|putenv)|ctypes\.dlopen|pty\."
)
"""What the process never does once a file is open."""


class Refused(Exception):
    """The file is not what can be converted: `reason` is one word, the text says what was found."""

    def __init__(self, reason: str, found: str) -> None:
        """Keep both."""
        super().__init__(found)
        self.reason = reason
        self.found = found


@dataclass(frozen=True, slots=True)
class Job:
    """What to convert: an open file's descriptor, its size, where to, the kind asked for, and the notes to write."""

    descriptor: int
    size: int
    out: str
    kind: Kind | None
    notes: dict[str, str]


def main() -> None:
    """Do one job and answer it."""
    job = Job(**json.load(sys.stdin))
    try:
        answer = convert(job)
    except Refused as refused:
        answer = {"refused": refused.reason, "found": refused.found}
    except MemoryError:
        answer = {"refused": "memory", "found": ""}
    json.dump(answer, sys.stdout)


def convert(job: Job) -> dict[str, Any]:
    """Load the file, find out what it is, and write its tensors."""
    with os.fdopen(job.descriptor, "rb") as file:
        refuse_bombs(file, job.size)
        tensors, left_out = state_of(loaded(file, job))
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    known = recognised(shapes, asked=job.kind)
    if known is None:
        raise Refused("unknown", described(shapes))
    if job.kind not in (None, known.kind):
        raise Refused("other kind", " ".join(filter(None, [known.kind, known.variant])))
    check_sizes(tensors, job.size)
    notes = {**job.notes, "culturekit.kind": known.kind, "culturekit.variant": known.variant, "format": "pt"}
    write_tensors(Path(job.out), [stored(name, tensor) for name, tensor in tensors.items()], notes)
    return {
        "kind": known.kind,
        "variant": known.variant,
        "tensors": len(tensors),
        "numbers": sum(tensor.numel() for tensor in tensors.values()),
        "left_out": left_out,
    }


def refuse_bombs(file: BinaryIO, size: int) -> None:
    """Refuse an archive that unpacks to more than it is: torch stores tensors, it does not compress them."""
    if zipfile.is_zipfile(file):
        file.seek(0)
        try:
            entries = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise Refused("broken", str(error)) from error
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > size:
            raise Refused("bomb", f"{unpacked:,} bytes in an archive of {size:,}")
    file.seek(0)


def loaded(file: BinaryIO, job: Job) -> Any:  # noqa: ANN401 - whatever the file holds
    """Unpickle tensors and plain containers, and nothing else."""
    import torch

    limit_memory(2 * SHARED * job.size if job.size < SPARE else 3 * job.size)
    sys.addaudithook(guard(Path(job.out).parent))
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # a hostile file may raise anything
        refuse(error)


def refuse(error: Exception) -> NoReturn:
    """Say why a file could not be loaded."""
    text = str(error)
    if "allocate memory" in text or "not enough memory" in text:
        raise Refused("memory", "") from error
    if "TorchScript" in text:
        raise Refused("program", "a TorchScript archive") from error
    names = re.search(r"GLOBAL (\S+)|Trying to (?:instantiate|call) (?:type |function )?(\S+)", text)
    if names is not None:
        raise Refused("program", printable((names[1] or names[2]).rstrip("."))) from error
    if "Unsupported operand" in text or "Unsupported class" in text or "Blocklisted" in text:
        raise Refused("program", printable(text.splitlines()[0])) from error
    raise Refused("broken", printable(f"{type(error).__name__}: {text.splitlines()[0] if text else ''}")) from error


def limit_memory(more: int) -> None:
    """Let the process take this much more address space than it has now, and some to spare."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):  # no such limit on this system
        return
    limit = pages * os.sysconf("SC_PAGE_SIZE") + more + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def guard(folder: Path) -> Any:  # noqa: ANN401 - a hook takes any arguments
    """Make a hook that lets nothing out: no connection, no process, no file written but into one folder."""
    inside = str(folder)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if FORBIDDEN.match(event):
            raise PermissionError(f"{event} is not allowed while weights are read")
        if event == "open" and writes(arguments[1], arguments[2]):
            path = arguments[0]
            if not isinstance(path, str) or str(Path(path).parent) != inside:
                raise PermissionError(f"{path!r} may not be written while weights are read")

    return hook


def writes(mode: str | None, flags: int | None) -> bool:
    """Tell whether a file is opened for writing."""
    return any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def state_of(content: Any) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401 - whatever the file held
    """Find the weights in what was loaded: named tensors, without a wrapper's prefix. List what else there was."""
    import torch

    around: list[str] = []
    while isinstance(content, Mapping) and not any(isinstance(value, torch.Tensor) for value in content.values()):
        inner = next((name for name in INSIDE if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            break
        around += [printable(str(name)) for name in content if name != inner]
        content = content[inner]
    if not isinstance(content, Mapping):
        raise Refused("unknown", f"a {type(content).__name__}, not named tensors")
    tensors = {name: value for name, value in content.items() if isinstance(name, str) and plain(value)}
    left_out = [*around, *(printable(str(name)) for name in content if name not in tensors)]
    if not tensors:
        raise Refused("unknown", "no tensor under " + (", ".join(left_out[:8]) or "any name"))
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors, left_out


def plain(value: Any) -> bool:  # noqa: ANN401 - whatever the file held
    """Tell whether something is a tensor; refuse one that is not made of numbers in rows."""
    import torch

    if not isinstance(value, torch.Tensor):
        return False
    if value.layout != torch.strided or value.is_quantized or value.device.type != "cpu" or value.dtype not in names():
        raise Refused("unknown", f"a tensor of {value.dtype} with layout {value.layout} on {value.device}")
    return True


def names() -> dict[Any, str]:
    """List the types of numbers that safetensors has, by torch's."""
    import torch

    return {
        torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
        torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
        torch.bool: "BOOL",
    }  # fmt: skip


def check_sizes(tensors: Mapping[str, Any], size: int) -> None:
    """Refuse tensors that show more numbers than they have: views that repeat one number without end."""
    total = 0
    for name, tensor in tensors.items():
        total += tensor.numel() * tensor.element_size()
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise Refused("bomb", f"{printable(name)}, {tuple(tensor.shape)} repeated from fewer numbers")
    if total > SHARED * size:
        raise Refused("bomb", f"tensors of {total:,} bytes in a file of {size:,}")


def stored(name: str, tensor: Any) -> StoredTensor:  # noqa: ANN401 - torch is not imported at the top
    """Describe a tensor for writing; its bytes are laid out row after row when they are asked for."""
    import torch

    def content() -> memoryview:
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        return memoryview(flat.numpy())

    return StoredTensor(
        name, names()[tensor.dtype], tuple(tensor.shape), tensor.numel() * tensor.element_size(), content
    )


def described(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Show some tensors of an unknown file."""
    shown = [f"{printable(name)} {shape}" for name, shape in sorted(shapes.items())[:6]]
    return f"{len(shapes)} tensors: {', '.join(shown)}{', ...' if len(shapes) > len(shown) else ''}"


def printable(text: str) -> str:
    """Make text of a stranger fit to be shown."""
    return ascii(text)[1:-1][:120]


if __name__ == "__main__":
    main()
