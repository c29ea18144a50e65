"""`culturekit index diagnose` and `shuffle`: how far a mapping can be trusted."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.index.map_command import weights_of
from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Seed, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import Aggregate

__all__ = ["diagnose_command", "shuffle_command"]


def diagnose_command(
    index: Annotated[Path, typer.Option(help="Folder that `index build` wrote.")],
    out: Out,
    matches: Annotated[
        list[Path] | None, typer.Option(help="Table that `index map` wrote, whose hubs are listed; may be repeated.")
    ] = None,
    aggregate: Annotated[Aggregate, typer.Option(help="How an artifact's vectors become its score.")] = "max",
    weights: Annotated[
        str | None, typer.Option(help="How much each channel counts, such as image=0.7,text=0.3. [all alike]")
    ] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch of the ceiling.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, max=65_535, help="Batches of the ceiling per concept.")] = 50,
    seed: Seed = 0,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Hold references out: precision and recall by country, the ceiling of a score, and the hubs of a mapping."""
    from culturekit.index.diagnosis.diagnosis import DiagnosisOptions
    from culturekit.index.matching.mapping_options import MappingOptions
    from culturekit.pipeline.steps.diagnosis_stages import diagnosis_stage

    tables = {f"matches-{number}": path for number, path in enumerate(matches or [])}
    mapping = MappingOptions(aggregate=aggregate, weights=weights_of(weights))
    stage = diagnosis_stage(index, tables, mapping, DiagnosisOptions(size, repeats), seed=seed)
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)


def shuffle_command(
    images: Annotated[Path, typer.Option(help="Images table.")],
    out: Out,
    tiles: Annotated[int, typer.Option(min=2, max=64, help="Tiles along each side of a picture.")] = 8,
    repeats: Annotated[int, typer.Option(min=0, help="Repeats of each prompt that are taken; 0 takes all.")] = 5,
    seed: Seed = 0,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Cut images into tiles and shuffle them: what such pictures score is the floor of a score."""
    from culturekit.index.diagnosis.shuffled_pictures import ShuffleOptions
    from culturekit.pipeline.steps.diagnosis_stages import shuffle_stage

    stage = shuffle_stage(images, ShuffleOptions(tiles, repeats), seed=seed, name="shuffled")
    run_one(stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json)
