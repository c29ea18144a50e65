"""Themes in what annotators answered to a survey: which ones coders agree on, and who mentions them."""

from dataclasses import dataclass

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error
from culturekit.metrics.inclusion.region_rates import check_columns
from culturekit.metrics.statistics.chance_corrected import fleiss_kappa
from culturekit.records.schemas import SURVEY_CODES

__all__ = ["LEAST_KAPPA", "Themes", "survey_themes"]

LEAST_KAPPA = 0.6
"""Codes on which coders agree less are discarded; the paper's own table keeps those that round to it."""

CODERS = 3


@dataclass(frozen=True, slots=True)
class Themes:
    """What coders found.

    Attributes:
        kappas: code, kappa (null where every answer is the same), kept; in the order of kappa, highest first.
        votes: response_id, location, topic, code, present: the majority, for the codes kept.
        shares: topic, location, code, share, n (responses): how many mention a theme, for the codes kept.
    """

    kappas: pl.DataFrame
    votes: pl.DataFrame
    shares: pl.DataFrame


def survey_themes(codes: pl.DataFrame, *, least: float = LEAST_KAPPA, coders: int = CODERS) -> Themes:
    """Keep the codes that coders agree on, decide by majority, and give shares by the location of respondents.

    Args:
        codes: conforms to SURVEY_CODES: every coder has read every response for every code.
        least: the Fleiss' kappa that a code must reach. A code that no response has, or all have, has no kappa and is
            not kept: it tells nobody apart.
        coders: how many read each response; an odd number, so that there is a majority.

    Raises:
        UsageError: a column is missing, or a response was not read by so many coders.
    """
    if coders < 2 or coders % 2 == 0:
        raise argument_error("coders", "an odd number of at least 3", coders)
    check_columns("codes", codes, tuple(SURVEY_CODES.columns))
    keys = ["response_id", "location", "topic", "code"]
    counts = (
        codes.group_by(keys).agg(yes=pl.col("present").sum().cast(pl.Int64), read=pl.len().cast(pl.Int64)).sort(keys)
    )
    short = counts.filter(pl.col("read") != coders)
    if short.height:
        row = short.row(0, named=True)
        raise UsageError(
            f"{short.height} responses were not read by {coders} coders for a code",
            where=f"response {row['response_id']!r}, code {row['code']!r}",
            expected=str(coders),
            found=str(row["read"]),
        )
    kappas = kappa_table(counts, least)
    kept = kappas.filter("kept")["code"]
    votes = counts.filter(pl.col("code").is_in(kept.implode())).select(*keys, present=pl.col("yes") * 2 > coders)
    place = ["topic", "location", "code"]
    shares = votes.group_by(place).agg(share=pl.col("present").mean(), n=pl.len().cast(pl.UInt64)).sort(place)
    return Themes(kappas, votes, shares)


def kappa_table(counts: pl.DataFrame, least: float) -> pl.DataFrame:
    """Give the kappa of each code over all responses."""
    rows = [
        {
            "code": part["code"][0],
            "kappa": fleiss_kappa(part.select("yes", no=pl.col("read") - pl.col("yes")).to_numpy()),
        }
        for part in counts.partition_by("code", maintain_order=True)
    ]
    table = pl.DataFrame(rows, schema={"code": pl.String, "kappa": pl.Float64})
    known = table.with_columns(pl.col("kappa").fill_nan(None))
    kept = (pl.col("kappa") >= least).fill_null(value=False)
    return known.with_columns(kept=kept).sort(["kappa", "code"], descending=[True, False], nulls_last=True)
