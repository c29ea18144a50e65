"""A row of the cultural space made again from any mixture of two runs: candidate, verdict, release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from culturekit.builders.space.space_diff import KEY
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import countries
from culturekit.trail.space.behind import Row, SpaceBehind
from culturekit.trail.space.candidates import MixedCandidates
from culturekit.trail.space.factors import INCLUDE
from culturekit.trail.space.mixtures import Mixture
from culturekit.trail.space.verdicts import UNKNOWN, MixedVerdicts

__all__ = ["ABSENT", "Change", "Replay", "seen"]

ABSENT: Final = "no such row"


@dataclass(frozen=True, slots=True)
class Change:
    """A change between two spaces: the keys of the row on both sides (concept, country, artifact), and what differs."""

    keys: tuple[tuple[str, str, str], ...]
    part: str
    change: str
    before: str | None
    after: str | None

    @property
    def artifact_id(self) -> str:
        """The artifact, as it was."""
        return self.keys[0][2]


class Replay:
    """Makes rows again; what a mixture gives for an artifact and concept is worked out once."""

    def __init__(self, sides: Sequence[SpaceBehind], candidates: MixedCandidates, verdicts: MixedVerdicts) -> None:
        """Take what rows are made from."""
        self.sides = sides
        self.candidates = candidates
        self.verdicts = verdicts
        self.made: dict[tuple[str, str, Mixture], Mapping[str, Row] | str] = {}

    def outcome(self, change: Change, mixture: Mixture) -> tuple[object, ...] | str:
        """Say what a mixture gives for a change: whether its rows are there, or the values in question."""
        found = []
        for concept, country, artifact_id in change.keys:
            rows = self.rows(artifact_id, concept, mixture)
            if isinstance(rows, str):
                return UNKNOWN
            found.append(seen(rows.get(country), change.part))
        return tuple(found)

    def rows(self, artifact_id: str, concept: str, mixture: Mixture) -> Mapping[str, Row] | str:
        """Give the rows of an artifact by country, or unknown."""
        key = (artifact_id, concept, mixture)
        if key not in self.made:
            self.made[key] = self.make(artifact_id, concept, mixture)
        return self.made[key]

    def make(self, artifact_id: str, concept: str, mixture: Mixture) -> Mapping[str, Row] | str:
        """Go from the candidate to its rows."""
        candidate = self.candidates.candidate_of(artifact_id, concept, mixture)
        config = self.candidates.configs.config_of("release", concept, mixture)
        if candidate is None or config is None:
            return {}
        verdict = self.verdicts.verdict_of(candidate, concept, mixture)
        if verdict == UNKNOWN:
            return UNKNOWN
        takes_review = self.sides[mixture.side_of_key(INCLUDE)].takes_review
        if verdict == "remove" or (verdict == "review" and not takes_review):
            return {}
        return released(candidate, config.concept)


def released(candidate: Row, concept: Concept) -> dict[str, Row]:
    """Give what a release makes of a kept candidate, by country, as far as changes are about it.

    It says the same as the stage in other words: a row that it does not give as the stage gave it is told apart.
    """
    same = {
        "name": candidate["label"],
        "subconcept": concept.subconcept_of(candidate["roots"]),
        "source": "wikidata",
        "path": candidate["path"],
    }
    known = countries()
    return {iso: {**same, "continent": known[iso].continent} for iso in concept.codes_of(candidate["country_qids"])}


def seen(row: Mapping[str, Any] | None, part: str) -> object:
    """Give of a row what a change is about: that it is there, or the value of a column."""
    if row is None:
        return ABSENT
    if part == "artifact" or part in KEY:
        return True
    value = row[part]
    return " ".join(value) if isinstance(value, list) else value
