"""The ground of a `cultivate` run: from pages about countries to prompts, descriptors and stereotypes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.activities.activity_prompts import FIXED, LOOKED_FOR
from culturekit.builders.activities.extracting import ExtractOptions
from culturekit.builders.activities.merging import MergeOptions
from culturekit.builders.activities.page_list import PageOptions
from culturekit.builders.descriptors.proposing import ProposeOptions
from culturekit.builders.descriptors.refining import RefineOptions
from culturekit.builders.descriptors.stereotypes import StereotypeOptions
from culturekit.config.recipe_parts import EncoderSpec, File, JudgeSpec, Llm
from culturekit.families.family import rules_of
from culturekit.families.handles.inputs import Numbered
from culturekit.kg.countries import countries, country_files
from culturekit.llm.models import published_models, shut_among
from culturekit.pipeline.parts.buying import bought
from culturekit.pipeline.planning.slots import asks
from culturekit.pipeline.steps.activity_stages import (
    ActivitiesRead,
    MentionsRead,
    PagesRead,
    SectionsRead,
    activity_prompts_stage,
    extract_stage,
    merge_stage,
    pages_stage,
)
from culturekit.pipeline.steps.descriptor_stages import (
    PromptsRead,
    ProposalReads,
    propose_stage,
    refine_stage,
    stereotypes_stage,
)
from culturekit.pipeline.steps.scene_stages import simulated_pages_stage
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.stages.run import Run
from culturekit.stages.stage import Stage
from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = ["AUTHORS", "Ground", "wire_ground"]

AUTHORS: Mapping[str, object] = {
    name: specs if name == "proposers" else specs[0] for name, specs in published_models("cultivate").items()
}
"""The models of the published code, at its temperatures; the paper says 0.2 for proposers. That code asks up to three
times for a reply that can be read, this engine once more, telling what was wrong."""

PAGES, SOURCES, MENTIONS = Role("pages"), Role("sources", "pages"), Role("mentions", "mentions")
ACTIVITIES, PROPOSALS = Role("activities", "activities"), Role("proposals-{variant}", "proposed_descriptors")


def every_country() -> tuple[str, ...]:
    """Name the countries of the paper."""
    return tuple(sorted(iso for iso, each in countries().items() if "cultivate" in each.groups))


class Ground(StrictModel):
    """Pages about countries, and who makes activities, descriptors and stereotypes of them."""

    preset: Annotated[
        Literal["authors"] | None,
        Field(description=f"Models that are not named are the authors'. As published: {shut_among('cultivate')}."),
    ] = None
    pages: Annotated[
        File | None,
        Field(description="List of pages, as `activities read` takes it. [pages about the simulated world]"),
    ] = None
    contact: Annotated[str, rules_of(PageOptions, "contact")] = ""
    countries: Annotated[tuple[str, ...], AfterValidator(not_empty)] = Field(default_factory=every_country)
    per_category: Annotated[int, rules_of(MergeOptions, "per_category")] = MergeOptions().per_category
    encoder: Annotated[
        EncoderSpec | None,
        Field(description="Encoder that tells near-duplicate activities. [names are compared by words alone]"),
    ] = None
    reader: JudgeSpec
    proposers: Annotated[tuple[JudgeSpec, ...], AfterValidator(not_empty)]
    refiner: JudgeSpec
    stereotypes: JudgeSpec
    at_most: Annotated[int, rules_of(ProposeOptions, "at_most")] = 10

    @property
    def prompts(self) -> int:
        """Count the prompts that there will be, if no activity is missing."""
        return len(self.countries) * (len(LOOKED_FOR) * self.per_category + sum(map(len, FIXED.values())))

    @model_validator(mode="before")
    @classmethod
    def filled(cls, given: Any) -> Any:  # noqa: ANN401 - as YAML has it
        """Fill in the models of a preset."""
        return {**AUTHORS, **given} if isinstance(given, dict) and given.get("preset") == "authors" else given


def wire_ground(run: Run, ground: Ground, llm: Llm, *, descriptors: Role, stereotypes: Role) -> None:
    """Add the stages from pages to prompts, descriptors and stereotypes; each can be planned before the others ran."""
    sources = run.add(read_stage(run, ground), SOURCES)
    reading = extract_stage(SectionsRead(sources), ExtractOptions(ground.reader), bought(run, llm, MENTIONS))
    mentions = run.add(reading, MENTIONS, plan=asks())
    merging = MergeOptions(ground.countries, ground.per_category, ground.encoder)
    activities = run.add(merge_stage(MentionsRead(mentions, sources), merging), ACTIVITIES)
    prompts = run.add(activity_prompts_stage(ActivitiesRead(activities)), roles.PROMPTS)
    given = PromptsRead(prompts, ground.countries, ground.per_category)
    proposals = []
    for number, proposer in enumerate(ground.proposers, start=1):
        options = ProposeOptions(proposer, ground.at_most)
        stage = propose_stage(given, options, bought(run, llm, PROPOSALS, variant=str(number)))
        proposals.append(run.add(stage, PROPOSALS, variant=str(number), plan=asks()))
    chosen = ProposalReads(prompts, Numbered(tuple(proposals)), ground.countries, ground.per_category)
    refining = refine_stage(chosen, RefineOptions(ground.refiner, ground.at_most), bought(run, llm, descriptors))
    run.add(refining, descriptors, plan=asks())
    naming = stereotypes_stage(given, StereotypeOptions(ground.stereotypes), bought(run, llm, stereotypes))
    run.add(naming, stereotypes, plan=asks())


def read_stage(run: Run, ground: Ground) -> Stage:
    """Give the stage that reads pages; those about the simulated world are written by one before it."""
    if ground.pages is not None:
        return pages_stage(PagesRead(Path(ground.pages)), PageOptions(contact=ground.contact))
    run.add(simulated_pages_stage(ground.countries), PAGES)
    folder = run.folder(PAGES)
    stage = pages_stage(PagesRead(folder / "pages.yaml"))
    return replace(stage, inputs={"pages": folder, **country_files()})
