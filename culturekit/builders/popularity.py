"""How well known an artifact is; one protocol, several sources."""

from typing import Protocol

import polars as pl

from culturekit.registry import Entry, Registry, Spec

__all__ = ["SOURCES", "PopularitySource", "Sitelinks"]


class PopularitySource(Protocol):
    """Rates artifacts by how well known they are."""

    @property
    def name(self) -> str:
        """What stands in `popularity_source`."""
        ...

    def rate(self, artifacts: pl.DataFrame) -> pl.Series:
        """Give a float in (0, 1] per row of `artifact_id, concept, country, sitelinks`; null where unknown."""
        ...


class Sitelinks:
    """The rank of an artifact's sitelink count within its country and concept.

    Raw counts favour what is written about in many, mostly European, languages; a rank among its own
    compares like with like.
    """

    name = "sitelinks"

    def rate(self, artifacts: pl.DataFrame) -> pl.Series:
        """Rank within country and concept: 1 for the most, ties share their mean rank."""
        group = ["concept", "country"]
        rated = artifacts.select((pl.col("sitelinks").rank("average").over(group) / pl.len().over(group)).alias("rate"))
        return rated["rate"]


def make_sitelinks(spec: Spec) -> Sitelinks:
    """Make the source that needs nothing but the dump."""
    spec.refuse_options()
    return Sitelinks()


SOURCES: Registry[PopularitySource] = Registry(
    "popularity source",
    [Entry("sitelinks", "culturekit.builders.popularity:make_sitelinks", "rank of the sitelink count, from the dump")],
)
