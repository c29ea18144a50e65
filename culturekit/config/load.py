"""A recipe file, and what the command line sets over it, to a checked recipe."""

import difflib
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from pydantic import BaseModel

from culturekit.config.kinds import RECIPES, AnyRecipe, recipe_kind
from culturekit.core.choices import SchemaKind
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.literal_keys import key_problem, masked
from culturekit.core.package_data import shipped, shipped_names
from culturekit.core.plugins import use_plugins, use_plugins_of_recipe
from culturekit.core.run import RECIPE_RECORD
from culturekit.core.yaml_source import (
    KeyPath,
    Position,
    YamlSource,
    YamlValue,
    closest,
    dotted,
    parse_yaml,
    read_yaml,
    validate,
)

ENVIRONMENT = re.compile(r"\$\{[^}]*\}")
CLIENT_KEY = re.compile(r"(?<=[?&]api_key=)\$\{[A-Za-z_][A-Za-z0-9_]*\}(?=&|$)")
OPTION_BORDER = re.compile(r"[?&]")
REFUSED_KEY = "a key is written out here; write api_key=${NAME}, and keep the key in the environment variable NAME"


def shipped_recipes() -> list[str]:
    """List the recipes that come with culturekit."""
    return shipped_names("recipe_files", ".yaml")


