"""From the cultural space to prompts: one per artifact, or such that leave the artifact open."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from culturekit.builders.draw import draw_per_group
from culturekit.builders.prompt_templates import templates
from culturekit.builders.public_cube import read_space
from culturekit.kg.countries import countries
from culturekit.records.choices import PromptKind, TemplateSetName
from culturekit.records.schemas import DROPS, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.digests import digest
from culturekit.storage.tables import write_table

__all__ = ["BENCHMARK", "PromptOptions", "build_prompts"]

BENCHMARK = "cube"


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Which prompts to build; `per` limits how many artifacts each country and concept gives."""

    kinds: tuple[PromptKind, ...] = ("cube",)
    templates: TemplateSetName = "released"
    per: Annotated[int, Field(ge=1)] | None = None


def build_prompts(work: Work, cspace_path: Path, options: PromptOptions, *, seed: int) -> Outcome:
    """Write the prompts of the wanted kinds, and the artifacts that no template fits."""
    space, unread = read_space(cspace_path)
    rows: list[dict[str, Any]] = []
    drops: list[dict[str, Any]] = list(unread.iter_rows(named=True))
    work.progress.begin(len(options.kinds), "kinds of prompt")
    for kind in options.kinds:
        if kind == "cube":
            drawn = space if options.per is None else draw_per_group(space, per=options.per, seed=seed)
            for row in drawn.iter_rows(named=True):
                prompt = artifact_prompt(row, options.templates)
                (drops if prompt is None else rows).append(prompt or without_template(row, options.templates))
        else:
            rows += underspecified_prompts(space) if kind == "underspecified" else within_country_prompts(space)
        work.progress.advance(1)
    prompts = pl.DataFrame(rows, schema=PROMPTS.schema)
    write_table(work.out, PROMPTS, prompts)
    write_table(work.out, DROPS, pl.DataFrame(drops, schema=DROPS.schema).unique())
    reasons = Counter(drop["reason"] for drop in drops)
    return Outcome({"prompts": prompts.height, "drops": len(drops)}, dict(reasons))


def artifact_prompt(row: Mapping[str, Any], set_name: TemplateSetName) -> dict[str, Any] | None:
    """Write the prompt that names an artifact; None where the set has no template for it."""
    chosen = templates().artifact[set_name]
    found = chosen.find(row["concept"], row["subconcept"])
    if found is None:
        return None
    key, template = found
    place = countries()[row["country"]]
    text = template.format(name=row["name"], country=place.name, adjective=place.adjective)
    return prompt_row(
        text,
        kind="cube",
        template_id=f"{set_name}/{key}",
        negative=chosen.negative,
        concept=row["concept"],
        country=row["country"],
        artifact_id=row["artifact_id"],
    )


def underspecified_prompts(space: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Write the prompts that name neither an artifact nor a country, for the concepts of the space."""
    for concept in space["concept"].unique().sort():
        for number, text in enumerate(templates().underspecified.get(concept, ())):
            template_id = f"underspecified/{concept}/{number}"
            yield prompt_row(text, kind="underspecified", template_id=template_id, concept=concept)


def within_country_prompts(space: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Write the prompts that name a country and leave the artifact open."""
    for concept, iso in space.select("concept", "country").unique().sort("concept", "country").iter_rows():
        for number, template in enumerate(templates().within_country.get(concept, ())):
            text = template.format(country=countries()[iso].name)
            template_id = f"within-country/{concept}/{number}"
            yield prompt_row(text, kind="within-country", template_id=template_id, concept=concept, country=iso)


def prompt_row(
    text: str,
    *,
    kind: str,
    template_id: str,
    concept: str,
    negative: str | None = None,
    country: str | None = None,
    artifact_id: str | None = None,
) -> dict[str, Any]:
    """Make a prompt row; its id depends on what it is about, not on where it stands."""
    about = [BENCHMARK, kind, template_id, concept, country, artifact_id, text]
    return {
        "prompt_id": f"{kind}-{concept}-{digest(about)[:10]}",
        "text": text,
        "negative_text": negative,
        "benchmark": BENCHMARK,
        "kind": kind,
        "concept": concept,
        "country": country,
        "group": None,
        "artifact_id": artifact_id,
        "language": "en",
        "template_id": template_id,
    }


def without_template(row: Mapping[str, Any], set_name: TemplateSetName) -> dict[str, Any]:
    """Say that an artifact has no prompt."""
    return {
        "key": row["artifact_id"],
        "concept": row["concept"],
        "stage": "prompts",
        "reason": f"no {set_name} template",
        "detail": row["subconcept"],
    }
