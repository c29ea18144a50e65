"""The ledger equals what replies reported; budgets hold against servers whose counts cannot be relied on, and kills."""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.cli.llm_commands import ledger_lines
from culturekit.core.digests import JOURNAL
from culturekit.core.errors import BudgetReached, UsageError
from culturekit.llm.client import Outgoing, Quota, Rate, Reply, Usage
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Entry, Journal, Mode, Reading, key_of
from culturekit.llm.ledger import (
    JournalPlace,
    Ledger,
    Unsure,
    journal_for,
    journals_below,
    latest_exchanges,
    left_for,
    note_on_others,
    read_ledger,
    read_spending,
    spent_elsewhere,
    unsure_of,
)
from culturekit.llm.prices import cost_of, picodollars_of
from culturekit.llm.purse import Purse, remember_rate
from culturekit.llm.rows import Answered, Question, Row
from culturekit.llm.usage import Budget, Counts, dollars, input_bound, picodollars
from tests.conftest import HeardProgress
from tests.llm.fake_client import FakeClient, SimulatedWire, Turn, answer_for, questions
from tests.llm.test_journal import entry

DISCOUNTED = Rate(0.15, 0.6, cached=0.075)
MODES: tuple[Mode, ...] = ("online", "batch")


def line_entry(key: int, *, kind: str = "reply", mode: Mode = "online", model: str = "m") -> Entry:
    return Entry(key.to_bytes(32, "big"), "run", 1, mode, 200, kind, b"{}", b'{"q":%d}' % key, model=model)


def bought(folder: Path, replies: Sequence[tuple[str, Usage, Mode]]) -> None:
    with Journal(folder) as journal:
        numbers = journal.append_all([line_entry(key, mode=mode) for key, (_, _, mode) in enumerate(replies)])
        for number, (outcome, usage, mode) in zip(numbers, replies, strict=True):
            journal.note(number, Reading(outcome, usage, cost_of(usage, DISCOUNTED, mode=mode)))


usages = st.builds(
    lambda fresh, out, thinking, cached: Usage(fresh + cached, out + thinking, thinking, cached),
    *[st.integers(0, 10**7)] * 4,
)


OUTCOMES = ["ok", "repaired", "refused", "truncated", "invalid"]


