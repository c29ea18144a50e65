"""Which artifacts a benchmark takes: quotas, a seeded draw, what people decided, and what another draw has already."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.builders.folded_names import folded, without_accents
from culturekit.builders.prompting.quotas import Group, Quotas
from culturekit.builders.prompting.review_sheet import Decisions
from culturekit.errors import IntegrityError
from culturekit.records.schemas import QUOTAS
from culturekit.storage.digests import digest_bytes

__all__ = [
    "Selection",
    "drop_of",
    "fresh_quotas",
    "in_draw_order",
    "select",
    "unmet",
    "without_public",
]

PLACE = "draw_place"
GROUP = ("concept", "country")

LEAST_WEIGHT = 1e-9
"""The weight of an artifact of unknown popularity: drawn only when nothing else is left."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What was taken, under the names people gave; what was seen on the way; quotas beside what they got; and drops."""

    taken: pl.DataFrame
    seen: pl.DataFrame
    quotas: pl.DataFrame
    drops: tuple[Mapping[str, Any], ...] = ()


def select(
    space: pl.DataFrame,
    quotas: Quotas | None,
    decisions: Decisions,
    *,
    seed: int,
    draw: str = "",
    groups: Collection[Group] = (),
) -> Selection:
    """Take the quota of each group in the order of the draw; a rejected artifact gives way to the next.

    Without quotas everything is taken that is not rejected. `groups` have quotas also where nothing is left of them.
    """
    ordered = in_draw_order(space, seed=seed, draw=draw)
    verdicts = [decisions.decision_about(row) for row in ordered.select(*GROUP, "artifact_id").iter_rows(named=True)]
    names = [verdict.name if verdict else None for verdict in verdicts]
    rejected = [verdict is not None and verdict.verdict == "reject" for verdict in verdicts]
    allowed = quota_table(space, quotas, groups)
    marked = ordered.with_columns(
        rejected=pl.Series(rejected, dtype=pl.Boolean), edited=pl.Series(names, dtype=pl.String)
    ).join(allowed.select(*GROUP, "quota"), on=GROUP, how="left", maintain_order="left")
    standing = (~pl.col("rejected")).cum_sum().over(GROUP)
    marked = marked.with_columns(standing=standing)
    taken = marked.filter(~pl.col("rejected") & (pl.col("standing") <= pl.col("quota")))
    displaced = marked.filter(pl.col("rejected") & (pl.col("standing") < pl.col("quota")))
    seen = pl.concat([taken, displaced]).sort(*GROUP, PLACE).select(*space.columns, PLACE)
    drops = tuple(drop_of(row, "rejected in review", row["name"]) for row in displaced.iter_rows(named=True))
    renamed = taken.with_columns(name=pl.coalesce("edited", "name")).select(*space.columns, PLACE)
    return Selection(renamed, seen, with_counts(allowed, marked, taken, quotas), drops)


