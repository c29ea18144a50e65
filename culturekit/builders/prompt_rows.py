"""Rows of the prompts table, in English or in a language that a speaker has verified."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.builders.prompt_templates import (
    NOTHING_ADDED,
    AddedTemplates,
    TemplateSet,
    open_templates,
    templates,
    worded,
)
from culturekit.builders.translations import Translation
from culturekit.kg.concept_words import ENGLISH
from culturekit.kg.countries import Country, country
from culturekit.records.choices import TemplateSetName
from culturekit.storage.digests import digest

__all__ = ["BENCHMARK", "Wording", "artifact_prompt", "underspecified_prompts", "within_country_prompts"]

BENCHMARK = "cube"


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one language; `added` are those of concepts that bring their own."""

    set_name: TemplateSetName
    translation: Translation | None = None
    added: AddedTemplates = NOTHING_ADDED

    @property
    def language(self) -> str:
        """The language."""
        return self.translation.language if self.translation else ENGLISH

    @property
    def artifact(self) -> TemplateSet:
        """The templates that name an artifact."""
        known = self.translation.artifact_set() if self.translation else templates().artifact[self.set_name]
        own = self.added.artifact
        return known.model_copy(update={"templates": {**known.templates, **own}}) if own else known

    @property
    def underspecified(self) -> Mapping[str, tuple[str, ...]]:
        """The templates that name neither artifact nor country."""
        return {**(self.translation or templates()).underspecified, **self.added.underspecified}

    def leaving_open(self, concept: str) -> tuple[str, ...]:
        """Find the templates that name neither a concept's artifact nor a country."""
        return open_templates(self.underspecified, concept)

    @property
    def within_country(self) -> Mapping[str, tuple[str, ...]]:
        """The templates that name a country."""
        return {**(self.translation or templates()).within_country, **self.added.within_country}

    def name_of(self, row: Mapping[str, Any]) -> str:
        """Call an artifact by its name in the language, where it has one."""
        own = self.translation.names.get(row["artifact_id"]) if self.translation else None
        return str(own or row["name"])

    def place(self, iso: str) -> Country | None:
        """Find the forms of a country; None where a translation has none."""
        known = country(iso)
        if self.translation is None:
            return known
        forms = self.translation.countries.get(iso)
        if forms is None:
            return None
        return known.model_copy(update={"name": forms.name, "article": "", "adjective": forms.adjective})


def artifact_prompt(row: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Write the prompt that names an artifact; without a template or a country's form, the row of `drops`."""
    chosen = wording.artifact
    found = chosen.find(row["concept"], row["subconcept"])
    if found is None:
        what = wording.set_name if wording.translation is None else wording.language
        return without_words(row["artifact_id"], row["concept"], f"no {what} template", row["subconcept"])
    key, template = found
    place = wording.place(row["country"])
    if place is None:
        return without_form(row["artifact_id"], row["concept"], row["country"], wording)
    return prompt_row(
        worded(template, name=wording.name_of(row), country=place, concept=row["concept"]),
        wording,
        kind="cube",
        template_id=f"{wording.set_name}/{key}",
        negative=chosen.negative,
        concept=row["concept"],
        country=row["country"],
        artifact_id=row["artifact_id"],
    )


def underspecified_prompts(space: pl.DataFrame, wording: Wording) -> Iterator[dict[str, Any]]:
    """Write the prompts that name neither an artifact nor a country, for the concepts of the space."""
    for concept in space["concept"].unique().sort():
        found = wording.leaving_open(concept)
        if not found:
            yield without_words(concept, concept, f"no {wording.language} template", "underspecified")
        for number, template in enumerate(found):
            template_id = f"underspecified/{concept}/{number}"
            text = worded(template, concept=concept)
            yield prompt_row(text, wording, kind="underspecified", template_id=template_id, concept=concept)


def within_country_prompts(space: pl.DataFrame, wording: Wording) -> Iterator[dict[str, Any]]:
    """Write the prompts that name a country and leave the artifact open."""
    for concept, iso in space.select("concept", "country").unique().sort("concept", "country").iter_rows():
        found, place = open_templates(wording.within_country, concept), wording.place(iso)
        if not found:
            yield without_words(f"{concept} {iso}", concept, f"no {wording.language} template", "within-country")
        elif place is None:
            yield without_form(f"{concept} {iso}", concept, iso, wording)
        else:
            for number, template in enumerate(found):
                text = worded(template, country=place, concept=concept)
                template_id = f"within-country/{concept}/{number}"
                yield prompt_row(
                    text, wording, kind="within-country", template_id=template_id, concept=concept, country=iso
                )


def prompt_row(
    text: str,
    wording: Wording,
    *,
    kind: str,
    template_id: str,
    concept: str,
    negative: str | None = None,
    country: str | None = None,
    artifact_id: str | None = None,
) -> dict[str, Any]:
    """Make a prompt row; its id depends on what it is about, not on where it stands."""
    pair = [BENCHMARK, kind, template_id, concept, country, artifact_id]
    about = [*pair, text] if wording.translation is None else [*pair, text, wording.language]
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
        "language": wording.language,
        "template_id": template_id,
        "pair_id": f"pair-{digest(pair)[:12]}",
    }


def without_words(key: str, concept: str, reason: str, detail: str | None) -> dict[str, Any]:
    """Say that something has no prompt."""
    return {"key": key, "concept": concept, "stage": "prompts", "reason": reason, "detail": detail}


def without_form(key: str, concept: str, iso: str, wording: Wording) -> dict[str, Any]:
    """Say that a translation does not say what a country is called."""
    return without_words(key, concept, f"no {wording.language} form of the country", iso)
