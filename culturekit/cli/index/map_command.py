"""`culturekit index map`: from images to their nearest artifacts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.errors import UsageError
from culturekit.records.choices import Aggregate

if TYPE_CHECKING:
    from culturekit.index.search.adjustment import Adjustment

__all__ = ["map_command"]

Within = Literal["concept", "country", "both"]
AdjustmentName = Literal["csls", "inverted-softmax"]


def map_command(
    index: Annotated[Path, typer.Option(help="Folder that `index build` wrote.")],
    images: Annotated[Path, typer.Option(help="Images table.")],
    out: Out,
    k: Annotated[int, typer.Option("--k", min=1, max=1000, help="Artifacts to keep per image.")] = 5,
    aggregate: Annotated[Aggregate, typer.Option(help="How an artifact's vectors become its score.")] = "max",
    weights: Annotated[
        str | None, typer.Option(help="How much each channel counts, such as image=0.7,text=0.3. [all alike]")
    ] = None,
    concept: Annotated[
        list[str] | None, typer.Option(help="Compare only with artifacts of this concept; may be repeated.")
    ] = None,
    country: Annotated[
        list[str] | None, typer.Option(help="Compare only with artifacts of this country (ISO); may be repeated.")
    ] = None,
    within: Annotated[
        Within | None, typer.Option(help="Compare each image only with artifacts of its own prompt's place.")
    ] = None,
    max_error: Annotated[
        float | None, typer.Option(min=0, max=1, help="Abstain where matches would err more often than this share.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Images of known artifacts to calibrate on. [the index's references]")
    ] = None,
    adjust: Annotated[AdjustmentName | None, typer.Option(help="Correct scores for hubs; needs --bank.")] = None,
    bank: Annotated[
        Path | None, typer.Option(help="Images that --adjust learns from: balanced, and none that is mapped.")
    ] = None,
    neighbours: Annotated[int, typer.Option(min=1, max=1000, help="Neighbours that csls averages.")] = 10,
    temperature: Annotated[float, typer.Option(min=0, max=10, help="Temperature of inverted-softmax.")] = 0.05,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts of the images: concept and country, where their table lacks them.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="Folder that `index embed` wrote for these images.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="SPEC of the index's own encoder, where its weights lie elsewhere now.")
    ] = None,
    search: Annotated[
        str, typer.Option(help="Who searches: auto, numpy, faiss, torch, torch:cuda. The matches are the same.")
    ] = "auto",
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Map every image to its nearest artifacts, with margins."""
    from culturekit.index.matching.mapping_options import MappingInputs, MappingOptions, weights_of
    from culturekit.pipeline.steps.map_stage import map_stage

    given = MappingInputs(
        index,
        images,
        prompts,
        vectors,
        calibration,
        adjustment_of(adjust, bank, neighbours, temperature),
        bank,
        encoder,
        search,
    )
    weighed = None if weights is None else weights_of(weights)
    options = MappingOptions(
        k, aggregate, weighed, within, tuple(concept or ()), tuple(country or ()), share(max_error)
    )
    run_one(
        map_stage(given, options, name="matches"),
        out,
        workers=workers,
        engine=engine,
        also=also,
        wait=wait,
        as_json=as_json,
    )
    refuse_unmet(out)


def share(max_error: float | None) -> float | None:
    """Make sure that a stated error is a share that can be kept."""
    if max_error is not None and not 0 < max_error < 1:
        raise UsageError("not an error to keep", where="--max-error", expected="above 0 and below 1")
    return max_error


def adjustment_of(
    name: AdjustmentName | None, bank: Path | None, neighbours: int, temperature: float
) -> "Adjustment | None":
    """Describe the correction for hubs, if one is asked for."""
    from culturekit.index.search.adjustment import Adjustment

    if (name is None) != (bank is None):
        raise UsageError("--adjust and --bank go together", expected="both or neither")
    if name is None:
        return None
    if temperature <= 0:
        raise UsageError("a temperature is above 0", where="--temperature", found=str(temperature))
    return Adjustment(name, neighbours, temperature)


def refuse_unmet(out: Path) -> None:
    """Leave with 1 where no margin is shown to keep the stated error, so that every image abstains."""
    from culturekit.storage.manifest import read_manifest

    manifest = read_manifest(out)
    found = {} if manifest is None else manifest.notes.get("abstention", {})
    if found and not found["met"]:
        typer.echo(
            f"every image abstains: no margin is shown to keep the error at or below {found['max_error']:g} with "
            f"{found['references']:,} {found['calibrated_on']} of {found['artifacts']:,} artifacts. Add references, "
            "allow a larger --max-error, or name more known images with --calibration.",
            err=True,
        )
        raise typer.Exit(1)
