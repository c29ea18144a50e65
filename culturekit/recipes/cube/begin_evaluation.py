"""From a folder of images to the recipe that evaluates them, for a person to read and change."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.builders.prompting.prompts import artifact_prompts
from culturekit.builders.space.public_cube import is_public_cube
from culturekit.builders.space.space_files import concept_of, read_prompts, read_space, sentences_in, typed_bytes
from culturekit.config.checks import existing_prompts, existing_space
from culturekit.config.load import SHIPPED
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import PromptKind
from culturekit.core.errors import ConfigError, UsageError, counted
from culturekit.core.package_data import shipped
from culturekit.core.plugins import typed_plugins
from culturekit.core.registry import Spec, parse_spec
from culturekit.core.schemas import PROMPTS
from culturekit.core.tables import prompts_table, read_table
from culturekit.generation.backend import BACKENDS, FOLDER
from culturekit.generation.folder.folder_detection import KnownPrompts, Names, find_list, fitting
from culturekit.generation.folder.folder_listing import list_folder, parse_pattern, parse_patterns
from culturekit.generation.folder.folder_preview import Preview, preview_of
from culturekit.generation.folder.folder_run import image_folder
from culturekit.index.encoder import ENCODERS
from culturekit.index.raters.quality import SCORERS
from culturekit.kg.countries import typed_countries
from culturekit.recipes.cube.keys import load_recipe

# The models whose images lie in a folder: a folder each, or told apart by the names of the files.

REFERENCE_PATTERNS = tuple(
    field + rest
    for field in ("{artifact_id}", "{artifact}")
    for rest in ("/{_}", "__{id}", "_{id}", "-{id}", " {id}", "")
)
"""How pictures of artifacts may be named, the first of equals first."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model found in a folder: its name, the backend that takes its images, and what would come of them."""

    name: str  # as it will stand in every table
    backend: str  # a SPEC
    preview: Preview  # how the names of the files are read
    images: Mapping[str, int]  # how many each prompt has that has any
    kinds: tuple[PromptKind, ...]  # of the prompts that its images answer

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
            "there is no picture in this folder", where=str(pictures),
            expected="a folder of images for each model, such as pictures/sdxl and pictures/flux",
            found=f"{len(listing.others):,} other files" if listing.others else "nothing",
        )  # fmt: skip
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
            "some images lie in folders and some beside them, so it is not clear whose they are", where=str(pictures),
            expected="one folder for each model, and nothing beside them",
            found=f"{len(tops)} folders ({', '.join(sorted(tops)[:3])}), and {len(loose):,} images such as {loose[0]}",
            hint="Move the images, or say with --pattern what names mean, such as '{model}/{prompt}__{id}'.",
        )  # fmt: skip
    if not tops:
        return [(name_of(pictures.resolve().name), whole)]
    names = {top: name_of(top) for top in sorted(tops)}
    for name in names.values():
        if len(same := [top for top, other in names.items() if other == name]) > 1:
            raise UsageError(
                f"two folders would both be the model {name}", where=str(pictures), found=", ".join(same),
                hint="Rename one of them.",
            )  # fmt: skip
    return [(name, readable(Spec(FOLDER, str(pictures / top), options))) for top, name in names.items()]


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
    answered = (row.cells.get("prompt_id") for row in plan.rows if row.file is not None and not row.status)
    counts = Counter(str(prompt) for prompt in answered if prompt is not None)
    stated, parsed = spec, parse_spec(spec)
    if naming.guessed and len(naming.patterns) == 1:  # state the pattern that was found
        stated = readable(Spec(parsed.name, parsed.target, {**parsed.options, "pattern": naming.patterns[0].text}))
    return FoundModel(
        name, stated, preview_of(listing, naming, plan, known), counts,
        tuple(sorted({kinds[prompt] for prompt in counts})),
    )  # fmt: skip


def references_in(folder: Path, cspace: Path) -> tuple[str, int, int]:
    """Find how pictures of artifacts are named: the backend that takes them, how many fit, and how many there are."""
    space = read_space(cspace)[0]
    called = {key: list(group["name"]) for (key,), group in space.group_by("artifact_id", maintain_order=True)}
    known = KnownPrompts(artifact_prompts(space), Names({}, called))
    listing = list_folder(folder)
    names = [file.name for file in listing.pictures]  # of a sample spread over all, those that lead to an artifact
    fitted = {each: len(fitting(parse_pattern(each), names, known)) for each in REFERENCE_PATTERNS}
    best = max(fitted, key=lambda each: fitted[each])
    fits = fitted[best]
    if not fits:
        shown = next((file.name for file in listing.pictures), "no picture")
        artifact, name = space.select("artifact_id", "name").row(0)
        raise UsageError(
            "no picture of this folder is named after an artifact of the cultural space", where=str(folder),
            expected=f"a folder per artifact, such as {artifact}/1.jpg or {name}/1.jpg, or {artifact}__1.jpg",
            found=shown,
        )  # fmt: skip
    return readable(Spec(FOLDER, str(folder), {"pattern": best})), fits, len(listing.pictures)


MOST_SLOTS = 8  # CUBE scores the diversity of eight images at a time


@dataclass(frozen=True, slots=True)
class EvaluationFiles:
    """What an evaluation is made of."""

    pictures: Path  # a folder of images for each model
    cspace: Path  # a published cultural space, or one typed by hand
    # what the images were made from; the cultural space, where that is in the public layout; else what the names of
    # the files say
    prompts: Path | None = None
    references: Path | str | None = None  # pictures that show artifacts, or the backend that draws them
    pattern: str = ""  # what the parts of file names mean; found out, where it is empty

    @property
    def asked(self) -> Path | None:
        """The file with the prompts; None where only the names of the images say them."""
        return self.prompts or (self.cspace if is_public_cube(self.cspace) else None)


