"""How a statement is made, in one bit, so that a walk can choose which statements count.

Each property has six kinds of statements: of best rank, of another rank that is not deprecated, deprecated; and each
of these with or without an end (qualifier P582). An edge or a node carries the bits of all its statements.
"""

from collections.abc import Sequence

import polars as pl

from culturekit.records.choices import Ended, Ranks

__all__ = ["COUNTRY_PROPERTIES", "EDGE_PROPERTIES", "Ended", "Ranks", "flags_of", "is_truthy", "mask_of"]

EDGE_PROPERTIES = ("P31", "P279")
COUNTRY_PROPERTIES = ("P495", "P17")

BEST, OTHER, DEPRECATED = range(3)
ALLOWED: dict[str, tuple[int, ...]] = {
    "truthy": (BEST,),
    "not-deprecated": (BEST, OTHER),
    "all": (BEST, OTHER, DEPRECATED),
}
KINDS = 6


def mask_of(
    properties: Sequence[str], family: Sequence[str], *, ranks: Ranks = "not-deprecated", ended: Ended = "keep"
) -> int:
    """Give the bits of the statements that count; `family` is EDGE_PROPERTIES or COUNTRY_PROPERTIES."""
    ends = (0, 1) if ended == "keep" else (0,)
    return sum(
        1 << (KINDS * family.index(name) + 2 * rank + end)
        for name in properties
        for rank in ALLOWED[ranks]
        for end in ends
    )


def flags_of(statements: pl.DataFrame, family: Sequence[str]) -> pl.DataFrame:
    """Give the statements of a family of properties that have a value: number, value and flags (u16).

    The best rank of an item for a property is `preferred` where any statement has it, also one without a value.
    """
    own = with_preference(statements.filter(pl.col("property").is_in(list(family))))
    rank = (
        pl.when(pl.col("rank") == "deprecated")
        .then(DEPRECATED)
        .when((pl.col("rank") == "preferred") | ~pl.col("preference"))
        .then(BEST)
        .otherwise(OTHER)
    )
    place = pl.col("property").replace_strict({name: n for n, name in enumerate(family)}, return_dtype=pl.UInt16)
    kind = place * KINDS + 2 * rank.cast(pl.UInt16) + pl.col("ended").cast(pl.UInt16)
    bits = pl.lit(2, pl.UInt32).pow(kind).cast(pl.UInt16)
    return own.select("number", "value", flags=bits).filter(pl.col("value").is_not_null())


def is_truthy() -> pl.Expr:
    """Tell which of all statements of some items are of the best rank of their item and property."""
    preferred = pl.col("rank") == "preferred"
    return preferred | ((pl.col("rank") == "normal") & ~preferred.any().over("number", "property"))


def with_preference(statements: pl.DataFrame) -> pl.DataFrame:
    """Say of each statement whether its item prefers any of that property; few do, so that these are looked for."""
    preferred = statements.filter(pl.col("rank") == "preferred").select("number", "property").unique()
    if preferred.is_empty():
        return statements.with_columns(preference=False)
    marked = preferred.with_columns(preference=True)
    joined = statements.join(marked, on=["number", "property"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("preference").fill_null(value=False))
