"""The report of a run as its last stage or of a finished run, and the card of a release."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from culturekit.cards.build import build_card
from culturekit.cards.hand import FIELDS_FILE, TEXT_FILE
from culturekit.cards.provenance import keys_behind
from culturekit.errors import UsageError
from culturekit.kg.countries import file_of, use_countries_of_recipe
from culturekit.records.work import Outcome, Work
from culturekit.report.recipes.captions import caption_page
from culturekit.report.recipes.inclusion import inclusion_page
from culturekit.report.recipes.linguistic import linguistic_page
from culturekit.report.recipes.scenes import SectionPage, render_sections, scene_page
from culturekit.report.run_folders import RunFolders
from culturekit.report.write import write_report
from culturekit.stages.stage import Stage
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest
from culturekit.storage.manifest import InputRecord

__all__ = [
    "RECIPE_RECORD",
    "caption_report_stage",
    "card_stage",
    "folders_of",
    "inclusion_report_stage",
    "linguistic_report_stage",
    "report_of",
    "report_stage",
    "scene_report_stage",
]


def card_stage(release: Path, hand: Path, *, name: str = "card") -> Stage:
    """Build the card of a release from its folder and a hand-written half.

    Which stages behind the release are at hand decides what the card can say, so their keys count as an input.
    """
    return Stage(
        name,
        "card",
        2,
        lambda work: build_card(work, release, hand),
        {"release": release, "fields": hand / FIELDS_FILE, "text": hand / TEXT_FILE, "stages": release},
        packages=("polars", "PyYAML"),
        trees={"stages": lambda _: InputRecord(digest(keys_behind(release)), "the stages behind the release")},
    )


CUBE = "cube"

RECIPE_RECORD = "recipe.json"
"""The recipe as it was run, everything filled in: it lies beside the stage folders."""


def report_stage(run: RunFolders, *, name: str = "report") -> Stage:
    """Write the report of a run."""
    return Stage(
        name,
        "report",
        3,
        lambda work: write_report(work, run),
        {stage: run.root / stage for stage in run.stages},
        {"models": list(run.models)},
        packages=("jinja2", "pillow", "polars"),
    )


def scene_report_stage(run: RunFolders, *, name: str = "report") -> Stage:
    """Write the report of a run of the kind `cultivate`."""
    return sections_stage(run, "scene-report", 3, scene_page, name=name)


def caption_report_stage(run: RunFolders, *, name: str = "report") -> Stage:
    """Write the report of a run of the kind `c3`."""
    return sections_stage(run, "caption-report", 2, caption_page, name=name)


def linguistic_report_stage(run: RunFolders, *, name: str = "report") -> Stage:
    """Write the report of a run of the kind `linguistic`."""
    return sections_stage(run, "linguistic-report", 1, linguistic_page, name=name)


def inclusion_report_stage(run: RunFolders, *, name: str = "report") -> Stage:
    """Write the report of a run of the kind `inclusion`."""
    return sections_stage(run, "inclusion-report", 1, inclusion_page, name=name)


def sections_stage(
    run: RunFolders, kind: str, version: int, page_of: Callable[[RunFolders], SectionPage], *, name: str
) -> Stage:
    """Write a page of sections."""

    def write(work: Work) -> Outcome:
        data = page_of(run)
        page = render_sections(data).encode("utf-8")
        write_atomically(work.out / "report.html", page)
        return Outcome({"models": len(data.models), "sections": len(data.sections), "bytes": len(page)})

    inputs = {stage: run.root / stage for stage in run.stages}
    return Stage(name, kind, version, write, inputs, {"models": list(run.models)}, packages=("jinja2", "polars"))


class RecordedModel(msgspec.Struct):
    """A model as the recipe record names it."""

    name: str


class RecordedRun(msgspec.Struct):
    """The part of a recipe record that a report needs."""

    models: Sequence[RecordedModel]
    stages: Sequence[str]
    countries_file: str | None = None
    recipe: str = CUBE


def report_of(root: Path) -> Stage:
    """Give the stage that writes the report of a finished run again."""
    run = folders_of(root)
    writers = {"cultivate": scene_report_stage, "c3": caption_report_stage, "linguistic": linguistic_report_stage,
               "inclusion": inclusion_report_stage}  # fmt: skip
    return writers.get(recorded(root).recipe, report_stage)(run)


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
    """Read from a run's recipe record which models and which stages it has."""
    run = recorded(root)
    if run.countries_file and file_of(Path(run.countries_file)).is_file():
        use_countries_of_recipe(Path(run.countries_file))
    if not run.models:
        raise UsageError(
            "this run evaluated no model, so there is nothing to report", where=str(root), expected="a run with models",
            hint="A release is described by its card: `culturekit card build`.",
        )  # fmt: skip
    return RunFolders(root, tuple(model.name for model in run.models), tuple(run.stages))
