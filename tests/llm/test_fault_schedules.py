"""Two thousand schedules of faults, played in simulated time."""

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.llm.client import Failure, Quota
from culturekit.llm.rows import OUTCOMES
from tests.effort import examples
from tests.llm.fake_client import Verdict, answer_for, questions
from tests.llm.simulated_wire import Provider, SimulatedWire, Turn

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
    outcomes = {f"Q{question.place}": question.ended.outcome for question in asked if question.ended}
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
