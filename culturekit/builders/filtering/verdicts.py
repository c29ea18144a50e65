"""What became of a candidate, and why: by rules alone, or by what a judge answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from culturekit.builders.filtering.name_rules import name_problem
from culturekit.builders.space.scope import countries_in_scope
from culturekit.kg.concepts import Concept
from culturekit.llm.outcomes import Answered

__all__ = ["FilterReply", "Verdict", "VerdictWord", "rule_verdict", "verdict_of"]

VerdictWord: TypeAlias = Literal["keep", "remove", "review"]


class FilterReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the judge answers about one candidate."""

    id: str
    verdict: VerdictWord


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a candidate; `outcome` says how asking the judge ended, and is empty where a rule decided."""

    verdict: VerdictWord
    reason: str
    detail: str = ""
    outcome: str = ""

    @property
    def set_aside(self) -> bool:
        """Whether no answer came of it, so that a person has to look."""
        return self.outcome not in {"", "ok", "repaired"}


def rule_verdict(row: Mapping[str, Any], concept: Concept | None) -> Verdict | None:
    """Remove what needs no judge; None leaves the candidate to the judge."""
    if concept is None:
        return Verdict("remove", "concept not in the root configs given", row["concept"])
    problem = name_problem(row["label"], languages=concept.languages)
    if problem is not None:
        return Verdict("remove", *problem)
    if concept.countries != "all" and not countries_in_scope(row["country_qids"], concept):
        return Verdict("remove", "country out of scope")
    return None


def verdict_of(answered: Answered, *, model: str) -> Verdict:
    """Follow the judge's answer; where none came, the candidate is left for people to review."""
    if isinstance(answered.value, FilterReply):
        return Verdict(answered.value.verdict, f"judge {model}", outcome=answered.outcome)
    return Verdict("review", f"judge {model}: {answered.outcome}", outcome=answered.outcome)
