"""The names of artifacts: from the cultural space, with aliases from wherever they are listed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.records.schemas import ARTIFACTS, CANDIDATES, CSPACE
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error
from culturekit.storage.tables import read_table

__all__ = ["AliasesOfCandidates", "artifact_names", "artifacts_of", "country_names"]


def artifacts_of(cspace_path: Path) -> pl.DataFrame:
    """Fold the cultural space to one row per artifact, countries in stated order where it is known.

    Without a stated order the countries stand by ISO code.
    """
    space = read_table(cspace_path, CSPACE)
    if "country_order" not in space.columns:
        space = space.with_columns(country_order=pl.lit(0, pl.UInt16))
    ordered = space.sort("artifact_id", "country_order", "country", "concept")
    folded = ordered.group_by("artifact_id", maintain_order=True).agg(
        artifact=pl.col("name").first(),
        concepts=pl.col("concept").unique().sort(),
        places=pl.struct("country", "continent").unique(maintain_order=True),
    )
    countries = pl.col("places").list.eval(pl.element().struct.field("country"))
    continents = pl.col("places").list.eval(pl.element().struct.field("continent"))
    return folded.with_columns(countries=countries, continents=continents).select(list(ARTIFACTS.columns))


AliasesOfCandidates: TypeAlias = Annotated[
    Path | None, Field(description="Candidates table; the aliases in it count as names.")
]


def artifact_names(
    cspace_path: Path, *, aliases: Path | None = None, candidates: Path | None = None
) -> tuple[dict[str, list[str]], int]:
    """Give the names of every artifact, its own first, then its aliases in alphabetical order.

    Args:
        cspace_path: CSPACE; its column `aliases` counts, where it has one.
        aliases: Parquet or CSV with artifact_id and alias.
        candidates: CANDIDATES, whose aliases count by QID.

    Returns:
        Names by artifact_id, and how many aliases belong to no artifact of the cultural space.
    """
    space = read_table(cspace_path, CSPACE).sort("artifact_id", "country", "concept")
    names = {artifact: [name] for artifact, name in space.unique("artifact_id", keep="first", maintain_order=True)
             .select("artifact_id", "name").iter_rows()}  # fmt: skip
    said: list[tuple[str, str]] = []
    if "aliases" in space.columns:
        said += [(artifact, alias) for artifact, own in space.select("artifact_id", "aliases").iter_rows()
                 for alias in own or ()]  # fmt: skip
    if aliases is not None:
        said += alias_rows(aliases)
    strangers = sum(artifact not in names for artifact, _ in said)
    if candidates is not None:
        listed = read_table(candidates, CANDIDATES).select("qid", "aliases").iter_rows()
        said += [(qid, alias) for qid, own in listed for alias in own]
    for artifact, more in by_artifact(said).items():
        if artifact in names:
            names[artifact] += more
    return names, strangers


def alias_rows(path: Path) -> list[tuple[str, str]]:
    """Read a table of aliases."""
    try:
        table = read_csv_texts(path) if path.suffix.lower() == ".csv" else pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("the aliases cannot be read", where=str(path), expected="Parquet or CSV",
                         found=str(error).partition("\n")[0]) from error  # fmt: skip
    absent = {"artifact_id", "alias"} - set(table.columns)
    if absent:
        raise UsageError(
            "the table of aliases lacks a column", where=str(path), expected="artifact_id and alias",
            found=", ".join(table.columns),
        )  # fmt: skip
    return [(str(artifact), str(alias)) for artifact, alias in
            table.select("artifact_id", "alias").drop_nulls().iter_rows()]  # fmt: skip


def by_artifact(said: Iterable[tuple[str, str]]) -> Mapping[str, Sequence[str]]:
    """Gather aliases by artifact, in alphabetical order."""
    gathered: dict[str, set[str]] = defaultdict(set)
    for artifact, alias in said:
        if alias.strip():
            gathered[artifact].add(alias)
    return {artifact: sorted(own) for artifact, own in gathered.items()}


def country_names(cspace_path: Path) -> dict[str, list[str]]:
    """Give the names of every artifact's countries, by its id."""
    space = read_table(cspace_path, CSPACE)
    folded = space.sort("artifact_id", "country").group_by("artifact_id", maintain_order=True).agg("country_name")
    return {artifact: list(dict.fromkeys(named)) for artifact, named in folded.iter_rows()}
