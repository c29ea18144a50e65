"""From a folder of images to the recipe that evaluates them, for a person to read and change."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.builders.space.imported_space import read_prompts
from culturekit.builders.space.public_cube import is_public_cube
from culturekit.builders.space.space_files import read_space
from culturekit.builders.space.typed_prompts import concept_of, sentences_in, typed_bytes
from culturekit.config.load import load_recipe
from culturekit.config.published import existing_prompts, existing_space
from culturekit.config.schema import SHIPPED
from culturekit.counting import counted
from culturekit.errors import UsageError
from culturekit.generation.backends import BACKENDS
from culturekit.generation.folder.folder_listing import list_folder
from culturekit.generation.folder.folder_patterns import parse_patterns
from culturekit.index.encoders import ENCODERS
from culturekit.index.raters.scorers import SCORERS
from culturekit.pipeline.found_models import FoundModel, find_models, references_in
from culturekit.recipe_plugins import typed_plugins
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
        prompts: what the images were made from; the cultural space, where that is in the public layout; else what
            the names of the files say.
        references: pictures that show artifacts, or the backend that draws them.
        pattern: what the parts of file names mean; found out, where it is empty.
    """

    pictures: Path
    cspace: Path
    prompts: Path | None = None
    references: Path | str | None = None
    pattern: str = ""

    @property
    def asked(self) -> Path | None:
        """The file with the prompts; None where only the names of the images say them."""
        return self.prompts or (self.cspace if is_public_cube(self.cspace) else None)


@dataclass(frozen=True, slots=True)
class Begun:
    """A recipe that was written, and what is known of its images.

    Attributes:
        recipe: the file.
        models: as they were found.
        prompts: the file that they answer.
        read_off: whether that was written from the names of the images.
        missing: which prompts have no images, or too few.
        references: pictures that show an artifact, and pictures there are; None without references.
    """

    recipe: Path
    models: Sequence[FoundModel]
    prompts: Path
    read_off: bool
    missing: Sequence[str]
    references: tuple[int, int] | None

    @property
    def findings(self) -> list[str]:
        """What is to be looked at, of all models."""
        return [*(f"{one.name}: {finding}" for one in self.models for finding in one.preview.findings), *self.missing]


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
    asked = files.asked or read_off_names(files, out.with_name(f"{out.stem}-prompts.csv"))
    try:
        begun = begin(files, asked, out, encoder=encoder, quality=quality, diagnosis=diagnosis)
    except BaseException:
        if files.asked is None:
            asked.unlink()
        raise
    return begun


def begin(files: EvaluationFiles, asked: Path, out: Path, *, encoder: str, quality: str, diagnosis: bool) -> Begun:
    """Hold the images against the prompts, and write the recipe."""
    check_file("--prompts", asked, existing_prompts)
    models = find_models(files.pictures, asked, cspace=files.cspace, pattern=files.pattern)
    for model in models:
        check_answers(model, asked)
    shown = None
    if isinstance(files.references, Path):
        shown = references_in(files.references, files.cspace)
    elif files.references is not None:
        BACKENDS.check(files.references)
    check_enough(models, files.pictures)
    backend = files.references if isinstance(files.references, str) else None if shown is None else shown[0]
    text = recipe_text(files, asked, models, backend, encoder=encoder, quality=quality, diagnosis=diagnosis)
    write_atomically(out, text.encode())
    try:
        load_recipe(out)
    except BaseException:
        out.unlink()
        raise
    missing = tuple(missing_images(models, asked))
    return Begun(out, models, asked, files.asked is None, missing, None if shown is None else shown[1:])


def read_off_names(files: EvaluationFiles, to: Path) -> Path:
    """Write the sentences that the names of the images are, each with its concept, for a person to read and change."""
    if to.exists():
        raise UsageError(
            "there is a file of prompts already, and it may have been changed by hand", where=str(to),
            hint=f"Give it with --prompts {to}, or remove it.",
        )  # fmt: skip
    names = [file.name for file in list_folder(files.pictures).pictures]
    patterns = parse_patterns(files.pattern)
    if any("prompt" in pattern.names for pattern in patterns):
        read = [pattern.fields(name) for name in names for pattern in patterns]
        sentences = sorted({fields["prompt"] for fields in read if fields and fields.get("prompt")})
    else:
        sentences = sentences_in(name.partition("/")[2] if "/" in name else name for name in names)
    if not sentences:
        raise UsageError(
            "it is not known what the images were made from, and no name of a file is a sentence",
            where=str(files.pictures),
            expected="--prompts FILE: a CSV file with the columns prompt and concept, a prompts.parquet, or a file in "
            "the public CUBE layout",
            found=names[0] if names else "no picture",
        )
    concepts = sorted(read_space(files.cspace)[0]["concept"].unique())
    rows = [(text, concept_of(text, concepts) or "") for text in sentences]
    write_atomically(to, typed_bytes(rows))
    if unclear := [text for text, concept in rows if not concept]:
        raise UsageError(
            f"it is not known what {len(unclear):,} of {counted(len(rows), 'sentences')} in file names are about",
            where=str(to), expected=f"one of {', '.join(concepts)} under concept", found=repr(unclear[0]),
            hint=f"Fill the file in, and give it with --prompts {to}.",
        )  # fmt: skip
    return to


def missing_images(models: Sequence[FoundModel], asked: Path) -> Iterator[str]:
    """Say which prompts a model has no image of, or too few to be scored, among the kinds that images answer."""
    prompts, kinds = read_prompts(asked)[0], {kind for model in models for kind in model.kinds}
    texts = dict(prompts.filter(pl.col("kind").is_in(sorted(kinds))).select("prompt_id", "text").iter_rows())
    slots = min(per_prompt_of(models), MOST_SLOTS)
    for model in models:
        none = [text for prompt, text in texts.items() if not model.images.get(prompt)]
        few = [text for prompt, text in texts.items() if 0 < model.images.get(prompt, 0) < slots]
        if none:
            yield f"{model.name}: {among(none, len(texts))} no image: {none[0]!r}"
        if few:
            yield f"{model.name}: {among(few, len(texts))} fewer than {slots} images, which are not scored: {few[0]!r}"


def among(some: Sequence[str], count: int) -> str:
    """Say how many of the prompts have something, as the beginning of a sentence."""
    return f"{len(some):,} of {counted(count, 'prompts')} {'has' if len(some) == 1 else 'have'}"


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
    asked: Path,
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
        *plugin_lines(),
        "seed: 20240401",
        "",
        f"cspace: {quoted(str(files.cspace))}  # which artifacts there are; nothing is extracted, no dump is needed",
        f"prompts: {{file: {quoted(str(asked))}}}",
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


def plugin_lines() -> list[str]:
    """Name the plugins of the command line, so that whoever runs the recipe has them too."""
    plugins = typed_plugins()
    return ["plugins:", *(f"  {quoted(name)}: {quoted(place)}" for name, place in plugins.items())] if plugins else []


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
