"""The stages from pages about countries to activities, and from activities to prompts."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.activities.extracting import (
    EXTRACT,
    TEMPLATE,
    ExtractOptions,
    MergeOptions,
    extract_activities,
    extraction_requests,
    merge_activities,
    prompt_activities,
)
from culturekit.builders.activities.page_list import PageOptions, files_of, read_list, read_pages
from culturekit.builders.asking import asking_each
from culturekit.core.inputs import roles_of
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand
from culturekit.index.encoder import ENCODERS
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.models import quoted

NO_OPTIONS = PageOptions()
MERGED = MergeOptions()


@dataclass(frozen=True, slots=True)
class PagesRead:
    """A list of pages about countries."""

    pages: Annotated[
        Path,
        Field(
            description="YAML, `pages:`, each with source, country, and file, url or title; see docs/descriptors.md."
        ),
    ]


def pages_stage(given: PagesRead, options: PageOptions = NO_OPTIONS) -> Stage:
    """Read pages about countries into sections.

    Those without a file are fetched politely, where that is asked for.
    """
    return Stage(
        "sources",
        "read-pages",
        2,
        lambda work: read_pages(work, given.pages, options),
        {**roles_of(given), **(files_of(given.pages) if given.pages.is_file() else {}), **country_files()},
        {"wikipedia": options.wikipedia} if given.pages.is_file() and any_fetched(given.pages) else {},
        packages=("mwparserfromhell", "polars", "selectolax"),
    )


def any_fetched(pages: Path) -> bool:
    """Tell whether a page of the list is no file."""
    return any(page.file is None for page in read_list(pages))


@dataclass(frozen=True, slots=True)
class SectionsRead:
    """Pages as sections."""

    pages: Annotated[Path, Field(description="Table that `activities read` wrote.")]


def extract_stage(given: SectionsRead, options: ExtractOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Have a model find activities on pages.

    What it quotes must stand there.
    """
    return asking_each(
        "extract-activities",
        given,
        options.reader,
        task=EXTRACT,
        words="activities_extract",
        unit="sections",
        requests=partial(extraction_requests, given.pages),
        run=lambda work, client: extract_activities(work, given.pages, client, llm),
        llm=llm,
        name="mentions",
        version=3,
    )


@dataclass(frozen=True, slots=True)
class MentionsRead:
    """What was found on pages, and the pages."""

    mentions: Annotated[Path, Field(description="Table that `activities extract` wrote.")]
    pages: Annotated[Path, Field(description="Table that `activities read` wrote.")]


def merge_stage(given: MentionsRead, options: MergeOptions = MERGED) -> Stage:
    """Merge what says the same, and choose by country.

    Each country keeps 36 activities in nine categories.
    """
    decided = {} if options.encoder is None else ENCODERS.decided_by(options.encoder)
    return Stage(
        "activities",
        "merge-activities",
        1,
        lambda work: merge_activities(work, given.mentions, given.pages, options),
        {**roles_of(given), **country_files()},
        {**asdict(options), **decided},
        packages=("numpy", "polars"),
    )


@dataclass(frozen=True, slots=True)
class ActivitiesRead:
    """Activities of countries."""

    activities: Annotated[Path, Field(description="Table that `activities merge` wrote.")]


def activity_prompts_stage(given: ActivitiesRead) -> Stage:
    """Write a prompt for each activity in its country."""
    return Stage(
        "prompts",
        "activity-prompts",
        1,
        lambda work: prompt_activities(work, given.activities),
        {**roles_of(given), **country_files()},
        {"template": TEMPLATE},
        packages=("polars",),
    )


READ = StageCommand(pages_stage, "--pages pages.yaml --out sources")
EXTRACT_ACTIVITIES = AskingCommand(
    extract_stage, f"--pages sources/pages.parquet --llm {quoted('text')} --out mentions --budget 20"
)
MERGE = StageCommand(merge_stage, "--mentions mentions/mentions.parquet --pages sources/pages.parquet --out activities")
PROMPTS = StageCommand(activity_prompts_stage, "--activities activities/activities.parquet --out prompts")
