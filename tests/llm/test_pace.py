"""Quotas, waits, what is said of them, and two thousand schedules of faults: all played in simulated time."""

import json
import random
import time
from collections.abc import Callable
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.llm.client import Failure, FailureKind, Identity, Quota, Usage
from culturekit.llm.dispatch import FIRST_WAIT, LONGEST_WAIT, DurableHold, Limiter, WaitNotices, retry_wait
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.failures import LONGEST_HINT, wait_of
from culturekit.llm.journal import Journal
from culturekit.llm.rows import OUTCOMES
from tests.effort import examples
from tests.llm.fake_client import Enforced, FakeClient, Provider, SimulatedWire, Turn, Verdict, answer_for, questions

MINUTES = 6
DAY = 86_400.0
YEARS = 2 * 365 * DAY


def play(stated: Quota, enforced: Enforced, *, hinted: bool = True) -> tuple[list[float], list[float]]:
    chance = random.Random(1)
    granted: list[float] = []
    refused: list[float] = []

    def provider(identifier: str, _: int, now: float) -> Turn:
        wait = enforced.wait(now, 60)
        (refused if wait else granted).append(now)
        if not wait:
            return Turn(chance.uniform(0.25, 0.75), answer_for(identifier))
        return Turn(0.02, Failure("busy", "", status=429, wait=wait if hinted else None))

    wire = SimulatedWire(provider, concurrency=64, quota=stated)
    wire.play(questions(700 * MINUTES), until=1000.0 + 60.0 * MINUTES)
    return granted, refused


@pytest.mark.slow
@pytest.mark.parametrize("bucket", [0.0, 1.0, 0.02])
def test_a_stated_quota_is_used_and_hardly_ever_refused(bucket: float) -> None:
    granted, refused = play(Quota(600.0), Enforced(600.0, bucket=bucket))
    assert len(granted) >= 0.9 * 600 * MINUTES
    assert len(refused) <= 0.02 * (len(granted) + len(refused))


def test_a_stated_quota_of_tokens_is_used_and_hardly_ever_refused() -> None:
    granted, refused = play(Quota(tokens=18_000.0), Enforced(tokens=18_000.0))
    assert 60 * len(granted) >= 0.9 * 18_000 * MINUTES
    assert len(refused) <= 0.02 * (len(granted) + len(refused))


@pytest.mark.parametrize("hinted", [True, False])
def test_a_quota_nobody_stated_is_learnt(hinted: bool) -> None:
    granted, refused = play(Quota(), Enforced(600.0, bucket=0.1), hinted=hinted)
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


@pytest.mark.parametrize("wait", [DAY, 1e9])
def test_a_hint_beyond_patience_ends_the_run_whatever_it_came_with(wait: float) -> None:
    kind: FailureKind = "blocked" if wait > DAY else "busy"
    wire = SimulatedWire(lambda *_: Turn(0.1, Failure(kind, "", status=451, wait=wait)), concurrency=2)
    wire.play(questions(20))
    assert "asks to wait" in str(wire.dispatch.ending)
    assert wire.now < 1002.0


@given(st.binary(min_size=32, max_size=32), st.integers(1, 40), st.floats(0.0, 1e5))
def test_waits_double_and_are_only_drawn_out_and_a_hint_is_hardly_passed(key: bytes, tries: int, hint: float) -> None:
    plain = min(FIRST_WAIT * 2.0 ** (tries - 1), LONGEST_WAIT)
    assert plain <= retry_wait(key, tries) <= 1.25 * plain
    assert hint < retry_wait(key, tries, hint=hint) <= hint + 0.01


def test_rows_that_failed_together_come_back_apart() -> None:
    assert len({retry_wait(bytes([number]) * 32, 1) for number in range(100)}) == 100


NOW = 1_790_000_000.25
INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo"}


