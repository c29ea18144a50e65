"""Which kinds of recipes there are: the key `recipe` of a YAML file names one, and plugins may add some."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field

from culturekit.core.errors import UsageError
from culturekit.core.plugins import OF_RECIPE, Plugin, use_plugins_of_recipe
from culturekit.core.registry import Entry, Registry
from culturekit.core.run import Run
from culturekit.core.yaml_source import StrictModel
from culturekit.generation.backend import is_paid
from culturekit.kg.countries import use_countries_of_recipe

if TYPE_CHECKING:
    from culturekit.report.report_stage import SectionReport
    from culturekit.report.run_folders import RunFolders
    from culturekit.report.sections import Section

EMPTY = CellType()  # A name that a function closes over, and that nothing has yet


def used_countries(path: Path | None) -> Path | None:
    """Use a file of countries from here on: keys after it may name what it adds."""
    use_countries_of_recipe(path)
    return path


def used_plugins(stated: Mapping[str, str]) -> Mapping[str, str]:
    """Use plugins from here on, for keys after them, and import each, so that what fails is said at once."""
    use_plugins_of_recipe(stated)
    for plugin in OF_RECIPE:
        plugin.load()
    return stated


class AnyRecipe(StrictModel):
    """What recipes of all kinds say: which kind they are, their plugins, their countries, and a seed."""

    recipe: Annotated[str, Field(description="Which published system.")]
    plugins: Annotated[
        Mapping[str, str],
        AfterValidator(used_plugins),
        Field(
            validate_default=True,
            description="Plugins of this recipe alone: `KIND.NAME: FILE.py:THING`, or `KIND.NAME: module:THING`.",
        ),
    ] = {}
    countries_file: Annotated[
        Path | None,
        AfterValidator(used_countries),
        Field(
            validate_default=True,
            description="Countries beside the shipped ones, or in their place; `world`: all. As --countries-file.",
        ),
    ] = None
    seed: Annotated[int, Field(ge=0, lt=2**32, description="Every image and every draw derives its seed from it.")] = 0

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The names of the models that are evaluated, where the recipe has the key `models`."""
        return tuple(model.name for model in getattr(self, "models", ()))

    @classmethod
    def unwritten(cls, record: Mapping[str, object]) -> Set[str]:
        """Name the keys of a run's record that nobody could have written."""
        return frozenset()

    def going_on(self, wanted: bool) -> Self:
        """Give the recipe, or, where wanted, one that asks every model to the end, whatever it replies, shut or not."""
        if not wanted:
            return self
        changed: dict[str, object] = {
            name: _going_on(part)
            for name in type(self).model_fields
            if "go_on" in getattr(type(part := getattr(self, name)), "model_fields", ())
        }
        if self.evaluated:
            models: tuple[Any, ...] = getattr(self, "models", ())
            changed["models"] = tuple(
                model.model_copy(update={"buying": _going_on(model.buying)}) if is_paid(model.backend) else model
                for model in models
            )
        return self.model_copy(update=changed)


def _going_on(part: BaseModel) -> BaseModel:
    return part.model_copy(update={"go_on": True})


def no_headline(_: Any) -> Iterable[str]:  # noqa: ANN401 - a run, or a recipe of any kind
    """Say nothing of a finished run, or of a recipe."""
    return ()


@dataclass(frozen=True, slots=True)
class RecipeKind:
    """A kind of recipe.

    Attributes:
        model: what may stand in its file.
        wire: adds the stages of a run.
        headline: says in a few lines what came of a run, of the stages that are up to date.
        page: the report of its runs, where that is a page of sections; without it a page shows what stages declare.
        sections: what such a page shows before the scores, given the folders of a run.
        plan: says of a recipe what its table of stages does not: how it differs from what was published, and people.
    """

    model: type[AnyRecipe]
    wire: Callable[[Any, Run], None]
    headline: Callable[[Run], Iterable[str]] = no_headline
    page: "SectionReport | None" = None
    plan: Callable[[Any], Iterable[str]] = no_headline
    sections: "Callable[[RunFolders], Iterable[Section]] | None" = None


# Where each kind is; it is imported when a recipe names it.
RECIPES: Registry[RecipeKind] = Registry(
    "kind of recipe",
    [
        Entry("cube", "culturekit.recipes.cube.recipe:CUBE", "how diverse what models show is"),
        Entry("c3", "culturekit.recipes.c3.recipe:C3_KIND", "how well models draw what is hard about a culture"),
        Entry(
            "inclusion", "culturekit.recipes.inclusion.recipe:INCLUSION", "what people of each region see in objects"
        ),
        Entry("linguistic", "culturekit.recipes.linguistic.recipe:LINGUISTIC", "dialects, skin tones and old places"),
        Entry("cultivate", "culturekit.recipes.cultivate.recipe:CULTIVATE", "how well models know social activities"),
    ],
    point="recipe",
    wanted=f"{__name__}:RecipeKind",
)


def recipe_kind(name: str) -> RecipeKind:
    """Find a kind of recipe by its name."""
    found: RecipeKind = RECIPES.load(name)
    return found


def wired(recipe: AnyRecipe, root: Path) -> Run:
    """Wire a recipe: the stages of its run, and where each of them will lie."""
    if root.exists() and not root.is_dir():
        raise UsageError("a run needs a folder", where=str(root), found="a file of that name", hint="Name another one.")
    use_plugins_of_recipe(recipe.plugins)
    use_countries_of_recipe(recipe.countries_file)
    run = Run(root, recipe.evaluated)
    recipe_kind(recipe.recipe).wire(recipe, run)
    plugin = RECIPES.find(recipe.recipe).plugin
    if plugin is not None:  # its state decides those stages that run its code
        brought = RECIPES.brought_by(recipe.recipe)
        for index, step in enumerate(run.steps):
            if runs_code_of(plugin, step.stage.run):
                stage = replace(step.stage, options={**step.stage.options, **brought})
                run.steps[index] = replace(step, stage=stage)
    if not run.steps:
        raise UsageError(
            "there is nothing to run", where=f"recipe: {recipe.recipe}", expected="keys that ask for a stage"
        )
    return run


def runs_code_of(plugin: Plugin, function: object) -> bool:
    """Tell whether a function, or something that it takes along, is code of a plugin."""
    waiting, seen = [function], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        home = one if isinstance(one, type | FunctionType) else type(one)
        if home.__module__.partition(".")[0] == plugin.top:
            return True
        waiting += taken_along(one)
    return False


def taken_along(thing: object) -> Iterator[object]:
    """Give what a call of a function may call: what it is a part of, and what it closes over."""
    if isinstance(thing, partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, FunctionType):
        yield from (cell.cell_contents for cell in thing.__closure__ or () if cell != EMPTY)
        yield from thing.__defaults__ or ()
