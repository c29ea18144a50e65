"""The prompt templates, shipped or translated by people: read, checked, and filled in."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from babel import Locale, UnknownLocaleError
from pydantic import Field

from culturekit.core.choices import TemplateSetName
from culturekit.core.digests import digest
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.yaml_source import StrictModel, load_model, read_yaml, validate
from culturekit.kg.concepts import (
    ENGLISH,
    UNVERIFIED,
    ConceptWords,
    Language,
    TemplatePart,
    Verified,
    template_problems,
)
from culturekit.kg.countries import Country, country

OTHER = "other"  # under this name stand the open templates of concepts that have none of their own


class TemplateSet(StrictModel):
    """Templates by concept, or by concept and subconcept, and the negative prompt that goes with them."""

    templates: Mapping[str, str]
    negative: str | None = None

    def find(self, concept: str, subconcept: str | None) -> tuple[str, str] | None:
        """Find the template's id and text; None where the set has none."""
        for key in (f"{concept}/{subconcept}", concept):
            if key in self.templates:
                return key, self.templates[key]
        return None


class TemplateFile(StrictModel):
    """All CUBE templates."""

    artifact: Mapping[TemplateSetName, TemplateSet]
    underspecified: Mapping[str, tuple[str, ...]]
    within_country: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AddedTemplates:
    """Templates of one language beside those that are shipped or translated, or in their place."""

    artifact: Mapping[str, str]
    underspecified: Mapping[str, tuple[str, ...]]
    within_country: Mapping[str, tuple[str, ...]]

    def over(self, others: "AddedTemplates") -> "AddedTemplates":
        """Put these over others."""
        return AddedTemplates(
            {**others.artifact, **self.artifact},
            {**others.underspecified, **self.underspecified},
            {**others.within_country, **self.within_country},
        )


NOTHING_ADDED = AddedTemplates({}, {}, {})


def added_templates(concept: str, words: ConceptWords) -> AddedTemplates:
    """Give the words of a concept's own root config as templates."""
    return AddedTemplates(
        words.artifact_templates(concept),
        {concept: words.underspecified} if words.underspecified else {},
        {concept: words.within_country} if words.within_country else {},
    )


@cache
def templates() -> TemplateFile:
    """Load the shipped templates."""
    return load_model(shipped("builders/wording/cube_prompts.yaml"), TemplateFile)


def open_templates(by_concept: Mapping[str, tuple[str, ...]], concept: str) -> tuple[str, ...]:
    """Find the templates that leave a concept's artifact open."""
    return by_concept.get(concept) or by_concept.get(OTHER, ())


def spoken(concept: str) -> str:
    """Say the name of a root config as words."""
    return " ".join(concept.replace("_", " ").replace("-", " ").split())


def worded(template: str, *, name: str = "", country: Country | None = None, concept: str = "") -> str:
    """Fill in a template of ours: the country is bare in what names an artifact, as in the released words."""
    if country is None:
        return template.format(name=name, concept=spoken(concept))
    words = country.name if name else country.in_a_sentence
    return template.format(name=name, country=words, adjective=country.adjective, concept=spoken(concept))


# Templates that are not shipped: in another language, or for other concepts, verified by a person who speaks it.


class Place(StrictModel):
    """The forms of a country: as the templates need it after their own words, and as an adjective."""

    name: Annotated[str, Field(min_length=1)]
    adjective: Annotated[str, Field(min_length=1)]


class Translation(StrictModel):
    """The templates of one language; `names` are those of artifacts, by id, where they have one in it."""

    language: Language
    verified: Verified | None = None
    templates: TemplateSetName = "released"
    artifact: Mapping[str, str] = {}
    underspecified: Mapping[str, tuple[str, ...]] = {}
    within_country: Mapping[str, tuple[str, ...]] = {}
    negative: str | None = None
    countries: Mapping[str, Place] = {}
    names: Mapping[str, str] = {}


