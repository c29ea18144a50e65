"""Which rule of a script a request falls under."""

import re
from collections import Counter
from dataclasses import dataclass

from tests.llm.server.fault_kinds import FAULT_KINDS, LINE_FAULTS, PLAIN_FAULTS
from tests.llm.server.made_replies import fraction_of
from tests.llm.server.script import Fault, Rule, Script, When

__all__ = ["Circumstances", "Schedule"]

_STRIKES = {"online": frozenset(FAULT_KINDS), "batch": LINE_FAULTS}
"""Which faults can strike where; a rule is never used up by a request that its fault cannot touch."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that a condition can look at. `attempt` and `number` count from 1; `asks` is whether a model is asked."""

    operation: str
    provider: str
    asks: bool = True
    mode: str = "online"
    row: str = ""
    attempt: int = 1
    number: int = 1
    at: float = 0.0
    model: str = ""
    body: bytes = b""


class Schedule:
    """The rules of a script and how often each was used."""

    def __init__(self, script: Script) -> None:
        """Start with nothing used."""
        self._rules = script.rules
        self._used: Counter[int] = Counter()
        self._patterns = {rule.when.row_matches: re.compile(rule.when.row_matches) for rule in script.rules}

    def fault(self, seen: Circumstances) -> Fault | None:
        """Give the fault of the first rule that fits and is not used up; None where nothing is to go wrong."""
        for place, rule in enumerate(self._rules):
            if self._fits(place, rule, seen):
                self._used[place] += 1
                return None if rule.then.kind == "none" and rule.then.delay == 0 else rule.then
        return None

    def _fits(self, place: int, rule: Rule, seen: Circumstances) -> bool:
        if rule.times is not None and self._used[place] >= rule.times:
            return False
        if rule.then.kind not in (_STRIKES[seen.mode] if seen.asks else PLAIN_FAULTS):
            return False
        return self._asked_for(rule.when, seen) and self._drawn(rule.when, seen)

    @staticmethod
    def _asked_for(when: When, seen: Circumstances) -> bool:
        return (
            (not when.operations or seen.operation in when.operations)
            and (not when.providers or seen.provider in when.providers)
            and (not when.modes or seen.mode in when.modes)
            and (not when.models or seen.model in when.models)
            and when.since <= seen.at
            and (when.until is None or seen.at < when.until)
            and _between(seen.attempt, when.attempts)
            and _between(seen.number, when.requests)
            and seen.number % when.every == 0
        )

    def _drawn(self, when: When, seen: Circumstances) -> bool:
        return (
            (not when.rows or seen.row in when.rows)
            and (not when.row_matches or self._patterns[when.row_matches].search(seen.row) is not None)
            and (when.share >= 1.0 or fraction_of("share", when.salt, seen.row) < when.share)
            and (not when.contains or when.contains.encode() in seen.body)
        )


def _between(count: int, bounds: tuple[int, int | None]) -> bool:
    first, last = bounds
    return first <= count and (last is None or count <= last)
