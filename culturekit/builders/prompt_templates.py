"""The shipped prompt templates, read and checked."""

from collections.abc import Mapping
from functools import cache

from culturekit.records.choices import TemplateSetName
from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, load_model

__all__ = ["TemplateFile", "TemplateSet", "templates"]


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


@cache
def templates() -> TemplateFile:
    """Load the shipped templates."""
    return load_model(shipped("builders/wording/cube_prompts.yaml"), TemplateFile)
