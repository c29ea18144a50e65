"""How well known an artifact is; one protocol, several sources."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from culturekit.contract import Contract, hold, shown
from culturekit.records.work import Work
from culturekit.registry import Entry, Registry, Spec

__all__ = ["SOURCES", "PopularitySource", "Ratings", "Sitelinks", "rank_within"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ratings:
    """A rating per row, null where nothing is known, and what the manifest says of how they came about."""

    values: pl.Series
    notes: Mapping[str, object] = field(default_factory=dict)


class PopularitySource(Protocol):
    """Rates artifacts by how well known they are."""

    @property
    def name(self) -> str:
        """What stands in `popularity_source`."""
        ...

    @property
    def decides(self) -> Mapping[str, object]:
        """Everything that decides the ratings besides the artifacts, as it stands in the manifest: no path, no key."""
        ...

    def rate(self, artifacts: pl.DataFrame, work: Work) -> Ratings:
        """Give a float in (0, 1] per row of `artifact_id, qid, name, concept, country, sitelinks, title, languages`.

        What was fetched may be kept in `work.scratch`: it outlives a killed run.
        """
        ...


class Sitelinks:
    """The rank of an artifact's sitelink count within its country and concept.

    Raw counts favour what is written about in many, mostly European, languages; a rank among its own
    compares like with like.
    """

    name = "sitelinks"
    decides: Mapping[str, object] = {"source": "sitelinks"}

    def rate(self, artifacts: pl.DataFrame, work: Work) -> Ratings:
        """Rank what the dump knows; an artifact without an item has no sitelinks, and of some dumps none has any."""
        counts = artifacts.select(n=pl.when(pl.col("qid").is_not_null()).then("sitelinks").cast(pl.Float64))["n"]
        if counts.max() == 0:
            logger.warning("no artifact has a sitelink, as in a dump of triples: popularity is unknown")
            counts = counts.replace(0.0, None)
        return Ratings(rank_within(artifacts, counts))


def rank_within(artifacts: pl.DataFrame, counts: pl.Series) -> pl.Series:
    """Rank counts within country and concept: 1 for the most, ties share their mean rank, unknown ones have none."""
    group = ["concept", "country"]
    rows = artifacts.select(group).with_columns(n=counts)
    return rows.select((pl.col("n").rank("average").over(group) / pl.col("n").count().over(group)).alias("rate"))[
        "rate"
    ]


def make_sitelinks(spec: Spec) -> Sitelinks:
    """Make the source that needs nothing but the dump."""
    spec.refuse_options()
    return Sitelinks()


def rates(_: object, answer: object, artifacts: pl.DataFrame, work: Work) -> Ratings:
    """Take a rate in (0, 1], or null, for each artifact."""
    del work
    fits = isinstance(answer, Ratings) and isinstance(answer.values, pl.Series)
    hold(fits, "Ratings, with a Series as its values", shown(answer))
    ratings: Ratings = answer  # type: ignore[assignment]
    found = f"{ratings.values.dtype}, {len(ratings.values)}"
    hold(ratings.values.dtype.is_numeric() and len(ratings.values) == artifacts.height,
         f"numbers, {artifacts.height}", found)  # fmt: skip
    known = ratings.values.drop_nulls().cast(pl.Float64)
    outside = known.filter(~((known > 0) & (known <= 1)))
    hold(outside.is_empty(), "rates above 0 and at most 1, or null", f"{outside[0]}" if len(outside) else "")
    return ratings


POPULARITY = Contract((PopularitySource,), answers={"rate": rates})

SOURCES: Registry[PopularitySource] = Registry(
    "popularity source",
    [
        Entry(
            "sitelinks", "culturekit.builders.popularity:make_sitelinks", "rank of the sitelink count, from the dump"
        ),
        Entry(
            "pageviews",
            "culturekit.builders.popularity_pageviews:make_pageviews",
            "rank of the views of its Wikipedia pages in a period; asks Wikimedia",
            "culturekit.builders.popularity_pageviews:PageviewOptions",
        ),
        Entry(
            "google_cse",
            "culturekit.builders.popularity_results:make_results",
            "rank of the number of search results in its country, from kept answers or, with live=true, from Google, "
            "which ends this on 2027-01-01",
            "culturekit.builders.popularity_results:ResultOptions",
        ),
    ],
    point="popularity",
    contract=POPULARITY,
)