@dataclass(frozen=True, slots=True)
class Begun:
    """A recipe that was written, and what is known of its images."""

    recipe: Path  # the file
    models: Sequence[FoundModel]  # as they were found
    prompts: Path  # the file that they answer
    read_off: bool  # whether that was written from the names of the images
    missing: Sequence[str]  # which prompts have no images, or too few
    # pictures that show an artifact, and pictures there are; None without references
    references: tuple[int, int] | None

    @property
    def findings(self) -> list[str]:
        """What is to be looked at, of all models."""
        return [*(f"{one.name}: {finding}" for one in self.models for finding in one.preview.findings), *self.missing]


def begin_evaluation(files: EvaluationFiles, out: Path, *, encoder: str, quality: str, diagnosis: bool = True) -> Begun:
    """Find models and references, and write the recipe; it is one that can be run.

    Without a diagnosis, which needs references, nothing is said of how far the encoder is to be trusted.
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
        diagnosed = diagnosis and files.references is not None
        begun = begin(files, asked, out, encoder=encoder, quality=quality, diagnosis=diagnosed)
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
        check_answers(model, str(asked) if files.asked else "the names of the files")
    shown = None
    if isinstance(files.references, Path):
        shown = references_in(files.references, files.cspace)
    elif files.references is not None:
        BACKENDS.check(files.references)
    if per_prompt_of(models) < 2:
        raise UsageError(
            "most prompts have one image, and diversity is what several images of one prompt show",
            where=str(files.pictures), expected="at least 2 images a prompt, better 8",
            hint="Images of a prompt that were read as others' are told apart with --pattern.",
        )  # fmt: skip
    backend = files.references if isinstance(files.references, str) else None if shown is None else shown[0]
    text = recipe_text(files, asked, models, backend, encoder=encoder, quality=quality, diagnosis=diagnosis)
    write_atomically(out, text.encode())
    try:
        load_recipe(out)
    except ConfigError as error:  # it names lines of the recipe, which goes
        out.unlink()
        raise UsageError("; and ".join(problem.message for problem in error.problems)) from error
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
            "the public CUBE layout", found=names[0] if names else "no picture",
        )  # fmt: skip
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


def check_answers(model: FoundModel, prompts: str) -> None:
    """Make sure that some images of a model answer a prompt."""
    if model.per_prompt:
        return
    unmatched = model.preview.unmatched_examples
    first = unmatched[0] if unmatched else None
    near = f"; the nearest prompt is {first['nearest'][0]!r}" if first and first["nearest"] else ""
    raise UsageError(
        f"no image of {model.name} answers a prompt of {prompts}", where=model.preview.folder,
        expected="files named after the prompts: by id, such as PROMPT_ID__0.png, or by text",
        found=f"{first['file']}: {first['reason']}{near}" if first else f"{model.preview.pictures:,} pictures",
        hint="Say what names mean with --pattern, such as '{prompt}__{id}', or name other --prompts.",
    )  # fmt: skip


def per_prompt_of(models: Sequence[FoundModel]) -> int:
    """Say how many images most prompts have, of whichever model has the fewest."""
    return min(model.per_prompt for model in models)


def recipe_text(
    files: EvaluationFiles, asked: Path, models: Sequence[FoundModel], references: str | None, *, encoder: str,
    quality: str, diagnosis: bool,
) -> str:  # fmt: skip
    """Write the recipe; `references` is a backend, None where names alone tell what artifacts look like."""
    per_prompt = per_prompt_of(models)
    slots = min(per_prompt, MOST_SLOTS)
    repeats, left = divmod(per_prompt, slots)
    over = f"; {left} more are taken in and not scored" if left else ""
    looks = ["# No references: the encoder knows artifacts by their names."]
    if references is not None:
        looks = ["references:  # what the artifacts look like", f"  backend: {quoted(references)}"]
    lines = [
        f"# yaml-language-server: $schema={shipped(SHIPPED['recipe'][1])}",
        "# Images that exist already, held against a cultural space that was published.",
        "# Run it with: culturekit run, and the name of this file. Paths are as seen from where that is typed.",
        "recipe: cube",
        *typed_lines(),
        "seed: 20240401",
        "",
        f"cspace: {quoted(str(files.cspace))}  # which artifacts there are; nothing is extracted, no dump is needed",
        f"prompts: {{file: {quoted(str(asked))}}}",
        "",
        *looks,
        f"encoder: {quoted(encoder)}",
        f"quality: {quoted(quality)}",
        *(["diagnosis: {}  # how far the encoder is to be trusted; init --quick leaves it out"] * diagnosis),
        "",
        f"images:  # most prompts have {per_prompt}, scored {slots} at a time{over}",
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
        "# with culturekit annotate serve and the folder of the run, and run this again. Answers from elsewhere go",
        "# into audit: {file: ...}",
    ]
    return "\n".join(lines) + "\n"


def typed_lines() -> list[str]:
    """Name plugins and countries of the command line, so that whoever runs the recipe has them too."""
    plugins, countries = typed_plugins(), typed_countries()
    lines = (
        ["plugins:", *(f"  {quoted(name)}: {quoted(target)}" for name, target in plugins.items())] if plugins else []
    )
    return lines if countries is None else [*lines, f"countries_file: {quoted(str(countries))}"]


def quoted(text: str) -> str:
    """Write a text as YAML reads it back, whatever is in it."""
    return json.dumps(text, ensure_ascii=False)
