"""What it would cost to have a language model filter the candidates: requests, tokens, and money only where priced."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.graph_tables import GraphTables

__all__ = ["FilterCost", "filter_cost"]

BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token, roughly, for English text and JSON; scripts beyond Latin come closer to 3."""

BASIS = "1 request per candidate, 4 UTF-8 bytes per token, nothing for what a provider adds; rules may drop some before"
EMPTY_DATA = '{"id":"","label":"","description":"","concept":"","roots":[],"classes":[],"countries":[]}'
QID_MARKS = 4
"""The letter Q, two quotes and a comma around the digits."""
REPLY = '{"id":"Q","verdict":"remove"}'


@dataclass(frozen=True, slots=True)
class FilterCost:
    """An estimate of `cspace filter`; `price` is None where no prices were given."""

    requests: int
    input_tokens: int
    output_tokens: int
    basis: str
    price: float | None


def filter_cost(
    tables: GraphTables,
    concept: str,
    candidates: NDArray[np.uint32],
    countries: int,
    *,
    wording: str,
    prices: tuple[float, float] | None = None,
) -> FilterCost:
    """Estimate tokens from the wording, the labels and descriptions, and the QIDs that go with each candidate.

    `countries` is how many countries the candidates state together; `prices` are per million tokens, in and out.
    """
    wanted = pl.LazyFrame({"number": candidates}, schema={"number": pl.UInt32})
    texts = tables.items.join(wanted, on="number", how="semi").select(
        pl.col("label", "description").str.len_bytes().fill_null(0).cast(pl.UInt64).sum()
    )
    classes = tables.statements.filter(
        pl.col("property") == "P31", pl.col("rank") != "deprecated", pl.col("value").is_not_null()
    ).join(wanted, on="number", how="semi")
    digits = classes.select(pl.col("value").cast(pl.String).str.len_bytes().cast(pl.UInt64).sum(), n=pl.len())
    (label_bytes, description_bytes), (class_digits, n_classes) = (
        each.collect(engine="streaming").row(0) for each in (texts, digits)
    )
    own_digits = int(np.char.str_len(candidates.astype(str)).sum()) if len(candidates) else 0
    qids = own_digits + class_digits + QID_MARKS * n_classes + countries * (QID_MARKS + 3)
    constant = len(wording.encode()) + len(EMPTY_DATA) + len(concept)
    sent = constant * len(candidates) + label_bytes + description_bytes + qids
    answered = len(REPLY) * len(candidates) + own_digits
    tokens = (-(-sent // BYTES_PER_TOKEN), -(-answered // BYTES_PER_TOKEN))
    price = sum(count * each / 1e6 for count, each in zip(tokens, prices, strict=True)) if prices else None
    return FilterCost(len(candidates), *tokens, BASIS, price)
