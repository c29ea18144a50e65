"""The files that a SPEC points to, as part of what a stage depends on."""

from pathlib import Path

from culturekit.registry import parse_spec
from culturekit.storage.digests import digest_file, digest_tree

__all__ = ["weights_behind"]


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
