"""Files that travel inside the package: recipes, root configs, the sample."""

from importlib.resources import files
from pathlib import Path

from culturekit.core.errors import UsageError


def shipped(relative: str) -> Path:
    """Find a shipped file or folder by its path inside the package."""
    path = Path(str(files("culturekit").joinpath(relative)))
    if not path.exists():
        raise UsageError("this culturekit lacks a file of its own", where=str(path), hint="Install culturekit again.")
    return path


def shipped_names(folder: str, suffix: str) -> list[str]:
    """List the names, without suffix, of the files shipped in a folder of the package."""
    return sorted(path.name.removesuffix(suffix) for path in shipped(folder).glob(f"*{suffix}"))


def found_or_shipped(name: str, folder: str, what: str) -> Path:
    """Find a YAML file: one of the user's, or the one of that name that is shipped in a folder of the package."""
    names = shipped_names(folder, ".yaml")
    if name in names:
        return shipped(f"{folder}/{name}.yaml")
    if not Path(name).is_file():
        raise UsageError(
            f"there is no such {what}", expected=f"a YAML file, or one that is shipped: {', '.join(names)}", found=name
        )
    return Path(name)
