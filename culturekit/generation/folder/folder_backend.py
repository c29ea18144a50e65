"""A folder of images as a backend: what was made elsewhere answers requests as a model would.

`culturekit generate` takes a folder in whole, with everything that answers no request; this is the same mapping for
whoever has requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.registry import Spec
from culturekit.core.schemas import PROMPTS
from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture
from culturekit.generation.folder.folder_detection import KnownPrompts, Prompt, guessed, naming_of
from culturekit.generation.folder.folder_listing import PictureFile, list_folder, parse_patterns
from culturekit.generation.folder.folder_plan import Layout, plan_folder
from culturekit.generation.folder.folder_run import Taking

# What may be said of a folder of images in its SPEC: `folder:DIR?pattern=...`.

FOLDER = "folder"
"""The name of the backend."""


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


class FolderBackend:
    """Answers a request with the file that stands for its prompt, repeat and slot."""

    version: str | None = None
    knows_truth = False

    def __init__(self, root: Path, options: Options) -> None:
        """List the folder once."""
        self.naming = naming_of(root, pattern=options.pattern, manifest=options.manifest)
        listed = frozenset(self.naming.listed.files) if self.naming.listed else frozenset()
        self.listing = list_folder(root, listed=listed)
        self.first = options.first

    def generate(self, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        """Answer each request; one that no file stands for is a failure that says so."""
        known = KnownPrompts(prompts_of(requests))
        naming = guessed(self.naming, self.listing, known)
        slots = max((request.slot for request in requests), default=0) + 1
        plan = plan_folder(self.listing, naming, known, Layout(slots=slots, first=self.first))
        files = {
            (row.cells["prompt_id"], row.cells["repeat"], row.cells["slot"]): row.file
            for row in reversed(plan.rows)
            if row.file is not None and not row.status
        }
        return [self.answer(files.get((r.prompt_id, r.repeat, r.slot))) for r in requests]

    def answer(self, file: PictureFile | None) -> ImageReply:
        """Read a file."""
        if file is None:
            return Failure("missing", "no file for this prompt, repeat and slot")
        if file.problem:
            return Failure("failed", file.problem)
        read = read_inside(self.listing.root, file.name)
        if isinstance(read, NoPicture):
            return Failure("failed", f"{read.reason}: {read.detail}" if read.detail else read.reason)
        return Picture(read.pixels, seed_honoured=False, rewriter="unknown")


def prompts_of(requests: Sequence[ImageRequest]) -> pl.DataFrame:
    """Write the prompts of requests as a table; requests know no group."""
    rows = {
        request.prompt_id: {
            "prompt_id": request.prompt_id,
            "text": request.text,
            "concept": request.concept,
            "country": request.country,
            "artifact_id": request.artifact_id,
            "group": None,
        }
        for request in requests
    }
    return pl.DataFrame(list(rows.values()), schema={name: PROMPTS.schema[name] for name in Prompt._fields})


def make(spec: Spec) -> ImageBackend:
    """Make the backend that a SPEC describes."""
    options = spec.read(Options)
    return FolderBackend(folder_of(spec), options)
