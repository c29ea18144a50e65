"""Files that travel inside the package: recipes, root configs, the sample."""

from importlib.resources import files
from pathlib import Path

from culturekit.errors import UsageError

__all__ = ["shipped", "shipped_names"]


def shipped(relative: str) -> Path:
    """Find a shipped file or folder by its path inside the package."""
    path = Path(str(files("culturekit").joinpath(relative)))
    if not path.exists():
        raise UsageError("this culturekit lacks a file of its own", where=str(path), hint="Install culturekit again.")
    return path


def shipped_names(folder: str, suffix: str) -> list[str]:
    """List the names, without suffix, of the files shipped in a folder of the package."""
    return sorted(path.name.removesuffix(suffix) for path in shipped(folder).glob(f"*{suffix}"))
