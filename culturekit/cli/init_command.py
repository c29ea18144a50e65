"""`culturekit init`: from a folder of images to a recipe that evaluates them."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import AsJson, spec_completer
from culturekit.cli.showing import show
from culturekit.core.errors import UsageError

if TYPE_CHECKING:
    from culturekit.recipes.cube.begin_evaluation import Begun


def init(
    pictures: Annotated[Path, typer.Argument(help="Folder with a folder of images for each model.")],
    cspace: Annotated[
        Path,
        typer.Option(
            help="Cultural space: a cspace.parquet, a file in the public CUBE layout, or a CSV file of your own with "
            "the columns name, concept and country."
        ),
    ],
    prompts: Annotated[
        Path | None,
        typer.Option(
            help="What the images were made from: a table, or a CSV file with the columns prompt and concept. [the "
            "cultural space, where that is in the public layout; else the names of the files]"
        ),
    ] = None,
    references: Annotated[
        str | None,
        typer.Option(
            help="Folder of pictures that show artifacts, named after them, or a backend that draws them, such as "
            "simulated. [the encoder goes by names]"
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Who tells what images show: transformers:MODEL, or embedded for simulated images.",
            autocompletion=spec_completer("culturekit.index.encoder:ENCODERS"),
        ),
    ] = None,
    quality: Annotated[str, typer.Option(help="Who scores the quality of images.")] = "embedded",
    pattern: Annotated[
        str, typer.Option(help="What the parts of file names mean, such as '{model}/{prompt}__{id}'. [found out]")
    ] = "",
    out: Annotated[Path, typer.Option(help="Recipe file to write; none is overwritten.")] = Path("evaluation.yaml"),
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the look at the encoder itself.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the recipe that evaluates images you already have.

    It shows how file names are read, and what is missing.
    """
    from culturekit.recipes.cube.begin_evaluation import EvaluationFiles, begin_evaluation

    if encoder is None:
        raise UsageError(
            "it is not known who is to tell what images show",
            expected="--encoder transformers:MODEL for pictures of real models, such as "
            "transformers:openai/clip-vit-base-patch32, or --encoder embedded for those of simulated ones",
        )
    files = EvaluationFiles(pictures, cspace, prompts, folder_or_backend(references), pattern)
    begun = begin_evaluation(files, out, encoder=encoder, quality=quality, diagnosis=not quick)
    show(as_data(begun), begun_lines(begun), as_json=as_json)
    if begun.findings:
        findings = f"to be looked at: {'; '.join(begun.findings)}"
        typer.echo(json.dumps({"level": "warning", "said": findings}) if as_json else findings, err=True)
        raise typer.Exit(1)


def folder_or_backend(references: str | None) -> Path | str | None:
    """Take what is no folder for a backend where there is one of its name."""
    from culturekit.generation.backend import BACKENDS

    if references is None or Path(references).exists() or references.partition("?")[0] not in BACKENDS.names():
        return None if references is None else Path(references)
    return references


def begun_lines(begun: "Begun") -> Iterator[str]:
    """Show how names are read, and what to type next; what is the same for every model is shown once."""
    from culturekit.generation.folder.folder_listing import shown
    from culturekit.generation.folder.folder_preview import preview_lines

    previews = [list(titled(preview_lines(model.preview))) for model in begun.models]
    shared = [one for one in previews[0] if all(one in other for other in previews[1:])] if len(previews) > 1 else []
    blocks = [[one for one in preview if one not in shared] for preview in previews]
    for block in [*blocks, [("", "every model:"), *shared] if shared else []]:
        before = ""
        for title, line in block:
            if title not in ("", before):  # once, before the first line under it
                yield shown(title)
                before = title
            yield shown(line)
    if begun.references is not None:
        fits, pictures = begun.references
        yield f"references: {fits:,} of {pictures:,} pictures show an artifact of the cultural space"
    if begun.read_off:
        yield f"prompts: read off the names of the files, and written to {begun.prompts}"
    yield f"recipe: {begun.recipe}"


def titled(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give each line with the title that it stands under; those at the margin have none."""
    title = ""
    for line in lines:
        if line.endswith(":"):
            title = line
        else:
            yield title if line.startswith(" ") else "", line


def as_data(begun: "Begun") -> dict[str, object]:
    """Give it as data."""
    return {
        "recipe": str(begun.recipe),
        "prompts": str(begun.prompts),
        "missing": list(begun.missing),
        "models": {model.name: {"backend": model.backend, **model.preview.as_data()} for model in begun.models},
        "references": begun.references and dict(zip(("fit", "pictures"), begun.references, strict=True)),
    }
