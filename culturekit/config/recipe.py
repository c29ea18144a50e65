"""A recipe: one YAML file that says everything a run depends on."""

from dataclasses import replace
from typing import Self

from pydantic import model_validator

from culturekit.config.fitting import misfits
from culturekit.config.published import check_sources
from culturekit.config.recipe_fields import RecipeFields
from culturekit.families.collection_scores import QvsOptions
from culturekit.generation.folder.folder_options import FOLDER
from culturekit.registry import parse_spec

__all__ = ["Recipe"]


class Recipe(RecipeFields):
    """The CUBE evaluation, from the dump, or from a cultural space that was published, to the report."""

    @property
    def names_artifacts(self) -> bool:
        """Whether references go by the names of artifacts: the prompts of a file need not name each of them."""
        folder = self.references is not None and parse_spec(self.references.backend).name == FOLDER
        return folder or self.prompts.file is not None

    @property
    def scoring(self) -> QvsOptions:
        """How what is shown is scored: diversity within countries has a stage of its own."""
        return replace(self.scores, within="none")

    @property
    def asks_few(self) -> bool:
        """Whether the prompts are the same few for everybody, as those are that leave the culture open."""
        return self.images.kinds == ("underspecified",) and self.scores.target == "these"

    def going_on(self, wanted: bool) -> Self:
        """Give the recipe, or, where wanted, one that asks every model to the end, whatever it replies."""
        if not wanted:
            return self
        tags = None if self.tags is None else self.tags.model_copy(update={"go_on": True})
        return self.model_copy(update={"llm": self.llm.model_copy(update={"go_on": True}), "tags": tags})

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Recipe":
        """Make sure that artifacts come from one place, and that what one part asks for, another gives."""
        check_sources(self.model_fields_set, cspace=self.cspace)
        found = list(misfits(self))
        if found:
            raise ValueError("; and ".join(found))
        return self
