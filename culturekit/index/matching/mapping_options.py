"""How images are mapped, and what with: options, inputs, and the scopes that artifacts are looked for in."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.matching.adjustment import Adjustment
from culturekit.records.choices import Aggregate, ChannelName
from culturekit.stages.stage_command import Typed

__all__ = [
    "ANYWHERE",
    "NO_SUCH_CONCEPT",
    "MappingInputs",
    "MappingOptions",
    "Place",
    "Within",
    "artifacts_within",
    "check_any_concept",
    "check_known",
    "places_of",
    "weights_of",
    "without_concept",
]

Within: TypeAlias = Literal["concept", "country", "both"]
"""What of its prompt's an image is limited to."""

Place: TypeAlias = tuple[str | None, str | None]
"""A concept and a country; None is any."""

NO_SUCH_CONCEPT = "the index has no artifact of the prompt's concept"
"""Such an image would be mapped to something else, with a score and an interval."""

ANYWHERE: Place = (None, None)


def check_known(kind: str, named: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a concept or country that no artifact of the index has."""
    choices = sorted(set(known))
    for name in named:
        if name not in choices:
            near = difflib.get_close_matches(name.casefold(), map(str.casefold, choices), n=5, cutoff=0.5)
            alike = [choice for choice in choices if choice.casefold() in near]
            first = sorted(alike, key=lambda choice: near.index(choice.casefold()))
            listed = [*first, *(choice for choice in choices if choice not in first)]
            raise UsageError(
                f"the index has no artifact of the {kind} {name!r}", expected=f"one of {', '.join(listed)}"
            )


def artifacts_within(
    artifacts: pl.DataFrame, place: Place, *, concepts: Sequence[str], countries: Sequence[str]
) -> NDArray[np.bool_]:
    """Tell which artifacts are of a place, and of any of the concepts and countries that all images are limited to."""
    concept, country = place
    mask = pl.col("artifact_id").is_not_null()
    for column, one, several in (("concepts", concept, concepts), ("countries", country, countries)):
        if one is not None:
            mask &= pl.col(column).list.contains(one)
        if several:
            mask &= pl.col(column).list.eval(pl.element().is_in(list(several))).list.any()
    return artifacts.select(mask).to_series().to_numpy().astype(np.bool_)


def places_of(images: pl.DataFrame, within: Within | None) -> pl.DataFrame:
    """Give each image its place: columns `in_concept` and `in_country`, null where any will do, and `homeless`.

    `homeless` says why an image has no place; null where it has one.
    """
    by_concept, by_country = within in {"concept", "both"}, within in {"country", "both"}
    nothing = pl.lit(None, pl.String)
    homeless = (
        pl.when(pl.lit(by_concept) & pl.col("concept").is_null())
        .then(pl.lit("no concept of a prompt to map within"))
        .when(pl.lit(by_country) & pl.col("country").is_null())
        .then(pl.lit("no country of a prompt to map within"))
    )
    return images.with_columns(
        in_concept=pl.col("concept") if by_concept else nothing,
        in_country=pl.col("country") if by_country else nothing,
        homeless=homeless,
    )


def concepts_of(artifacts: pl.DataFrame) -> pl.Series:
    """List the concepts that an index has artifacts of."""
    return artifacts["concepts"].explode(empty_as_null=False).drop_nulls().unique().sort()


def without_concept(artifacts: pl.DataFrame) -> pl.Expr:
    """Say of images whether they are about a concept of which the index has nothing; null where it has something."""
    return pl.when(pl.col("concept").is_in(concepts_of(artifacts).implode()).not_()).then(pl.lit(NO_SUCH_CONCEPT))


def check_any_concept(placed: pl.DataFrame, artifacts: pl.DataFrame, *, where: str) -> None:
    """Refuse images that are all about concepts of which the index has nothing."""
    if placed.height and (placed["homeless"] == NO_SUCH_CONCEPT).fill_null(value=False).all():
        raise UsageError(
            NO_SUCH_CONCEPT,
            where=where,
            expected=" or ".join(concepts_of(artifacts)),
            found=", ".join(placed["concept"].unique().sort()),
            hint="Name the concepts of prompts as the index does, or build an index of theirs.",
        )


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def weights_of(text: str) -> dict[ChannelName, float]:
    """Read weights such as `image=0.7,text=0.3`."""
    found: dict[ChannelName, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if name not in {"image", "text"} or name in found or not 0 <= weight < float("inf"):
            raise UsageError(
                "weights cannot be read", where="--weights", expected="such as image=0.7,text=0.3", found=repr(text)
            )
        found[cast("ChannelName", name)] = weight
    return found


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How images are mapped.

    All channels of an index count alike, unless `weights` says how much each of them does.
    """

    k: Annotated[int, Field(ge=1, le=1000, description="Artifacts to keep per image.")] = 5
    aggregate: Annotated[Aggregate, Field(description="How an artifact's vectors become its score.")] = "max"
    weights: Annotated[
        Mapping[ChannelName, Weight] | None,
        Typed(read=weights_of, help="How much each channel counts, such as image=0.7,text=0.3. [all alike]"),
    ] = None
    within: Annotated[
        Within | None, Field(description="Compare each image only with artifacts of its own prompt's place.")
    ] = None
    concepts: Annotated[
        tuple[str, ...],
        Field(description="Compare only with artifacts of this concept; may be repeated."),
        Typed("concept"),
    ] = ()
    countries: Annotated[
        tuple[str, ...],
        Field(description="Compare only with artifacts of this country (ISO); may be repeated."),
        Typed("country"),
    ] = ()
    max_error: Annotated[
        float | None,
        Field(gt=0, lt=1, description="Abstain where matches would err more often than this share."),
        Typed("max-error"),
    ] = None


@dataclass(frozen=True, slots=True)
class MappingInputs:
    """What images are mapped with; where the encoder lies now and who searches decide no match."""

    index: Annotated[Path, Field(description="Folder that `index build` wrote.")]
    images: Annotated[Path, Field(description="Images table.")]
    prompts: Annotated[
        Path | None, Field(description="Prompts of the images: concept and country, where their table lacks them.")
    ] = None
    vectors: Annotated[Path | None, Field(description="Folder that `index embed` wrote for these images.")] = None
    calibration: Annotated[
        Path | None, Field(description="Images of known artifacts to calibrate on. [the index's references]")
    ] = None
    adjustment: Adjustment = Adjustment()  # noqa: RUF009 - frozen
    bank: Annotated[
        Path | None, Field(description="Images that --adjust learns from: balanced, and none that is mapped.")
    ] = None
    encoder: Annotated[
        str | None, Field(description="SPEC of the index's own encoder, where its weights lie elsewhere now.")
    ] = None
    search: Annotated[
        str, Field(description="Who searches: auto, numpy, faiss, torch, torch:cuda. The matches are the same.")
    ] = "auto"

    def __post_init__(self) -> None:
        """Take a correction with what it learns from, or neither."""
        if (self.adjustment.name is None) != (self.bank is None):
            raise UsageError("--adjust and --bank go together", expected="both or neither")