@settings(max_examples=25, deadline=None)
@given(replies=st.lists(st.tuples(st.sampled_from(OUTCOMES), usages, st.sampled_from(MODES)), max_size=20))
def test_sums_are_exact(replies: list[tuple[str, Usage, Mode]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("run") / "journal"
    bought(folder, replies)
    ledger = read_ledger([JournalPlace("filter", folder / "replies.sqlite", finished=True)])
    assert ledger.total.requests == len(replies)
    for name in ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens"):
        assert getattr(ledger.total, name) == sum(getattr(usage, name) for _, usage, _ in replies)
    assert ledger.total.picodollars == sum(picodollars_of(usage, DISCOUNTED, mode=mode) for _, usage, mode in replies)
    by_line = {(line.outcome, line.mode): line.requests for line in ledger.lines}
    assert by_line == Counter((outcome, mode) for outcome, _, mode in replies)


def test_what_the_sums_do_not_hold_is_counted_apart(tmp_path: Path) -> None:
    with Journal(tmp_path / "filter/journal") as journal:
        kinds = ["reply", "reply", "reply", "timeout", "connection", "busy", "reply"]
        numbers = journal.append_all([line_entry(key, kind=kind) for key, kind in enumerate(kinds)])
        journal.note(numbers[0], Reading("ok", Usage(10, 2), 0.5))
        journal.note(numbers[1], Reading("ok", Usage(10, 2, counted="here"), 0.25))
        journal.note(numbers[2], Reading("ok", Usage(10, 2), None))
    ledger = read_ledger(journals_below([tmp_path]))
    total = ledger.total
    assert (total.requests, total.input_tokens, total.usd) == (7, 30, 0.75)
    assert (total.counted_here, total.unpriced, total.unread, total.perhaps_billed) == (1, 1, 1, 2)
    assert {line.outcome for line in ledger.lines} == {"ok", "timeout", "connection", "busy", "unread"}
    assert {line.stage for line in ledger.lines} == {"filter"}


def test_models_have_lines_of_their_own(tmp_path: Path) -> None:
    with Journal(tmp_path / "filter/journal") as journal:
        journal.append_all([line_entry(1, model="a"), line_entry(2, model="b"), line_entry(3, model="b")])
        found = journal.found([line_entry(key).key for key in (1, 2, 3)], run="run")
        assert [found[line_entry(key).key][0].model for key in (1, 2, 3)] == ["a", "b", "b"]
    ledger = read_ledger(journals_below([tmp_path]))
    assert [(line.model, line.requests) for line in ledger.lines] == [("a", 1), ("b", 2)]


def test_of_a_finished_and_an_unfinished_folder_of_a_stage_the_later_journal_counts(tmp_path: Path) -> None:
    usage: tuple[str, Usage, Mode] = ("ok", Usage(10, 1), "online")
    bought(tmp_path / "filter/journal", [usage])
    bought(tmp_path / ".filter.partial/out/journal", [usage, usage])
    bought(tmp_path / ".judge.partial/journal", [usage])
    bought(tmp_path / ".judge.previous/journal", [usage])
    places = journals_below([tmp_path])
    assert [(place.stage, place.finished) for place in places] == [("filter", False), ("judge", False)]
    assert read_ledger(places).total.requests == 3
    for name in ("filter", "judge"):
        (place,) = journals_below([tmp_path / name])
        assert (place.stage, place.finished) == (name, False)
    assert len(journals_below([tmp_path, tmp_path / "filter"])) == 2


def test_a_folder_without_a_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no journal of replies lies below"):
        journals_below([tmp_path])
    with pytest.raises(UsageError, match="there is no such folder"):
        journals_below([tmp_path / "nowhere"])


def test_the_log_gives_the_last_ones_in_order_and_by_outcome(tmp_path: Path) -> None:
    replies: list[tuple[str, Usage, Mode]] = [(("ok", "refused")[key % 2], Usage(key, 1), "online") for key in range(9)]
    bought(tmp_path, replies)
    path = tmp_path / "replies.sqlite"
    assert [exchange.number for exchange in latest_exchanges(path, limit=3)] == [7, 8, 9]
    refused = list(latest_exchanges(path, outcome="refused", limit=2))
    assert [exchange.request for exchange in refused] == [b'{"q":5}', b'{"q":7}']
    assert [exchange.usage for exchange in refused] == [Usage(5, 1), Usage(7, 1)]
    assert list(latest_exchanges(path, outcome="blocked", limit=2)) == []


def spend(stage: Path, run: str, usd: float, key: int, *, promised: float | None = None) -> None:
    with Journal(stage / "journal") as journal:
        (number,) = journal.append_all([replace(line_entry(key), run=run)])
        journal.note(number, Reading("ok", Usage(1, 1), usd))
        if promised is not None:
            journal.remember(f"promised:{run}", str(picodollars(promised)).encode())


def test_what_other_stages_spent_in_their_last_run_is_taken_from_the_budget_and_said(tmp_path: Path) -> None:
    stages = [tmp_path / "filter", tmp_path / "tag", tmp_path / "not begun"]
    spend(stages[0], "first", 1.0, 1)
    spend(stages[0], "second", 0.25, 2)
    spend(stages[1], "only", 0.5, 3)
    assert spent_elsewhere(stages) == 0.75
    assert [left_for(budget, stages) for budget in (2.0, 0.5, None)] == [1.25, 0.0, None]
    assert left_for(3.0, ()) == 3.0
    said = note_on_others(2.0, stages[:2])
    assert said == "$0.750000 of $2 spent by filter and tag, which comes on top of all sums here"
    assert note_on_others(2.0, stages[2:]) == ""
    with mock.patch("culturekit.llm.ledger.spent_in_run", side_effect=AssertionError):
        assert left_for(None, stages) is None, "without a budget nobody adds up what others spent"
        assert note_on_others(None, stages) == ""
    (tmp_path / "replies.csv").write_text("", encoding="utf-8")
    expected = r"replies\.csv: a paid stage is a folder; expected its --out, found a file"
    for budget in (1.0, None):
        with pytest.raises(UsageError, match=expected):
            left_for(budget, [tmp_path / "replies.csv"])


def test_what_was_promised_and_never_came_back_counts_as_spent(tmp_path: Path) -> None:
    spend(tmp_path / "filter", "killed", 0.25, 1, promised=0.75)
    assert left_for(1.0, [tmp_path / "filter"]) == 0.25


def test_the_journal_of_an_unfinished_stage_goes_before_that_of_the_finished_one(tmp_path: Path) -> None:
    spend(tmp_path / "filter", "first", 1.0, 1)
    spend(tmp_path / ".filter.partial/out", "second", 0.5, 2)
    assert journal_for(tmp_path / "filter") == tmp_path / ".filter.partial/out/journal/replies.sqlite"
    assert left_for(2.0, [tmp_path / "filter"]) == 1.5


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


ANSWERED, STUCK, ROWS = 5, 4, 40


@dataclass
class Stalling(FakeClient):
    """Answers a few requests; the others it marks as they reach it, and never answers."""

    marks: Path = Path()

    async def send(self, outgoing: Outgoing) -> bytes:
        if sum(self.asked.values()) < ANSWERED:
            return await super().send(outgoing)
        with self.marks.open("ab") as file:
            file.write(b".")
        await asyncio.sleep(3600.0)
        raise AssertionError


def ask_until(client: FakeClient, folder: Path, *, budget: float | None = None) -> None:
    with Journal(folder / "filter/journal") as journal:
        options = AskOptions(concurrency=STUCK, budget=budget)
        list(AskEngine(client, journal, options, run="one").ask_all(questions(ROWS)))


def ended_by(number: int, folder: Path) -> None:
    """Ask in a process of its own, and end it when nothing more can leave."""
    marks = folder / "marks"
    marks.touch()
    process = os.fork()
    if not process:
        try:
            ask_until(Stalling(marks=marks), folder)
        except KeyboardInterrupt:
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(repr(error))
        os._exit(1)
    while marks.stat().st_size < STUCK:
        time.sleep(0.01)
    os.kill(process, number)
    assert os.waitpid(process, 0)[1] == (number if number == signal.SIGKILL else 0)


def ledger_below(folder: Path) -> Ledger:
    return read_ledger(journals_below([folder]))


def worst() -> float:
    client = FakeClient()
    (request,) = questions(1)
    return Purse(RATE, client.identity, Budget(None)).worst(Question(0, Row(request), client.compose(request), b""))


def spent_by_budget(folder: Path) -> float:
    """Give what a process counts as spent that goes on."""
    client = FakeClient()
    with Journal(folder / "filter/journal") as journal:
        going_on = AskEngine(client, journal, AskOptions(budget=1.0), run="one")
        going_on.purse.remember_in(journal, "one")
        return going_on.purse.budget.spent


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "ctrl-c"])
def test_cost_and_budget_agree_when_a_process_died_with_requests_under_way(number: int, tmp_path: Path) -> None:
    ended_by(number, tmp_path)
    before = ledger_below(tmp_path)
    assert before.total.usd == pytest.approx(ANSWERED * HONEST)
    assert (before.total.requests, before.total.perhaps_billed) == (ANSWERED, STUCK)
    assert before.total.usd_unsure == pytest.approx(STUCK * worst())
    counted = before.total.usd + before.total.usd_unsure
    assert 1.0 - (left_for(1.0, [tmp_path / "filter"]) or 0.0) == pytest.approx(counted)
    for _ in range(2):
        assert spent_by_budget(tmp_path) == pytest.approx(counted), "it neither grows nor is it forgotten"
        assert ledger_below(tmp_path).total == before.total
    lines = list(ledger_lines(before))
    assert f"{STUCK} requests got no reply, or are under way" in lines[-2]
    assert lines[-1].endswith(f"{counted:.6f} USD in all.")


def test_a_run_that_goes_on_after_a_kill_pays_for_what_it_asks_again(tmp_path: Path) -> None:
    ended_by(signal.SIGKILL, tmp_path)
    lost = ledger_below(tmp_path).total.usd_unsure
    client = FakeClient()
    with pytest.raises(BudgetReached, match=r"and up to \$0\.\d+ for replies that did not come"):
        ask_until(client, tmp_path, budget=lost + 20 * HONEST)
    assert client.usd + ANSWERED * HONEST + lost <= lost + 20 * HONEST
    ask_until(client, tmp_path, budget=1.0)
    total = ledger_below(tmp_path).total
    assert total.usd == pytest.approx(ROWS * HONEST)
    assert (total.perhaps_billed, total.usd_unsure) == (STUCK, lost)
    assert spent_by_budget(tmp_path) == pytest.approx(ROWS * HONEST + lost)
