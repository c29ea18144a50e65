"""Options of scores that are means over images: at which levels, and what their intervals speak about."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from culturekit.metrics.scoring.image_levels import MeanOptions

__all__ = ["By", "Groups", "Scheme", "Target", "TargetName", "mean_options"]

TargetName: TypeAlias = Literal["these", "population"]

By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        help="Score at this level too: region, country, concept (the object), or several as region,concept; "
        "repeat it for more levels.",
    ),
]
Scheme = Annotated[
    str, typer.Option("--scheme", help="Scheme that groups countries into regions, shipped or of --groups.")
]
Groups = Annotated[
    Path | None, typer.Option("--groups", help="YAML (scheme: group: [countries]) or CSV (scheme,group,country).")
]
Target = Annotated[
    TargetName | None,
    typer.Option(
        "--target",
        help="What intervals speak about: images of these prompts, or other prompts. [others, if 20 or more]",
    ),
]


def mean_options(
    by: Sequence[str] | None,
    scheme: str,
    groups: Path | None,
    target: TargetName | None,
    *,
    benchmark: str,
    model: str = "images",
) -> "MeanOptions":
    """Put the options together, regions found by name."""
    from culturekit.families.country_groups import country_groups
    from culturekit.metrics.scoring.image_levels import MeanOptions, levels_of

    regions = country_groups(scheme, groups)
    return MeanOptions(levels_of(by or ()), regions, scheme, target, benchmark=benchmark, model=model)