def quota_table(space: pl.DataFrame, quotas: Quotas | None, others: Collection[Group]) -> pl.DataFrame:
    """List the quota of each group of the space, and of groups that are asked for and not in it."""
    sizes: dict[Group, int] = {
        (concept, country): size for concept, country, size in space.group_by(GROUP).len().iter_rows()
    }
    groups = {*sizes, *others, *(quotas.named() if quotas else ())}
    rows = [
        (concept, country, sizes.get((concept, country), 0) if quotas is None else quotas.quota_of((concept, country)))
        for concept, country in sorted(groups)
    ]
    schema = {name: QUOTAS.schema[name] for name in ("concept", "country", "quota")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_counts(
    allowed: pl.DataFrame, marked: pl.DataFrame, taken: pl.DataFrame, quotas: Quotas | None
) -> pl.DataFrame:
    """Set beside each quota how many artifacts there were, and how many were taken; empty where nothing was asked."""
    if quotas is None:
        return pl.DataFrame(schema=QUOTAS.schema)
    there = marked.filter(~pl.col("rejected")).group_by(GROUP).agg(available=pl.len().cast(pl.UInt32))
    got = taken.group_by(GROUP).agg(drawn=pl.len().cast(pl.UInt32))
    counted = allowed.join(there, on=GROUP, how="left").join(got, on=GROUP, how="left")
    return counted.with_columns(pl.col("available", "drawn").fill_null(0)).select(*QUOTAS.schema)


def unmet(quotas: Quotas, table: pl.DataFrame) -> list[str]:
    """Say which quotas could not be met, the number found beside the number asked for."""
    short = table.filter(pl.col("drawn") < pl.col("quota")).sort(*GROUP)
    said = [f"{concept} in {country}: {drawn} of {quota}" for concept, country, quota, _, drawn in short.iter_rows()]
    concepts, places = set(table["concept"]), set(table["country"])
    for (concept, country), quota in quotas.table.items():
        if quota and concept is not None and country is None and concept not in concepts:
            said.append(f"{concept}: none in the space, {quota} asked for in each country")
        if quota and concept is None and country is not None and country not in places:
            said.append(f"{country}: nothing in the space, {quota} asked for of each concept")
    return said


def without_public(space: pl.DataFrame, public: pl.DataFrame) -> tuple[pl.DataFrame, list[Mapping[str, Any]]]:
    """Leave out what a public draw has: by its item, or by its name or an alias within the concept, accents aside."""
    items = set(public["artifact_id"])
    names = {(concept, bare(name)) for concept, name in public.select("concept", "name").iter_rows()}
    keep, drops = [], []
    for row in space.iter_rows(named=True):
        known = row["artifact_id"] in items
        same = [name for name in names_of(row) if (row["concept"], bare(name)) in names]
        keep.append(not known and not same)
        if known or same:
            drops.append(drop_of(row, "in the public draw", row["name"] if known else same[0]))
    return space.filter(pl.Series(keep, dtype=pl.Boolean)), drops


def names_of(row: Mapping[str, Any]) -> Sequence[str]:
    """List what an artifact is called."""
    return [row["name"], *(row.get("aliases") or ())]


def bare(name: str) -> str:
    """Fold a name as far as two ways of writing the same one can differ."""
    return without_accents(folded(name))


def fresh_quotas(public: pl.DataFrame) -> Quotas:
    """Ask for as many artifacts of each country and concept as a public draw has."""
    return Quotas({(concept, country): size for concept, country, size in public.group_by(GROUP).len().iter_rows()})


def drop_of(row: Mapping[str, Any], reason: str, detail: str) -> Mapping[str, Any]:
    """Say why an artifact is not taken."""
    return {
        "key": f"{row['artifact_id']} {row['country']}",
        "concept": row["concept"],
        "stage": "prompts",
        "reason": reason,
        "detail": detail,
    }


def in_draw_order(space: pl.DataFrame, *, seed: int, draw: str = "") -> pl.DataFrame:
    """Give each row its place in the draw of its country and concept, from 1.

    Each row gets the key log(u) / weight with u uniform from a hash of seed and row; the largest keys win, and what is
    left out of a group leaves the order of the others as it is (Efraimidis and Spirakis 2006). `draw` names a draw
    that is independent of others of the same seed.
    """
    check_weights(space)
    begin = f"{seed}|{draw}|" if draw else f"{seed}|"
    keys = [
        draw_key(f"{begin}{concept}|{country}|{artifact_id}", popularity)
        for concept, country, artifact_id, popularity in space.select(
            "concept", "country", "artifact_id", "popularity"
        ).iter_rows()
    ]
    ordered = space.with_columns(draw_key=pl.Series(keys, dtype=pl.Float64)).sort(
        [*GROUP, "draw_key", "artifact_id"], descending=[False, False, True, False]
    )
    return ordered.with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over(GROUP).alias(PLACE)).drop(
        "draw_key"
    )


def draw_key(identity: str, weight: float | None) -> float:
    """Turn a row's identity and weight into its place in the draw."""
    uniform = (int(digest_bytes(identity.encode())[:13], 16) + 1) / (16**13 + 1)
    return math.log(uniform) / max(weight or 0.0, LEAST_WEIGHT)


def check_weights(space: pl.DataFrame) -> None:
    """Make sure that popularity can weigh a draw: no minus, no infinity, no not-a-number."""
    known = pl.col("popularity").is_not_null()
    wrong = space.filter(known & ~(pl.col("popularity").is_finite() & (pl.col("popularity") >= 0)).fill_null(True))
    if wrong.height:
        row = wrong.row(0, named=True)
        raise IntegrityError(
            f"{wrong.height} artifacts have a popularity that cannot weigh a draw",
            where=f"{row['artifact_id']} in {row['country']}",
            expected="a finite number, 0 or above, or none where it is unknown",
            found=str(row["popularity"]),
        )
