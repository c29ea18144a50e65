"""Where torch works and in which numbers: the device, its precision, and the same bits each time.

This stands below `generation` and `index`: both run models, and neither sees the other.
"""

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias

from culturekit.errors import UsageError
from culturekit.registry import needing
from culturekit.torchvision_schemas import mend_torchvision

__all__ = ["Precision", "chosen_device", "chosen_dtype", "needed_package", "same_bits"]

Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]


def needed_package(name: str, *, kind: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a package that may import torchvision, or say which command installs it.

    Args:
        name: such as `transformers`.
        kind: what needs it, such as `encoder transformers`.
        extra: the optional part of culturekit that brings it.
    """
    with needing(extra, f"the {kind}"):
        mend_torchvision()
        return importlib.import_module(name)


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
