"""The models whose images lie in a folder: a folder each, or told apart by the names of the files."""

import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from culturekit.builders.prompting.artifact_names import artifact_prompts
from culturekit.builders.space.space_files import read_space
from culturekit.errors import UsageError
from culturekit.families.handles.public_files import prompts_table
from culturekit.generation.folder.folder_detection import find_list, fitting
from culturekit.generation.folder.folder_listing import Listing, list_folder
from culturekit.generation.folder.folder_options import FOLDER
from culturekit.generation.folder.folder_patterns import parse_pattern, parse_patterns
from culturekit.generation.folder.folder_plan import FolderPlan
from culturekit.generation.folder.folder_preview import Preview, preview_of
from culturekit.generation.folder.folder_prompts import KnownPrompts, Names
from culturekit.pipeline.steps.folder_stage import image_folder
from culturekit.records.choices import PromptKind
from culturekit.records.schemas import PROMPTS
from culturekit.registry import Spec, parse_spec
from culturekit.storage.tables import read_table

__all__ = ["FoundModel", "find_models", "references_in"]

SAMPLE = 1_000

REFERENCE_PATTERNS = tuple(
    field + rest
    for field in ("{artifact_id}", "{artifact}")
    for rest in ("/{_}", "__{id}", "_{id}", "-{id}", " {id}", "")
)
"""How pictures of artifacts may be named, the first of equals first."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model found in a folder: its name, the backend that takes its images, and what would come of them.

    Attributes:
        name: as it will stand in every table.
        backend: a SPEC.
        preview: how the names of the files are read.
        images: how many each prompt has that has any.
        kinds: of the prompts that its images answer.
    """

    name: str
    backend: str
    preview: Preview
    images: Mapping[str, int]
    kinds: tuple[PromptKind, ...]

    @property
    def per_prompt(self) -> int:
        """How many images most prompts have that have any."""
        usual = Counter(self.images.values())
        return max(usual, key=lambda number: (usual[number], number), default=0)


def find_models(pictures: Path, prompts: Path, *, cspace: Path, pattern: str = "") -> list[FoundModel]:
    """Find the models of a folder, and read the names of their images against the prompts."""
    with tempfile.TemporaryDirectory() as scratch:
        table = prompts_table(prompts, Path(scratch))
        kinds: dict[str, PromptKind] = dict(read_table(table, PROMPTS).select("prompt_id", "kind").iter_rows())
        return [
            found_model(name, spec, table, kinds, cspace=cspace, scratch=Path(scratch))
            for name, spec in model_specs(pictures, table, pattern, cspace=cspace, scratch=Path(scratch))
        ]


def model_specs(pictures: Path, prompts: Path, pattern: str, *, cspace: Path, scratch: Path) -> list[tuple[str, str]]:
    """List the models by name, each with the backend that takes its images."""
    listing = list_folder(pictures)
    if not listing.pictures:
        raise UsageError(
            "there is no picture in this folder",
            where=str(pictures),
            expected="a folder of images for each model, such as pictures/sdxl and pictures/flux",
            found=f"{len(listing.others):,} other files" if listing.others else "nothing",
        )
    options = {"pattern": pattern} if pattern else {}
    whole = readable(Spec(FOLDER, str(pictures), options))
    if any("model" in part.names for part in parse_patterns(pattern)) or find_list(pictures) is not None:
        *_, plan, _ = image_folder(whole, prompts, cspace=cspace).plan(scratch)
        named = sorted({str(row.cells["model"]) for row in plan.rows if row.file is not None} - {FOLDER})
        if named:
            return [(name_of(name), whole) for name in named]
    tops = {file.name.partition("/")[0] for file in listing.pictures if "/" in file.name}
    loose = [file.name for file in listing.pictures if "/" not in file.name]
    if tops and loose:
        raise UsageError(
            "some images lie in folders and some beside them, so it is not clear whose they are",
            where=str(pictures),
            expected="one folder for each model, and nothing beside them",
            found=f"{len(tops)} folders ({', '.join(sorted(tops)[:3])}), and {len(loose):,} images such as {loose[0]}",
            hint="Move the images, or say with --pattern what names mean, such as '{model}/{prompt}__{id}'.",
        )
    if not tops:
        return [(name_of(pictures.resolve().name), whole)]
    names = {top: name_of(top) for top in sorted(tops)}
    check_names_differ(names, pictures)
    return [(name, readable(Spec(FOLDER, str(pictures / top), options))) for top, name in names.items()]


