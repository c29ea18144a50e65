"""Which rule of a script a request falls under, and what a quota lets in."""

import re
from collections import Counter, deque
from dataclasses import dataclass, field

from tests.llm.server.made_replies import fraction_of
from tests.llm.server.script import FAULT_KINDS, LINE_FAULTS, PLAIN_FAULTS, Fault, Quota, Rule, Script, When
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
        and (not when.models or seen.model in when.models)
        and when.since <= seen.at
        and (when.until is None or seen.at < when.until)
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


@dataclass(frozen=True, slots=True)
class Allowance:
    """Whether a request is let in, and how long to wait otherwise."""

    granted: bool
    wait: float
    kind: str


@dataclass(slots=True)
class QuotaWindow:
    """What one model was asked for lately. Requests that are turned away use nothing up."""

    quota: Quota
    entries: deque[tuple[float, int]] = field(default_factory=deque)
    tokens_in: int = 0
    bucket: tuple[float, float, float] | None = None

    def ask(self, now: float, tokens: int) -> Allowance:
        """Let a request of so many tokens in, or say how long it must wait."""
        return self._ask_bucket(now, tokens) if self.quota.kind == "bucket" else self._ask_window(now, tokens)

    def _ask_window(self, now: float, tokens: int) -> Allowance:
        quota = self.quota
        while self.entries and self.entries[0][0] <= now - quota.period:
            self.tokens_in -= self.entries.popleft()[1]
        wait, kind = 0.0, ""
        if quota.requests is not None and len(self.entries) + 1 > quota.requests:
            first = self.entries[len(self.entries) - int(quota.requests)][0] if self.entries else now
            wait, kind = first + quota.period - now, "requests"
        if quota.tokens is not None and self.tokens_in + tokens > quota.tokens:
            excess, freed, until = self.tokens_in + tokens - quota.tokens, 0, now
            for at, held in self.entries:
                freed, until = freed + held, at
                if freed >= excess:
                    break
            wait, kind = max((wait, kind), (until + quota.period - now, "tokens"))
        if not kind:
            self.entries.append((now, tokens))
            self.tokens_in += tokens
        return Allowance(not kind, wait, kind)

    def _ask_bucket(self, now: float, tokens: int) -> Allowance:
        quota = self.quota
        full = ((quota.requests or 0) * quota.burst, (quota.tokens or 0) * quota.burst)
        requests, held, last = self.bucket or (*full, now)
        requests = min(full[0], requests + (quota.requests or 0) * (now - last) / quota.period)
        held = min(full[1], held + (quota.tokens or 0) * (now - last) / quota.period)
        wait, kind = 0.0, ""
        if quota.requests is not None and requests < 1:
            wait, kind = (1 - requests) * quota.period / quota.requests, "requests"
        if quota.tokens is not None and held < tokens:
            wait, kind = max((wait, kind), ((tokens - held) * quota.period / quota.tokens, "tokens"))
        if not kind:
            requests, held = requests - 1, held - tokens
        self.bucket = (requests, held, now)
        return Allowance(not kind, wait, kind)
