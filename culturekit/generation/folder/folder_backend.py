"""What may be said of a folder of images in its SPEC: `folder:DIR?pattern=...`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.generation.folder.folder_listing import parse_patterns
from culturekit.generation.folder.folder_run import Taking

FOLDER = "folder"  # the name of the backend


@dataclass(frozen=True, slots=True)
class Options:
    """How the files of a folder are named, and how they are taken over.

    A pattern has these fields:

    - `{prompt_id}`: the id; characters that file names cannot hold may be replaced.
    - `{prompt}`: the text, case, spaces, punctuation and accents aside; also cut, where only one prompt begins so.
    - `{artifact}`, `{artifact_id}`, `{concept}`, `{country}`, `{group}`: what the prompt names; a country as code or
      name.
    - `{model}`: with `--model` only its images are taken.
    - `{repeat}`, `{slot}`, `{seed}`: numbers; `{id}`: what tells images apart; `{_}`: anything.

    Without an extension, or with `.*`, any counts. A brace as such is written twice. A pattern is compared with the
    last parts of a path; one that begins with `/` begins at the folder. `{prompt}`, `{prompt_id}` and `{artifact}` take
    as much as they can. What names do not say is dealt out in their order, `img2` before `img10`.

    A list is CSV, TSV, JSON, JSON lines or Parquet, with these columns:

    - `path`, `file_name` or `file`, within the folder;
    - `prompt_id`, or `prompt` or `text`, or `concept` (`object`), `country`, `group` (`region`), `artifact`,
      `artifact_id`;
    - `model`, `model_version`, `seed`, `seed_honoured`, `repeat`, `slot`, `prompt_sent`, `prompt_revised`, `rewriter`,
      `safety`, `requested_at`, `provider_params`;
    - `status` (`refused`, `filtered`) and `reason`, for an image that was never made.

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


def make(spec: Spec) -> NoReturn:
    """Refuse to answer requests: a folder is imported whole, with everything in it that answers none."""
    raise UsageError(
        "a folder of images is imported, not asked",
        where=str(spec),
        hint="Import it with: culturekit generate --backend folder:DIR --out DIR",
    )
