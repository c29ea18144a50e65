"""`culturekit init`: from a folder of images to a recipe that evaluates them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.completions import spec_completer
from culturekit.cli.options import AsJson
from culturekit.errors import UsageError

if TYPE_CHECKING:
    from culturekit.pipeline.begin_evaluation import Begun

__all__ = ["init"]


def init(
    pictures: Annotated[Path, typer.Argument(help="Folder with a folder of images for each model.")],
    cspace: Annotated[
        Path, typer.Option(help="Published cultural space: a cspace.parquet, or a file in the public CUBE layout.")
    ],
    prompts: Annotated[
        Path | None,
        typer.Option(help="What the images were made from. [the cultural space, where that is in the public layout]"),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(help="Folder of pictures that show artifacts, named after them. [the encoder goes by names]"),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Who tells what images show: transformers:MODEL, or embedded for simulated images.",
            autocompletion=spec_completer("culturekit.index.encoders:ENCODERS"),
        ),
    ] = None,
    quality: Annotated[str, typer.Option(help="Who scores the quality of images.")] = "embedded",
    pattern: Annotated[
        str, typer.Option(help="What the parts of file names mean, such as '{model}/{prompt}__{id}'. [found out]")
    ] = "",
    out: Annotated[Path, typer.Option(help="Recipe file to write; none is overwritten.")] = Path("evaluation.yaml"),
    as_json: AsJson = False,
) -> None:
    """Write the recipe that evaluates images you already have, and show how their names are read."""
    from culturekit.pipeline.begin_evaluation import EvaluationFiles, begin_evaluation

    if encoder is None:
        raise UsageError(
            "it is not known who is to tell what images show",
            expected="--encoder transformers:MODEL for pictures of real models, such as "
            "transformers:openai/clip-vit-base-patch32, or --encoder embedded for those of simulated ones",
        )
    begun = begin_evaluation(
        EvaluationFiles(pictures, cspace, prompts, references, pattern), out, encoder=encoder, quality=quality
    )
    findings = [f"{model.name}: {finding}" for model in begun.models for finding in model.preview.findings]
    if as_json:
        print(json.dumps(as_data(begun), ensure_ascii=False))
    else:
        tell(begun)
    if findings:
        typer.echo(f"to be looked at: {'; '.join(findings)}", err=True)
        raise typer.Exit(1)


def tell(begun: "Begun") -> None:
    """Show how names are read, and what to type next."""
    from culturekit.generation.folder.folder_listing import shown
    from culturekit.generation.folder.folder_preview import preview_lines

    for model in begun.models:
        for line in preview_lines(model.preview):
            print(shown(line))
    if begun.references is not None:
        fits, pictures = begun.references
        print(f"references: {fits:,} of {pictures:,} pictures show an artifact of the cultural space")
    print(f"recipe: {begun.recipe}")


def as_data(begun: "Begun") -> dict[str, object]:
    """Give it as data."""
    return {
        "recipe": str(begun.recipe),
        "models": {model.name: {"backend": model.backend, **model.preview.as_data()} for model in begun.models},
        "references": None
        if begun.references is None
        else dict(zip(("fit", "pictures"), begun.references, strict=True)),
    }
