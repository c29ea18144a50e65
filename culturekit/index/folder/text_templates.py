"""The words that artifacts are put into for encoders of texts: shipped ones, or those of a file."""

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, load_model, not_empty

__all__ = ["TextTemplates", "text_templates"]


def names_in(template: str) -> list[str]:
    """List the placeholders of a template."""
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"{template!r} cannot be read: {error}") from error
    return ["" if name is None else name for _, name, _, _ in parsed if name is not None]


def naming(template: str) -> str:
    """Accept a template with {name} and nothing else to fill in."""
    if set(names_in(template)) != {"name"}:
        raise ValueError(f"a template names the artifact as {{name}} and has no other placeholder, not {template!r}")
    return template


def naming_both(template: str) -> str:
    """Accept a template with {name} and {country}."""
    if set(names_in(template)) != {"name", "country"}:
        raise ValueError(f"a template of `country` has {{name}} and {{country}}, not {template!r}")
    return template


Named = Annotated[str, AfterValidator(naming)]
NamedWithCountry = Annotated[str, AfterValidator(naming_both)]


class TextTemplates(StrictModel):
    """Templates for any artifact, more of them by concept, and those that name a country, too."""

    generic: Annotated[tuple[Named, ...], AfterValidator(not_empty)]
    concepts: Mapping[str, tuple[Named, ...]] = Field(default_factory=dict)
    country: tuple[NamedWithCountry, ...] = ()

    def texts(self, names: Sequence[str], concepts: Sequence[str], countries: Sequence[str]) -> list[str]:
        """Put an artifact into words, each text once; without countries none is named."""
        plain = [*self.generic, *(text for concept in concepts for text in self.concepts.get(concept, ()))]
        said = [template.format(name=name) for name in names for template in plain]
        placed = [
            template.format(name=name, country=country)
            for name in names
            for country in countries
            for template in self.country
        ]
        return list(dict.fromkeys([*said, *placed]))


def text_templates(path: Path | None = None) -> TextTemplates:
    """Load the templates of a file, or the shipped ones."""
    return load_model(path or shipped("index/folder/text_templates.yaml"), TextTemplates)