@pytest.mark.parametrize(
    ("headers", "details", "wait"),
    [
        ({}, None, None),
        ({"retry-after": "7"}, None, 7.0),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after": "0"}, None, 0.0),
        ({"retry-after": "-3"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after-ms": "1500"}, None, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "1"}, None, 1.5),
        ({"retry-after-ms": "500", "retry-after": "1"}, None, 1.0),
        ({}, [{"@type": "x.QuotaFailure"}, INFO | {"retryDelay": "34.074824224s"}], 34.074824224),
        ({}, [INFO | {"retryDelay": {"seconds": "3", "nanos": 500_000_000}}], 3.5),
        ({}, [INFO | {"retryDelay": "long"}], None),
        ({}, [INFO], None),
        ({}, {"not": "a list"}, None),
        ({"retry-after": "2"}, [INFO | {"retryDelay": "3s"}], 3.0),
        ({"retry-after": "9" * 400}, None, None),
        ({"retry-after": "1" + "0" * 300}, None, LONGEST_HINT),
        ({}, [INFO | {"retryDelay": {"seconds": 10**400}}], None),
    ],
)
def test_the_longest_wait_asked_for_counts(headers: dict[str, str], details: object, wait: float | None) -> None:
    assert wait_of(headers, details, now=NOW) == wait


@given(st.integers(-1000, 100_000), st.integers(-100_000, 100_000))
def test_a_date_is_a_wait_by_the_clock_that_wrote_it_and_never_a_negative_one(seconds: int, skew: int) -> None:
    here, there = (formatdate(int(NOW) + ahead + seconds, usegmt=True) for ahead in (0, skew))
    assert wait_of({"retry-after": here}, now=NOW) == pytest.approx(max(0.0, seconds - 0.25))
    written = formatdate(int(NOW) + skew, usegmt=True)
    assert wait_of({"retry-after": there, "date": written}, now=NOW) == max(0.0, seconds)


SERVER = Identity("openai", "http://127.0.0.1:9/v1", "/chat", "m")


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_790_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def left(journal: Journal) -> float:
    return DurableHold(journal, SERVER, 900.0).left()


@pytest.mark.parametrize(
    ("wait", "passes", "left_over"),
    [(30.0, -YEARS, 30.0), (30.0, -DAY, 30.0), (30.0, -60.0, 30.0), (30.0, 10.0, 20.0), (30.0, 31.0, 0.0)]
    + [(wait, 5.0, 0.0) for wait in (901.0, DAY, 1e9, 1e300)],  # longer than patience: asked whether it answers now
)
def test_a_hint_is_held_across_a_kill_and_by_no_clock_for_longer(
    tmp_path: Path, wall: list[float], wait: float, passes: float, left_over: float, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal(tmp_path) as journal:
        assert left(journal) == 0.0
        DurableHold(journal, SERVER, 900.0).keep(wait)
        wall[0] += passes
        assert left(journal) == pytest.approx(left_over)
    assert ("earlier the server asked to be left alone" in caplog.text) == (wait > 900.0)


@pytest.mark.parametrize(
    ("kept", "expected"),
    [(f"{1_790_000_030.0!r}", 30.0), (f"{1_790_000_000.0 + YEARS!r}", 0.0), ("nan", 0.0), ("inf", 0.0), ("x y", 0.0)],
)
def test_what_an_earlier_version_or_nobody_wrote_is_read_with_care(
    tmp_path: Path, wall: list[float], kept: str, expected: float
) -> None:
    with Journal(tmp_path) as journal:
        journal.remember(f"held:{SERVER.base_url} {SERVER.model}", kept.encode())
        assert left(journal) == expected


def test_a_run_after_a_long_hint_asks_and_ends(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        journal.remember("held: fake-1", repr(time.time() + DAY).encode())
        answers = list(AskEngine(FakeClient(), journal, AskOptions(), run="one").ask_all(questions(3)))
    assert [answered.outcome for answered in answers] == ["ok"] * 3


REFUSED = Failure("connection", "connection refused", sent=False)


def heard(turn: Callable[[float], Turn], *, rows: int = 40, patience: float = 900.0) -> list[tuple[float, str]]:
    wire = SimulatedWire(lambda identifier, count, now: turn(now - 1000.0), patience=patience, concurrency=4)
    notices = WaitNotices(wire.dispatch)
    said: list[tuple[float, str]] = []
    send_all = wire.send_all

    def look_and_send() -> float:
        said.extend((wire.now - 1000.0, sentence) for sentence in notices.due(wire.now))
        return min(send_all(), wire.now + 0.5 if wire.dispatch.ending is None else float("inf"))

    wire.send_all = look_and_send  # type: ignore[method-assign]
    wire.play(questions(rows))
    return said


def good(_: float = 0.0) -> Turn:
    return Turn(0.5, answer_for("Q0"))


def test_a_server_that_is_not_there_is_said_at_once_and_that_it_is_back() -> None:
    said = heard(lambda now: Turn(0.001, REFUSED) if now < 100.0 else good())
    assert said[0][0] <= 1.0
    assert said[0][1] == (
        "connection refused: server does not answer, retrying for 15 minutes; Ctrl-C keeps everything"
    )
    assert said[-1][1].startswith("the server answers again, after ")
    assert said[-1][0] <= 125.0
    assert len(said) == 3, "once a minute, no more"


def test_replies_that_take_too_long_are_said_with_what_to_do() -> None:
    late = Failure("timeout", "a request timed out after 120 s; raise timeout= in the SPEC if replies take longer")
    said = heard(lambda _: Turn(120.0, late))
    assert "no reply for 15 s, 4 awaited; waiting for 15 minutes more" in said[0][1]
    assert said[0][0] < 17.0
    first = next(at for at, text in said if "timed out after 120 s; raise timeout=" in text)
    assert first < 122.0
    assert len(said) < 40


def test_a_wait_that_the_server_asks_for_is_said() -> None:
    busy = Failure("busy", "", status=429, wait=30.0)
    said = heard(lambda now: Turn(0.1, busy) if now < 5.0 else good())
    assert "the server asks to wait 30 s" in said[0][1]
    assert said[0][0] <= 1.0


def test_failures_amid_successes_and_quick_replies_are_not_worth_a_line() -> None:
    turns = iter(range(10_000))

    def turn(_: float) -> Turn:
        return Turn(0.1, Failure("server", "", status=500)) if next(turns) % 10 == 0 else good()

    assert heard(turn) == []
    assert heard(good) == []


FAULTS = ("none", "busy", "hinted", "server", "timeout", "connection", "rejected", "blocked", "prose", "stop", "broken")


def stopped(stop: str) -> bytes:
    return json.dumps({"text": "I", "in": 5, "out": 1, "stop": stop}).encode()


def came_of(kind: str, identifier: str, chance: random.Random) -> bytes | Failure:
    match kind:
        case "none":
            return answer_for(identifier)
        case "hinted":
            return Failure("busy", "", status=429, wait=chance.choice([0.0, 0.0625, 3.5, 40.0]))
        case "prose":
            return json.dumps({"text": "Well,", "in": 5, "out": 1, "stop": "end"}).encode()
        case "stop":
            return stopped(chance.choice(["refusal", "blocked", "length"]))
        case "broken":
            return b"{"
        case _:
            return Failure(kind, "", status=500)  # type: ignore[arg-type]


def provider_of(chance: random.Random, weights: list[int], outage: tuple[float, float]) -> Provider:
    """Draw what happens to each request; within the outage, nothing is served."""

    def turn(identifier: str, _: int, now: float) -> Turn:
        if outage[0] <= now - 1000.0 < outage[0] + outage[1]:
            return Turn(chance.uniform(0.0, 2.0), Failure("connection", ""))
        kind = chance.choices(FAULTS, weights)[0]
        return Turn(chance.uniform(0.0, 5.0), came_of(kind, identifier, chance))

    return turn


def check_hints(wire: SimulatedWire) -> None:
    """Nothing was sent between the moment a hint came and the moment it expired."""
    hints = [
        (exchange.ended, exchange.ended + exchange.came.wait)
        for exchange in wire.exchanges
        if isinstance(exchange.came, Failure) and exchange.came.wait is not None
    ]
    for exchange in wire.exchanges:
        assert not any(came < exchange.sent < until for came, until in hints)


@pytest.mark.slow
@settings(max_examples=examples(2000), deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.integers(0, 5), min_size=len(FAULTS) - 1, max_size=len(FAULTS) - 1),
    st.integers(1, 40),
    st.sampled_from([1, 3, 16, 256]),
    st.sampled_from([None, 30.0, 600.0]),
    st.tuples(st.floats(0.0, 30.0), st.sampled_from([0.0, 0.0, 10.0, 300.0])),
)
def test_every_row_ends_once_and_as_its_own(
    chance: random.Random,
    weights: list[int],
    rows: int,
    concurrency: int,
    rpm: float | None,
    outage: tuple[float, float],
) -> None:
    wire = SimulatedWire(
        provider_of(chance, [10, *weights], outage), concurrency=concurrency, quota=Quota(requests=rpm), patience=5000.0
    )
    asked = wire.play(questions(rows))
    assert wire.dispatch.ending is None
    assert wire.dispatch.in_flight == 0
    assert wire.most_in_flight <= concurrency
    check_hints(wire)
    for number, question in enumerate(asked):
        assert question.ended is not None
        assert question.ended.outcome in OUTCOMES
        if question.ended.value is not None:
            assert question.ended.value == Verdict(f"Q{number}", "keep")


def test_a_five_minute_outage_costs_no_row_and_makes_no_storm() -> None:
    def provider(identifier: str, _: int, now: float) -> Turn:
        if 1010.0 <= now < 1310.0:
            return Turn(0.01, Failure("server", "", status=503))
        return Turn(0.5, answer_for(identifier))

    wire = SimulatedWire(provider, concurrency=64, quota=Quota(requests=600.0))
    asked = wire.play(questions(3000))
    assert {question.ended.outcome for question in asked if question.ended} == {"ok"}
    during = [exchange for exchange in wire.exchanges if 1010.0 <= exchange.sent < 1310.0]
    assert len(during) <= 40
    probes = sorted(exchange.sent for exchange in during if exchange.sent > 1020.0)
    gaps = [later - earlier for earlier, later in pairwise(probes)]
    assert min(gaps) >= 4.0
    assert max(gaps) <= 30.0
    after = sum(1370.0 <= exchange.sent < 1430.0 for exchange in wire.exchanges)
    assert after >= 0.8 * 600


def test_rows_that_always_fail_are_exhausted_while_others_go_on() -> None:
    def provider(identifier: str, _: int, now: float) -> Turn:
        if identifier.endswith("7"):
            return Turn(0.1, Failure("server", "", status=500))
        return Turn(0.2, answer_for(identifier))

    wire = SimulatedWire(provider, concurrency=16)
    asked = wire.play(questions(200))
    outcomes = {f"Q{question.index}": question.ended.outcome for question in asked if question.ended}
    assert {name for name, outcome in outcomes.items() if outcome == "exhausted"} == {
        f"Q{number}" for number in range(200) if number % 10 == 7
    }
    assert all(wire.counts[name] == 6 for name, outcome in outcomes.items() if outcome == "exhausted")
    assert wire.now < 1000.0 + 120.0


@settings(max_examples=examples(200), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 64), st.floats(0.0, 0.004))
def test_a_budget_is_never_overshot(chance: random.Random, concurrency: int, budget: float) -> None:
    def provider(identifier: str, _: int, now: float) -> Turn:
        kind = chance.choices(["none", "server", "timeout", "broken"], [6, 1, 1, 1])[0]
        return Turn(chance.uniform(0.0, 5.0), came_of(kind, identifier, chance))

    wire = SimulatedWire(provider, concurrency=concurrency, budget=budget)
    wire.play(questions(60))
    billed = 0.0
    for exchange in wire.exchanges:
        if isinstance(exchange.came, Failure):
            output = 20 if exchange.came.kind == "timeout" else None
        else:
            output = 10 if exchange.came != b"{" else 20
        billed += 0.0 if output is None else (50 * 1.0 + output * 2.0) / 1e6
    assert billed <= budget
