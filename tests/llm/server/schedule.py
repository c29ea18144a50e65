"""Which rule of a script a request falls under."""

import re
from collections import Counter, deque
from dataclasses import dataclass, field

from tests.llm.server.made_replies import fraction_of
from tests.llm.server.script import FAULT_KINDS, LINE_FAULTS, PLAIN_FAULTS, Fault, Quota, Rule, Script, When

# Which faults can strike where; a rule is never used up by a request that its fault cannot touch.
_STRIKES = {"online": frozenset(FAULT_KINDS), "batch": LINE_FAULTS}


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
            place = len(self.entries) - int(quota.requests)
            wait, kind = self.entries[place][0] + quota.period - now if self.entries else quota.period, "requests"
        if quota.tokens is not None and self.tokens_in + tokens > quota.tokens:
            token_wait = self._window_wait(now, self.tokens_in + tokens - quota.tokens)
            wait, kind = max((wait, kind), (token_wait, "tokens"))
        if not kind:
            self.entries.append((now, tokens))
            self.tokens_in += tokens
        return Allowance(not kind, wait, kind)

    def _window_wait(self, now: float, excess: float) -> float:
        freed = 0
        for at, tokens in self.entries:
            freed += tokens
            if freed >= excess:
                return at + self.quota.period - now
        return self.quota.period

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
