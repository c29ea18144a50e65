"""The words in which prompts speak of a concept: templates, and what is wrong with one."""

import re
import string
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from culturekit.storage.yaml_model import StrictModel, past_day

__all__ = [
    "ENGLISH",
    "UNVERIFIED",
    "ConceptWords",
    "Language",
    "TemplatePart",
    "Verified",
    "check_verified",
    "template_problems",
]

ENGLISH = "en"
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]

UNVERIFIED = "nobody has verified this translation; a speaker adds `verified: {by: NAME, on: YEAR-MONTH-DAY}`"

TemplatePart = Literal["artifact", "underspecified", "within_country"]

FIELDS: Mapping[TemplatePart, frozenset[str]] = {
    "artifact": frozenset({"name", "country", "adjective"}),
    "underspecified": frozenset({"concept"}),
    "within_country": frozenset({"country", "adjective", "concept"}),
}
"""What a template may ask for."""


def template_problems(part: TemplatePart, texts: Iterable[str]) -> list[str]:
    """Say what stands in a template that cannot be filled in, or is missing from it."""
    problems = []
    for text in texts:
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            problems.append(f"{text!r} cannot be filled in: {error}")
            continue
        named = {name for _, name, _, _ in parsed if name is not None}
        odd = sorted(named - FIELDS[part])
        if odd or any(spec or conversion for _, _, spec, conversion in parsed):
            accepted = ", ".join(sorted(FIELDS[part]))
            problems.append(f"{text!r} asks for {', '.join(odd) or 'a format'}; accepted: {accepted}")
        if part == "artifact" and "name" not in named:
            problems.append(f"{text!r} does not name the artifact")
        if part == "within_country" and not named & {"country", "adjective"}:
            problems.append(f"{text!r} does not name the country")
        if not re.search(r"\w", text):
            problems.append("an empty template")
    return problems


def check_one(text: str) -> str:
    """Refuse a template that names no artifact, or cannot be filled in."""
    return checked("artifact", (text,))[0]


def check_open(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a template that leaves the culture open and cannot be filled in."""
    return checked("underspecified", texts)


def check_within(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a template that names no country, or cannot be filled in."""
    return checked("within_country", texts)


def checked(part: TemplatePart, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse templates with all that is wrong with them."""
    problems = template_problems(part, texts)
    if problems:
        raise ValueError("; ".join(problems))
    return texts


Named = Annotated[str, AfterValidator(check_one)]


class Verified(StrictModel):
    """Who checked a translation, and when."""

    by: Annotated[str, Field(min_length=1)]
    on: Annotated[str, AfterValidator(past_day), Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class ConceptWords(StrictModel):
    """How prompts of one language speak of a concept."""

    artifact: Annotated[
        Named | None,
        Field(description="Names an artifact: {name}, and {country} or {adjective}, as in `A photo of {name}, …`."),
    ] = None
    subconcepts: Annotated[
        Mapping[str, Named], Field(description="The same for artifacts of a subconcept, by its name.")
    ] = {}
    underspecified: Annotated[
        tuple[str, ...], AfterValidator(check_open), Field(description="Leave artifact and country open.")
    ] = ()
    within_country: Annotated[
        tuple[str, ...], AfterValidator(check_within), Field(description="Name {country} or {adjective} alone.")
    ] = ()
    verified: Annotated[Verified | None, Field(description="Who checked words that are not English, and when.")] = None

    def artifact_templates(self, concept: str) -> Mapping[str, str]:
        """Give the templates that name an artifact, by concept, or concept and subconcept."""
        own = {} if self.artifact is None else {concept: self.artifact}
        return own | {f"{concept}/{name}": text for name, text in self.subconcepts.items()}


def check_verified(words: Mapping[str, ConceptWords]) -> Mapping[str, ConceptWords]:
    """Refuse words in another language that no speaker has verified."""
    unverified = sorted(language for language, said in words.items() if language != ENGLISH and said.verified is None)
    if unverified:
        raise ValueError(f"{', '.join(unverified)}: {UNVERIFIED}")
    return words
