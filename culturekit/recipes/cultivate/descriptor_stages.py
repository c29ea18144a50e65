"""The stages from prompts of activities to what their pictures should show, and what pictures of a country overdo."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.builders.activities.extracting import ACTIVITY, PER_CATEGORY, activity_prompt, spelled_out
from culturekit.builders.asking import asking_each
from culturekit.builders.descriptors.proposing import (
    PROPOSE,
    ProposeOptions,
    activities_of,
    countries_of,
    dimensions_of,
    proposal_request,
    propose_descriptors,
)
from culturekit.builders.descriptors.published_layout import descriptors_of, place_of, read_published, written_files
from culturekit.builders.descriptors.refining import (
    REFINE,
    STEREOTYPE,
    Cell,
    RefineOptions,
    StereotypeOptions,
    cells_ahead,
    cells_of,
    name_stereotypes,
    refine_descriptors,
    refinement_request,
    stereotype_request,
)
from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered, roles_of
from culturekit.core.schemas import DESCRIPTORS, PROMPTS, PUBLISHED_DESCRIPTORS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.countries import country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted


@dataclass(frozen=True, slots=True)
class PromptsRead:
    """Prompts of activities."""

    prompts: Annotated[Path, Field(description="Prompts table; those in English that name a country are asked about.")]
    grid: tuple[str, ...] = ()
    per_category: int = PER_CATEGORY
    """Countries whose whole grid the prompts will ask for, and how large it is, for a plan before they are there."""

    def activities(self) -> pl.DataFrame:
        """Read them."""
        return activities_of(self.prompts, grid=self.grid, per_category=self.per_category)


@dataclass(frozen=True, slots=True)
class ProposalReads:
    """Prompts of activities, and what was proposed for them."""

    prompts: Annotated[Path, Field(description="Prompts table that was proposed for.")]
    proposals: Annotated[Numbered, Field(description="Table that `descriptors propose` wrote; one for each proposer.")]
    grid: tuple[str, ...] = ()
    per_category: int = PER_CATEGORY

    def cells(self, at_most: int) -> list[Cell]:
        """Gather what is chosen from; before all of it is there, as much as it can be."""
        if all(path.is_file() for path in (self.prompts, *self.proposals.places)):
            return cells_of(self.prompts, self.proposals.places)
        rows = list(dimensions_of(activities_of(self.prompts, grid=self.grid, per_category=self.per_category)))
        return cells_ahead(rows, proposers=len(self.proposals.places), at_most=at_most)


def propose_stage(given: PromptsRead, options: ProposeOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Have a model propose what pictures of activities show.

    It goes dimension by dimension.
    """

    def requests(instructions: str) -> Iterator[Request]:
        for row in dimensions_of(given.activities()):
            yield proposal_request(row, at_most=options.at_most, instructions=instructions)

    return asking_each(
        "propose-descriptors",
        given,
        options.proposer,
        task=PROPOSE,
        words="descriptors_propose",
        unit="dimensions of prompts",
        requests=requests,
        run=lambda work, client: propose_descriptors(work, given.prompts, client, options, llm),
        llm=llm,
        name="proposals",
        version=3,
        ahead=bool(given.grid),
        options={"at_most": options.at_most},
    )


