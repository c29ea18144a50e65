"""The stages from prompts of activities to what their pictures should show, and what pictures of a country overdo."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.builders.activities.activity_prompts import PER_CATEGORY
from culturekit.builders.descriptors.activity_rows import activities_of, countries_of, dimensions_of
from culturekit.builders.descriptors.proposing import PROPOSE, ProposeOptions, proposal_request, propose_descriptors
from culturekit.builders.descriptors.refining import (
    REFINE,
    Cell,
    RefineOptions,
    cells_ahead,
    cells_of,
    refine_descriptors,
    refinement_request,
)
from culturekit.builders.descriptors.stereotypes import (
    STEREOTYPE,
    StereotypeOptions,
    name_stereotypes,
    stereotype_request,
)
from culturekit.families.handles.inputs import Numbered
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import asking_each
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand

__all__ = [
    "PROPOSE_DESCRIPTORS",
    "REFINE_DESCRIPTORS",
    "STEREOTYPES",
    "PromptsRead",
    "ProposalReads",
    "propose_stage",
    "refine_stage",
    "stereotypes_stage",
]


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
