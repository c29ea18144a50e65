"""A folder of images as a backend: what was made elsewhere answers requests as a model would.

`culturekit generate` takes a folder in whole, with everything that answers no request; this is the same mapping for
whoever has requests.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.generation.backend import Failure, ImageBackend, ImageReply, ImageRequest, Picture
from culturekit.generation.folder.folder_detection import guessed, naming_of
from culturekit.generation.folder.folder_listing import PictureFile, list_folder
from culturekit.generation.folder.folder_options import Options, folder_of
from culturekit.generation.folder.folder_plan import Layout, plan_folder
from culturekit.generation.folder.folder_prompts import KnownPrompts, Prompt
from culturekit.records.schemas import PROMPTS
from culturekit.registry import Spec
from culturekit.storage.picture_reading import NoPicture, read_inside

__all__ = ["FolderBackend", "make"]


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