def find_recipe(name: str) -> Path:
    """Find a recipe file by path, or a shipped one by name."""
    path = Path(name)
    if path.is_file():
        return path
    if name in shipped_recipes():
        return shipped(f"recipe_files/{name}.yaml")
    beside = sorted(str(one) for one in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
    near = difflib.get_close_matches(name, [*shipped_recipes(), *beside], n=1)
    near = near or [path.stem] * (path.stem in shipped_recipes() and not path.is_dir())
    raise UsageError(
        "a folder, not a recipe" if path.is_dir() else "there is no such recipe",
        where=name,
        expected=f"a YAML file, or one of: {', '.join(shipped_recipes())}",
        hint=f"Did you mean {near[0]!r}?" if near else "",
    )


def load_any_recipe(path: Path, settings: Sequence[str] = ()) -> AnyRecipe:
    """Read a recipe of any kind: the key `recipe` says which model it is held against."""
    source = recipe_source(path, settings)
    use_stated(source, use_plugins_of_recipe)  # one of them may bring its kind
    named = source.value.get("recipe") if isinstance(source.value, dict) else None
    if isinstance(named, str) and named not in RECIPES.names():
        wrong = problem_at(source, ("recipe",), f"{named!r} is not accepted{closest(named, RECIPES.names())}")
        raise ConfigError([*source.problems, wrong])
    kind = named if isinstance(named, str) else "cube"
    try:
        return validate(source, recipe_kind(kind).model)
    except ConfigError as error:
        if (plugin := RECIPES.find(kind).plugin) is None:
            raise
        raise ConfigError([replace(one, message=f"{one.message} (asks {plugin})") for one in error.problems]) from error


def use_plugins_in(path: Path) -> None:
    """Use the plugins that a YAML file names under `plugins`, for all that this process does."""
    source = read_yaml(path)
    if not use_stated(replace(source, value=found_beside(source.value, path.parent)), use_plugins):
        raise UsageError("names no plugins", where=str(path), expected="the key plugins, with KIND.NAME: FILE.py:THING")


def use_stated(source: YamlSource, use: Callable[[Mapping[str, str]], None]) -> bool:
    """Use what stands under `plugins`, if anything."""
    stated = source.value.get("plugins") if isinstance(source.value, dict) else None
    if not isinstance(stated, dict) or not all(isinstance(target, str) for target in stated.values()):
        return False
    try:
        use({point: str(target) for point, target in stated.items()})
    except UsageError as error:
        raise ConfigError([*source.problems, problem_at(source, ("plugins",), str(error))]) from error
    return True


def recipe_source(path: Path, settings: Sequence[str]) -> YamlSource:
    """Read the text of a recipe with its settings, and refuse keys that are written out; a run's record is one, too."""
    source = read_yaml(path)
    if path.name == RECIPE_RECORD and isinstance(source.value, dict):
        source = replace(source, value=written_keys(source.value))
    source = replace(source, value=found_beside(source.value, path.parent))
    for key, count in Counter(setting.partition("=")[0] for setting in settings).items():
        if count > 1:
            raise ConfigError([Problem(f"set {count} times, and only the last would count", f"--set {masked(key)}")])
    for setting in settings:
        source = with_setting(source, setting)
    keys = list(written_out(source))
    if keys:
        raise ConfigError(keys)
    return replace(source, problems=(*source.problems, *unfilled(source)))


def written_keys(record: Mapping[str, YamlValue]) -> dict[str, YamlValue]:
    """Leave out of a run's record, which has all keys, those that its recipe cannot have had."""
    kind = record.get("recipe")
    model = recipe_kind(kind).model if isinstance(kind, str) and kind in RECIPES.names() else AnyRecipe
    return {key: value for key, value in record.items() if key not in {"stages", *model.unwritten(record)}}


def found_beside(value: YamlValue, folder: Path) -> YamlValue:
    """Name the countries and the plugins of a recipe from where the command runs, where they lie beside it."""
    if not isinstance(value, dict):
        return value
    changed = dict(value)
    if isinstance(countries := value.get("countries_file"), str) and (folder / countries).is_file():
        changed["countries_file"] = str(folder / countries)
    if isinstance(plugins := value.get("plugins"), dict):
        changed["plugins"] = {
            point: str(folder / target)
            if isinstance(target, str) and (folder / target.rpartition(":")[0]).is_file()  # `FILE.py:THING`
            else target
            for point, target in plugins.items()
        }
    return changed


def unfilled(source: YamlSource) -> Iterator[Problem]:
    """Find values that expect the environment to fill them in; the key of a client is left to the client."""
    for path, text in texts(source.value, ()):
        for name in ENVIRONMENT.findall(CLIENT_KEY.sub("", text)):
            problem = f"{name} is not filled in: the environment is for secrets, and only api_key=${{NAME}} takes one"
            yield problem_at(source, path, problem)


def written_out(source: YamlSource) -> Iterator[Problem]:
    """Find keys that are written out, as values, under names such as `api_key`, in SPECs, or as keys of a mapping."""
    for path, text in texts(source.value, ()):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if any(isinstance(part, str) and key_problem(part) for part in path):
            yield Problem(REFUSED_KEY, source.name, source.position(path).line)
        elif key_problem(text, name=name) or any(
            key_problem(value, name=option) for option, _, value in map(partition, OPTION_BORDER.split(text))
        ):
            yield problem_at(source, path, REFUSED_KEY)


def partition(pair: str) -> tuple[str, str, str]:
    """Part an option of a SPEC, percent signs read."""
    name, equals, value = pair.partition("=")
    return name, equals, unquote_plus(value) if equals else ""


def problem_at(source: YamlSource, path: KeyPath, problem: str) -> Problem:
    """Say something about a value, with its place."""
    line = source.position(path)
    return Problem(problem, line.where, line.line, dotted(path))


def texts(value: YamlValue, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Give every text of a document with its key path; what is no text and no container is an empty text."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from texts(below, (*path, key))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from texts(below, (*path, number))
    else:
        yield path, value or ""


def with_setting(source: YamlSource, setting: str) -> YamlSource:
    """Set one value, such as `seed=7` or `models.0.backend=simulated?noise=1`."""
    key, equals, text = setting.partition("=")
    where = f"--set {key}"
    if not equals or not key:
        raise ConfigError([Problem(f"expected key=value, found {masked(setting)!r}", "--set")])
    path: KeyPath = tuple(int(part) if part.isdecimal() else part for part in key.split("."))
    value = parse_yaml(text, name=where).value
    places = {keys: at for keys, at in source.places.items() if keys[: len(path)] != path}
    return YamlSource(
        source.name, replaced(source.value, path, value, where), {**places, path: Position(where, 0)}, source.problems
    )


def replaced(tree: YamlValue, path: KeyPath, value: YamlValue, where: str) -> YamlValue:
    """Copy a tree with one value replaced; missing mappings on the way are made."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(tree, list) and isinstance(first, int) and first < len(tree):
        return [replaced(item, rest, value, where) if number == first else item for number, item in enumerate(tree)]
    if tree is None or isinstance(tree, dict):
        mapping = dict(tree or {})
        mapping[str(first)] = replaced(mapping.get(str(first)), rest, value, where)
        return mapping
    raise ConfigError([Problem(f"there is nothing at {first!r} to set", where)])


# JSON Schemas of the YAML files people write, draft 7, which is what YAML editors read.

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


# The model of a kind of file, and where in the package its schema lies, beside the files whose first line names it.
SHIPPED: Mapping[SchemaKind, tuple[str, str]] = {
    "recipe": ("culturekit.recipes.cube.keys:Recipe", "recipe_files/recipe.schema.json"),
    "concept": ("culturekit.kg.concepts:Concept", "kg/concepts/concept.schema.json"),
    "countries": ("culturekit.kg.countries:CountryFile", "kg/countries.schema.json"),
    "templates": ("culturekit.builders.prompt_templates:TemplateFile", "builders/wording/templates.schema.json"),
    "texts": ("culturekit.index.folder.artifact_names:TextTemplates", "index/folder/texts.schema.json"),
    "prices": ("culturekit.llm.prices:PriceList", "llm/prices.schema.json"),
    "models": ("culturekit.llm.models:Models", "llm/models.schema.json"),
    "scenes": (
        "culturekit.generation.simulated.scenes.scenes_backend:Vocabulary",
        "generation/simulated/scenes/vocabulary.schema.json",
    ),
    "captions": (
        "culturekit.builders.captions.expanding:CaptionCulture", "builders/captions/cultures/culture.schema.json",
    ),
    "linguistic": (
        "culturekit.recipes.linguistic.prompts:Lists", "recipes/linguistic/linguistic_lists.schema.json",
    ),
    "places": ("culturekit.recipes.inclusion.prompts:PlaceList", "recipes/inclusion/places/places.schema.json"),
}  # fmt: skip


def schema_of(kind: SchemaKind) -> dict[str, Any]:
    """Describe a kind of file for editors."""
    module, _, name = SHIPPED[kind][0].partition(":")
    return described(kind, getattr(importlib.import_module(module), name))


def described(kind: SchemaKind, model: type[BaseModel]) -> dict[str, Any]:
    """Describe a kind of file whose model is not known here."""
    schema = as_draft_7(model.model_json_schema())
    return {"$schema": DRAFT_7, "title": f"culturekit {kind}", **{k: v for k, v in schema.items() if k != "title"}}


def as_draft_7(node: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Rewrite the words of later drafts: `$defs`, `prefixItems`, and keys beside a `$ref`."""
    if isinstance(node, list):
        return [as_draft_7(item) for item in node]
    if isinstance(node, str) and node.startswith("#/$defs/"):
        return node.replace("#/$defs/", "#/definitions/", 1)
    if not isinstance(node, dict):
        return node
    renamed = {"definitions" if key == "$defs" else key: as_draft_7(value) for key, value in node.items()}
    if "prefixItems" in renamed:
        renamed["items"] = renamed.pop("prefixItems")
        renamed["additionalItems"] = False
    if "$ref" in renamed and len(renamed) > 1:
        return {"allOf": [{"$ref": renamed.pop("$ref")}], **renamed}
    return renamed
