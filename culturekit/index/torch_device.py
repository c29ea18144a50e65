"""Where a model runs and in which numbers: the device, its precision, the same bits each time, batches that fit."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np

from culturekit.errors import MissingDependency, UsageError
from culturekit.index.encoder import Vectors
from culturekit.torchvision_schemas import mend_torchvision

__all__ = [
    "Batches",
    "Precision",
    "TorchOptions",
    "chosen_device",
    "chosen_dtype",
    "needed_package",
    "same_bits",
    "usual_batch",
]

Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]

BATCH_ON_CPU, BATCH_ON_GPU = 16, 256

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """How a model is run: `batch=0` chooses by device; `revision` is of a hub id."""

    device: str = "auto"
    dtype: Precision = "auto"
    batch: Annotated[int, msgspec.Meta(ge=0, le=65536)] = 0
    revision: str = ""


def needed_package(name: str, *, kind: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a package that may import torchvision, or say which command installs it.

    Args:
        name: such as `transformers`.
        kind: what needs it, such as `encoder transformers`.
        extra: the optional part of culturekit that brings it.
    """
    try:
        mend_torchvision()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"the {kind} needs the package {error.name}, which is not installed",
            hint=f"Install it with: pip install -c constraints.txt 'culturekit[{extra}]'",
        ) from error


def chosen_device(text: str) -> Any:  # noqa: ANN401 - a torch.device
    """Find the device a name means: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:N` or `mps`."""
    torch = importlib.import_module("torch")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    there = ["cpu", *(f"cuda:{number}" for number in range(gpus))]
    if torch.backends.mps.is_available():
        there.append("mps")
    best = "cuda:0" if gpus else there[-1]
    name = best if text == "auto" else "cuda:0" if text == "cuda" else text
    if name not in there:
        raise UsageError(
            "there is no such device",
            found=f"device={text}",
            expected="auto or " + " or ".join(there),
            hint=f"This torch ({torch.__version__}) sees no GPU." if not gpus and text.startswith("cuda") else "",
        )
    return torch.device(name)


def chosen_dtype(text: Precision, device: Any) -> Any:  # noqa: ANN401 - torch types
    """Find the number type a name means; `auto` is float32 on a CPU, bfloat16 or float16 on a GPU."""
    torch = importlib.import_module("torch")
    if text != "auto":
        return getattr(torch, text)
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    return torch.float16 if device.type == "mps" else torch.float32


def usual_batch(options: TorchOptions, device: Any) -> int:  # noqa: ANN401 - a torch.device
    """Give how many are encoded at once: as told, or as many as a device is usually quickest with."""
    return options.batch or (BATCH_ON_CPU if device.type == "cpu" else BATCH_ON_GPU)


@contextmanager
def same_bits() -> Iterator[None]:
    """Run a model without gradients and so that the same input gives the same bits again.

    Float32 stays float32 on a GPU too: torch's usual TF32 in convolutions would keep 10 bits of 23.
    """
    torch = importlib.import_module("torch")
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if torch.cuda.is_available():
            exact = {"enabled": True, "benchmark": False, "deterministic": True, "allow_tf32": False}
            stack.enter_context(torch.backends.cudnn.flags(**exact))
        yield


class Batches:
    """Runs a model over batches that are all of one size, and of half of it when the device's memory is full.

    The last batch is filled up: how the numbers of a row are summed depends on how many rows there are, so that only
    batches of one size give a picture the same bits whatever it is encoded with.
    """

    def __init__(self, size: int) -> None:
        """Take how many to encode at once."""
        self.size = size

    def run(self, encode: Callable[[Sequence[Item]], Vectors], items: Sequence[Item], *, dim: int) -> Vectors:
        """Encode items of one shape, in their order: (n, dim)."""
        vectors = np.empty((len(items), dim), np.float32)
        start = 0
        while start < len(items):
            batch = items[start : start + self.size]
            full = [*batch, *([batch[-1]] * (self.size - len(batch)))]
            encoded = self.unless_full(encode, full)
            if encoded is not None:
                vectors[start : start + len(batch)] = encoded[: len(batch)]
                start += len(batch)
        return vectors

    def unless_full(self, encode: Callable[[Sequence[Item]], Vectors], batch: Sequence[Item]) -> Vectors | None:
        """Encode one batch; None when it did not fit, and batches are half as large from now on."""
        torch = importlib.import_module("torch")
        try:
            with same_bits():
                return encode(batch)
        except torch.OutOfMemoryError as error:
            if self.size == 1:
                raise UsageError(
                    "one picture or text at a time is too much for the memory of the device",
                    found=str(error).partition("\n")[0],
                    hint="Choose a smaller model, dtype=bfloat16, or device=cpu.",
                ) from None
        self.size = max(1, self.size // 2)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None
