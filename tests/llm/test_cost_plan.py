"""Plans: from sizes, and from a pilot whose prices and habits nobody knew beforehand."""

import math
from pathlib import Path

import numpy as np
import pytest

from culturekit.llm.client import Identity, Outgoing, Rate, Usage
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_cost
from culturekit.llm.journal import Entry, Journal, Reading
from culturekit.llm.keys import key_of
from culturekit.llm.spending import Spent, read_spending
from culturekit.llm.tokens import estimate, input_bound
from culturekit.storage.digests import canonical_json

IDENTITY = Identity("openai", "https://api.openai.com/v1", "chat", "gpt-4o-mini")
RATE = Rate(0.15, 0.6)
INSTRUCTIONS = "You judge whether a candidate is part of the culture of a country. " * 12
WORDS = ["soup", "pho", "festival", "суп", "米粉", "dance", "temple", "स्वाद", "weaving", "وشاح", "drum", "mountain"]


def outgoings(count: int, rng: np.random.Generator) -> list[Outgoing]:
    """Requests whose data is from a few to some hundred words long, in scripts that take more and fewer tokens."""
    lengths = np.exp(rng.normal(3.0, 1.0, count)).astype(int) + 1
    return [
        Outgoing(
            canonical_json({"system": INSTRUCTIONS, "id": f"Q{number}", "text": " ".join(rng.choice(WORDS, length))}),
            max_tokens=512,
        )
        for number, length in enumerate(lengths)
    ]


def true_usage(outgoing: Outgoing, rng: np.random.Generator) -> Usage:
    """Tokens as a tokenizer of another mind counts them, and output with a long tail that grows with the question."""
    text = outgoing.body.decode()
    tokens = 11 + sum(1 + (len(word) - 1) // 5 + 2 * (not word.isascii()) * len(word) for word in text.split())
    thinking = int(rng.exponential(20 + 0.1 * tokens))
    return Usage(tokens, min(512, 14 + thinking), min(498, thinking))


def spent_on(outgoing: Outgoing, usage: Usage) -> Spent:
    return Spent(key_of(IDENTITY, outgoing), "pilot", usage.input_tokens, usage.output_tokens, True)


def pilot_plan(seed: int) -> tuple[CostPlan, int, int]:
    rng = np.random.default_rng(seed)
    requests = outgoings(5_000, rng)
    truth = [true_usage(outgoing, rng) for outgoing in requests]
    rows = sorted(int(row) for row in rng.choice(len(requests), 200, replace=False))
    spent = [spent_on(requests[row], truth[row]) for row in rows]
    repaired_in, repaired_out = (sum(tokens) // 10 for tokens in totals(truth, rows))
    repair = Spent(b"r" * 32, "pilot", repaired_in, repaired_out, True)
    plan = plan_cost(requests, IDENTITY, RATE, spent=[*spent, repair])
    left = sorted(set(range(len(requests))) - set(rows))
    sums = [sum(tokens) for tokens in totals(truth, left)]
    return plan, round(sums[0] * 1.1), round(sums[1] * 1.1)


def totals(truth: list[Usage], rows: list[int]) -> tuple[list[int], list[int]]:
    return [truth[row].input_tokens for row in rows], [truth[row].output_tokens for row in rows]


@pytest.mark.parametrize("seed", range(5))
def test_a_pilot_of_200_tells_the_bill(seed: int) -> None:
    plan, inputs, outputs = pilot_plan(seed)
    true_cost = (0.15 * inputs + 0.6 * outputs) / 1e6
    assert (plan.requests, plan.bought, plan.pilot, plan.basis) == (5_000, 200, 200, "pilot")
    assert abs(plan.input_tokens / inputs - 1) < 0.05
    assert plan.usd is not None and plan.margin is not None
    assert abs(plan.usd / true_cost - 1) < 0.15
    assert abs(plan.usd - true_cost) < 2 * plan.margin


def test_without_a_pilot_the_plan_is_an_upper_end() -> None:
    rng = np.random.default_rng(1)
    requests = outgoings(300, rng)
    truth = [true_usage(outgoing, rng) for outgoing in requests]
    plan = plan_cost(requests, IDENTITY, RATE)
    assert plan.basis == "sizes" and plan.margin is None
    assert plan.output_tokens == 300 * 512
    assert plan.input_tokens == sum(estimate(outgoing, IDENTITY) for outgoing in requests)
    bound = sum(input_bound(outgoing, IDENTITY) for outgoing in requests)
    assert plan.most is not None and plan.usd is not None
    assert math.isclose(plan.most, (0.15 * bound + 0.6 * 300 * 512) / 1e6)
    assert plan.most > plan.usd > sum(0.15 * usage.input_tokens + 0.6 * usage.output_tokens for usage in truth) / 1e6


def test_a_batch_is_planned_at_its_price_and_nothing_at_nothing() -> None:
    requests = outgoings(50, np.random.default_rng(2))
    online, batch = (plan_cost(requests, IDENTITY, RATE, mode=mode) for mode in ("online", "batch"))
    assert online.usd is not None and batch.usd is not None
    assert math.isclose(batch.usd, online.usd / 2, rel_tol=1e-9)
    assert plan_cost([], IDENTITY, RATE).usd == 0
    unknown = plan_cost(requests, IDENTITY, None)
    assert unknown.usd is None
    assert any("state one in the SPEC" in line for line in cost_plan_lines(unknown))


def test_what_the_journal_answers_is_not_planned_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    requests = outgoings(40, rng)
    with Journal(tmp_path) as journal:
        entries = [
            Entry(key_of(IDENTITY, outgoing), "one", 1, "online", 200, "reply", b"{}", outgoing.body)
            for outgoing in requests
        ]
        numbers = journal.append_all(entries)
        for number, outgoing in zip(numbers, requests, strict=True):
            journal.note(number, Reading("refused" if number % 4 == 0 else "ok", true_usage(outgoing, rng)))
    plan = plan_cost(requests, IDENTITY, RATE, spent=read_spending(tmp_path / "replies.sqlite"))
    assert (plan.bought, plan.pilot) == (30, 40)
    assert plan.input_tokens > 0
    assert read_spending(tmp_path / "nowhere.sqlite") == []
    assert any("30 answered in the journal, 10 to send" in line for line in cost_plan_lines(plan))
