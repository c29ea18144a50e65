"""Templates that are not shipped: in another language, or for other concepts, verified by a person who speaks it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from culturekit.builders.prompt_templates import TemplateSet, templates
from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.concept_words import ENGLISH, UNVERIFIED, Language, TemplatePart, Verified, template_problems
from culturekit.records.choices import TemplateSetName
from culturekit.storage.yaml_model import StrictModel, validate
from culturekit.storage.yaml_source import read_yaml

__all__ = ["Translation", "load_translations"]


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
    idle = sorted(set(found) - set(languages))
    if idle:
        raise UsageError(
            f"a translation to {', '.join(idle)}, in which no prompt is asked for",
            found=f"prompts in {', '.join(languages)}",
            hint="Name the language with --language, or `languages` in a recipe.",
        )
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
        problems.append(Problem(UNVERIFIED, str(path), 0, "verified"))
    if translation.language == ENGLISH:
        idle = [key for key in ("countries", "names", "negative") if getattr(translation, key)]
        said = "English forms of countries and names of artifacts come with the space; write templates alone"
        problems += [Problem(said, str(path), source.place((key,)).line, key) for key in idle]
    shipped = templates()
    same: Mapping[TemplatePart, Any] = {
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