def load_translations(
    paths: Sequence[Path], languages: Sequence[str], set_name: TemplateSetName, *, spoken_by: Collection[str] = ()
) -> Mapping[str, Translation]:
    """Read the translations of the wanted languages; one that nobody verified is refused.

    Languages that root configs speak need none.
    """
    found: dict[str, Translation] = {}
    for path in paths:
        translation = load_translation(path)
        if translation.language in found:
            raise UsageError(f"a second translation to {translation.language}", where=str(path))
        if translation.templates != set_name:
            raise UsageError("a translation of other templates", where=str(path), expected=f"templates: {set_name}",
                             found=translation.templates)  # fmt: skip
        found[translation.language] = translation
    idle = sorted(set(found) - set(languages))
    if idle:
        raise UsageError(
            f"a translation to {', '.join(idle)}, in which no prompt is asked for",
            found=f"prompts in {', '.join(languages)}",
            hint="Name the language with --language, or `languages` in a recipe.",
        )
    missing = [language for language in languages if language != ENGLISH and language not in {*found, *spoken_by}]
    if missing:
        raise UsageError(
            f"there are no templates in {', '.join(missing)}",
            expected="`prompts:` in that language in a root config, or a translation, which a speaker has verified",
            found=" and ".join(sorted(found)) or "no translation",
            hint="Give its YAML file with --translations.",
        )
    others = {language for language in languages if language != ENGLISH and language not in found}
    return found | {language: Translation(language=language) for language in others}


def load_translation(path: Path) -> Translation:
    """Read one translation, and say everything that is wrong with it."""
    source = read_yaml(path)
    translation = validate(source, Translation)
    problems = []
    if translation.verified is None:
        problems.append(Problem(UNVERIFIED, str(path), 0, "verified"))
    if translation.language == ENGLISH:
        idle = [key for key in ("countries", "names", "negative") if getattr(translation, key)]
        hint = "English forms of countries and names of artifacts come with the space; write templates alone"
        problems += [Problem(hint, str(path), source.place((key,)).line, key) for key in idle]
    shipped = templates()
    same: Mapping[TemplatePart, Any] = {
        "artifact": ({}, {key: (text,) for key, text in translation.artifact.items()}),
        "underspecified": (shipped.underspecified, translation.underspecified),
        "within_country": (shipped.within_country, translation.within_country),
    }
    for part, (known, translated) in same.items():
        for key, texts in translated.items():
            line = source.place((part, key)).line
            about = f"{part}.{key}"
            problems += [Problem(hint, str(path), line, about) for hint in template_problems(part, texts)]
            if key in known and len(known[key]) != len(texts):
                hint = f"{len(texts)} templates for the {len(known[key])} of the original: they go in pairs"
                problems.append(Problem(hint, str(path), line, about))
    if problems:
        raise ConfigError(problems)
    return translation


# Rows of the prompts table, in English or in a language that a speaker has verified.

BENCHMARK = "cube"


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one language; `added` are those of concepts that bring their own, `labels` those of Wikidata."""

    set_name: TemplateSetName
    translation: Translation | None = None
    added: AddedTemplates = NOTHING_ADDED
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def language(self) -> str:
        """The language."""
        return self.translation.language if self.translation else ENGLISH

    @property
    def artifact(self) -> TemplateSet:
        """The templates that name an artifact."""
        known, added, own = templates().artifact[self.set_name], self.added.artifact, self.translation
        if own is not None:
            known = TemplateSet(templates=own.artifact, negative=own.negative)
        return known.model_copy(update={"templates": {**known.templates, **added}}) if added else known

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

    def name_of(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Call an artifact by its name in the language, else in English; and mark what no speaker verified."""
        artifact = row["artifact_id"]
        if self.translation is None or artifact in self.translation.names:
            return (self.translation.names[artifact] if self.translation else row["name"]), ""
        return (self.labels[artifact], FROM_WIKIDATA) if artifact in self.labels else (row["name"], IN_ENGLISH)

    def place(self, iso: str, template: str) -> tuple[Country | None, str]:
        """Find the forms of a country that a template asks for, and mark those that no speaker verified.

        CLDR has names alone, which stand in for a translation that has no countries at all.
        """
        known = country(iso)
        if self.translation is None:
            return known, ""
        if self.translation.countries:
            forms = self.translation.countries.get(iso)
            changed = forms and {"name": forms.name, "article": "", "adjective": forms.adjective}
            return known.model_copy(update=changed) if changed else None, ""
        name = None if "{adjective}" in template else cldr_names(self.language).get(iso)
        said = known.model_copy(update={"name": name, "article": ""}) if name else None
        return said, FROM_CLDR if "{country}" in template else ""


FROM_WIKIDATA, IN_ENGLISH, FROM_CLDR = "name from Wikidata", "name in English", "country from CLDR"


