"""The cultural space: one row per artifact and country, released from what the filter kept and the completion found."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.popularity import PopularitySource
from culturekit.builders.release_files import ReleaseFormat, write_release_files
from culturekit.builders.scope import countries_in_scope
from culturekit.errors import IntegrityError, UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import countries
from culturekit.kg.qids import QID
from culturekit.records.schemas import CSPACE, DROPS, KEPT
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["gathered", "release"]

NO_COUNTRY = "no country that countries.yaml knows"
SOURCES = ("wikidata", "llm")


def release(
    work: Work,
    kept_paths: Sequence[Path],
    concepts: Sequence[Concept],
    popularity: PopularitySource,
    formats: Sequence[ReleaseFormat] = (),
) -> Outcome:
    """Write the cultural space, in all forms asked for, and what could not enter it."""
    by_name = {concept.concept: concept for concept in concepts}
    kept, twice = gathered(kept_paths, list(by_name))
    work.progress.begin(kept.height, "artifacts")
    rows, homeless = [], []
    for row in kept.iter_rows(named=True):
        found = list(artifact_rows(row, by_name[row["concept"]], popularity.name))
        rows += found
        if not found:
            homeless.append(row)
        work.progress.advance(1)
    if not rows:
        raise empty(kept_paths, list(by_name), kept.height, len(homeless))
    space = pl.DataFrame(rows, schema={**CSPACE.schema, **ORDER, **RATED_BY}, orient="row")
    ratings = popularity.rate(space, work)
    space = space.with_columns(popularity=ratings.values).drop(list(RATED_BY))
    write_table(work.out, CSPACE, space)
    dropped = [drop(row, NO_COUNTRY, " ".join(row["country_qids"])) for row in homeless]
    write_table(work.out, DROPS, pl.DataFrame(dropped, schema=DROPS.schema))
    counts = {"cspace": space.height, "artifacts": space["artifact_id"].n_unique(), "drops": len(dropped)}
    counts |= write_release_files(work.out, space, kept, formats)
    notes = {**ratings.notes, **({"rows in several tables": twice} if twice else {})}
    return Outcome(counts, {NO_COUNTRY: len(homeless)} if homeless else {}, notes)


ORDER = {"country_order": CSPACE.optional["country_order"].dtype}
RATED_BY = {"sitelinks": pl.UInt16(), "title": pl.String(), "languages": pl.List(pl.String())}
"""What popularity is read from, and what leaves the table again."""


def gathered(paths: Sequence[Path], concepts: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """Read one or more tables of kept candidates; a row of several is the first one with the countries of all.

    A table without a column `source` has what Wikidata has.
    """
    frames = []
    for path in paths:
        frame = read_table(path, KEPT).filter(pl.col("concept").is_in(concepts))
        if "source" not in frame.columns:
            frame = frame.with_columns(source=pl.lit(SOURCES[0]))
        odd = frame.filter(~pl.col("source").is_in(SOURCES))
        if odd.height:
            raise IntegrityError(
                "an artifact of unknown source", where=str(path), expected=" or ".join(SOURCES), found=odd["source"][0]
            )
        frames.append(frame.select(*KEPT.schema, "source"))
    whole = pl.concat(frames)
    if len(frames) == 1:
        return whole, 0
    key = ["concept", "qid"]
    stated = whole.select(*key, "country_qids").explode("country_qids").drop_nulls()
    united = stated.unique(maintain_order=True).group_by(key, maintain_order=True).agg("country_qids")
    once = whole.unique(key, keep="first", maintain_order=True).drop("country_qids")
    joined = once.join(united, on=key, how="left").with_columns(pl.col("country_qids").fill_null([]))
    return joined.select(whole.columns).sort(key), whole.height - once.height


def artifact_rows(row: Mapping[str, Any], concept: Concept, source: str) -> Iterator[dict[str, Any]]:
    """Give a row for each country in scope; the first stated country comes with order 0."""
    qid = row["qid"] if QID.match(row["qid"]) else None
    for order, iso in enumerate(countries_in_scope(row["country_qids"], concept)):
        place = countries()[iso]
        yield {
            "artifact_id": row["qid"],
            "qid": qid,
            "name": row["label"],
            "concept": row["concept"],
            "subconcept": concept.subconcept_of(row["roots"]),
            "country": iso,
            "country_name": place.name,
            "continent": place.continent,
            "source": row["source"],
            "popularity_source": source,
            "path": row["path"],
            "country_order": order,
            "sitelinks": row["sitelinks"],
            "title": row["title"],
            "languages": list(concept.languages),
        }


def drop(row: Mapping[str, Any], reason: str, detail: str) -> dict[str, Any]:
    """Say why an artifact has no row."""
    return {"key": row["qid"], "concept": row["concept"], "stage": "release", "reason": reason, "detail": detail}


def empty(paths: Sequence[Path], concepts: Sequence[str], kept: int, homeless: int) -> UsageError:
    """Say that nothing would be released, and why that may be."""
    return UsageError(
        "the cultural space would be empty",
        where=" and ".join(map(str, paths)),
        expected=f"a kept artifact of {', '.join(concepts)} in a country that is asked for",
        found=f"{kept} kept candidates, {homeless} of them in no known country",
        hint="Ask for more countries or concepts; drops.parquet beside the kept candidates says what was left out.",
    )
