"""Plans: from sizes, and from a pilot whose prices and habits nobody knew beforehand."""

import math
from pathlib import Path

import numpy as np
import pytest

from culturekit.core.digests import canonical_json
from culturekit.core.stage import Left
from culturekit.llm.client import Identity, Outgoing, Rate, Reply, Request, Usage
from culturekit.llm.cost_plan import (
    LEAST_SHARED,
    CostPlan,
    RequestKind,
    amount,
    cost_plan_lines,
    plan_cost,
    plan_requests,
)
from culturekit.llm.journal import Entry, Journal, Reading, key_of
from culturekit.llm.ledger import Spent, read_spending
from culturekit.llm.replies import _WORDING, REPAIR_MARK
from culturekit.llm.usage import estimate, input_bound
from tests.llm.fake_client import questions

IDENTITY = Identity("openai", "https://api.openai.com/v1", "chat", "gpt-4o-mini")
RATE = Rate(0.15, 0.6)
INSTRUCTIONS = "You judge whether a candidate is part of the culture of a country. " * 12
WORDS = ["soup", "pho", "festival", "суп", "米粉", "dance", "temple", "स्वाद", "weaving", "وشاح", "drum", "mountain"]


def outgoings(count: int, rng: np.random.Generator) -> list[Outgoing]:
    """Requests whose data is from a few to some hundred words long, in scripts that take more and fewer tokens."""
    lengths = np.exp(rng.normal(3.0, 1.0, count)).astype(int) + 1
    return [
        Outgoing(
            canonical_json({"content": INSTRUCTIONS, "id": f"Q{number}", "text": " ".join(rng.choice(WORDS, length))}),
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
    asked_again = requests[0].body.replace(b'country. "', b"country. " + REPAIR_MARK + b'Error."')
    repair = Spent(b"r" * 32, "pilot", repaired_in, repaired_out, True, asked_again)
    assert asked_again != requests[0].body
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
    *_, last = cost_plan_lines(unknown)
    assert "state one in the SPEC" in last


def test_what_the_journal_answers_is_not_planned_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    requests = outgoings(40, rng)
    told = [(outgoing, true_usage(outgoing, rng)) for outgoing in requests]
    plan = plan_cost(requests, IDENTITY, RATE, spent=journalled(tmp_path, told, refused=4))
    assert (plan.bought, plan.pilot) == (30, 40)
    assert plan.input_tokens > 0
    assert plan.left == Left(10, plan.input_tokens + plan.output_tokens, plan.usd)
    assert read_spending(tmp_path / "nowhere.sqlite") == []
    assert any("30 answered in the journal, 10 to send" in line for line in cost_plan_lines(plan))


def journalled(folder: Path, told: list[tuple[Outgoing, Usage]], *, refused: int = 1_000) -> list[Spent]:
    with Journal(folder) as journal:
        entries = [
            Entry(key_of(IDENTITY, outgoing), "one", 1, "online", 200, "reply", b"{}", outgoing.body)
            for outgoing, _ in told
        ]
        for number, (_, usage) in zip(journal.append_all(entries), told, strict=True):
            journal.note(number, Reading("ok" if number % refused else "refused", usage))
    return read_spending(folder / "replies.sqlite")


def asked(task: str, number: int, *, note: str = "") -> Outgoing:
    instructions = f"{task}: {INSTRUCTIONS}{note}"
    schema = {"schema": {"name": task, "words": "x" * 100}}
    return Outgoing(canonical_json({"messages": [instructions, f"dish {number * 7919}"], **schema}), max_tokens=256)


def test_a_pilot_tells_of_others_of_its_kind_and_not_of_what_else_its_run_asked(tmp_path: Path) -> None:
    earlier = [(asked("filter", number), Usage(400, 12)) for number in range(30)]
    repairs = [(asked("filter", number, note=_WORDING.format(code="fenced", sentence="", shape="")), Usage(480, 12))
               for number in range(3)]  # fmt: skip
    others = [(asked("verify", number), Usage(9_000, 900)) for number in range(50)]
    spent = journalled(tmp_path, [*earlier, *repairs, *others])
    plan = plan_cost([asked("filter", number) for number in range(1000, 1100)], IDENTITY, RATE, spent=spent)
    assert (plan.requests, plan.bought, plan.pilot, plan.basis) == (100, 0, 30, "pilot")
    assert plan.input_tokens == pytest.approx(100 * (400 + 3 * 480 / 30), rel=0.02)
    assert plan.output_tokens == pytest.approx(100 * (12 + 3 * 12 / 30), rel=0.02)


def kind_of(*bodies: bytes) -> RequestKind:
    kind = RequestKind()
    for body in bodies:
        kind.add(body)
    return kind


def test_a_kind_of_requests_is_known_by_what_stands_before_and_after_their_data() -> None:
    head, tail = b"H" * 150, b"T" * 150
    one, kind = (
        kind_of(head + b"a soup" + tail),
        kind_of(*(head + data + tail for data in (b"a soup", b"a dance", b"x"))),
    )
    assert (kind.head, kind.tail) == (head, tail)
    assert kind.asks(head + b"a mask" + tail)
    assert not kind.asks(head + b"a mask" + b"U" * 150) and not kind.asks(b"I" * 150 + b"a mask" + tail)
    assert not one.asks(head + b"a soup" + tail), "one request tells no kind by itself"
    assert not one.repairs(head + b"a soup" + b"T" * 60 + REPAIR_MARK)


@pytest.mark.parametrize(("shared", "telling"), [(199, False), (200, True)])
def test_requests_with_little_in_common_tell_no_kind(shared: int, telling: bool) -> None:
    kind = kind_of(*(b"H" * (shared - 90) + data + b"T" * 90 for data in (b"a soup", b"dances!")))
    assert kind.asks(b"H" * (shared - 90) + b"a mask" + b"T" * 90) is telling


def test_a_repair_that_shares_less_than_the_head_is_of_no_kind_unless_that_is_long() -> None:
    kind = kind_of(*(b"H" * 300 + data + b"T" * 150 for data in (b"a soup", b"a dance")))
    assert kind.repairs(b"H" * LEAST_SHARED + REPAIR_MARK)
    assert not kind.repairs(b"H" * (LEAST_SHARED - 1) + REPAIR_MARK)
    assert not kind.repairs(b"G" * LEAST_SHARED + REPAIR_MARK)


def test_what_answers_in_this_process_costs_nothing() -> None:
    class Free:
        model, caveat = "here", ""

        def ask(self, request: Request) -> Reply:
            raise AssertionError(request)

    plan = plan_requests(Free(), questions(3), spent=(), batch=True)
    assert plan == CostPlan(3, 0, 0, "online", 0, 0, 0.0, 0.0, 0.0, "sizes")


def test_what_was_asked_is_not_written_where_a_sum_is_shown() -> None:
    assert "a dish" not in repr(Spent(b"k", "one", 1, 1, True, b"a dish"))


def test_what_was_bought_under_other_roots_does_not_swell_the_rest(tmp_path: Path) -> None:
    spent = journalled(tmp_path, [(asked("filter", number), Usage(400, 12)) for number in range(200)])
    plan = plan_cost([asked("filter", number) for number in range(190, 290)], IDENTITY, RATE, spent=spent)
    assert (plan.bought, plan.pilot) == (10, 200)
    assert plan.input_tokens == pytest.approx(90 * 400, rel=0.02)
    unknown = plan_cost([asked("tag", number) for number in range(50)], IDENTITY, RATE, spent=spent)
    assert (unknown.pilot, unknown.basis) == (0, "sizes")


@pytest.mark.parametrize(
    ("usd", "written", "least"),
    [(0.0, "0.00", "0.00"), (0.00123, "0.0012", "0.0013"), (0.5, "0.50", "0.50"), (1234.561, "1,234.56", "1,234.57")],
)
def test_dollars_are_written_with_two_digits_and_up_never_says_less(usd: float, written: str, least: str) -> None:
    assert (amount(usd), amount(usd, up=True)) == (written, least)


def test_the_margin_is_that_of_means_with_what_repairs_added(tmp_path: Path) -> None:
    alike = [asked("filter", number) for number in range(20, 120)]
    counts = np.array([(300, 20), (500, 44)] * 10)
    earlier = [(one, Usage(int(sent), int(came))) for one, (sent, came) in zip(alike, counts, strict=False)]
    repair = asked("filter", 20, note=_WORDING.format(code="fenced", sentence="", shape="")), Usage(4_000, 128)
    plan = plan_cost(alike, IDENTITY, RATE, spent=journalled(tmp_path, [*earlier, repair]))
    assert (plan.bought, plan.pilot) == (20, 20)
    sums = 80 * counts.mean(axis=0) * (1.5, 1.2)
    errors = 80 * counts.std(axis=0, ddof=1) / math.sqrt(20) * (1.5, 1.2)
    assert (plan.input_tokens, plan.output_tokens) == tuple(sums)
    assert plan.margin == pytest.approx(1.96 * errors @ (0.15, 0.6) / 1e6, rel=1e-3)


def test_tokens_in_proportion_to_size_leave_no_margin() -> None:
    sizes = [Outgoing(b"s" * (420 + 420 * number), max_tokens=512) for number in range(30)]
    spent = [spent_on(one, Usage(2 * estimate(one), 10)) for one in sizes[:10]]
    plan = plan_cost(sizes, IDENTITY, RATE, spent=spent)
    assert plan.input_tokens == 2 * sum(map(estimate, sizes[10:]))
    assert plan.margin == 0.0


def test_a_pilot_of_one_tells_no_margin() -> None:
    alike = [asked("filter", number) for number in range(20, 30)]
    one, two = (plan_cost(alike, IDENTITY, RATE, spent=[spent_on(each, Usage(400, 12)) for each in alike[:rows]])
                for rows in (1, 2))  # fmt: skip
    assert (one.pilot, one.margin, one.output_tokens) == (1, None, 9 * 12)
    assert not any("give or take" in line for line in cost_plan_lines(one))
    assert two.margin is not None and any("give or take" in line for line in cost_plan_lines(two))


@pytest.mark.parametrize(("long_ones", "parted"), [(10, True), (9, False)])
def test_many_long_requests_are_told_by_the_few_long_ones_of_a_pilot_of_forty_rows(
    long_ones: int, parted: bool
) -> None:
    short = [Outgoing(b"s" * (420 + 42 * n), max_tokens=512) for n in range(50)]
    long = [Outgoing(b"l" * (42_000 + 42 * n), max_tokens=512) for n in range(50)]
    usages = [(one, Usage(2 * estimate(one), 10)) for one in short[:30]]
    usages += [(one, Usage(estimate(one), 500)) for one in long[:long_ones]]
    plan = plan_cost([*short, *long], IDENTITY, RATE, spent=[spent_on(*one) for one in usages])
    assert plan.bought == plan.pilot == 30 + long_ones
    if parted:
        assert plan.output_tokens == 20 * 10 + 40 * 500
        assert plan.input_tokens == 2 * sum(map(estimate, short[30:])) + sum(map(estimate, long[10:]))
    else:
        assert plan.output_tokens == round(61 * (30 * 10 + 9 * 500) / 39)
