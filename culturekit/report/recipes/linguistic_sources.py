"""Who says what of dialects and of tones in a `linguistic` run, and which models come first by each."""

from collections.abc import Iterator, Sequence

import polars as pl

from culturekit.records.schemas import SCORES
from culturekit.report.recipes.scene_tables import Sources, row_of, with_params
from culturekit.report.recipes.scenes import ranked
from culturekit.report.run_folders import RunFolders
from culturekit.stages import linguistic_roles as own
from culturekit.stages import roles

__all__ = ["TRUTH", "dialect_sources", "pools_of", "scores_of", "tone_sources", "verdict"]

TRUTH = "truth"
PARAMS = ("of", "pool", "detector", "labels", "tone", "first", "criterion", "marked")


def scores_of(run: RunFolders, role: roles.Role, model: str = "", variant: str = "") -> pl.DataFrame | None:
    """Read the scores of a stage, with what their parameters say as columns; None for a run without it."""
    found = run.read(role, SCORES, model, variant)
    return None if found is None else with_params(found, *PARAMS)


def pools_of(table: pl.DataFrame | None) -> list[str]:
    """List the pools of people in some scores."""
    return [] if table is None else table["pool"].drop_nulls().unique().sort().to_list()


def first_by(table: pl.DataFrame | None, models: Sequence[str], **where: str | None) -> list[str]:
    """Name the models with the lowest score, those whose intervals reach it among them; none if one has no score."""
    rows = [row for model in models if (row := row_of(table, model=model, **where)) is not None]
    low, high = ([row["value"] if row[end] is None else row[end] for row in rows] for end in ("ci_low", "ci_high"))
    best = min(zip((row["value"] for row in rows), high, strict=True), default=(0.0, 0.0))[1]
    return [row["model"] for row, end in zip(rows, low, strict=True) if end <= best and len(rows) == len(models)]


def verdict(run: RunFolders) -> Iterator[str]:
    """Say which models a score alone, people, and the truth rank first."""
    table, true = scores_of(run, own.DIALECTS), scores_of(run, own.TRUE_DIALECTS)
    for what, where, scores in dialect_sources(table, true):
        first = first_by(scores, run.models, metric="dialect_gap", **where)
        if first:
            yield f"{ranked(f'The gap between dialects, {what}, ranks', first)}."
    for who, where, scores in tone_sources(run):
        first = first_by(scores, run.models, metric="tone_std", group=None, **where)
        if first and not who.startswith("people"):
            yield f"{ranked(f'Evenness of skin tones, {who}, ranks', first)}."


def dialect_sources(table: pl.DataFrame | None, true: pl.DataFrame | None) -> Sources:
    """List who says how good pictures of dialects are."""
    if table is None:
        return []
    scorers = table.filter(pl.col("pool").is_null())["of"].unique().sort().to_list()
    found: Sources = [(f"by {name}", {"of": name, "pool": None}, table) for name in scorers]
    found += [(f"correct by people ({pool})", {"of": "correct", "pool": pool}, table) for pool in pools_of(table)]
    return found + ([] if true is None else [("correct in truth", {"of": "correct", "pool": TRUTH}, true)])


def tone_sources(run: RunFolders) -> Sources:
    """List who says what tones there are: each rule, each rule put right, people alone, and the truth."""
    found, alone = Sources(), Sources()
    for detector in run.variants(own.TONES):
        if (table := scores_of(run, own.TONES, variant=detector)) is None:
            continue
        pools = pools_of(table)
        found.append((f"by {detector}", {"detector": detector, "labels": None, "pool": None}, table))
        found += [(f"{detector} put right by people ({pool})", {"labels": "corrected", "pool": pool}, table)
                  for pool in pools]  # fmt: skip
        alone = [(f"people alone ({pool})", {"detector": "people", "pool": pool}, table) for pool in pools]
    true = scores_of(run, own.TRUE_TONES)
    return found + alone + ([] if true is None else [("in truth", {"detector": "people", "pool": TRUTH}, true)])
