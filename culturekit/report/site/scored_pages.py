"""Runs whose reports are pages of sections, as pages of a site: the report, and all scores of each model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.families.listing import all_metrics
from culturekit.records.schemas import SCORES
from culturekit.report.inert import plain
from culturekit.report.recipes.scene_tables import Cell, name_of, number
from culturekit.report.recipes.scenes import SectionPage, render_sections
from culturekit.report.render import environment
from culturekit.report.run_folders import RunFolders
from culturekit.report.site.pages import POLICY, STYLE
from culturekit.stages.roles import Role
from culturekit.storage.atomic import write_atomically
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import manifest_of

__all__ = ["ScoredRun", "write_scored_runs"]

TABLE = f"{SCORES.name}.parquet"
QUIET = {"confidence", "target", "encoder"}
"""Parameters that say the same of all scores of a table: they stand in its manifest."""


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """A score: what it is, of what, by what of its parameters it differs from others, how many stand behind it."""

    score: str
    about: str
    params: str
    cell: Cell
    n: int
    row: int


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The scores that one stage gives a model."""

    folder: str
    lines: tuple[ScoreLine, ...]


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run of the site.

    Attributes:
        number: its place among the runs.
        name: of the run.
        run: its folders.
        backends: of its models, by name.
        page: its report.
        truths: roles whose scores others may not collect: they come from knowing what images show.
    """

    number: int
    name: str
    run: RunFolders
    backends: dict[str, str]
    page: SectionPage
    truths: tuple[Role, ...]

    @property
    def report(self) -> str:
        """Name the page of the run."""
        return f"runs/{self.number}-{plain(self.name)}.html"

    def page_of(self, model: str) -> str:
        """Name the page of a model."""
        return f"models/{self.number}-{plain(model)}.html"

    def scores(self, model: str) -> pl.DataFrame:
        """Read all scores of a model, in the order of the stages, with their folder and row."""
        found = [read_table(self.run.root / folder / TABLE, SCORES).with_row_index("row").filter(model=model)
                 .with_columns(folder=pl.lit(folder), stated=pl.lit(self.confidence(folder), pl.Float64))
                 for folder in self.run.stages if (self.run.root / folder / TABLE).is_file()]  # fmt: skip
        told = pl.col("params").str
        confidence = pl.coalesce(told.json_path_match("$.confidence").cast(pl.Float64), "stated")
        return pl.concat(found).with_columns(labels=told.json_path_match("$.labels"), confidence=confidence)

    def confidence(self, folder: str) -> float | None:
        """Read how often the intervals of a stage are to hold the truth."""
        stated = manifest_of(self.run.root / folder).options.get("confidence")
        return stated if isinstance(stated, float) else None

    def exported(self, model: str) -> pl.DataFrame:
        """Take the scores of a model that others may collect."""
        known = [
            folder for folder in self.run.stages if any(role.read(folder, self.run.models) for role in self.truths)
        ]
        return self.scores(model).filter(~pl.col("folder").is_in(known), pl.col("labels").ne_missing("truth"))

    def tables(self, model: str) -> Iterator[ScoreTable]:
        """List the scores of a model by the stage that gives them."""
        metrics = all_metrics()
        for own in self.scores(model).partition_by("folder", maintain_order=True):
            lines = tuple(line_of(row, metrics[row["metric"]].title) for row in own.to_dicts())
            yield ScoreTable(own["folder"][0], lines)


def line_of(row: Mapping[str, Any], title: str) -> ScoreLine:
    """Say in words what a score is of."""
    labels, country = row["labels"], row["country"]
    of = [row["concept"], name_of(country) if country else None, row["group"]]
    told = msgspec.json.decode(row["params"])
    params = "; ".join(f"{key} {short(value)}" for key, value in told.items() if key not in {*QUIET, "labels"})
    return ScoreLine(
        f"{title}, {labels}" if labels else title, ", ".join(filter(None, of)), params,
        number(row["value"], row["ci_low"], row["ci_high"]), row["n"], row["row"],
    )  # fmt: skip


def short(value: object) -> str:
    """Write a parameter."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def write_scored_runs(out: Path, runs: Sequence[ScoredRun], at: Callable[[], None]) -> int:
    """Write the first page, the report of each run and the page of each model; give how many pages there are."""
    pages = {"index.html": environment().get_template("site_runs.html").render(runs=runs, policy=POLICY, style=STYLE)}
    for one in runs:
        links = {model: f"../{one.page_of(model)}" for model in one.run.models}
        pages[one.report] = render_sections(one.page, links)
        for model in one.run.models:
            pages[one.page_of(model)] = (
                environment()
                .get_template("site_scores.html")
                .render(run=one, model=model, tables=list(one.tables(model)), policy=POLICY, style=STYLE)
            )
        at()
    for name, page in pages.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / name, page.encode("utf-8"))
    return len(pages)
