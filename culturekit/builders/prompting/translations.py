"""Templates in another language, written and verified by a person who speaks it."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.prompting.prompt_templates import TemplateSet, templates
from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.records.choices import TemplateSetName
from culturekit.storage.yaml_model import StrictModel, validate
from culturekit.storage.yaml_source import read_yaml

__all__ = ["ENGLISH", "Translation", "load_translations"]

ENGLISH = "en"
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$"
FIELDS = {
    "artifact": {"name", "country", "adjective"},
    "underspecified": {"concept"},
    "within_country": {"country", "adjective", "concept"},
}


class Verified(StrictModel):
    """Who checked a translation, and when."""

    by: Annotated[str, Field(min_length=1)]
    on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Place(StrictModel):
    """The forms of a country: as the templates need it after their own words, and as an adjective."""

    name: Annotated[str, Field(min_length=1)]
    adjective: Annotated[str, Field(min_length=1)]


class Translation(StrictModel):
    """The templates of one language; `names` are those of artifacts, by id, where they have one in it."""

    language: Annotated[str, Field(pattern=LANGUAGE)]
    verified: Verified | None = None
    templates: TemplateSetName = "released"
    artifact: Mapping[str, str] = {}
    underspecified: Mapping[str, tuple[str, ...]] = {}
    within_country: Mapping[str, tuple[str, ...]] = {}
    negative: str | None = None
    countries: Mapping[str, Place] = {}
    names: Mapping[str, str] = {}

    def artifact_set(self) -> TemplateSet:
        """Give the templates that name an artifact, as the shipped ones are given."""
        return TemplateSet(templates=self.artifact, negative=self.negative)


def load_translations(
    paths: Sequence[Path], languages: Sequence[str], set_name: TemplateSetName
) -> Mapping[str, Translation]:
    """Read the translations of the wanted languages; one that nobody verified is refused."""
    found: dict[str, Translation] = {}
    for path in paths:
        translation = load_translation(path)
        if translation.language in found:
            raise UsageError(f"a second translation to {translation.language}", where=str(path))
        if translation.templates != set_name:
            raise UsageError(
                "a translation of other templates",
                where=str(path),
                expected=f"templates: {set_name}",
                found=translation.templates,
            )
        found[translation.language] = translation
    missing = [language for language in languages if language != ENGLISH and language not in found]
    if missing:
        raise UsageError(
            f"there are no templates in {', '.join(missing)}",
            expected="a translation that a speaker has verified",
            found=" and ".join(sorted(found)) or "no translation",
            hint="Give its YAML file with --translations.",
        )
    return found


def load_translation(path: Path) -> Translation:
    """Read one translation, and say everything that is wrong with it."""
    source = read_yaml(path)
    translation = validate(source, Translation)
    problems = []
    if translation.verified is None:
        message = "nobody has verified this translation; a speaker adds `verified: {by: NAME, on: YEAR-MONTH-DAY}`"
        problems.append(Problem(message, str(path), 0, "verified"))
    if translation.language == ENGLISH:
        problems.append(Problem("English comes with culturekit", str(path), source.place(("language",)).line))
    shipped = templates()
    same = {
        "artifact": (shipped.artifact[translation.templates].templates, singles(translation.artifact)),
        "underspecified": (shipped.underspecified, translation.underspecified),
        "within_country": (shipped.within_country, translation.within_country),
    }
    for part, (known, translated) in same.items():
        for key, texts in translated.items():
            line = source.place((part, key)).line
            about = f"{part}.{key}"
            problems += [Problem(said, str(path), line, about) for said in template_problems(part, texts)]
            if key in known and part != "artifact" and len(known[key]) != len(texts):
                said = f"{len(texts)} templates for the {len(known[key])} of the original: they go in pairs"
                problems.append(Problem(said, str(path), line, about))
    if problems:
        raise ConfigError(problems)
    return translation


def singles(texts: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Give each template as a list of one."""
    return {key: (text,) for key, text in texts.items()}


def template_problems(part: str, texts: Iterable[str]) -> list[str]:
    """Say what stands in a template that cannot be filled in, or is missing from it."""
    problems = []
    for text in texts:
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            problems.append(f"{text!r} cannot be filled in: {error}")
            continue
        named = {name for _, name, _, _ in parsed if name is not None}
        odd = sorted(named - FIELDS[part])
        if odd or any(spec or conversion for _, _, spec, conversion in parsed):
            accepted = ", ".join(sorted(FIELDS[part]))
            problems.append(f"{text!r} asks for {', '.join(odd) or 'a format'}; accepted: {accepted}")
        if part == "artifact" and "name" not in named:
            problems.append(f"{text!r} does not name the artifact")
        if part == "within_country" and not named & {"country", "adjective"}:
            problems.append(f"{text!r} does not name the country")
        if not re.search(r"\w", text):
            problems.append("an empty template")
    return problems
