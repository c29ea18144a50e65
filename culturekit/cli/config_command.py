"""`culturekit config`: recipes as a format; `culturekit weights`: checkpoints as safetensors."""

import json
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing.results import show
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


weights_app = typer.Typer(no_args_is_help=True, help="Model weights as files that hold nothing but numbers.")


@weights_app.callback()
def weights() -> None:
    """Keep `convert` a command of its own while it is the only one."""


@weights_app.command(
    epilog="Example: culturekit weights convert HPS_v2.1_compressed.pt "
    "--sha256 0000000000000000000000000000000000000000000000000000000000000000 --kind hpsv2.1 --out hps.safetensors"
)
def convert(
    file: Annotated[Path, typer.Argument(help="Checkpoint that torch.save wrote.")],
    sha256: Annotated[str, typer.Option(help="SHA-256 the file must have; checked before anything reads it.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, NAME.safetensors.")],
    kind: Annotated[
        str | None, typer.Option(help="What it must be, such as hpsv2.1 or fid-inception. [whatever known kind it is]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert a known pickled checkpoint to safetensors.

    Nothing in the pickle is run.
    """
    from culturekit.index.weights import convert_weights, known_kind

    converted = convert_weights(file, sha256=sha256, out=out, kind=known_kind(kind))
    what = " ".join(filter(None, [converted.kind, converted.variant]))
    lines = [
        f"{converted.path}  {what}, {converted.tensors:,} tensors of {converted.numbers:,} numbers",
        f"sha256 {converted.sha256}",
    ]
    if converted.left_out:
        shown = ", ".join(converted.left_out[:8]) + (", ..." if len(converted.left_out) > 8 else "")
        lines.append(f"left out, no tensors: {shown}")
    show(converted, lines, as_json=as_json)
