"""The tables behind scores of diversity: matches by where their labels come from, quality, audits, images."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.roles import FLOORS, MATCHES
from culturekit.verify.chain import FinishedStage, RunTree


@dataclass(frozen=True, slots=True)
class DiversityTables:
    """What a stage of diversity scores was made from.

    Attributes:
        mapped: one frame of nearest matches per table, labels found by a method.
        truth: the same, labels known.
        limits: the same, of floor and ceiling.
        quality: scorer -> image -> value.
        audits: what people said, or None.
        asked: all images asked for, or None.
        countries: of prompts that name one.
        missing: roles whose input could not be found as it was.
    """

    mapped: Sequence[pl.DataFrame]
    truth: Sequence[pl.DataFrame]
    limits: Sequence[pl.DataFrame]
    quality: Mapping[str, Mapping[str, float]]
    audits: pl.DataFrame | None
    asked: pl.DataFrame | None
    countries: Mapping[str, str]
    missing: tuple[str, ...]


def diversity_tables(tree: RunTree, stage: FinishedStage) -> DiversityTables:
    """Read the inputs of a stage, as far as they are what its manifest says."""
    roles = sorted(stage.manifest.inputs)
    found = {role: stage.places[role] for role in roles}
    groups: dict[str, list[pl.DataFrame]] = {
        "mapped": [], "truth": [], "limits": [], "quality": [], "audit": [], "images": [],
    }  # fmt: skip
    for role, path in found.items():
        if path is not None and role != "prompts" and role.partition("-")[0] != "sample":
            groups[group_of(role)].append(pl.read_parquet(path))
    nearest = {
        name: [table.filter(pl.col("rank") == 1) for table in groups[name]] for name in ("mapped", "truth", "limits")
    }
    prompts = found.get("prompts")
    return DiversityTables(
        **nearest,
        quality=quality_of(groups["quality"]),
        audits=located(pl.concat(groups["audit"], how="diagonal"), nearest["mapped"]) if groups["audit"] else None,
        asked=pl.concat([narrowed(table) for table in groups["images"]]) if groups["images"] else None,
        countries={} if prompts is None else countries_of(prompts),
        missing=tuple(role for role, path in found.items() if path is None),
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
    names = {"matches": "mapped", "truth": "truth", "quality": "quality", "images": "images"}
    return "audit" if kind in {"audit", "audits"} else names[kind]


def quality_of(tables: Sequence[pl.DataFrame]) -> dict[str, dict[str, float]]:
    """Gather the quality of images by scorer."""
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        for scorer, image, value in table.select("scorer", "image_id", "value").iter_rows():
            found.setdefault(scorer, {})[image] = value
    return found


def narrowed(images: pl.DataFrame) -> pl.DataFrame:
    """Keep what says where an image stands."""
    concept = pl.col("concept") if "concept" in images.columns else pl.lit(None, pl.String).alias("concept")
    return images.select("image_id", "model", "prompt_id", concept, "repeat", "slot")


def countries_of(path: Path) -> dict[str, str]:
    """Read which country each prompt names, from a table of ours or a public file."""
    if path.suffix == ".parquet":
        table = pl.read_parquet(path).select("prompt_id", "country").drop_nulls()
        return dict(table.iter_rows())
    rows: Any = json.loads(path.read_bytes())
    return {str(row["prompt_id"]): row["country"] for row in rows if isinstance(row, dict) and row.get("country")}
