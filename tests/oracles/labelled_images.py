"""The tables behind scores of diversity: matches by where their labels come from, quality, audits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.roles import FLOORS, MATCHES
from culturekit.verify.chain import FinishedStage


@dataclass(frozen=True, slots=True)
class DiversityTables:
    """What a stage of diversity scores was made from.

    Attributes:
        mapped: one frame of nearest matches per table, labels found by a method.
        truth: the same, labels known.
        limits: the same, of floor and ceiling.
        quality: scorer -> image -> value.
        audits: what people said, or None.
        countries: of prompts that name one.
    """

    mapped: Sequence[pl.DataFrame]
    truth: Sequence[pl.DataFrame]
    limits: Sequence[pl.DataFrame]
    quality: Mapping[str, Mapping[str, float]]
    audits: pl.DataFrame | None
    countries: Mapping[str, str]


def diversity_tables(stage: FinishedStage) -> DiversityTables:
    """Read the inputs of a stage."""
    found = {role: path for role in sorted(stage.manifest.inputs) if (path := stage.places[role]) is not None}
    assert found.keys() == stage.manifest.inputs.keys()
    groups: dict[str, list[pl.DataFrame]] = {
        "mapped": [], "truth": [], "limits": [], "quality": [], "audit": [],
    }  # fmt: skip
    for role, path in found.items():
        if role.partition("-")[0] not in {"prompts", "images", "sample"}:
            groups[group_of(role)].append(pl.read_parquet(path))
    nearest = {
        name: [table.filter(pl.col("rank") == 1) for table in groups[name]] for name in ("mapped", "truth", "limits")
    }
    prompts = found.get("prompts")
    return DiversityTables(
        **nearest,
        quality=quality_of(groups["quality"]),
        audits=located(pl.concat(groups["audit"], how="diagonal"), nearest["mapped"]) if groups["audit"] else None,
        countries={} if prompts is None else countries_of(prompts),
    )


def located(audits: pl.DataFrame, mapped: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add country and continent where an answer leaves them out, and some image is mapped to what it names."""
    of_artifact, of_country = dict[str, str](), dict[str, str]()
    for table in mapped:
        for artifact, country, continent in (
            table.select("artifact_id", "country", "continent").sort(pl.all()).iter_rows()
        ):
            if artifact and country:
                of_artifact[artifact] = max(country, of_artifact.get(artifact, ""))
            if country and continent:
                of_country[country] = max(continent, of_country.get(country, ""))
    countries, continents = list[str | None](), list[str | None]()
    for artifact, country, continent in audits.select("artifact_id", "country", "continent").iter_rows():
        countries.append(country or of_artifact.get(artifact))
        continents.append(continent or of_country.get(countries[-1] or ""))
    found = {"country": countries, "continent": continents}
    return audits.with_columns(pl.Series(name, said, pl.String) for name, said in found.items())


def group_of(role: str) -> str:
    """Say what the input of a role is."""
    if role in {"ceiling", *map(MATCHES.folder, FLOORS)}:
        return "limits"
    kind = role.partition("-")[0]
    names = {"matches": "mapped", "truth": "truth", "quality": "quality"}
    return "audit" if kind in {"audit", "audits"} else names[kind]


def quality_of(tables: Sequence[pl.DataFrame]) -> dict[str, dict[str, float]]:
    """Gather the quality of images by scorer."""
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        for scorer, image, value in table.select("scorer", "image_id", "value").iter_rows():
            found.setdefault(scorer, {})[image] = value
    return found


def countries_of(path: Path) -> dict[str, str]:
    """Read which country each prompt names, from a table of ours or a public file."""
    if path.suffix == ".parquet":
        table = pl.read_parquet(path).select("prompt_id", "country").drop_nulls()
        return dict(table.iter_rows())
    rows: Any = json.loads(path.read_bytes())
    return {str(row["prompt_id"]): row["country"] for row in rows if isinstance(row, dict) and row.get("country")}
