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
from culturekit.index.raters.scorers import SCORERS
from culturekit.pipeline.found_models import FoundModel, find_models, references_in
from culturekit.storage.atomic import write_atomically
from culturekit.storage.package_data import shipped

__all__ = ["Begun", "EvaluationFiles", "begin_evaluation"]

MOST_SLOTS = 8
"""CUBE scores the diversity of eight images at a time."""


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
    check_enough(models, files.pictures)
    backend = None if shown is None else shown[0]
    text = recipe_text(files, models, backend, encoder=encoder, quality=quality, diagnosis=diagnosis)
    write_atomically(out, text.encode())
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


def per_prompt_of(models: Sequence[FoundModel]) -> int:
    """Say how many images most prompts have, of whichever model has the fewest."""
    return min(model.per_prompt for model in models)


def check_enough(models: Sequence[FoundModel], pictures: Path) -> None:
    """Make sure that there is something to compare among the images of a prompt."""
    if per_prompt_of(models) < 2:
        raise UsageError(
            "most prompts have one image, and diversity is what several images of one prompt show",
            where=str(pictures),
            expected="at least 2 images a prompt, better 8",
            hint="Images of a prompt that were read as others' are told apart with --pattern.",
        )


def recipe_text(
    files: EvaluationFiles,
    models: Sequence[FoundModel],
    references: str | None,
    *,
    encoder: str,
    quality: str,
    diagnosis: bool,
) -> str:
    """Write the recipe; `references` is a backend, None where names alone tell what artifacts look like."""
    made = per_prompt_of(models)
    slots = min(made, MOST_SLOTS)
    repeats = made // slots
    lines = [
        f"# yaml-language-server: $schema={shipped(SHIPPED['recipe'][1])}",
        "# Images that exist already, held against a cultural space that was published.",
        "# Run it with: culturekit run, and the name of this file. Paths are as seen from where that is typed.",
        "recipe: cube",
        "seed: 20240401",
        "",
        f"cspace: {quoted(str(files.cspace))}  # which artifacts there are; nothing is extracted, no dump is needed",
        f"prompts: {{file: {quoted(str(files.asked))}}}",
        "",
        *references_lines(references),
        f"encoder: {quoted(encoder)}",
        f"quality: {quoted(quality)}",
        *(["diagnosis: {}  # how far the encoder is to be trusted; init --quick leaves it out"] * diagnosis),
        "",
        f"images:  # {images_of_a_prompt(made, slots, repeats)}",
        f"  kinds: [{', '.join(sorted({kind for model in models for kind in model.kinds}))}]",
        f"  slots: {slots}",
        f"  repeats: {repeats}",
        "",
        "models:",
        *(f"  - {{name: {quoted(model.name)}, backend: {quoted(model.backend)}}}" for model in models),
        "",
        "scores:",
        f"  size: {slots}",
        "",
        "# Answers of people about some images correct the scores for errors of the mapping: after the run, ask them",
        "# with culturekit annotate serve and the folder of the run, and run this again. Answers from elsewhere:",
        "# audit: {file: audits.parquet}",
    ]
    return "\n".join(lines) + "\n"


def references_lines(references: str | None) -> list[str]:
    """Say what artifacts look like."""
    if references is None:
        return ["# No references: the encoder knows artifacts by their names."]
    return [
        "references:  # what the artifacts look like",
        f"  backend: {quoted(references)}",
    ]


def images_of_a_prompt(made: int, slots: int, repeats: int) -> str:
    """Say how the images of a prompt are counted."""
    left = made - slots * repeats
    over = f"; {left} more are taken in and not scored" if left else ""
    return f"most prompts have {made}, scored {slots} at a time{over}"


def quoted(text: str) -> str:
    """Write a text as YAML reads it back, whatever is in it."""
    return json.dumps(text, ensure_ascii=False)
