"""The stage from a folder of images that exist already to an images table."""

from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.generation.backends import BACKENDS
from culturekit.generation.folder.folder_detection import find_list, guessed, naming_of, stated_list
from culturekit.generation.folder.folder_hashes import content_of, hashed
from culturekit.generation.folder.folder_intake import Handling
from culturekit.generation.folder.folder_listing import Listing, list_folder
from culturekit.generation.folder.folder_naming import Naming
from culturekit.generation.folder.folder_options import Options, folder_of
from culturekit.generation.folder.folder_plan import FolderPlan, Layout, plan_folder
from culturekit.generation.folder.folder_prompts import KnownPrompts, Names
from culturekit.generation.folder.folder_run import take_folder
from culturekit.kg.countries import countries, country_files
from culturekit.records.choices import PictureFormat, PromptKind
from culturekit.records.schemas import CSPACE, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.registry import Spec, parse_spec
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_file
from culturekit.storage.manifest import InputRecord
from culturekit.storage.tables import read_table

__all__ = ["ImageFolder", "image_folder", "stage_of"]


@dataclass(slots=True)
class ImageFolder:
    """A folder of images and how its files are named; looked into when it is needed, and then once."""

    spec: Spec
    root: Path
    options: Options
    prompts: Path | None
    layout: Layout
    kinds: tuple[PromptKind, ...] = ()
    cspace: Path | None = None
    read: tuple[Listing, Naming] | None = field(default=None, init=False)

    @property
    def list_path(self) -> Path | None:
        """The list that says what the files are, stated or found in the folder."""
        if self.options.manifest:
            return stated_list(self.root, self.options.manifest)
        return None if self.options.pattern else find_list(self.root)

    def listing(self) -> tuple[Listing, Naming]:
        """List the folder, nothing hashed yet."""
        naming = naming_of(self.root, pattern=self.options.pattern, manifest=self.options.manifest)
        path = self.list_path
        inside = path is not None and path.resolve().is_relative_to(self.root.resolve())
        own = path.resolve().relative_to(self.root.resolve()).as_posix() if path is not None and inside else ""
        listed = frozenset(naming.listed.files) if naming.listed else frozenset[str]()
        return list_folder(self.root, listed=listed, leave_out=own), naming

    def record(self, final: Path) -> InputRecord:
        """Name the folder by the content of its images."""
        if final.resolve().is_relative_to(self.root.resolve()):
            raise UsageError(
                "the output lies in the folder of images itself",
                where=str(final),
                expected=f"a place outside {self.root}",
                hint="Choose another --out.",
            )
        listing, naming = self.listing()
        listing = hashed(listing, final.with_name(f".{final.name}.hashes"))
        self.read = listing, naming
        return InputRecord(content_of(listing), "a folder of images")

    def known(self, scratch: Path) -> tuple[KnownPrompts | None, Names]:
        """Read the prompts, and what countries and artifacts are called."""
        called = {c.iso: (c.name, c.adjective, c.iso3) for c in countries().values()}
        artifacts: dict[str, list[str]] = {}
        if self.cspace is not None:
            space = read_table(space_table(self.cspace, scratch), CSPACE).select("artifact_id", "name").unique()
            for artifact_id, name in space.sort("artifact_id", "name").iter_rows():
                artifacts.setdefault(artifact_id, []).append(name)
        names = Names(called, artifacts)
        if self.prompts is None:
            return None, names
        table = read_table(prompts_table(self.prompts, scratch), PROMPTS)
        if self.kinds:
            table = table.filter(pl.col("kind").is_in(list(self.kinds)))
        return KnownPrompts(table, names), names

    def plan(self, scratch: Path) -> tuple[Listing, Naming, FolderPlan, KnownPrompts | None]:
        """Say what each file stands for; `scratch` is a folder for tables made from public files."""
        listing, naming = self.read or self.listing()
        known, names = self.known(scratch)
        naming = guessed(naming, listing, known)
        return listing, naming, plan_folder(listing, naming, known, self.layout, names=names), known

    def take(self, work: Work, form: PictureFormat) -> Outcome:
        """Do the work of the stage."""
        listing, naming, plan, _ = self.plan(work.scratch)
        return take_folder(work, listing, naming, plan, Handling(self.options.files, form))


def image_folder(
    backend: str,
    prompts: Path | None,
    *,
    model: str | None = None,
    repeats: int | None = None,
    slots: int | None = None,
    kinds: tuple[PromptKind, ...] = (),
    cspace: Path | None = None,
) -> ImageFolder:
    """Describe a folder by its SPEC and what is stated of its images."""
    BACKENDS.check(backend)
    spec = parse_spec(backend)
    options = spec.read(Options)
    folder = ImageFolder(
        spec, folder_of(spec), options, prompts, Layout(model, repeats=repeats, slots=slots, first=options.first), kinds
    )
    if prompts is not None and ("{artifact}" in options.pattern or folder.list_path is not None):
        folder.cspace = cspace
    return folder


def stage_of(folder: ImageFolder, *, form: PictureFormat = "png") -> Stage:
    """Take in the images of a folder."""
    trees = {"folder": folder.record}
    inputs = {"folder": folder.root, **country_files()}
    path = folder.list_path
    if path is not None:
        inputs["list"] = path
        trees["list"] = partial(list_record, path)
    tables = {"prompts": folder.prompts, "cspace": folder.cspace}
    inputs |= {role: table for role, table in tables.items() if table is not None}
    return Stage(
        "images",
        "generate",
        2,
        partial(folder.take, form=form),
        inputs,
        {
            "backend": folder.spec.name,
            "pattern": folder.options.pattern,
            **asdict(folder.layout),
            "kinds": list(folder.kinds),
            "format": form,
        },
        packages=("numpy", "pillow", "polars"),
        trees=trees,
    )


def list_record(path: Path, final: Path) -> InputRecord:
    """Name a list by its content, whatever else lies beside it."""
    return InputRecord(digest_file(path), path.name)
