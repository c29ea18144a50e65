"""The stage that holds two routes from image to label against each other: nearest artifacts and a model's tags."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from culturekit.families.family_stage import write_scored
from culturekit.metrics.scoring.score_qvs import QvsOptions, check_options
from culturekit.metrics.scoring.score_routes import score_routes
from culturekit.records.schemas import DISAGREEMENTS, JUDGMENTS, MATCHES, QUALITY
from culturekit.records.tables import Table
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["routes_stage"]


def routes_stage(
    a: Mapping[str, Path],
    b: Mapping[str, Path],
    options: QvsOptions,
    *,
    quality: Mapping[str, Path] | None = None,
    judgments: Mapping[str, Path] | None = None,
    name: str = "routes",
) -> Stage:
    """Compare two routes; tables are named by their roles, which begin with `a`, `b`, `quality` and `judgments`.

    `judgments` are those of the judge behind one of the routes.
    """
    check_options(options)
    groups = {"a": a, "b": b, "quality": quality or {}, "judgments": judgments or {}}
    inputs = {role_of(kind, role): path for kind, paths in groups.items() for role, path in paths.items()}

    def run(work: Work) -> Outcome:
        found = score_routes(
            together(a, MATCHES),
            together(b, MATCHES),
            quality=together(quality, QUALITY) if quality else None,
            judgments=together(judgments, JUDGMENTS) if judgments else None,
            options=options,
        )
        outcome = write_scored(work, found.scored)
        write_table(work.out, DISAGREEMENTS, found.disagreements)
        return replace(outcome, counts={**outcome.counts, "disagreements": found.disagreements.height})

    return Stage(name, "score-routes", 2, run, inputs, asdict(options), packages=("numpy", "polars", "scipy"))


def role_of(kind: str, name: str) -> str:
    """Name the role of a table; one that stands alone has no name of its own."""
    return f"{kind}-{name}" if name else kind


def together(paths: Mapping[str, Path], table: Table) -> pl.DataFrame:
    """Read the tables of all models as one."""
    return pl.concat([read_table(path, table).select(list(table.schema)) for path in paths.values()])
