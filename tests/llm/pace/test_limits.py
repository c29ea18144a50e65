"""The limiter against quotas of several kinds, enforced by the test server's own arithmetic, in simulated time."""

import random

import pytest

from culturekit.llm.client import Failure, Quota, Usage
from culturekit.llm.dispatch import Limiter
from tests.llm.fake_client import answer_for, questions
from tests.llm.server.quota_windows import QuotaWindow
from tests.llm.server.script import Quota as Enforced
from tests.llm.simulated_wire import SimulatedWire, Turn

MINUTES = 6


def play(stated: Quota, enforced: Enforced, *, hinted: bool = True) -> tuple[list[float], list[float]]:
    """Ask for some minutes; give when requests were let in and when they were refused."""
    chance = random.Random(1)
    window = QuotaWindow(enforced)
    granted: list[float] = []
    refused: list[float] = []

    def provider(identifier: str, _: int, now: float) -> Turn:
        allowed = window.ask(now, 60)
        (granted if allowed.granted else refused).append(now)
        if allowed.granted:
            return Turn(chance.uniform(0.25, 0.75), answer_for(identifier))
        return Turn(0.02, Failure("busy", "", status=429, wait=allowed.wait if hinted else None))

    wire = SimulatedWire(provider, concurrency=64, quota=stated)
    wire.play(questions(700 * MINUTES), until=1000.0 + 60.0 * MINUTES)
    return granted, refused


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["window", "bucket"])
@pytest.mark.parametrize("burst", [1.0, 0.02])
def test_a_stated_quota_is_used_and_hardly_ever_refused(kind: str, burst: float) -> None:
    granted, refused = play(Quota(600.0), Enforced(600.0, kind=kind, burst=burst))  # type: ignore[arg-type]
    assert len(granted) >= 0.9 * 600 * MINUTES
    assert len(refused) <= 0.02 * (len(granted) + len(refused))


def test_a_stated_quota_of_tokens_is_used_and_hardly_ever_refused() -> None:
    granted, refused = play(Quota(tokens=18_000.0), Enforced(tokens=18_000.0))
    assert 60 * len(granted) >= 0.9 * 18_000 * MINUTES
    assert len(refused) <= 0.02 * (len(granted) + len(refused))


@pytest.mark.parametrize("hinted", [True, False])
def test_a_quota_nobody_stated_is_learnt(hinted: bool) -> None:
    granted, refused = play(Quota(), Enforced(600.0, kind="bucket", burst=0.1), hinted=hinted)
    learnt = 1000.0 + 60.0 * (MINUTES - 3)
    later, refused_later = (sum(at >= learnt for at in times) for times in (granted, refused))
    assert later >= 0.9 * 600 * 3
    assert refused_later <= 0.02 * (later + refused_later)


def test_refusals_that_have_nothing_to_do_with_the_tempo_do_not_slow_it_down() -> None:
    chance = random.Random(2)

    def provider(identifier: str, _: int, now: float) -> Turn:
        if chance.random() < 0.05:
            return Turn(0.02, Failure("busy", "", status=429, wait=0.05))
        return Turn(0.05, answer_for(identifier))

    wire = SimulatedWire(provider, concurrency=16)
    wire.play(questions(2000))
    assert wire.now < 1000.0 + 120.0


def test_the_beginning_is_slow_and_overloads_are_answered_by_fewer_at_once() -> None:
    limiter = Limiter(Quota(), 64)
    first = limiter.at_once()
    assert first <= 4
    limiter.failed(Failure("timeout", ""), 10.0, sent=9.0)
    assert limiter.at_once() < first
    before = limiter.window
    limiter.failed(Failure("timeout", ""), 10.5, sent=9.5)
    assert limiter.window == before, "sent before the decrease: the same event"


def test_a_hint_stops_everything_to_the_millisecond() -> None:
    limiter = Limiter(Quota(), 4)
    limiter.failed(Failure("busy", "", status=429, wait=1.5), 100.0, sent=99.0)
    assert 101.5 <= limiter.due(100.0) <= 101.51


def test_no_count_of_tokens_holds_the_pace_up_for_longer_than_a_minute() -> None:
    limiter = Limiter(Quota(tokens=600.0), 4)
    expected = limiter.sent(100, 20, 100.0)
    assert limiter.due(100.0) <= 160.0
    limiter.succeeded(expected, 100, Usage(10**15, 10), 101.0)
    assert limiter.due(101.0) <= 161.0


@pytest.mark.parametrize("wait", [86_400.0, 1e9])
def test_a_hint_beyond_patience_ends_the_run_whatever_it_came_with(wait: float) -> None:
    wire = SimulatedWire(lambda *_: Turn(0.1, Failure("blocked", "", status=451, wait=wait)), concurrency=2)
    wire.play(questions(20))
    assert "asks to wait" in str(wire.dispatch.ending)
    assert wire.now < 1002.0
