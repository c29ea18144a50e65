"""`culturekit config`: recipes as a format."""

import json
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.core.choices import SchemaKind
from culturekit.core.errors import UsageError

config_app = typer.Typer(no_args_is_help=True, help="Recipes as a format.")


@config_app.command(epilog="Example: culturekit config schema > recipe.schema.json")
def schema(
    kind: Annotated[SchemaKind, typer.Argument(help="Kind of YAML file.")] = "recipe",
    recipe: Annotated[
        str | None, typer.Option(help="Which kind of recipe, as its key `recipe` names it. [cube]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of a kind of YAML file.

    For editors; with --json on one line.
    """
    from culturekit.config.kinds import recipe_kind
    from culturekit.config.load import described, schema_of

    if recipe is not None:
        if kind != "recipe":
            raise UsageError("--recipe names a kind of recipe", expected="recipe as the kind of file", found=kind)
        schema = described(kind, recipe_kind(recipe).model)
    elif kind == "annotation":
        from culturekit.people.scheme import Scheme

        schema = described(kind, Scheme)
    else:
        schema = schema_of(kind)
    print(json.dumps(schema, indent=None if as_json else 2))


@config_app.command(epilog="Example: culturekit config recipe cube > mine.yaml")
def recipe(
    name: Annotated[str, typer.Argument(help="A recipe that comes with culturekit.")] = "cube", as_json: AsJson = False
) -> None:
    """Print a recipe that comes with culturekit, to begin yours."""
    from culturekit.config.load import find_recipe
    from culturekit.core.yaml_source import read_yaml

    path = find_recipe(name)
    print(json.dumps(read_yaml(path).value) if as_json else path.read_text(encoding="utf-8").rstrip("\n"))
