"""Which artifacts an image is compared with: all, those of some concepts and countries, or those of its prompt."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError

__all__ = [
    "ANYWHERE",
    "NO_SUCH_CONCEPT",
    "Place",
    "Within",
    "artifacts_within",
    "check_any_concept",
    "check_known",
    "places_of",
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
