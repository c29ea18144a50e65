"""What stands behind a SPEC, as part of what a stage depends on: the files that it points to, and plugins."""

from pathlib import Path
from typing import Any

from culturekit.core.digests import digest_file, digest_tree
from culturekit.core.errors import MissingDependency
from culturekit.core.registry import Registry, parse_spec

PATHS = ("/", "./", "../", "~")  # How the path of a file begins, which a name of the hub never does


def spec_state(registry: Registry[Any], spec: str, *, targets: Registry[Any] | None = None) -> dict[str, object]:
    """Say what decides the answers of a SPEC besides its words: weights, and what another package brings.

    The target of a scorer may be a SPEC of `targets`, as in `clipscore:transformers:FOLDER`.
    """
    parsed = parse_spec(spec)
    inner = targets.brought_by(parsed.target) if targets is not None and parsed.name == "clipscore" else {}
    return {**weights_of(parsed.target), **inner, **registry.decided_by(parsed)}


def weights_of(target: str) -> dict[str, str]:
    """Hash the weights that the target of a SPEC points to, so that others at the same place give another result."""
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
        raise MissingDependency(
            "there are no weights at this place", where=spec, expected="a folder or a file", found=path
        )
    registry.ready(spec)