@cache
def cldr_names(language: str) -> Mapping[str, str]:
    """Name countries in a language as CLDR does; none where it has no such language."""
    try:
        return dict(Locale.parse(language, sep="-").territories)
    except (UnknownLocaleError, ValueError):
        return {}


def labels_in(items: Path, artifacts: pl.Series, language: str) -> Mapping[str, str]:
    """Read the labels of artifacts from the items of a graph: in `zh`, else in `zh-hans`; in `pt-br`, else in `pt`."""
    frame = pl.scan_parquet(items)
    if "labels" not in frame.collect_schema().names():
        return {}
    known = frame.filter(pl.col("qid").is_in(artifacts.unique().implode())).select("qid", "labels").collect()
    wanted = language.lower()
    found: dict[str, tuple[tuple[bool, bool, str], str]] = {}
    for qid, stated in known.explode("labels").drop_nulls().iter_rows():
        code, _, label = stated.partition(":")
        is_variant = code.startswith(f"{wanted}-")
        if is_variant or code in {wanted, wanted.partition("-")[0]}:
            rank = (code != wanted, not is_variant, code)
            found[qid] = min(found.get(qid, (rank, label)), (rank, label))
    return {qid: label for qid, (_, label) in found.items()}


def artifact_text(row: Mapping[str, Any], wording: Wording) -> str | None:
    """Write what names an artifact; None without a template or a country's form."""
    found = wording.artifact.find(row["concept"], row["subconcept"])
    form = None if found is None else wording.place(row["country"], found[1])[0]
    if found is None or form is None:
        return None
    return worded(found[1], name=wording.name_of(row)[0], country=form, concept=row["concept"])


def artifact_prompt(row: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Write the prompt that names an artifact; without a template or a country's form, the row of `drops`."""
    chosen = wording.artifact
    found = chosen.find(row["concept"], row["subconcept"])
    if found is None:
        what = wording.set_name if wording.translation is None else wording.language
        return without_words(row["artifact_id"], row["concept"], f"no {what} template", row["subconcept"])
    key, template = found
    form, form_mark = wording.place(row["country"], template)
    if form is None:
        return without_form(row["artifact_id"], row["concept"], row["country"], wording)
    name, name_mark = wording.name_of(row)
    return prompt_row(
        worded(template, name=name, country=form, concept=row["concept"]), wording, marks=(name_mark, form_mark),
        kind="cube", template_id=f"{wording.set_name}/{key}", negative=chosen.negative, concept=row["concept"],
        country=row["country"], artifact_id=row["artifact_id"],
    )  # fmt: skip


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
        found = open_templates(wording.within_country, concept)
        if not found:
            yield without_words(f"{concept} {iso}", concept, f"no {wording.language} template", "within-country")
        for number, template in enumerate(found):
            form, mark = wording.place(iso, template)
            if form is None:
                yield without_form(f"{concept} {iso}", concept, iso, wording)
                continue
            yield prompt_row(
                worded(template, country=form, concept=concept), wording, kind="within-country",
                template_id=f"within-country/{concept}/{number}", concept=concept, country=iso, marks=(mark,),
            )  # fmt: skip


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
    marks: Sequence[str] = (),
) -> dict[str, Any]:
    """Make a prompt row; its id depends on what it is about, not on where it stands."""
    pair = [BENCHMARK, kind, template_id, concept, country, artifact_id]
    about = [*pair, text] if wording.translation is None else [*pair, text, wording.language]
    return {
        "prompt_id": f"{kind}-{concept}-{digest(about)[:10]}", "text": text, "negative_text": negative,
        "benchmark": BENCHMARK, "kind": kind, "concept": concept, "country": country, "group": None,
        "artifact_id": artifact_id, "language": wording.language, "template_id": template_id,
        "pair_id": f"pair-{digest(pair)[:12]}",
        "marks": [mark for mark in marks if mark],
    }  # fmt: skip


def without_words(key: str, concept: str, reason: str, detail: str | None) -> dict[str, Any]:
    """Say that something has no prompt."""
    return {"key": key, "concept": concept, "stage": "prompts", "reason": reason, "detail": detail}


def without_form(key: str, concept: str, iso: str, wording: Wording) -> dict[str, Any]:
    """Say that a translation does not say what a country is called."""
    return without_words(key, concept, f"no {wording.language} form of the country", iso)


TEMPLATES = "builders/wording/cube_prompts.yaml"
