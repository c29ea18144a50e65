"""Weighted drawing without replacement that depends on the seed and the artifacts, not on their order."""

import math
from collections.abc import Mapping

import polars as pl

from culturekit.builders.prompting.quotas import Group
from culturekit.errors import IntegrityError
from culturekit.storage.digests import digest_bytes

__all__ = ["draw_by_quota", "draw_key", "draw_per_group", "in_draw_order"]

LEAST_WEIGHT = 1e-9
"""The weight of an artifact of unknown popularity: drawn only when nothing else is left."""

PLACE = "draw_place"


def draw_per_group(space: pl.DataFrame, *, per: int, seed: int) -> pl.DataFrame:
    """Draw up to `per` artifacts of each country and concept, P proportional to popularity."""
    return in_draw_order(space, seed=seed).filter(pl.col(PLACE) <= per).drop(PLACE)


def draw_by_quota(space: pl.DataFrame, quotas: Mapping[Group, int], *, seed: int, draw: str = "") -> pl.DataFrame:
    """Draw the quota of each group, or what there is; rows come with their place in the draw of their group."""
    ranked = in_draw_order(space, seed=seed, draw=draw)
    rows = [(concept, country, quota) for (concept, country), quota in quotas.items()]
    allowed = pl.DataFrame(rows, schema={"concept": pl.String, "country": pl.String, "quota": pl.UInt32}, orient="row")
    joined = ranked.join(allowed, on=["concept", "country"], how="inner", maintain_order="left")
    return joined.filter(pl.col(PLACE) <= pl.col("quota")).drop("quota")


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
    group = ["concept", "country"]
    ordered = space.with_columns(draw_key=pl.Series(keys, dtype=pl.Float64)).sort(
        [*group, "draw_key", "artifact_id"], descending=[False, False, True, False]
    )
    return ordered.with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over(group).alias(PLACE)).drop(
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
