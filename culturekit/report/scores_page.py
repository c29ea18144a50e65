"""The page of a run whose recipe brings none: its scores, pictures and forms, from what its stages declare."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import polars as pl

from culturekit.core.errors import counted
from culturekit.core.inputs import manifest_of
from culturekit.core.schemas import IMAGES, SCORES
from culturekit.core.tables import read_table
from culturekit.kg.countries import countries
from culturekit.report.gallery import Gallery
from culturekit.report.provenance import every_caveat, stage_line
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import LONGEST, RunFolders
from culturekit.report.sections import DASH, Cell, Grid, Section, SectionPage, grid, name_of, number
from culturekit.scores.listing import all_metrics, title_of
from culturekit.version import VERSION

Sections = Callable[[RunFolders], Iterable[Section]]

SHOWN = 6  # pictures of a model on the page

QUIET = {"confidence", "target", "encoder", "resamples", "seed"}
FORMS = "annotate-export"
NO_CARD = "what the metric means is not known here: the package that brings it is not installed"


def plain_report(kind: str, sections: Sections | None = None) -> SectionReport:
    """Give the report of a kind of recipe that brings no page, with its `sections` before those of every run."""
    return SectionReport("scores-report", 3, partial(scores_page, kind, sections), ())


def scores_page(kind: str, sections: Sections | None, run: RunFolders) -> SectionPage:
    """Put the page together."""
    images = [(folder, table) for folder, table in tables_of(run, IMAGES.name) if set(table["model"]) & {*run.models}]
    scored = list(tables_of(run, SCORES.name))
    finished = sum(table.filter(pl.col("status") == "ok").height for _, table in images)
    asked = {iso for _, table in images if "country" in table.columns for iso in table["country"].drop_nulls()}
    every_section = (*(sections(run) if sections else ()), *score_sections(run, scored), *other_sections(run, images))
    what = ", ".join(dict.fromkeys(title_of(name) for _, table in scored for name in table["metric"]))
    verdict = f"{counted(sum(table.height for _, table in scored), 'scores')}: {what}." if scored else "No scores."
    return SectionPage(
        kind, tuple(run.models), finished, tuple(sorted(map(name_of, asked & {*countries()}))), (verdict,),
        every_caveat(run), every_section, tuple(stage_line(run, name) for name in run.stages),
        tuple(folder for folder, _ in scored), {"culturekit": VERSION},
    )  # fmt: skip


def tables_of(run: RunFolders, name: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Read a table of every stage that has one, whatever its folder is called."""
    for folder in run.stages:
        if (path := run.root / folder / f"{name}.parquet").is_file():
            yield folder, read_table(path, name)


def score_sections(run: RunFolders, scored: Sequence[tuple[str, pl.DataFrame]]) -> Iterator[Section]:
    """Give a section for each stage that scores: a row for what a score is of, a column for each model."""
    for folder, scores in scored:
        found = list(dict.fromkeys(scores["metric"]))
        known = [all_metrics()[name] for name in found if name in all_metrics()]
        formulas = "; ".join(f"{each.title}: {each.formula}" for each in known) or NO_CARD
        formulas = formulas if len(formulas) < LONGEST else "What each means: `culturekit metrics show NAME`"
        models = [*run.models, *sorted(set(scores["model"]) - {*run.models})]
        grids = [score_table(scores.filter(metric=name), title_of(name), models) for name in found]
        yield Section(f"scores-{folder}", f"Scores of {folder}", f"{formulas}.", tuple(grids))


def score_table(scores: pl.DataFrame, title: str, models: Sequence[str]) -> Grid:
    """Make the table of a metric."""
    rows: dict[str, dict[str, Cell]] = {}
    for row in scores.to_dicts():
        cells = rows.setdefault(about(row), {})
        cells[row["model"]] = number(row["value"], row["ci_low"], row["ci_high"])
    shown = [model for model in models if any(model in cells for cells in rows.values())]
    lines = ((head, [cells.get(model, Cell(DASH)) for model in shown]) for head, cells in rows.items())
    return grid(title, ("of", *shown), lines)


def about(row: dict[str, Any]) -> str:
    """Say what a score is of: its place and its parameters."""
    country = name_of(row["country"]) if row["country"] else None
    settings = msgspec.json.decode(row["params"])
    params = [
        f"{key} {value}" for key, value in settings.items() if key not in QUIET and not isinstance(value, dict | list)
    ]
    return ", ".join(filter(None, (row["concept"], country, row["group"], *params))) or "all"


def other_sections(run: RunFolders, images: Sequence[tuple[str, pl.DataFrame]]) -> Iterator[Section]:
    """Give the first pictures of each model, and the forms that people fill in."""
    if images:
        first = ((folder, table.filter(status="ok")["image_id"].head(SHOWN)) for folder, table in images)
        groups = ((folder, [(image, ()) for image in few]) for folder, few in first)
        strips = Gallery(run).strip(f"The first {SHOWN} images of each model", groups)
        yield Section("pictures", "Pictures", "All images of a model are in its folder.", (), strips=strips)
    forms = {name: manifest for name in run.stages if (manifest := manifest_of(run.root / name)).stage == FORMS}
    if forms:
        lines = ((f"{name}/form.html", [Cell(str(forms[name].counts.get("tasks", DASH)))]) for name in forms)
        lead = "What people are asked; `culturekit annotate import` reads their answers."
        yield Section("forms", "Forms", lead, (grid("Forms", ("form", "tasks"), lines),))
