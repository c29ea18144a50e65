"""Money against servers whose counts cannot be relied on: budgets hold, journals stay sound, sums say the same."""

import json
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from culturekit.core.digests import JOURNAL
from culturekit.core.errors import BudgetReached
from culturekit.llm.client import Quota, Rate, Reply, Usage
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Entry, Journal, Reading, key_of
from culturekit.llm.ledger import (
    JournalPlace,
    Ledger,
    Unsure,
    latest_exchanges,
    read_ledger,
    read_spending,
    spent_elsewhere,
    unsure_of,
)
from culturekit.llm.purse import Purse, remember_rate
from culturekit.llm.rows import Answered, Question, Row
from culturekit.llm.usage import Budget, Counts, dollars, input_bound, picodollars
from tests.conftest import HeardProgress
from tests.llm.fake_client import FakeClient, answer_for, questions
from tests.llm.journal.test_journal import entry
from tests.llm.simulated_wire import SimulatedWire, Turn

RATE = Rate(1.0, 2.0, cached=0.1)
SENT, CAME = 50, 10
HONEST = (SENT * RATE.input + CAME * RATE.output) / 1e6
PAYS_TWELVE = 12 * HONEST


@dataclass
class Miscounting(FakeClient):
    """States counts of its own, read as those of a provider; what it sells is counted in truth."""

    stated: object = None

    def __post_init__(self) -> None:
        self.rate = RATE

    def read(self, raw: bytes) -> Reply:
        text = json.loads(raw)["text"]
        counts = Counts(self.stated)
        usage = counts.usage(
            text, sent=counts.take("sent"), came=counts.take("came"), thought=0, cached=counts.take("cached") or 0,
            total=counts.take("total"),
        )  # fmt: skip
        return Reply(text, usage)


def ask(client: FakeClient, folder: Path, count: int = 100, budget: float | None = None) -> list[Answered]:
    with Journal(folder / JOURNAL) as journal:
        options = AskOptions(concurrency=1, budget=budget)
        return list(AskEngine(client, journal, options, run="one").ask_all(questions(count)))


def ledger_of(folder: Path) -> Ledger:
    return read_ledger([JournalPlace("filter", folder / JOURNAL / "replies.sqlite", finished=True)])


LIES: Sequence[object] = [
    {"sent": SENT, "came": CAME, "cached": 10**6}, {"sent": None, "came": None}, {"sent": 1, "came": 1},
    {"sent": 10**15, "came": CAME}, {"sent": 2**64 - 1, "came": 2**64 - 1},
    {"sent": SENT, "came": CAME, "total": 10**7}, None,
]  # fmt: skip


