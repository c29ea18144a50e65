"""The report of a run as its last stage or of a finished run, and the card of a release."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from culturekit.cards.build import build_card
from culturekit.cards.facts import keys_behind
from culturekit.cards.hand import FIELDS_FILE, TEXT_FILE
from culturekit.errors import UsageError
from culturekit.kg.countries import file_of, use_countries_of_recipe
from culturekit.records.work import Outcome, Work
from culturekit.report.recipes.captions import caption_page
from culturekit.report.recipes.inclusion import inclusion_page
from culturekit.report.recipes.linguistic import linguistic_page
from culturekit.report.recipes.scenes import SectionPage, render_sections, scene_page
from culturekit.report.run_folders import RunFolders
from culturekit.report.write import write_report
from culturekit.stages import caption_roles, inclusion_roles, linguistic_roles, roles, scene_roles
from culturekit.stages.roles import Role
from culturekit.stages.run import RECIPE_RECORD, Run
from culturekit.stages.stage import Stage
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import InputRecord, digest
from culturekit.trail.evidence import check_together


def card_stage(release: Path, hand: Path) -> Stage:
    """Build the card of a release from its folder and a hand-written half.

    Which stages behind the release are at hand decides what the card can say, so their keys count as an input.
    """
    return Stage(
        "card",
        "card",
        3,
        lambda work: build_card(work, release, hand),
        {"release": release, "fields": hand / FIELDS_FILE, "text": hand / TEXT_FILE, "stages": release},
        packages=("polars", "PyYAML"),
        trees={"stages": lambda _: InputRecord(digest(keys_behind(release)), "the stages behind the release")},
    )


CUBE = "cube"


@dataclass(frozen=True, slots=True)
class SectionReport:
    """A report that is a page of sections.

    Attributes:
        kind: of the stage.
        version: of the stage.
        page_of: collects the page.
        truths: roles whose scores come from knowing what images show, which holds of simulated worlds alone.
    """

    kind: str
    version: int
    page_of: Callable[[RunFolders], SectionPage]
    truths: tuple[Role, ...]


SECTION_REPORTS = {
    "c3": SectionReport("caption-report", 7, caption_page, (caption_roles.TRUTH, caption_roles.PAIR_TRUTH)),
    "cultivate": SectionReport("scene-report", 8, scene_page, (scene_roles.AHEAD_TRUTH,)),
    "inclusion": SectionReport("inclusion-report", 7, inclusion_page, (inclusion_roles.TRUTH,)),
    "linguistic": SectionReport(
        "linguistic-report", 6, linguistic_page,
        (linguistic_roles.TRUE_DIALECTS, linguistic_roles.TRUE_TONES, linguistic_roles.TRUE_RATINGS,
         linguistic_roles.NEUTRAL_TRUTH),
    ),
}  # fmt: skip
"""The reports of other kinds of recipes than `cube`."""


def report_stage(run: RunFolders) -> Stage:
    """Write the report of a run."""
    return Stage(
        "report",
        "report",
        8,
        lambda work: write_report(work, run),
        {stage: run.root / stage for stage in run.stages},
        {"models": list(run.models)},
        packages=("jinja2", "pillow", "polars"),
    )


def sections_report_stage(run: RunFolders, recipe: str) -> Stage:
    """Write the report of a run of another kind than `cube`: a page of sections."""
    report = SECTION_REPORTS[recipe]

    def write(work: Work) -> Outcome:
        data = report.page_of(run)
        page = render_sections(data).encode("utf-8")
        write_atomically(work.out / "report.html", page)
        return Outcome({"models": len(data.models), "sections": len(data.sections), "bytes": len(page)})

    inputs = {stage: run.root / stage for stage in run.stages}
    options = {"models": list(run.models)}
    return Stage("report", report.kind, report.version, write, inputs, options, packages=("jinja2", "polars"))


def add_sections_report(run: Run, recipe: str) -> None:
    """Add the report of a run of such a kind, which reads all stages before it."""
    run.add(sections_report_stage(RunFolders(run.root, run.models, run.stages), recipe), roles.REPORT)


def sections_headline(recipe: str) -> Callable[[Run], Iterable[str]]:
    """Give what says in sentences what came of a run of such a kind: what its page says first."""

    def headline(run: Run) -> Iterable[str]:
        return (
            sections_of(RunFolders(run.root, run.models, run.stages), recipe).verdict if run.has(roles.REPORT) else ()
        )

    return headline


def sections_of(run: RunFolders, recipe: str) -> SectionPage:
    """Give what the page of a run of such a kind says."""
    return SECTION_REPORTS[recipe].page_of(run)


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


def report_of(root: Path) -> Stage:
    """Give the stage that writes the report of a finished run again."""
    run, recipe = folders_of(root), recorded(root).recipe
    return sections_report_stage(run, recipe) if recipe in SECTION_REPORTS else report_stage(run)


def recorded(root: Path) -> RecordedRun:
    """Read the record of a run's recipe."""
    path = root / RECIPE_RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecordedRun)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError) as error:
        raise UsageError(
            "not the folder of a run", where=str(root), expected=f"a folder with a {RECIPE_RECORD}"
        ) from error


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
