"""Which kinds of recipes there are: the key `recipe` of a YAML file names one, and plugins may add some."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from culturekit.errors import UsageError
from culturekit.kg.countries import use_countries_of_recipe
from culturekit.registry import Entry, Registry
from culturekit.stages.run import Run
from culturekit.storage.yaml_model import StrictModel

__all__ = ["RECIPES", "AnyRecipe", "RecipeKind", "recipe_kind", "wired"]


def used_countries(path: Path | None) -> Path | None:
    """Use a file of countries from here on: keys after it may name what it adds."""
    use_countries_of_recipe(path)
    return path


class AnyRecipe(StrictModel):
    """What recipes of all kinds say: which kind they are, their countries, and a seed."""

    recipe: Annotated[str, Field(description="Which published system.")]
    countries_file: Annotated[
        Path | None,
        AfterValidator(used_countries),
        Field(
            validate_default=True,
            description="Countries that are added to the shipped ones, or replace them; as --countries-file.",
        ),
    ] = None
    seed: Annotated[int, Field(ge=0, lt=2**32, description="Every image and every draw derives its seed from it.")] = 0

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The names of the models that are evaluated, where the recipe has the key `models`."""
        return tuple(model.name for model in getattr(self, "models", ()))

    def going_on(self, wanted: bool) -> Self:
        """Give the recipe, or, where wanted, one that asks every model to the end, whatever it replies."""
        return self


def no_headline(_: Run) -> Iterable[str]:
    """Say nothing of a finished run."""
    return ()


@dataclass(frozen=True, slots=True)
class RecipeKind:
    """A kind of recipe.

    Attributes:
        model: what may stand in its file.
        wire: adds the stages of a run.
        headline: says in a few lines what came of a run, of the stages that are up to date.
    """

    model: type[AnyRecipe]
    wire: Callable[[Any, Run], None]
    headline: Callable[[Run], Iterable[str]] = no_headline


RECIPES: Registry[RecipeKind] = Registry(
    "kind of recipe",
    [
        Entry("cube", "culturekit.pipeline.cube.wiring:CUBE", "how diverse what models show is"),
        Entry("cultivate", "culturekit.pipeline.cultivate.wiring:CULTIVATE", "how well models know social activities"),
    ],
    point="recipe",
    wanted=f"{__name__}:RecipeKind",
)
"""Where each kind is; it is imported when a recipe names it."""


def recipe_kind(name: str) -> RecipeKind:
    """Find a kind of recipe by its name."""
    found: RecipeKind = RECIPES.load(name)
    return found


def wired(recipe: AnyRecipe, root: Path) -> Run:
    """Wire a recipe: the stages of its run, and where each of them will lie."""
    use_countries_of_recipe(recipe.countries_file)
    run = Run(root, recipe.evaluated)
    recipe_kind(recipe.recipe).wire(recipe, run)
    if not run.steps:
        raise UsageError(
            "there is nothing to run", where=f"recipe: {recipe.recipe}", expected="keys that ask for a stage"
        )
    return run
