"""What a model said of an image, as rows of `matches`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.builders.completing.known_artifacts import KnownArtifact, KnownArtifacts, Reconciling
from culturekit.builders.country_names import country_code
from culturekit.builders.folded_names import folded
from culturekit.builders.judging.geo_tag_question import GeoTag, NamedArtifact
from culturekit.kg.countries import countries

__all__ = ["METHOD", "Shown", "reconciled", "tag_rows"]

METHOD = "vlm"
OF_THE_IMAGE = ("image_id", "model", "prompt_id", "concept", "repeat", "slot")


@dataclass(frozen=True, slots=True)
class Shown:
    """An artifact that a model named, and what it was reconciled with."""

    artifact_id: str | None
    name: str
    country: str | None
    countries: tuple[str, ...]
    continent: str | None
    sure: float
    how: Reconciling

    @property
    def identity(self) -> tuple[str | None, ...]:
        """Tell one artifact from another."""
        return (self.artifact_id,) if self.artifact_id else (None, folded(self.name), self.country)


def reconciled(image: Mapping[str, Any], tag: GeoTag, space: KnownArtifacts | None) -> list[Shown]:
    """Reconcile what a model named, the surest first, each artifact once; nothing where it says that none is shown."""
    if tag.shown == "no":
        return []
    shown: dict[tuple[str | None, ...], Shown] = {}
    for named in sorted(tag.artifacts, key=lambda named: -named.sure):
        one = shown_of(image, named, space)
        shown.setdefault(one.identity, one)
    return list(shown.values())


def shown_of(image: Mapping[str, Any], named: NamedArtifact, space: KnownArtifacts | None) -> Shown:
    """Reconcile one name."""
    code = country_code(named.country)
    found: KnownArtifact | None = None
    how: Reconciling = "no space given"
    if space is not None:
        found, how = space.find(named.name, country=code, concept=image.get("concept"))
    if found is not None:
        place, continent = found.country(image.get("country"), code)
        return Shown(found.artifact_id, found.name, place, found.countries, continent, named.sure / 100, how)
    known = countries().get(code or "")
    continent_said = None if known is None else known.continent
    return Shown(None, named.name, code, (code,) if code else (), continent_said, named.sure / 100, how)


def tag_rows(image: Mapping[str, Any], shown: Sequence[Shown], *, abstained: bool) -> list[dict[str, Any]]:
    """Write the rows of an image, one where nothing was named.

    The score is how sure the model says it is, from 0 to 1. `margin` is its lead over the surest other artifact named,
    `country_margin` over the surest one named that is at home in none of the match's countries; what is not named
    counts as 0.
    """
    own = {name: image.get(name) for name in OF_THE_IMAGE}
    blank: dict[str, Any] = {"artifact_id": None, "artifact": None, "country": None, "countries": [], "continent": None}
    if not shown:
        none = {"rank": 1, "score": 0.0, "margin": 0.0, "country_margin": 0.0, "abstained": True, "method": METHOD}
        return [own | blank | none]
    return [
        own
        | {
            "rank": rank,
            "artifact_id": one.artifact_id,
            "artifact": one.name,
            "country": one.country,
            "countries": list(one.countries),
            "continent": one.continent,
            "score": one.sure,
            "margin": one.sure - max((other.sure for other in shown if other is not one), default=0.0),
            "country_margin": one.sure - max((other.sure for other in shown if elsewhere(other, one)), default=0.0),
            "abstained": abstained,
            "method": METHOD,
        }
        for rank, one in enumerate(shown, start=1)
    ]


def elsewhere(other: Shown, one: Shown) -> bool:
    """Tell whether an artifact is known to be at home in none of the countries of another."""
    return bool(other.countries) and not set(other.countries) & set(one.countries)
