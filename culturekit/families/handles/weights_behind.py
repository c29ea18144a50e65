"""The files that a SPEC points to, as part of what a stage depends on."""

from pathlib import Path
from typing import Any

from culturekit.errors import UsageError
from culturekit.registry import Registry, parse_spec
from culturekit.storage.digests import digest_file, digest_tree

__all__ = ["check_ready", "weights_behind"]

PATHS = ("/", "./", "../", "~")
"""How the path of a file begins, which a name of the hub never does."""


def weights_behind(spec: str) -> dict[str, str]:
    """Hash the weights that a SPEC points to, so that others at the same place give another result.

    The target of a SPEC may be a SPEC itself, as in `clipscore:transformers:FOLDER`.
    """
    target = parse_spec(spec).target
    for path in (Path(target), Path(target.partition(":")[2])):
        if path != Path() and path.is_dir():
            return {"weights": digest_tree(path)[0]}
        if path.is_file():
            return {"weights": digest_file(path)}
    return {}


def check_ready(registry: Registry[Any], spec: str) -> None:
    """Make sure that the packages and files that a SPEC needs are there; a name of the hub is left to its encoder."""
    target = parse_spec(spec).target
    path = target if target.startswith(PATHS) else target.partition(":")[2]
    if path.startswith(PATHS) and not Path(path).expanduser().exists():
        raise UsageError("there are no weights at this place", where=spec, expected="a folder or a file", found=path)
    registry.ready(spec)
