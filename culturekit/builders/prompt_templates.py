"""The prompt templates, shipped or translated by people: read, checked, and filled in."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from babel import Locale, UnknownLocaleError
from pydantic import Field

from culturekit.core.choices import TemplateSetName
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.schemas import PROMPTS
from culturekit.core.spreadsheet_cells import json_text
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
        problems += [Problem(hint, str(path), source.position((key,)).line, key) for key in idle]
    shipped = templates()
    same: Mapping[TemplatePart, Any] = {
        "artifact": ({}, {key: (text,) for key, text in translation.artifact.items()}),
        "underspecified": (shipped.underspecified, translation.underspecified),
        "within_country": (shipped.within_country, translation.within_country),
    }
    for part, (known, translated) in same.items():
        for key, texts in translated.items():
            line = source.position((part, key)).line
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
        known, added, translated = templates().artifact[self.set_name], self.added.artifact, self.translation
        if translated is not None:
            known = TemplateSet(templates=translated.artifact, negative=translated.negative)
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

    def names_of(self, space: pl.DataFrame) -> pl.DataFrame:
        """Call artifacts by their names in the language, else in English; and mark what no speaker verified."""
        if self.translation is None:
            return space.select("name", name_mark=pl.lit(""))
        verified, known = (
            pl.col("artifact_id").replace_strict(names, default=None, return_dtype=pl.String)
            for names in (self.translation.names, self.labels)
        )
        mark = pl.when(verified.is_not_null()).then(pl.lit("")).when(known.is_null()).then(pl.lit(IN_ENGLISH))
        return space.select(
            pl.coalesce(verified, known, "name").alias("name"), name_mark=mark.otherwise(pl.lit(FROM_WIKIDATA))
        )

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
        phrase = known.model_copy(update={"name": name, "article": ""}) if name else None
        return phrase, FROM_CLDR if "{country}" in template else ""


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


# Prompts before they are rows of the table: words without a `text` have a `reason`, a `detail` and the `key` of a drop.

_GAP = "\0"  # stands for the name of an artifact, which has no control characters
_TEXTS = ("key", "concept", "country", "artifact_id", "text", "template_id", "reason", "detail")
_WORDS: Mapping[str, pl.DataType] = {**dict.fromkeys(_TEXTS, pl.String()), "marks": pl.List(pl.String())}


def artifact_words(space: pl.DataFrame, wording: Wording) -> pl.DataFrame:
    """Write what names each artifact, row by row."""
    groups = space.select("concept", "subconcept", "country").unique()
    found = [_frame_of(concept, subconcept, iso, wording) for concept, subconcept, iso in groups.iter_rows()]
    schema = dict.fromkeys((*groups.columns, "template_id", "form_mark", "reason", "detail"), pl.String())
    table = pl.DataFrame(found, {**schema, "pieces": pl.List(pl.String())})
    rows = space.select("artifact_id", *groups.columns, *wording.names_of(space))
    rows = rows.join(table, on=groups.columns, how="left", nulls_equal=True, maintain_order="left")
    marks = pl.concat_list("name_mark", "form_mark")
    return rows.with_columns(
        key="artifact_id", text=pl.col("pieces").list.join(pl.col("name")),
        marks=marks.list.eval(pl.element().filter(pl.element() != "")),
    ).select(*_WORDS)  # fmt: skip


def _frame_of(concept: str, subconcept: str | None, iso: str, wording: Wording) -> dict[str, Any]:
    """Find the words around the name of an artifact, in pieces; without a template or a country's form, say why."""
    group = {"concept": concept, "subconcept": subconcept, "country": iso}
    found = wording.artifact.find(concept, subconcept)
    if found is None:
        what = wording.set_name if wording.translation is None else wording.language
        return {**group, "reason": f"no {what} template", "detail": subconcept}
    key, template = found
    form, mark = wording.place(iso, template)
    if form is None:
        return {**group, "reason": _no_form(wording), "detail": iso}
    pieces = worded(template, name=_GAP, country=form, concept=concept).split(_GAP)
    return {**group, "template_id": f"{wording.set_name}/{key}", "form_mark": mark, "pieces": pieces}


def _no_form(wording: Wording) -> str:
    """Say that a translation does not say what a country is called."""
    return f"no {wording.language} form of the country"


def underspecified_words(space: pl.DataFrame, wording: Wording) -> pl.DataFrame:
    """Write what names neither an artifact nor a country, for the concepts of the space."""
    rows: list[dict[str, Any]] = []
    for concept in space["concept"].unique().sort():
        found = wording.leaving_open(concept)
        if not found:
            reason = f"no {wording.language} template"
            rows.append({"key": concept, "concept": concept, "reason": reason, "detail": "underspecified"})
        for number, template in enumerate(found):
            text = worded(template, concept=concept)
            rows.append({"concept": concept, "text": text, "template_id": f"underspecified/{concept}/{number}"})
    return pl.DataFrame(rows, _WORDS)


def within_country_words(space: pl.DataFrame, wording: Wording) -> pl.DataFrame:
    """Write what names a country and leaves the artifact open."""
    rows: list[dict[str, Any]] = []
    for concept, iso in space.select("concept", "country").unique().sort("concept", "country").iter_rows():
        about = {"key": f"{concept} {iso}", "concept": concept, "country": iso}
        found = open_templates(wording.within_country, concept)
        if not found:
            rows.append({**about, "reason": f"no {wording.language} template", "detail": "within-country"})
        for number, template in enumerate(found):
            form, mark = wording.place(iso, template)
            if form is None:
                rows.append({**about, "reason": _no_form(wording), "detail": iso})
                continue
            text, template_id = worded(template, country=form, concept=concept), f"within-country/{concept}/{number}"
            rows.append({**about, "text": text, "template_id": template_id, "marks": [mark] if mark else []})
    return pl.DataFrame(rows, _WORDS)


def prompt_rows(words: pl.DataFrame, wording: Wording, *, kind: str) -> pl.DataFrame:
    """Make rows of prompts, with `pair_id` and `marks`; an id depends on what a prompt is about, not on its row."""
    negative = wording.artifact.negative if kind == "cube" else None
    rows = words.drop_nulls("text").with_columns(
        pl.col("marks").fill_null([]), negative_text=pl.lit(negative, pl.String), benchmark=pl.lit(BENCHMARK),
        kind=pl.lit(kind), group=pl.lit(None, pl.String), language=pl.lit(wording.language),
    )  # fmt: skip
    pair = ("benchmark", "kind", "template_id", "concept", "country", "artifact_id")
    about = (*pair, "text") if wording.translation is None else (*pair, "text", "language")
    digests = {}
    for name, columns in (("prompt_id", about), ("pair_id", pair)):  # each row as a JSON list, as `digest` does
        texts = rows.select(pl.format("[{}]", pl.concat_str(map(json_text, columns), separator=","))).to_series()
        digests[name] = pl.Series([digest_bytes(text.encode()) for text in texts], dtype=pl.String)
    return rows.with_columns(**digests).with_columns(
        prompt_id=pl.format("{}-{}-{}", "kind", "concept", pl.col("prompt_id").str.head(10)),
        pair_id=pl.format("pair-{}", pl.col("pair_id").str.head(12)),
    ).select(*PROMPTS.schema, "pair_id", "marks")  # fmt: skip


TEMPLATES = "builders/wording/cube_prompts.yaml"
