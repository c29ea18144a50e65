"""The countries of artifacts, as a concept takes them."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country
from culturekit.kg.facts import Facts, qid_of
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES

__all__ = ["country_lists", "in_scope"]

ITEMS_AT_ONCE = 500_000


def country_lists(
    facts: Facts, numbers: NDArray[np.uint32], concept: Concept, successors: Mapping[int, int]
) -> pl.DataFrame:
    """List the countries of items, in the order of their numbers: number, country_qids; each country once.

    The properties come in the order of the concept; within one, countries come in the order that the item has. With
    the choice `P495-first`, P17 counts only where P495 says nothing.
    """
    parts = [
        lists_of(facts, numbers[begin : begin + ITEMS_AT_ONCE], concept, successors)
        for begin in range(0, max(len(numbers), 1), ITEMS_AT_ONCE)
    ]
    return pl.concat(parts)


def lists_of(
    facts: Facts, numbers: NDArray[np.uint32], concept: Concept, successors: Mapping[int, int]
) -> pl.DataFrame:
    """List the countries of as many items as are read at once."""
    first = concept.country_choice == "P495-first"
    properties = COUNTRY_PROPERTIES if first else concept.country_properties
    turn = {name: place for place, name in enumerate(properties)}
    stated = (
        facts.statements(numbers, concept.country_properties, ranks=concept.ranks, ended=concept.ended)
        .filter(pl.col("value").is_not_null())
        .with_columns(turn=pl.col("property").replace_strict(turn, return_dtype=pl.UInt8))
    )
    if first:
        stated = stated.filter(pl.col("turn") == pl.col("turn").min().over("number"))
    if successors:
        stated = stated.with_columns(pl.col("value").replace(successors))
    lists = (
        stated.sort("number", "turn", "position")
        .group_by("number", maintain_order=True)
        .agg(country_qids=qid_of("value").unique(maintain_order=True))
    )
    every = pl.DataFrame({"number": numbers}, schema={"number": pl.UInt32})
    return every.join(lists, on="number", how="left", maintain_order="left").with_columns(
        pl.col("country_qids").fill_null([])
    )


def in_scope(concept: Concept, country_qids: pl.Series) -> NDArray[np.bool_]:
    """Tell which lists have one of the concept's countries."""
    if concept.countries == "all":
        return np.ones(len(country_qids), np.bool_)
    wanted = sorted({qid for iso in concept.countries for qid in country(iso).qids})
    inside = country_qids.list.eval(pl.element().is_in(wanted)).list.any().fill_null(value=False)
    return inside.to_numpy()