@pytest.mark.parametrize("stated", LIES, ids=str)
def test_a_budget_holds_whatever_is_counted_also_when_resumed_and_an_honest_server_goes_on(
    stated: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = Miscounting(stated=stated)
    for _ in range(3):
        with pytest.raises(BudgetReached):
            ask(client, tmp_path, budget=PAYS_TWELVE)
    assert 0 < client.usd <= PAYS_TWELVE
    said = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len([record for record in said if "does not count its tokens" in record.message]) <= 3
    assert said
    total = ledger_of(tmp_path).total
    assert 0 < total.usd < 1.0
    assert 0 <= total.cached_tokens <= total.input_tokens
    assert {answered.outcome for answered in ask(Miscounting(stated={"sent": SENT, "came": CAME}), tmp_path)} == {"ok"}
    assert ledger_of(tmp_path).total.requests == 100


def test_a_doubt_is_said_once_in_a_run_and_not_where_nothing_is_charged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ask(Miscounting(stated={"sent": 10**15, "came": CAME}), tmp_path / "priced", 40)
    (said,) = caplog.records
    assert "fake-1 does not count its tokens as it should (sent is 1000000000000000)" in said.message
    caplog.clear()
    free = Miscounting(stated=None)
    free.rate = Rate(0.0, 0.0)
    ask(free, tmp_path / "free", 40)
    assert not caplog.records
    assert ledger_of(tmp_path / "free").total.counted_here == 40
    with pytest.raises(
        BudgetReached, match=r"done for \$0\.00\d+ and up to \$0\.00\d+ for replies that did not come or"
    ):
        ask(Miscounting(stated=None), tmp_path / "limited", budget=PAYS_TWELVE)


def test_a_count_of_just_what_was_asked_for_is_not_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (request,) = questions(1)
    outgoing = FakeClient().compose(request)
    most = input_bound(outgoing, FakeClient().identity)
    ask(Miscounting(stated={"sent": most, "came": outgoing.max_tokens}), tmp_path / "just", 1, budget=1.0)
    assert not caplog.records
    ask(Miscounting(stated={"sent": most + 1, "came": outgoing.max_tokens}), tmp_path / "more", 1, budget=1.0)
    assert "they are paid as counted" in caplog.text
    with pytest.raises(BudgetReached):
        ask(Miscounting(stated={"sent": 1_000_000, "came": CAME}), tmp_path / "far", budget=PAYS_TWELVE)
    assert "counts 1,000,000 tokens in and 10 out, where at most" in caplog.text
    assert ledger_of(tmp_path / "far").total.input_tokens == 1_000_000


def purse_and_questions(count: int) -> tuple[Purse, list[Question]]:
    client = FakeClient()
    asked = [Question(at, Row(request), client.compose(request), b"k") for at, request in enumerate(questions(count))]
    return Purse(RATE, client.identity, Budget(1.0)), asked


def test_what_may_be_spent_is_written_down_before_it_leaves_and_taken_away_with_what_came(tmp_path: Path) -> None:
    purse, asked = purse_and_questions(9)
    with Journal(tmp_path) as journal:
        purse.remember_in(journal, "one")
        for question in asked:
            assert purse.reserve(question)
            journal.write_now(purse.leaves(question))
        worst = picodollars(asked[0].reserved)
        unsure = unsure_of(journal.path, "one")
        assert (unsure.requests, unsure.picodollars) == (9, 9 * worst)
        journal.write_now(purse.came(asked[0]))
        journal.write_now(purse.came(asked[1], sold=True))
        unsure = unsure_of(journal.path, "one")
        assert (unsure.requests, unsure.picodollars) == (7, 8 * worst), "of the second there is an exchange"
        assert unsure_of(journal.path, "on") == unsure_of(journal.path, "one:1") == Unsure()
        later = Purse(RATE, purse.identity, Budget(1.0))
        later.remember_in(journal, "one")
        assert (later.lost, later.budget.used, later.unsure) == (7, 8 * worst, dollars(8 * worst))
        assert unsure_of(journal.path, "one") == Unsure(7, 8 * worst)


@pytest.mark.parametrize(("billed", "part"), [("keep", 1.0), ("free", 0.0)])
def test_a_question_without_a_reply_costs_its_worst_only_where_it_may_be_billed(billed: str, part: float) -> None:
    purse, (question,) = purse_and_questions(1)
    assert purse.reserve(question)
    worst = question.reserved
    purse.came(question, sold=billed == "keep")
    getattr(purse, billed)(question)
    assert purse.unsure == part * worst
    assert [purse.budget.spent, purse.budget.aside] == pytest.approx([part * worst, 0.0])
    assert worst > 0.0


def test_bounds_that_counts_passed_are_raised_for_what_is_asked_next() -> None:
    assert Purse(Rate(0.0, 0.0), FakeClient().identity, Budget(1.0)).reading("ok", Usage(SENT, CAME)).usd == 0.0
    purse, (first, second) = purse_and_questions(2)
    assert (purse.paid, Purse(None, purse.identity, Budget(1.0)).paid) == (0.0, None)
    assert purse.reserve(first)
    purse.settle(first, Usage(3 * first.input_bound, 2 * first.outgoing.max_tokens, counted="provider"))
    assert purse.reserve(second)
    expected = 3 * second.input_bound * RATE.input + 2 * second.outgoing.max_tokens * RATE.output
    assert second.reserved == pytest.approx(expected / 1e6)


def test_a_claim_of_millions_does_not_hold_the_pace_up() -> None:
    def claim(identifier: str, *_: object) -> Turn:
        return Turn(0.1, answer_for(identifier).replace(b'"in": 50, "out": 10', b'"in": 100000000, "out": 100000000'))

    wire = SimulatedWire(claim, quota=Quota(tokens=60_000.0))
    wire.play(questions(50), until=1000.0 + 600.0)
    assert len(wire.exchanges) == 50


def test_the_dollars_of_the_progress_are_those_of_the_ledger(tmp_path: Path) -> None:
    ask(Miscounting(stated=None), tmp_path, 20)
    heard = HeardProgress()
    client = Miscounting(stated=None, delay=0.06)
    with Journal(tmp_path / JOURNAL) as journal:
        asking = AskEngine(client, journal, AskOptions(concurrency=1, budget=1.0), run="two", progress=heard)
        list(asking.ask_all(questions(60)))
    total = ledger_of(tmp_path).total
    assert total.requests == 60
    assert asking.purse.paid == total.usd < asking.purse.budget.spent
    assert heard.units
    shown = [float(line.partition("$")[2].split(",")[0]) for line in heard.units]
    assert all(0.0 < usd <= total.usd + 0.0001 for usd in shown)


def poisoned(folder: Path) -> None:
    """Write a journal as versions before this one did: counts as they came, and a promise made of them."""
    with Journal(folder / JOURNAL) as journal:
        entries = [entry_of(place) for place in range(4)]
        journal.append_all(entries)
        journal.note(1, Reading("ok", Usage(SENT, CAME), HONEST))
        journal.remember("promised:one", str(15 * 10**16).encode())
    connection = sqlite3.connect(folder / JOURNAL / "replies.sqlite")
    with connection:
        for row in [
            (2, "ok", 10**12, CAME, 0, 0, "provider", 10**18),
            (3, "ok", SENT, CAME, 0, 10**9, "provider", -142 * 10**9),
            (4, "ok", 2**63 - 1, CAME, 0, 0, "provider", 2**63 - 1),
        ]:
            connection.execute("INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()


def entry_of(place: int) -> Entry:
    """Make the entry of a good reply to the question at a place."""
    client = FakeClient()
    (request,) = questions(place + 1)[place:]
    outgoing = client.compose(request)
    return replace(entry(0, answer_for(f"Q{place}")), key=key_of(client.identity, outgoing), request=outgoing.body)


def test_counts_that_an_earlier_version_believed_fail_alone(tmp_path: Path) -> None:
    poisoned(tmp_path)
    total = ledger_of(tmp_path).total
    assert (total.requests, total.unread, total.input_tokens) == (4, 3, SENT)
    assert total.usd == pytest.approx(HONEST)
    assert len(list(latest_exchanges(tmp_path / JOURNAL / "replies.sqlite", limit=9))) == 4
    assert [spent.input_tokens for spent in read_spending(tmp_path / JOURNAL / "replies.sqlite")] == [SENT]
    assert spent_elsewhere([tmp_path]) == pytest.approx(HONEST)
    client = Miscounting(stated={"sent": SENT, "came": CAME})
    answers = ask(client, tmp_path, 10, budget=100 * HONEST)
    assert [answered.outcome for answered in answers] == ["ok"] * 10
    assert sum(client.asked.values()) == 6, "what was bought is not bought again"
    total = ledger_of(tmp_path).total
    assert (total.unread, total.input_tokens) == (0, 10 * SENT)
    assert total.usd == pytest.approx(10 * HONEST)


def test_a_reading_that_no_journal_can_hold_is_left_out_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Journal(tmp_path / JOURNAL) as journal:
        numbers = journal.append_all([entry(1), entry(2), entry(3)])
        for number, tokens in zip(numbers, (1, 10**30, 2), strict=True):
            journal.note(number, Reading("ok", Usage(tokens, 1), 0.5))
        journal.append_all([entry(4)])
    assert "reply 2 has counts beyond all bounds" in caplog.text
    total = ledger_of(tmp_path).total
    assert (total.requests, total.unread, total.input_tokens, total.usd) == (4, 2, 3, 1.0)


def test_sums_beyond_what_sqlite_adds_up_are_exact(tmp_path: Path) -> None:
    dear = 9_000_000.0
    with Journal(tmp_path / JOURNAL) as journal:
        for number in journal.append_all([entry(1), entry(2), entry(3)]):
            journal.note(number, Reading("ok", Usage(1, 1), dear))
    assert ledger_of(tmp_path).total.picodollars == 3 * 9 * 10**18
    assert spent_elsewhere([tmp_path]) == 3 * dear


def test_prices_are_written_down_once_each_for_whoever_reckons_again(tmp_path: Path) -> None:
    first, second = Rate(0.15, 0.6, cached=0.075), Rate(0.2, 0.6)
    with Journal(tmp_path) as journal:
        for rate in (None, first, first, second, first):
            remember_rate(journal, "judge", rate)
        known = json.loads(journal.recall("rates") or b"[]")
    assert known == [
        {"model": "judge", "input": 150_000, "output": 600_000, "cached": 75_000, "batch": first.batch},
        {"model": "judge", "input": 200_000, "output": 600_000, "cached": None, "batch": second.batch},
    ]
