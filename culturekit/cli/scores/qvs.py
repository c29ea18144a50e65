"""`culturekit score qvs`: cultural diversity of what images show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Out, Seed, Wait
from culturekit.cli.stages import run_one

if TYPE_CHECKING:
    from culturekit.metrics.diversity.kernels import Weights

__all__ = ["qvs"]

Missing: TypeAlias = Literal["distinct", "equal"]
Partial: TypeAlias = Literal["drop", "paper"]
Target: TypeAlias = Literal["these", "population"]
Within: TypeAlias = Literal["none", "country"]


def qvs(
    matches: Annotated[Path, typer.Option(help="Table that `index map` wrote.")],
    out: Out,
    quality: Annotated[Path | None, typer.Option(help="Quality of the images; without it only VS is scored.")] = None,
    audits: Annotated[
        Path | None, typer.Option(help="What people say that some of the images show; adds corrected diversity.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="All images asked for; those without a match, and abstained ones, then give bounds."),
    ] = None,
    pool: Annotated[str | None, typer.Option(help="Whose answers correct, when several pools answered.")] = None,
    seed: Seed = 0,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            help="Weights of continent, country and artifact, such as 0,0.5,0.5, or a name: continent, country, "
            "artifact, hierarchical, uniform; repeatable. [the five named ones]"
        ),
    ] = None,
    q: Annotated[list[float] | None, typer.Option(help="Order of the Vendi score; repeatable, inf is one. [1]")] = None,
    size: Annotated[int, typer.Option(min=2, help="Images per batch.")] = 8,
    missing: Annotated[
        Missing, typer.Option(help="Missing labels: each unlike all others, or all the same.")
    ] = "distinct",
    partial: Annotated[
        Partial, typer.Option(help="Incomplete batches: dropped, or divided by the full size as in CUBE's notebook.")
    ] = "drop",
    target: Annotated[
        Target, typer.Option(help="Intervals speak about these prompts, or about all that at least 20 stand for.")
    ] = "these",
    confidence: Annotated[float, typer.Option(help="How often intervals are to hold the truth.")] = 0.95,
    within: Annotated[
        Within, typer.Option(help="Also score within each country that prompts name, by artifact.")
    ] = "none",
    prompts: Annotated[Path | None, typer.Option(help="Table of the prompts, for --within country.")] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Score cultural diversity, mapped and, with audits, corrected: quality, VS and qVS over the five kernels."""
    from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
    from culturekit.metrics.scoring.score_corrected import Correction
    from culturekit.metrics.scoring.score_qvs import QvsOptions
    from culturekit.pipeline.steps.qvs_stage import score_stage

    first, *others = q or [1.0]
    options = QvsOptions(
        kernels=tuple(map(weights_of, kernel or STANDARD_KERNELS)),
        q=first,
        other_orders=tuple(others),
        size=size,
        missing=missing,
        partial=partial,
        target=target,
        confidence=confidence,
        within=within,
    )
    stage = score_stage(
        {"matches": matches},
        {} if quality is None else {"quality": quality},
        options,
        audits={} if audits is None else {"audits": audits},
        images={} if images is None else {"images": images},
        correction=Correction(pool, seed),
        prompts=prompts,
    )
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


def weights_of(text: str) -> "Weights":
    """Read a kernel: a name, or three numbers with commas; a number may be a fraction such as 1/3."""
    from fractions import Fraction

    from culturekit.metrics.arguments import argument_error
    from culturekit.metrics.diversity.kernels import STANDARD_KERNELS, check_weights

    if text in STANDARD_KERNELS:
        return STANDARD_KERNELS[text]
    try:
        return check_weights([float(Fraction(part.strip())) for part in text.split(",")])
    except (ValueError, ZeroDivisionError) as error:
        names = ", ".join(STANDARD_KERNELS)
        raise argument_error("--kernel", f"three numbers with commas, or one of {names}", text) from error