def refine_stage(given: ProposalReads, options: RefineOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Have a model choose among proposals, and merge them.

    What says the same is merged; it can add nothing.
    """

    def requests(instructions: str) -> Iterator[Request]:
        for cell in given.cells(options.at_most):
            if cell.candidates:
                yield refinement_request(cell, at_most=options.at_most, instructions=instructions)

    return asking_each(
        "refine-descriptors",
        given,
        options.refiner,
        task=REFINE,
        words="descriptors_refine",
        unit="dimensions of prompts",
        requests=requests,
        run=lambda work, client: refine_descriptors(work, given.prompts, given.proposals.places, client, options, llm),
        llm=llm,
        name="descriptors",
        ahead=bool(given.grid),
        options={"at_most": options.at_most},
    )


def stereotypes_stage(given: PromptsRead, options: StereotypeOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Have a model name what pictures of each country overdo."""

    def requests(instructions: str) -> Iterator[Request]:
        for iso in countries_of(given.activities()):
            yield stereotype_request(iso, at_most=options.at_most, instructions=instructions)

    return asking_each(
        "name-stereotypes",
        given,
        options.proposer,
        task=STEREOTYPE,
        words="stereotypes_propose",
        unit="countries",
        requests=requests,
        run=lambda work, client: name_stereotypes(work, given.prompts, client, options, llm),
        llm=llm,
        name="stereotypes",
        version=3,
        ahead=bool(given.grid),
        options={"at_most": options.at_most},
    )


PROPOSE_DESCRIPTORS = AskingCommand(
    propose_stage, f"--prompts prompts/prompts.parquet --llm {quoted('text')} --out proposals --budget 20"
)
REFINE_DESCRIPTORS = AskingCommand(
    refine_stage,
    "--prompts prompts/prompts.parquet --proposals proposals/proposed_descriptors.parquet "
    f"--llm {quoted('text')} --out descriptors --budget 20",
)
STEREOTYPES = AskingCommand(
    stereotypes_stage, f"--prompts prompts/prompts.parquet --llm {quoted('text')} --out stereotypes"
)


# The stages that read descriptors in the layout they were published in, and write them so.


@dataclass(frozen=True, slots=True)
class PublishedRead:
    """Files in the published layout, one a country."""

    files: Annotated[Numbered, Field(description="JSON file named after its country, such as iran.json.")]
    prompts: Annotated[
        Path | None,
        Field(description="Prompts that the activities are matched with. [prompts are written for all of them]"),
    ] = None


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is said of descriptors that are read."""

    proposer: Annotated[str, Field(description="Name of whoever proposed them.")] = "published"


PUBLISHED = ImportOptions()


def import_stage(given: PublishedRead, options: ImportOptions = PUBLISHED) -> Stage:
    """Read descriptors in the layout they were published in.

    `export` writes them again byte for byte.
    """
    return Stage(
        "descriptors",
        "import-descriptors",
        1,
        lambda work: import_descriptors(work, given, options.proposer),
        {**roles_of(given), **country_files()},
        {"proposer": options.proposer},
        packages=("polars",),
    )


def import_descriptors(work: Work, given: PublishedRead, proposer: str) -> Outcome:
    """Read the files; an activity that no prompt asks for is dropped, and counted with its descriptors."""
    published, differing = read_published(given.files.places)
    if given.prompts is None:
        write_table(work.out, PROMPTS, prompts_of(published))
    prompts = read_table(given.prompts or work.out / "prompts.parquet", PROMPTS)
    places = {
        place_of(row["country"] or "", row["concept"] or "", row.get("activity") or ""): row["prompt_id"]
        for row in prompts.iter_rows(named=True)
    }
    found = descriptors_of(published, places, proposer)
    activities = published.unique(["country", "category", "activity"], maintain_order=True)
    lost = [
        {"key": f"{row['country']}/{row['activity']}", "concept": row["category"], "stage": "descriptors.import"}
        | {"reason": "no prompt asks for it", "detail": row["file"]}
        for row in activities.iter_rows(named=True)
        if place_of(row["country"], row["category"], row["activity"]) not in places
    ]
    if found.is_empty():
        raise UsageError(
            "no descriptor of these files belongs to a prompt",
            where=str(given.prompts or given.files.places[0]),
            expected="prompts with the country, the concept (category) and the activity of the files",
            found=", ".join(row["key"] for row in lost[:5]),
        )
    write_table(work.out, DESCRIPTORS, found)
    write_table(work.out, PUBLISHED_DESCRIPTORS, published)
    drops = write_drops(work.out, lost)
    told = [f"{name} is written in a way that `export` cannot repeat byte for byte" for name in differing]
    counts = {"descriptors": found.height, "activities": activities.height, "prompts": found["prompt_id"].n_unique()}
    return Outcome(counts, drops, {"findings": told} if told else {})


def prompts_of(published: pl.DataFrame) -> pl.DataFrame:
    """Write a prompt for each activity of the files."""
    rows: dict[str, dict[str, Any]] = {}
    for row in published.iter_rows(named=True):
        iso, category, activity = place_of(row["country"], row["category"], row["activity"])
        prompt_id = "-".join((iso.lower(), *category.split(), *activity.split()))
        prompt = activity_prompt(prompt_id, iso, row["category"], spelled_out(row["activity"]))
        rows.setdefault(prompt_id, {**prompt, "activity": row["activity"]})
    return pl.DataFrame(list(rows.values()), schema={**PROMPTS.schema, **ACTIVITY})


@dataclass(frozen=True, slots=True)
class DescriptorsRead:
    """Descriptors, their prompts, and the files that some were read from."""

    descriptors: Annotated[Path, Field(description="Descriptors table.")]
    prompts: Annotated[Path, Field(description="Their prompts, with the activity of each.")]
    published: Annotated[
        Path | None,
        Field(
            description="Table of the files they were read from, whose order and form are kept. [beside descriptors]"
        ),
    ] = None


def export_stage(given: DescriptorsRead) -> Stage:
    """Write descriptors in the layout they were published in.

    One JSON file a country.
    """
    beside = given.descriptors.parent / f"{PUBLISHED_DESCRIPTORS.name}.parquet"
    published = given.published or (beside if beside.is_file() else None)
    inputs = {"descriptors": given.descriptors, "prompts": given.prompts}
    return Stage(
        "published",
        "export-descriptors",
        1,
        lambda work: export_descriptors(work, given, published),
        inputs | ({} if published is None else {"published": published}) | country_files(),
        packages=("polars",),
    )


def export_descriptors(work: Work, given: DescriptorsRead, published: Path | None) -> Outcome:
    """Write the files."""
    prompts = read_table(given.prompts, PROMPTS).filter(pl.col("country").is_not_null())
    if "activity" not in prompts.columns:
        raise UsageError("these prompts name no activity", where=str(given.prompts), expected="a column `activity`")
    descriptors = read_table(given.descriptors, DESCRIPTORS)
    strange = sorted(set(descriptors["prompt_id"]) - set(prompts["prompt_id"]))
    if strange:
        raise UsageError(
            f"{len(strange)} prompts of the descriptors are not among the prompts",
            where=str(given.prompts),
            found=", ".join(strange[:5]),
        )
    files = written_files(
        descriptors, prompts, None if published is None else read_table(published, PUBLISHED_DESCRIPTORS)
    )
    for file, text in files.items():
        write_atomically(work.out / file, text.encode())
    return Outcome({"files": len(files), "descriptors": descriptors.height})


IMPORT = StageCommand(import_stage, "--files iran.json --files nepal.json --out descriptors")
EXPORT = StageCommand(
    export_stage, "--descriptors descriptors/descriptors.parquet --prompts prompts/prompts.parquet --out published"
)
