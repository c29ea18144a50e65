"""Which rule of a script a request falls under."""

import re
from collections import Counter

from tests.llm.server.made_replies import fraction_of
from tests.llm.server.script import FAULT_KINDS, LINE_FAULTS, PLAIN_FAULTS, Fault, Rule, Script, When
from tests.llm.server.statistics import Record

_STRIKES = {"online": frozenset(FAULT_KINDS), "batch": LINE_FAULTS, "": PLAIN_FAULTS}


class Schedule:
    """The rules of a script and how often each was used."""

    def __init__(self, script: Script) -> None:
        """Start with nothing used."""
        self._rules = script.rules
        self._used: Counter[int] = Counter()

    def fault(self, seen: Record, body: bytes, *, mode: str = "online", asks: bool = True) -> Fault | None:
        """Give the fault of the first rule that fits and is not used up; None where nothing is to go wrong.

        A rule is never used up by a request that its fault cannot touch; `asks` is whether a model is asked.
        """
        for at, rule in enumerate(self._rules):
            used_up = rule.times is not None and self._used[at] >= rule.times
            if not used_up and rule.then.kind in _STRIKES[mode if asks else ""] and _fits(rule, seen, body, mode):
                self._used[at] += 1
                return None if rule.then.kind == "none" and rule.then.delay == 0 else rule.then
        return None


def _fits(rule: Rule, seen: Record, body: bytes, mode: str) -> bool:
    when = rule.when
    return (
        (not when.operations or seen.operation in when.operations)
        and (not when.providers or seen.provider in when.providers)
        and (not when.modes or mode in when.modes)
        and _between(max(seen.attempt, 1), when.attempts)
        and _between(seen.number, when.requests)
        and seen.number % when.every == 0
        and _drawn(when, seen.row)
        and (not when.contains or when.contains.encode() in body)
    )


def _drawn(when: When, row: str) -> bool:
    return (
        (not when.rows or row in when.rows)
        and (not when.row_matches or re.search(when.row_matches, row) is not None)
        and (when.share >= 1.0 or fraction_of("share", when.salt, row) < when.share)
    )


def _between(count: int, bounds: tuple[int, int | None]) -> bool:
    first, last = bounds
    return first <= count and (last is None or count <= last)
