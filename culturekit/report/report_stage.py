"""The report of a run as its last stage, or of a finished run, with the pages behind its numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.core import roles
from culturekit.core.atomic import decoding, write_atomically
from culturekit.core.errors import UsageError
from culturekit.core.inputs import check_together
from culturekit.core.roles import Role
from culturekit.core.run import RECIPE_RECORD, Run
from culturekit.core.schemas import SCORES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table
from culturekit.kg.countries import file_of, use_countries_of_recipe
from culturekit.report.gallery import Gallery, Picture
from culturekit.report.run_folders import RunFolders, plain
from culturekit.report.sections import SectionPage, render_sections
from culturekit.report.thumbnails import copies, write_copies
from culturekit.report.write import page_of, write_report
from culturekit.trail.numbers import Item, NumberWalk

CUBE = "cube"


@dataclass(frozen=True, slots=True)
class SectionReport:
    """A report that is a page of sections."""

    kind: str  # of the stage
    version: int  # of the stage
    page_of: Callable[[RunFolders], SectionPage]  # collects the page
    # roles whose scores come from knowing what images show, which holds of simulated worlds alone
    truths: tuple[Role, ...]


def report_stage(run: RunFolders) -> Stage:
    """Write the report of a run."""
    return Stage(
        "report", "report", 10, lambda work: write_report(work, run),
        {stage: run.root / stage for stage in run.stages}, {"models": list(run.models)},
        packages=("jinja2", "pillow", "polars"),
    )  # fmt: skip


def sections_report_stage(run: RunFolders, report: SectionReport) -> Stage:
    """Write the report of a run of another kind than `cube`: a page of sections."""

    def write(work: Work) -> Outcome:
        data = report.page_of(run)
        traced = list(details_pages(run, data.traces))
        shown = {picture.thumbnail: picture.source for each in traced for picture in each.pictures}
        thumbnails = {**data.thumbnails, **shown}
        unread = write_copies(work, copies(run.root, thumbnails, work.out / "thumbnails"))
        page = render_sections(data, place_of=place_of).encode("utf-8")
        write_atomically(work.out / "report.html", page)
        (work.out / FOLDER).mkdir(exist_ok=True)
        for each in traced:
            details = page_of("behind.html", data=each).encode("utf-8")
            write_atomically(work.out / FOLDER / f"{plain(each.folder)}.html", details)
        counts = {"sections": len(data.sections), "thumbnails": len(thumbnails), "bytes": len(page)}
        return Outcome({"models": len(data.models), **counts}, unread)

    inputs = {stage: run.root / stage for stage in run.stages}
    options = {"models": list(run.models)}
    return Stage("report", report.kind, report.version, write, inputs, options, packages=("jinja2", "pillow", "polars"))


def add_sections_report(run: Run, report: SectionReport) -> None:
    """Add a page of sections as the report of a run, which reads all stages before it."""
    run.add(sections_report_stage(RunFolders(run.root, run.models, run.stages), report), roles.REPORT)


def sections_headline(report: SectionReport) -> Callable[[Run], Iterable[str]]:
    """Give what says in sentences what came of a run: what its page says first."""

    def headline(run: Run) -> Iterable[str]:
        return report.page_of(RunFolders(run.root, run.models, run.stages)).verdict if run.has(roles.REPORT) else ()

    return headline


class RecordedModel(msgspec.Struct):
    """A model as the recipe record names it."""

    name: str
    backend: str = ""


class RecordedRun(msgspec.Struct):
    """The part of a recipe record that a report needs."""

    stages: Sequence[str]
    models: Sequence[RecordedModel] = ()
    countries_file: str | None = None
    recipe: str = CUBE


def recorded(root: Path) -> RecordedRun:
    """Read the record of a run's recipe."""
    path = root / RECIPE_RECORD
    with decoding(root, "not the folder of a run", expected=f"a folder with a {RECIPE_RECORD}"):
        return msgspec.json.decode(path.read_bytes() if path.is_file() else b"", type=RecordedRun)


def folders_of(root: Path) -> RunFolders:
    """Read from a run's recipe record which models and which stages it has, all finished and made from one another."""
    run = recorded(root)
    if run.countries_file and file_of(Path(run.countries_file)).is_file():
        use_countries_of_recipe(Path(run.countries_file))
    if not run.models:
        raise UsageError(
            "this run evaluated no model, so there is nothing to report", where=str(root), expected="a run with models",
            hint="A release is described by its card: `culturekit card build`.",
        )  # fmt: skip
    read = tuple(stage for stage in run.stages if stage != roles.REPORT.form)
    check_together(root, read)
    return RunFolders(root, tuple(model.name for model in run.models), read)


FOLDER = "behind"
SHOWN = 3  # values of a number that are shown: the highest, one in the middle, the lowest; `culturekit trace` has all


@dataclass(frozen=True, slots=True)
class NumberDetails:
    """One number: what it is, how to walk it back further, how many values it is made from, and some of them."""

    rows: tuple[int, ...]
    titles: tuple[str, ...]
    count: int
    values: str
    items: tuple[tuple[Item, tuple[Picture, ...]], ...]


@dataclass(frozen=True, slots=True)
class DetailsPage:
    """The numbers of one folder of scores that a page shows."""

    folder: str
    numbers: tuple[NumberDetails, ...]

    @property
    def pictures(self) -> Iterator[Picture]:
        """The pictures that it shows."""
        return (picture for number in self.numbers for _, pictures in number.items for picture in pictures)


def place_of(trace: str) -> str:
    """Name where a number is walked back, from the page that shows it, by its folder and row."""
    folder, _, row = trace.partition("#")
    return f"{FOLDER}/{plain(folder)}.html#r{row}"


def details_pages(run: RunFolders, traces: Iterable[str]) -> Iterator[DetailsPage]:
    """Walk the numbers of a page back, folder by folder; those that are made from the same values stand together."""
    gallery, tables = Gallery(run), dict[tuple[Path, str], pl.DataFrame]()
    wanted: dict[str, set[int]] = {}
    for name, _, row_named in (trace.partition("#") for trace in traces):
        wanted.setdefault(name, set()).add(int(row_named))
    for folder, rows in sorted(wanted.items()):
        walk, scores = NumberWalk(run.root / folder, tables), read_table(run.root / folder / "scores.parquet", SCORES)
        found: dict[tuple[object, ...], tuple[list[int], Any]] = {}
        for row in sorted(rows):
            trail = walk.trail(scores.row(row, named=True), count=SHOWN)
            key = (trail.values, trail.count, *((item.name, item.value, item.answers) for item in trail.items))
            found.setdefault(key, ([], trail))[0].append(row)
        yield DetailsPage(folder, tuple(
            NumberDetails(
                tuple(together), tuple(_title(scores.row(row, named=True)) for row in together), trail.count,
                trail.values.name,
                tuple((item, tuple(filter(None, (gallery.picture(image.image_id) for image in item.images))))
                      for item in trail.items),
            )
            for together, trail in found.values()
        ))  # fmt: skip


def _title(score: dict[str, Any]) -> str:
    """Say what a number is, as its table does."""
    of = ", ".join(score[name] for name in ("model", "concept", "country", "group") if score[name])
    limits = "" if score["ci_low"] is None else f" [{score['ci_low']:.3f}, {score['ci_high']:.3f}]"
    return f"{score['metric']}, {of} = {'–' if score['value'] is None else format(score['value'], '.3f')}{limits}"
