"""From a folder of images to the recipe that evaluates them, for a person to read and change."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.builders.space.public_cube import is_public_cube
from culturekit.config.load import load_recipe
from culturekit.config.published import existing_published, existing_space
from culturekit.config.schema import SHIPPED
from culturekit.errors import UsageError
from culturekit.index.encoders import ENCODERS
from culturekit.index.scorers import SCORERS
from culturekit.pipeline.found_models import FoundModel, find_models, references_in
from culturekit.storage.atomic import write_atomically
from culturekit.storage.package_data import shipped

__all__ = ["Begun", "EvaluationFiles", "begin_evaluation"]

MOST_SLOTS = 8
"""CUBE scores the diversity of eight images at a time."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was found of an evaluation: files, folders, and how many images a prompt has.

    Attributes:
        cspace: the published cultural space.
        prompts: the file of the prompts.
        references: a backend that takes pictures of artifacts; None where names alone tell what artifacts look like.
        encoder: a SPEC.
        quality: a SPEC.
        models: name and backend of each.
        per_prompt: how many images most prompts have.
        kinds: of the prompts that images answer.
        diagnosis: whether the encoder is looked at as well.
    """

    cspace: str
    prompts: str
    references: str | None
    encoder: str
    quality: str
    models: Sequence[tuple[str, str]]
    per_prompt: int
    kinds: Sequence[str]
    diagnosis: bool = True

    @property
    def slots(self) -> int:
        """How many images are scored at a time."""
        return min(self.per_prompt, MOST_SLOTS)

    @property
    def repeats(self) -> int:
        """How many times as many images a prompt has."""
        return self.per_prompt // self.slots


@dataclass(frozen=True, slots=True)
class EvaluationFiles:
    """What an evaluation is made of.

    Attributes:
        pictures: a folder of images for each model.
        cspace: a published cultural space, or one typed by hand.
        prompts: what the images were made from; the cultural space, where that is in the public layout.
        references: pictures that show artifacts.
        pattern: what the parts of file names mean; found out, where it is empty.
    """

    pictures: Path
    cspace: Path
    prompts: Path | None = None
    references: Path | None = None
    pattern: str = ""

    @property
    def asked(self) -> Path:
        """The file with the prompts."""
        if self.prompts is not None:
            return self.prompts
        if is_public_cube(self.cspace):
            return self.cspace
        raise UsageError(
            "it is not known what the images were made from",
            expected="--prompts FILE: a prompts.parquet, or a file in the public CUBE layout",
        )


@dataclass(frozen=True, slots=True)
class Begun:
    """A recipe that was written, and what is known of its images.

    Attributes:
        recipe: the file.
        models: as they were found.
        references: pictures that show an artifact, and pictures there are; None without references.
    """

    recipe: Path
    models: Sequence[FoundModel]
    references: tuple[int, int] | None


def begin_evaluation(files: EvaluationFiles, out: Path, *, encoder: str, quality: str, diagnosis: bool = True) -> Begun:
    """Find models and references, and write the recipe; it is one that can be run.

    Without a diagnosis nothing is said of how far the encoder is to be trusted.
    """
    if out.exists():
        raise UsageError(
            "there is such a file already, and it may have been changed by hand", where=str(out),
            hint="Choose another --out, or remove it.",
        )  # fmt: skip
    ENCODERS.check(encoder)
    SCORERS.check(quality)
    check_file("--cspace", files.cspace, existing_space)
    check_file("--prompts", files.asked, existing_published)
    models = find_models(files.pictures, files.asked, cspace=files.cspace, pattern=files.pattern)
    for model in models:
        check_answers(model, files.asked)
    shown = None if files.references is None else references_in(files.references, files.cspace)
    found = Evaluation(
        str(files.cspace),
        str(files.asked),
        None if shown is None else shown[0],
        encoder,
        quality,
        [(model.name, model.backend) for model in models],
        min(model.per_prompt for model in models),
        sorted({kind for model in models for kind in model.kinds}),
        diagnosis,
    )
    check_enough(found, files.pictures)
    write_atomically(out, recipe_text(found).encode())
    try:
        load_recipe(out)
    except BaseException:
        out.unlink()
        raise
    return Begun(out, models, None if shown is None else shown[1:])


def check_file(role: str, path: Path, existing: Callable[[str], str]) -> None:
    """Make sure that a table is there."""
    try:
        existing(str(path))
    except ValueError as error:
        raise UsageError(str(error), where=role) from error


def check_answers(model: FoundModel, prompts: Path) -> None:
    """Make sure that some images of a model answer a prompt."""
    if model.per_prompt:
        return
    unmatched = model.preview.unmatched_examples
    first = unmatched[0] if unmatched else None
    near = f"; the nearest prompt is {first.nearest[0]!r}" if first and first.nearest else ""
    raise UsageError(
        f"no image of {model.name} answers a prompt of {prompts}",
        where=model.preview.folder,
        expected="files named after the prompts: by id, such as PROMPT_ID__0.png, or by text",
        found=f"{first.file}: {first.reason}{near}" if first else f"{model.preview.pictures:,} pictures",
        hint="Say what names mean with --pattern, such as '{prompt}__{id}', or name other --prompts.",
    )


def check_enough(found: Evaluation, pictures: Path) -> None:
    """Make sure that there is something to compare among the images of a prompt."""
    if found.per_prompt < 2:
        raise UsageError(
            "most prompts have one image, and diversity is what several images of one prompt show",
            where=str(pictures),
            expected="at least 2 images a prompt, better 8",
            hint="Images of a prompt that were read as others' are told apart with --pattern.",
        )


def recipe_text(found: Evaluation) -> str:
    """Write the recipe."""
    lines = [
        f"# yaml-language-server: $schema={shipped(SHIPPED['recipe'][1])}",
        "# Images that exist already, held against a cultural space that was published.",
        "# Run it with: culturekit run, and the name of this file. Paths are as seen from where that is typed.",
        "recipe: cube",
        "seed: 20240401",
        "",
        f"cspace: {quoted(found.cspace)}  # which artifacts there are; nothing is extracted, no dump is needed",
        f"prompts: {{file: {quoted(found.prompts)}}}",
        "",
        *references_lines(found),
        f"encoder: {quoted(found.encoder)}",
        f"quality: {quoted(found.quality)}",
        *(["diagnosis: {}  # how far the encoder is to be trusted; init --quick leaves it out"] * found.diagnosis),
        "",
        f"images:  # {images_of_a_prompt(found)}",
        f"  kinds: [{', '.join(found.kinds)}]",
        f"  slots: {found.slots}",
        f"  repeats: {found.repeats}",
        "",
        "models:",
        *(f"  - {{name: {quoted(name)}, backend: {quoted(backend)}}}" for name, backend in found.models),
        "",
        "scores:",
        f"  size: {found.slots}",
        "",
        "# Answers of people about some images correct the scores for errors of the mapping: after the run, ask them",
        "# with culturekit annotate serve and the folder of the run, and run this again. Answers from elsewhere:",
        "# audit: {file: audits.parquet}",
    ]
    return "\n".join(lines) + "\n"


def references_lines(found: Evaluation) -> list[str]:
    """Say what artifacts look like."""
    if found.references is None:
        return ["# No references: the encoder knows artifacts by their names."]
    return [
        "references:  # what the artifacts look like",
        f"  backend: {quoted(found.references)}",
    ]


def images_of_a_prompt(found: Evaluation) -> str:
    """Say how the images of a prompt are counted."""
    left = found.per_prompt - found.slots * found.repeats
    over = f"; {left} more are taken in and not scored" if left else ""
    return f"most prompts have {found.per_prompt}, scored {found.slots} at a time{over}"


def quoted(text: str) -> str:
    """Write a text as YAML reads it back, whatever is in it."""
    return json.dumps(text, ensure_ascii=False)
