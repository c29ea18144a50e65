"""What may be said of a folder of images in its SPEC: `folder:DIR?pattern=...`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from culturekit.errors import UsageError
from culturekit.generation.folder.folder_intake import Taking
from culturekit.generation.folder.folder_patterns import parse_patterns
from culturekit.registry import Spec

__all__ = ["FOLDER", "Options", "folder_of"]

FOLDER = "folder"
"""The name of the backend."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the files of a folder are named, and how they are taken over.

    Attributes:
        pattern: What the parts of a name mean, such as `{prompt}__{id}.png`; several with `|` between
            them, of which the first that leads to a prompt counts.
        manifest: A list of the files, in the folder or from where the command runs.
        files: Whether a file that can stay as it is becomes a second name of the same file, or a copy.
        first: From what number names count repeats and slots.
    """

    pattern: str = ""
    manifest: str = ""
    files: Taking = "link"
    first: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0

    def __post_init__(self) -> None:
        """Refuse a pattern that cannot be read."""
        parse_patterns(self.pattern)


def folder_of(spec: Spec) -> Path:
    """Give the folder that a SPEC names, if it is there."""
    root = Path(spec.target).expanduser()
    if spec.target and root.is_dir():
        return root
    near = sorted(path.name for path in root.parent.glob("*/") if path.name.casefold() == root.name.casefold())
    raise UsageError(
        "there is no such folder of images" if spec.target else "the folder backend needs a folder",
        where=str(spec),
        expected="folder:DIR, a folder that is there",
        found="a file" if spec.target and root.is_file() else "",
        hint=f"Did you mean {near[0]!r}?" if near else "",
    )
