"""The prompt templates, shipped or translated by people: read, checked, and filled in."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from culturekit.kg.concept_words import ConceptWords
from culturekit.kg.countries import Country
from culturekit.records.choices import TemplateSetName
from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, load_model

__all__ = [
    "NOTHING_ADDED",
    "OTHER",
    "AddedTemplates",
    "TemplateFile",
    "TemplateSet",
    "added_templates",
    "open_templates",
    "spoken",
    "templates",
    "worded",
]

OTHER = "other"
"""Under this name stand the open templates of concepts that have none of their own."""


class TemplateSet(StrictModel):
    """Templates by concept, or by concept and subconcept, and the negative prompt that goes with them."""

    templates: Mapping[str, str]
    negative: str | None = None

    def find(self, concept: str, subconcept: str | None) -> tuple[str, str] | None:
        """Find the template's id and text; None where the set has none."""
        for key in (f"{concept}/{subconcept}", concept):
            if key in self.templates:
                return key, self.templates[key]
        return None


class TemplateFile(StrictModel):
    """All CUBE templates."""

    artifact: Mapping[TemplateSetName, TemplateSet]
    underspecified: Mapping[str, tuple[str, ...]]
    within_country: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AddedTemplates:
    """Templates of one language beside those that are shipped or translated, or in their place."""

    artifact: Mapping[str, str]
    underspecified: Mapping[str, tuple[str, ...]]
    within_country: Mapping[str, tuple[str, ...]]

    def over(self, others: "AddedTemplates") -> "AddedTemplates":
        """Put these over others."""
        return AddedTemplates(
            {**others.artifact, **self.artifact},
            {**others.underspecified, **self.underspecified},
            {**others.within_country, **self.within_country},
        )


NOTHING_ADDED = AddedTemplates({}, {}, {})


def added_templates(concept: str, words: ConceptWords) -> AddedTemplates:
    """Give the words of a concept's own root config as templates."""
    return AddedTemplates(
        words.artifact_templates(concept),
        {concept: words.underspecified} if words.underspecified else {},
        {concept: words.within_country} if words.within_country else {},
    )


@cache
def templates() -> TemplateFile:
    """Load the shipped templates."""
    return load_model(shipped("builders/wording/cube_prompts.yaml"), TemplateFile)


def open_templates(by_concept: Mapping[str, tuple[str, ...]], concept: str) -> tuple[str, ...]:
    """Find the templates that leave a concept's artifact open."""
    return by_concept.get(concept) or by_concept.get(OTHER, ())


def spoken(concept: str) -> str:
    """Say the name of a root config as words."""
    return " ".join(concept.replace("_", " ").replace("-", " ").split())


def worded(template: str, *, name: str = "", country: Country | None = None, concept: str = "") -> str:
    """Fill in a template of ours: the country is bare in what names an artifact, as in the released words."""
    if country is None:
        return template.format(name=name, concept=spoken(concept))
    place = country.name if name else country.in_a_sentence
    return template.format(name=name, country=place, adjective=country.adjective, concept=spoken(concept))
