"""The text of a recipe that evaluates images that exist already, for a person to read and change."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.config.schema import SHIPPED
from culturekit.storage.package_data import shipped

__all__ = ["Evaluation", "recipe_text"]

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


def recipe_text(found: Evaluation, *, schema: Path | None = None) -> str:
    """Write the recipe; `schema` is where editors find what may stand in it."""
    lines = [
        f"# yaml-language-server: $schema={schema or shipped(SHIPPED['recipe'])}",
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
        "# People looked at some of the images? Their answers correct the scores for errors of the mapping:",
        "# culturekit score audit-sample draws the images, culturekit annotate makes the form. Then:",
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
