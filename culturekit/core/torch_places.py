"""Where torch works and in which numbers: the device, its precision, and the same bits each time; torchvision mended.

A torchvision built for CUDA beside a torch built for CPU fails with `operator torchvision::nms does not exist`, and
takes down whatever imports it: transformers, open_clip or timm. All that is missing for that import are the schemas of
two operators.

This stands below `llm`, `generation` and `index`: each of them runs models, and none of them sees the others.
"""

import importlib
import importlib.machinery
import importlib.util
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from culturekit.core.errors import UsageError
from culturekit.core.registry import needing

# `mended`: imports work, its own operators do not; `hidden`: beyond mending, so that it counts as not installed.
Torchvision: TypeAlias = Literal["absent", "whole", "mended", "hidden"]

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = ("nms", "qnms")

REGISTERED: list[Any] = []  # What holds the schemas: they are gone when it is

ONE_AT_A_TIME = threading.Lock()


def mend_torchvision() -> Torchvision:
    """Make sure that an installed torchvision can be imported; call this before whatever may import it.

    Does nothing where torchvision is absent or whole, or where torch is absent; may be called any number of times,
    from any thread, before or after torch was imported, and after an import of torchvision that failed. A
    torchvision that cannot be imported even then is hidden from this process: transformers does without it.
    """
    with ONE_AT_A_TIME:
        if sys.modules.get("torchvision", sys) is None:
            return "hidden"
        folder = installed_at("torchvision")
        if folder is None or installed_at("torch") is None:
            return "absent"
        torch = importlib.import_module("torch")
        whole = loads_natively(torch, folder)
        if not whole:
            register(torch)
        if not imports():
            forget()
            return "hidden"
        return "whole" if whole else "mended"


def installed_at(package: str) -> Path | None:
    """Find the folder of a package without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def loads_natively(torch: Any, folder: Path) -> bool:  # noqa: ANN401 - a module
    """Load torchvision's own library, the way that it does so itself; a second time costs nothing."""
    loader = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
    library = importlib.machinery.FileFinder(str(folder), loader).find_spec("_C")
    if library is None or library.origin is None:
        return False
    try:
        torch.ops.load_library(library.origin)
    except (ImportError, OSError):
        return False
    return True


def register(torch: Any) -> None:  # noqa: ANN401 - a module
    """Declare the operators that have no schema yet, those that somebody else declared left as they are."""
    missing = [name for name in OPERATORS if not hasattr(torch.ops.torchvision, name)]
    if missing:
        try:
            library = torch.library.Library("torchvision", "DEF")
        except RuntimeError:  # the namespace is somebody else's
            library = torch.library.Library("torchvision", "FRAGMENT")
        for name in missing:
            library.define(name + SIGNATURE)
        REGISTERED.append(library)


def imports() -> bool:
    """Import torchvision; what an import that failed before has left behind does not matter."""
    try:
        importlib.import_module("torchvision")
    except Exception:  # whatever breaks it: a wrong CUDA version, a missing file, another torch
        return False
    return True


def forget() -> None:
    """Hide torchvision: to import it is then to find it not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    sys.modules["torchvision"] = None  # type: ignore[assignment]


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
            "there is no such device", found=f"device={text}", expected="auto or " + " or ".join(there),
            hint=f"This torch ({torch.__version__}) sees no GPU." if not gpus and text.startswith("cuda") else "",
        )  # fmt: skip
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
def quiet(*packages: str, category: type[Warning] = Warning, module: str = "") -> Iterator[None]:
    """Keep transformers or diffusers from drawing bars, and from remarks on what culturekit checks and says itself."""
    loggers = [importlib.import_module(f"{name}.utils.logging") for name in packages]
    before = [(logger, logger.get_verbosity(), logger.is_progress_bar_enabled()) for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=category, module=module)
        for logger in loggers:
            logger.set_verbosity_error()
            logger.disable_progress_bar()
        try:
            yield
        finally:
            for logger, level, bars in before:
                logger.set_verbosity(level)
                if bars:
                    logger.enable_progress_bar()


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
