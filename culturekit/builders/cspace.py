"""The cultural space: one row per artifact and country, released from what the filter kept."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.popularity import PopularitySource
from culturekit.builders.scope import countries_in_scope
from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import countries
from culturekit.records.schemas import CSPACE, DROPS, KEPT
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["release"]

NO_COUNTRY = "no country that countries.yaml knows"


def release(work: Work, kept_path: Path, concepts: Sequence[Concept], popularity: PopularitySource) -> Outcome:
    """Write the cultural space and what could not enter it."""
    by_name = {concept.concept: concept for concept in concepts}
    kept = read_table(kept_path, KEPT).filter(pl.col("concept").is_in(list(by_name)))
    work.progress.begin(kept.height, "artifacts")
    rows, homeless = [], []
    for row in kept.iter_rows(named=True):
        found = list(artifact_rows(row, by_name[row["concept"]], popularity.name))
        rows += found
        if not found:
            homeless.append(row)
        work.progress.advance(1)
    if not rows:
        raise UsageError(
            "the cultural space would be empty",
            where=str(kept_path),
            expected=f"a kept artifact of {', '.join(by_name)} in a country that is asked for",
            found=f"{kept.height} kept candidates, {len(homeless)} of them in no known country",
            hint="Ask for more countries or concepts; drops.parquet beside the kept candidates says what was left out.",
        )
    space = pl.DataFrame(rows, schema={**CSPACE.schema, **ORDER, "sitelinks": pl.UInt16()}, orient="row")
    space = space.with_columns(popularity=popularity.rate(space)).drop("sitelinks")
    write_table(work.out, CSPACE, space)
    write_table(work.out, DROPS, pl.DataFrame([dropped(row) for row in homeless], schema=DROPS.schema))
    counts = {"cspace": space.height, "artifacts": space["artifact_id"].n_unique(), "drops": len(homeless)}
    return Outcome(counts, {NO_COUNTRY: len(homeless)} if homeless else {})


ORDER = {"country_order": CSPACE.optional["country_order"].dtype}


def artifact_rows(row: Mapping[str, Any], concept: Concept, source: str) -> Iterator[dict[str, Any]]:
    """Give a row for each country in scope; the first stated country comes with order 0."""
    for order, iso in enumerate(countries_in_scope(row["country_qids"], concept)):
        place = countries()[iso]
        yield {
            "artifact_id": row["qid"],
            "qid": row["qid"],
            "name": row["label"],
            "concept": row["concept"],
            "subconcept": concept.subconcept_of(row["roots"]),
            "country": iso,
            "country_name": place.name,
            "continent": place.continent,
            "source": "wikidata",
            "popularity_source": source,
            "path": row["path"],
            "country_order": order,
            "sitelinks": row["sitelinks"],
        }


def dropped(row: Mapping[str, Any]) -> dict[str, Any]:
    """Say why an artifact has no row."""
    return {
        "key": row["qid"],
        "concept": row["concept"],
        "stage": "release",
        "reason": NO_COUNTRY,
        "detail": " ".join(row["country_qids"]),
    }
