"""A torchvision that cannot load its native library, mended before transformers, open_clip or timm import it.

A torchvision built for CUDA beside a torch built for CPU fails with `operator torchvision::nms does not exist`,
and takes down whatever imports it. All that is missing for that import are the schemas of two operators.

This stands beside the registry and the storage, below `llm`, `generation` and `index`: each of them runs
models that import torchvision, and none of them sees the others.
"""

import importlib
import importlib.machinery
import importlib.util
import sys
import threading
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = ["Torchvision", "mend_torchvision"]

Torchvision: TypeAlias = Literal["absent", "whole", "mended", "hidden"]
"""`mended`: imports work, its own operators do not; `hidden`: beyond mending, so that it counts as not installed."""

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = ("nms", "qnms")

REGISTERED: list[Any] = []
"""What holds the schemas: they are gone when it is."""

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
        place = installed_at("torchvision")
        if place is None or installed_at("torch") is None:
            return "absent"
        torch = importlib.import_module("torch")
        whole = loads_natively(torch, place)
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


def loads_natively(torch: Any, place: Path) -> bool:  # noqa: ANN401 - a module
    """Load torchvision's own library, the way that it does so itself; a second time costs nothing."""
    loader = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
    library = importlib.machinery.FileFinder(str(place), loader).find_spec("_C")
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
