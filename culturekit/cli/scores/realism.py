"""`culturekit score realism`: generated images against real ones, as sets of vectors."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.scores.levels import By, Groups, Scheme, Target, mean_options
from culturekit.cli.stages import run_one

__all__ = ["realism"]


def realism(
    real: Annotated[Path, typer.Option(help="Folder of vectors of real images.")],
    fake: Annotated[
        list[Path], typer.Option(help="Folder of vectors of generated images, ids their image ids; repeatable.")
    ],
    out: Out,
    images: Annotated[
        list[Path] | None,
        typer.Option(help="Table of generated images: model, prompt, country, object; repeatable. [one model]"),
    ] = None,
    references: Annotated[Path | None, typer.Option(help="Table of the real images; --by needs it.")] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the images, where their table lacks country or object.")
    ] = None,
    probs: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of class probabilities, as vectors; adds the inception score; repeatable."),
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="Neighbourhoods reach to the k-th neighbour.")] = 5,
    splits: Annotated[int, typer.Option(min=1, help="Of the inception score.")] = 10,
    by: By = None,
    scheme: Scheme = "un-m49-subregion",
    groups: Groups = None,
    per_cell: Annotated[
        int | None, typer.Option(min=1, help="Real images drawn of each object and place. [as many as the fewest have]")
    ] = None,
    target: Target = None,
    model: Annotated[str, typer.Option(help="Whose images they are, where no table says it.")] = "images",
    equal: Annotated[
        bool,
        typer.Option("--equal/--all", help="As many images of every model, drawn by --seed; or all that there are."),
    ] = True,
    most: Annotated[
        int | None, typer.Option(min=2, help="Images of a model at most, each prompt giving as many. [all]")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Equally many references of each object, over its countries in turn.")
    ] = False,
    fewest: Annotated[
        int, typer.Option(min=0, help="Images, real and generated, without which a cell of --by is left out.")
    ] = 0,
    seed: Seed = 0,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score precision, recall, density, coverage, Fréchet and kernel distance, and the inception score."""
    from culturekit.families.value_files import numbered
    from culturekit.metrics.scoring.score_realism import RealismOptions
    from culturekit.pipeline.scores.realism_stage import RealismFiles, realism_stage

    means = mean_options(by, scheme, groups, target, benchmark="realism", model=model)
    options = RealismOptions(
        k=k,
        splits=splits,
        per_cell=per_cell,
        seed=seed,
        equal=equal,
        most=most,
        balanced=balanced,
        fewest=fewest,
        means=means,
    )
    files = RealismFiles(
        real,
        numbered("fake", fake),
        numbered("images", images or ()),
        references,
        prompts,
        numbered("probs", probs or ()),
    )
    run_one(realism_stage(files, options), out, also=also, wait=wait, as_json=as_json)
