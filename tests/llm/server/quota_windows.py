"""The server's own quotas: requests and tokens in a period, over a sliding window or a token bucket."""

from collections import deque
from dataclasses import dataclass, field

from tests.llm.server.script import Quota

__all__ = ["Allowance", "QuotaWindow"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """Whether a request is let in, how long to wait otherwise, and what is left."""

    granted: bool
    wait: float
    kind: str
    requests_left: float | None
    tokens_left: float | None


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
        left = None if quota.requests is None else max(0.0, quota.requests - len(self.entries))
        tokens_left = None if quota.tokens is None else max(0.0, quota.tokens - self.tokens_in)
        return Allowance(not kind, wait, kind, left, tokens_left)

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
        left = None if quota.requests is None else requests
        return Allowance(not kind, wait, kind, left, None if quota.tokens is None else held)