def check_names_differ(named: dict[str, str], pictures: Path) -> None:
    """Make sure that two folders do not become one model."""
    for name, count in Counter(named.values()).items():
        if count > 1:
            same = [top for top, own in named.items() if own == name]
            raise UsageError(
                f"two folders would both be the model {name}", where=str(pictures), found=", ".join(same),
                hint="Rename one of them.",
            )  # fmt: skip


def name_of(folder: str) -> str:
    """Make the name of a model from that of its folder."""
    name = re.sub(r"[^a-z0-9._-]+", "-", folder.casefold()).strip("-._")[:64]
    return name or "model"


def readable(spec: Spec) -> str:
    """Write a SPEC without escapes, where it can be read back without them."""
    plain = f"{spec.name}:{spec.target}"
    if spec.options:
        plain += "?" + "&".join(f"{key}={value}" for key, value in spec.options.items())
    try:
        same = parse_spec(plain) == spec
    except UsageError:
        same = False
    return plain if same else str(spec)


def found_model(
    name: str, spec: str, prompts: Path, kinds: dict[str, PromptKind], *, cspace: Path, scratch: Path
) -> FoundModel:
    """Read the names of one model's images."""
    listing, naming, plan, known = image_folder(spec, prompts, model=name, cspace=cspace).plan(scratch)
    counts = images_per_prompt(plan)
    stated = spec_with(spec, naming.patterns[0].text) if naming.guessed and len(naming.patterns) == 1 else spec
    return FoundModel(
        name,
        stated,
        preview_of(listing, naming, plan, known),
        counts,
        tuple(sorted({kinds[prompt] for prompt in counts})),
    )


def spec_with(spec: str, pattern: str) -> str:
    """State the pattern that was found."""
    parsed = parse_spec(spec)
    return readable(Spec(parsed.name, parsed.target, {**parsed.options, "pattern": pattern}))


def images_per_prompt(plan: FolderPlan) -> dict[str, int]:
    """Count the images of every prompt that has some."""
    return dict(
        Counter(
            str(row.cells["prompt_id"])
            for row in plan.rows
            if row.file is not None and not row.status and row.cells.get("prompt_id") is not None
        )
    )


def references_in(folder: Path, cspace: Path) -> tuple[str, int, int]:
    """Find how pictures of artifacts are named: the backend that takes them, how many fit, and how many there are.

    Raises:
        UsageError: no usual way of naming leads from a picture to an artifact of the space.
    """
    space = read_space(cspace)[0]
    called = {key: list(group["name"]) for (key,), group in space.group_by("artifact_id", maintain_order=True)}
    known = KnownPrompts(artifact_prompts(space), Names({}, called))
    listing = list_folder(folder)
    best, fits = max(
        ((pattern, fit(pattern, listing, known)) for pattern in REFERENCE_PATTERNS), key=lambda one: one[1]
    )
    if not fits:
        shown = next((file.name for file in listing.pictures), "no picture")
        artifact, name = space.select("artifact_id", "name").row(0)
        raise UsageError(
            "no picture of this folder is named after an artifact of the cultural space",
            where=str(folder),
            expected=f"a folder per artifact, such as {artifact}/1.jpg or {name}/1.jpg, or {artifact}__1.jpg",
            found=shown,
        )
    return readable(Spec(FOLDER, str(folder), {"pattern": best})), fits, len(listing.pictures)


def fit(pattern: str, listing: Listing, known: KnownPrompts) -> int:
    """Count the pictures, of a sample spread over all, that a pattern leads to an artifact."""
    names = [file.name for file in listing.pictures]
    return len(fitting(parse_pattern(pattern), names, known))
