"""A recipe: one YAML file that says everything a run depends on."""

from pydantic import model_validator

from culturekit.config.fitting import misfits
from culturekit.config.published import check_sources
from culturekit.config.recipe_fields import RecipeFields

__all__ = ["Recipe"]


class Recipe(RecipeFields):
    """The CUBE evaluation, from the dump, or from a cultural space that was published, to the report."""

    def going_on(self, wanted: bool) -> "Recipe":
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
