"""`culturekit trace` and `culturekit config`: looking at what is there."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.errors import UsageError
from culturekit.records.choices import SchemaKind

__all__ = ["config_app", "trace"]

config_app = typer.Typer(no_args_is_help=True, help="Recipes as a format.")


def trace(
    score: Annotated[str, typer.Argument(help="RUN#ROW, or RUN?metric=vs&model=NAME&concept=NAME&kernel=NAME.")],
    image: Annotated[str | None, typer.Option(help="Walk by this image. [the first one of the score]")] = None,
    images: Annotated[
        int, typer.Option(min=1, max=1000, help="Walk by so many images, from the score's first repeat to its last.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Walk one score back: images, prompt, neighbours with margins, artifact, path of QIDs, line of the dump."""
    from culturekit.trail.find_score import find_score
    from culturekit.trail.tell import image_lines, trail_lines
    from culturekit.trail.walk_back import walk_back, walk_images

    if image is not None and images > 1:
        raise UsageError("--image names one image, --images asks for several", expected="one of the two")
    folder, row = find_score(score)
    trails = walk_images(folder, row, count=images) if images > 1 else [walk_back(folder, row, image_id=image)]
    first, *others = trails
    if as_json:
        print(json.dumps({**asdict(first), "more": [asdict(trail) for trail in others]}, default=str))
        return
    for line in trail_lines(first):
        print(line)
    for trail in others:
        for line in ("", *image_lines(trail)):
            print(line)


@config_app.callback()
def config_group() -> None:
    """Keep `config` a group while it has one command."""


@config_app.command(epilog="Example: culturekit config schema > recipe.schema.json")
def schema(
    kind: Annotated[SchemaKind, typer.Argument(help="Kind of YAML file.")] = "recipe",
    recipe: Annotated[
        str | None, typer.Option(help="Which kind of recipe, as its key `recipe` names it. [cube]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of a kind of YAML file, for editors; with --json on one line."""
    from culturekit.config.kinds import recipe_kind
    from culturekit.config.schema import described, schema_of

    if recipe is not None:
        if kind != "recipe":
            raise UsageError("--recipe names a kind of recipe", expected="recipe as the kind of file", found=kind)
        schema = described(kind, recipe_kind(recipe).model)
    elif kind == "annotation":
        from culturekit.annotate.scheme import Scheme

        schema = described(kind, Scheme)
    else:
        schema = schema_of(kind)
    print(json.dumps(schema, indent=None if as_json else 2))
