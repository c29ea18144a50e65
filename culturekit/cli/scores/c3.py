"""`culturekit score c3`: how well translated captions fit their originals, images and objects."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["c3"]

Strategy: TypeAlias = Literal["c3", "labse", "clip", "objects", "no-objects"]


def c3(
    out: Out,
    source: Annotated[Path | None, typer.Option(help="Folder of vectors of the original captions.")] = None,
    target: Annotated[Path | None, typer.Option(help="Of the translated captions, in the space of the source.")] = None,
    objects: Annotated[Path | None, typer.Option(help="Of the objects in the images, in the same space.")] = None,
    image: Annotated[Path | None, typer.Option(help="Of the images.")] = None,
    image_target: Annotated[
        Path | None, typer.Option(help="Of the translated captions, in the space of the images.")
    ] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="List this many best items. [no list]")] = None,
    strategy: Annotated[
        Strategy, typer.Option(help="Rank by the whole, by one term (LaBSE, CLIP, objects), or by all but objects.")
    ] = "c3",
    model: Annotated[str, typer.Option(help="Whose captions they are, as it stands in the scores.")] = "captions",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score captions by C³'s three alignments; ids of vectors are ITEM, or ITEM#k for its token or object k."""
    from culturekit.metrics.scoring.score_c3 import C3Options
    from culturekit.pipeline.scores.c3_stage import c3_stage

    given = {"source": source, "target": target, "objects": objects, "image": image, "image_target": image_target}
    folders = {role: folder for role, folder in given.items() if folder is not None}
    stage = c3_stage(folders, C3Options(keep=keep, strategy=strategy, model=model))
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
