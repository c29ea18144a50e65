"""Rows asked online: each bought once and ended in one outcome; models and servers of no use are noticed early."""

import errno
import json
import logging
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import BudgetReached, UnusableReplies, UpstreamUnavailable, UsageError
from culturekit.core.stage import Work
from culturekit.llm import engine
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Failure, Rate, Reply, Request
from culturekit.llm.dispatch import DurableHold, Limiter
from culturekit.llm.engine import AskEngine, AskOptions, ask_free
from culturekit.llm.journal import FILE, Journal
from culturekit.llm.ledger import latest_exchanges, spent_in_run
from culturekit.llm.probing import needs_probe, probe_once
from culturekit.llm.purse import Purse
from culturekit.llm.rows import LOOKED_AT, OUTCOMES, Answered, ReplyWatch, Row, failed, heard
from culturekit.llm.usage import Budget
from tests.builders.paid_judge import PaidJudge
from tests.conftest import HeardProgress
from tests.llm.fake_client import FakeClient, Verdict, answer_for, client, question, questions
from tests.llm.server import Fault, Rule, Script, running_server

FAST = AskOptions(concurrency=16)


def ask(
    client: FakeClient, folder: Path, requests: list[Request], options: AskOptions = FAST, run: str = "one"
) -> list[Answered]:
    with Journal(folder / "journal") as journal:
        return list(AskEngine(client, journal, options, run=run).ask_all(requests))


def reply_of(text: str, stop: str = "end") -> bytes:
    return json.dumps({"text": text, "in": 50, "out": 10, "stop": stop}).encode()


def mixed(identifier: str, count: int) -> bytes | Failure:
    """Good, refused, invalid for good, repaired, rejected: by the last digit of the row."""
    match identifier[-1]:
        case "1":
            return reply_of("No.", "refusal")
        case "2":
            return reply_of("prose")
        case "3":
            return reply_of("prose") if count == 1 else answer_for(identifier)
        case "4":
            return Failure("rejected", "bad", status=400, raw=b'{"error":"bad"}')
        case _:
            return answer_for(identifier)


def test_answers_come_in_the_order_of_the_requests(tmp_path: Path) -> None:
    client = FakeClient(delay=0.001)
    answers = ask(client, tmp_path, questions(400))
    assert [answered.value for answered in answers] == [Verdict(f"Q{number}", "keep") for number in range(400)]
    assert client.most_in_flight <= 16
    assert client.closed == 1


@pytest.mark.parametrize("concurrency", [1, 256])
def test_what_is_answered_does_not_depend_on_how_many_go_at_once(tmp_path: Path, concurrency: int) -> None:
    answers = ask(FakeClient(mixed), tmp_path, questions(50), AskOptions(concurrency=concurrency))
    expected = ["ok", "refused", "invalid", "repaired", "invalid", *["ok"] * 5] * 5
    assert [answered.outcome for answered in answers] == expected


def test_within_a_run_nothing_journalled_is_asked_again_and_another_run_is_served_answers_only(tmp_path: Path) -> None:
    first = ask(FakeClient(mixed), tmp_path, questions(50))
    again, other = FakeClient(mixed), FakeClient(mixed)
    assert ask(again, tmp_path, questions(50)) == [replace(answered, bought=False) for answered in first]
    assert (again.asked, {answered.bought for answered in first}) == ({}, {True})
    answers = ask(other, tmp_path, questions(10), run="two")
    assert (other.asked, answers[3].outcome) == ({"Q1": 1, "Q2": 2, "Q4": 1}, "repaired")


def test_a_reply_from_before_a_kill_that_was_repaired_after_it_serves_other_runs_too(tmp_path: Path) -> None:
    first: Iterator[bytes | Failure] = iter([reply_of("prose"), Failure("fatal", "", status=401)])
    with pytest.raises(UsageError):
        ask(FakeClient(lambda *_: next(first)), tmp_path, questions(1))
    for run, asked in (("one", 1), ("two", 0)):
        client = FakeClient()
        assert [answered.outcome for answered in ask(client, tmp_path, questions(1), run=run)] == ["repaired"]
        assert client.asked.total() == asked


def test_a_row_cut_short_goes_on_with_the_tries_it_has_left(tmp_path: Path) -> None:
    client = FakeClient(lambda *_: Failure("server", "", status=500))
    with Journal(tmp_path / "journal") as journal, pytest.raises(UpstreamUnavailable):
        list(AskEngine(client, journal, AskOptions(patience=3.0), run="one").ask_all(questions(1)))
    asked_before = client.asked["Q0"]
    assert 1 < asked_before < 6
    (answered,) = ask(client, tmp_path, questions(1), AskOptions(tries=asked_before + 1))
    assert answered.outcome == "exhausted"
    assert client.asked["Q0"] == asked_before + 1


def test_the_same_question_twice_is_bought_once(tmp_path: Path) -> None:
    client = FakeClient(mixed, delay=0.01)
    requests = [*questions(10), *questions(10)]
    answers = ask(client, tmp_path, requests)
    assert [a.outcome for a in answers[:10]] == [a.outcome for a in answers[10:]]
    assert sum(client.asked.values()) == 12
    assert [a.bought for a in answers] == [True] * 10 + [False] * 10
    (request,) = questions(1)
    ask(client := FakeClient(), tmp_path / "samples", [replace(request, sample=n) for n in range(3)])
    assert client.asked["Q0"] == 3, "samples are bought apart"


def test_requests_are_pulled_only_as_far_as_the_window_reaches(tmp_path: Path) -> None:
    pulled = 0
    stuck = threading.Event()

    def endless() -> Iterator[Request]:
        nonlocal pulled
        for request in questions(30_000):
            pulled += 1
            yield request

    def behaviour(identifier: str, _: int) -> bytes:
        if identifier == "Q600":
            stuck.wait(0.01)
        return answer_for(identifier)

    with Journal(tmp_path / "journal") as journal:
        answers = AskEngine(FakeClient(behaviour), journal, FAST, run="one").ask_all(endless())
        next(answers)
        assert pulled <= 9000
        answers.close()


def test_a_budget_ends_the_run_before_it_is_passed_and_more_money_goes_on(tmp_path: Path) -> None:
    client = FakeClient(delay=0.001)
    one = 70e-6
    with pytest.raises(BudgetReached) as caught:
        ask(client, tmp_path, questions(100), AskOptions(budget=40 * one))
    assert client.usd <= 40 * one
    bought = sum(client.asked.values())
    assert 20 < bought <= 40
    assert f"{bought} of 100 rows are done" in str(caught.value)
    assert caught.value.exit_code == 5
    with pytest.raises(BudgetReached):
        ask(client, tmp_path, questions(100), AskOptions(budget=40 * one))
    assert sum(client.asked.values()) == bought, "the same budget again buys nothing more"
    answers = ask(client, tmp_path, questions(100), AskOptions(budget=0.02))
    assert {answered.outcome for answered in answers} == {"ok"}
    assert sum(client.asked.values()) == 100


@pytest.mark.parametrize(("status", "kind"), [(401, UsageError), (429, UpstreamUnavailable)])
def test_a_fatal_failure_ends_the_run_with_what_to_do(tmp_path: Path, status: int, kind: type[Exception]) -> None:
    client = FakeClient(lambda *_: Failure("fatal", "The key was refused.", status=status))
    with pytest.raises(kind, match="The key was refused"):
        ask(client, tmp_path, questions(200))
    assert sum(client.asked.values()) <= 16
    answers = ask(FakeClient(), tmp_path, questions(200), AskOptions(tries=1))
    assert {answered.outcome for answered in answers} == {"ok"}, "fatal failures count against no row"


def test_a_reply_that_never_comes_is_a_failure(tmp_path: Path) -> None:
    options = AskOptions(longest=0.05, tries=2)
    (answered,) = ask(FakeClient(delay=30.0), tmp_path, questions(1), options)
    assert answered.outcome == "exhausted"
    assert "no reply in time" in answered.detail


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_a_server_that_is_not_there_costs_nothing_and_no_row(tmp_path: Path, rows: int) -> None:
    client = FakeClient(lambda *_: Failure("connection", "connection refused", sent=False))
    options = AskOptions(budget=0.002, patience=1.0, tries=1)
    with Journal(tmp_path / "journal") as journal:
        engine = AskEngine(client, journal, options, run="one")
        with pytest.raises(UpstreamUnavailable, match="no reply for 1 s; found connection refused") as caught:
            list(engine.ask_all(questions(rows)))
        assert spent_in_run(journal.path, "one") == 0.0
        assert not list(latest_exchanges(journal.path, limit=5)), "nobody was asked"
    assert caught.value.exit_code == 3
    (answered,) = ask(FakeClient(), tmp_path, questions(1), AskOptions(budget=0.002))
    assert answered.outcome == "ok", "all of the budget is there"


@pytest.mark.parametrize("rows", [1, 40])
def test_a_failure_that_is_not_worth_all_patience_ends_the_run_earlier(tmp_path: Path, rows: int) -> None:
    client = FakeClient(lambda *_: Failure("connection", "connection refused", sent=False, patience=1.0))
    with pytest.raises(UpstreamUnavailable, match=r"no reply for 1 s; found connection refused.*start the server"):
        ask(client, tmp_path, questions(rows), AskOptions(patience=900.0))
    first = iter([Failure("connection", "connection refused", sent=False, patience=60.0)])
    client = FakeClient(lambda name, _: next(first, answer_for(name)))
    assert {answered.outcome for answered in ask(client, tmp_path, questions(rows))} == {"ok"}


def test_replies_that_may_have_been_sold_are_charged_and_said(tmp_path: Path) -> None:
    client = FakeClient(lambda *_: Failure("timeout", "a request timed out"))
    with pytest.raises(BudgetReached, match=r"and up to \$0\.\d+ for replies that did not come"):
        ask(client, tmp_path, questions(5), AskOptions(budget=0.002, patience=60.0))


def test_a_silent_server_is_given_up_when_patience_ends_although_requests_hang(tmp_path: Path) -> None:
    with pytest.raises(UpstreamUnavailable, match=r"no reply for 0\.5 s"):
        ask(FakeClient(delay=60.0), tmp_path, questions(5), AskOptions(patience=0.5))


STEPS = [*product(("append", "found", "note", "write"), (1, 2, 5)), ("recall", 1), ("write_now", 1)]


@pytest.mark.parametrize(("step", "at"), STEPS)
def test_a_journal_that_fails_anywhere_ends_the_run_with_its_error(
    tmp_path: Path, step: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, calls = getattr(Journal, step), iter(range(1, 10**6))

    def failing(self: Journal, *arguments: object, **options: object) -> object:
        if next(calls) >= at:
            raise OSError(errno.EIO, "the disk failed")
        return really(self, *arguments, **options)

    options = AskOptions(budget=10.0, concurrency=2)
    ask(FakeClient(), tmp_path, questions(10), options)
    monkeypatch.setattr(Journal, step, failing)
    with pytest.raises(OSError, match="the disk failed"):
        ask(FakeClient(lambda *_: reply_of("prose")), tmp_path, questions(900), options)
    monkeypatch.undo()
    answers = ask(FakeClient(), tmp_path, questions(20), options)
    assert [answered.outcome for answered in answers][:10] == ["ok"] * 10


@pytest.mark.parametrize("where", ["arithmetic", "client"])
def test_an_error_of_our_own_ends_the_run(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError

    if where == "arithmetic":
        monkeypatch.setattr(Limiter, "due", broken)
    with pytest.raises(ZeroDivisionError):
        ask(FakeClient(broken) if where == "client" else FakeClient(), tmp_path, questions(20))


def test_an_unknown_price_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    client = FakeClient(rate=None)
    for options in (AskOptions(budget=1.0), AskOptions()):
        with pytest.raises(UsageError, match="the price of fake-1 is not known"):
            ask(client, tmp_path, questions(3), options)
    assert client.asked == {}


def test_what_is_left_behind_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CHUNK", 20)
    monkeypatch.setattr(engine, "WINDOW", 20)  # so that some are not asked, however late this thread leaves
    client = FakeClient(delay=0.05)
    with Journal(tmp_path / "journal") as journal:
        answers = AskEngine(client, journal, FAST, run="one").ask_all(questions(100))
        next(answers)
        answers.close()
    bought = dict(client.asked)
    ask(client, tmp_path, questions(100))
    assert set(client.asked.values()) == {1}
    assert 0 < len(bought) < 100


def test_a_free_client_is_asked_directly() -> None:
    class Scripted:
        model = "scripted"
        caveat = ""

        def ask(self, request: Request) -> Reply:
            identifier = str(request.data["id"])
            if identifier == "Q1":
                return Reply("", stop="refusal")
            if identifier == "Q2" and request.instructions == "Judge.":
                return Reply("prose")
            return Reply(json.dumps({"id": identifier, "verdict": "keep"}))

    answers = ask_free(Scripted(), questions(4))
    assert [answered.outcome for answered in answers] == ["ok", "refused", "repaired", "ok"]


def test_progress_hears_of_money_first_then_tokens_and_limits(tmp_path: Path) -> None:
    heard = HeardProgress()
    client = FakeClient(delay=0.06, rate=Rate(1.0, 2.0))
    with Journal(tmp_path / "journal") as journal:
        list(AskEngine(client, journal, AskOptions(concurrency=2), run="one", progress=heard).ask_all(questions(60)))
    assert heard.units
    assert re.fullmatch(r"\$0\.0\d+, [\d,]+ tokens/s, .*2 at once.*", heard.units[0])


INTERRUPTED = """
import os, sys
from pathlib import Path
from culturekit.llm import engine
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.llm.fake_client import FakeClient, questions

class QuickOnce(FakeClient):
    async def send(self, outgoing):
        self.delay = float(sys.argv[2]) if self.asked else 0.0
        return await super().send(outgoing)

interruptible = engine._interruptible
engine._interruptible = lambda wind_down: interruptible(lambda: (os.write(2, b"winding down\\n"), wind_down()))
with Journal(Path(sys.argv[1]) / "journal") as journal:
    client = QuickOnce()
    answers = AskEngine(client, journal, AskOptions(concurrency=8), run="one").ask_all(questions(100_000))
    try:
        for _ in answers:
            print("row", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise SystemExit(130)
"""


def interrupted(folder: Path, delay: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", INTERRUPTED, str(folder), delay]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=Path(__file__).parents[2])


@pytest.mark.endtoend
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_press_drains_and_raises(tmp_path: Path, number: signal.Signals) -> None:
    with interrupted(tmp_path, "0.02") as process:
        assert process.stdout is not None and process.stdout.readline() == "row\n"
        process.send_signal(number)
        assert process.stdout.read().endswith("interrupted\n")
        assert process.wait() == 130


@pytest.mark.endtoend
def test_the_second_press_leaves_at_once(tmp_path: Path) -> None:
    with interrupted(tmp_path, "3600") as process:
        assert process.stdout is not None and process.stdout.readline() == "row\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None and process.stderr.readline() == "winding down\n"
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert "interrupted" not in process.stdout.read(), "it did not wait for what was under way"


ROWS = 300
CONCURRENCY = 4


def kept(qid: str) -> str:
    return json.dumps({"id": qid, "verdict": "keep"})


WAYS: dict[str, Callable[[str], str | Failure | Reply]] = {
    "invented ids": lambda qid: kept("Q999999"),
    "prose": lambda qid: "I would keep it.",
    "cut": lambda qid: Reply('{"id":', stop="length"),
    "refused": lambda qid: Reply("I cannot.", stop="refusal"),
    "rejected": lambda qid: Failure("rejected", "no such schema", status=400),
}


def requests_about(rows: int) -> list[Request]:
    qids = [f"Q{number}" for number in range(1, rows + 1)]
    return [question(data={"id": qid, "label": f"dish {qid}"}, allowed={"id": (qid,)}) for qid in qids]


def judged(work: Work, judge: PaidJudge, **options: object) -> list[Answered]:
    llm = replace(LlmOptions(concurrency=CONCURRENCY), **options)  # type: ignore[arg-type]
    return list(answers(judge, requests_about(ROWS), work=work, llm=llm))


@pytest.mark.parametrize("way", WAYS)
def test_replies_of_no_use_end_a_run_after_twenty_rows(work: Work, way: str) -> None:
    judge = PaidJudge(WAYS[way])
    with pytest.raises(UnusableReplies, match="of the first 20 rows") as caught:
        judged(work, judge)
    assert caught.value.exit_code == 3
    assert len(judge.sent) == LOOKED_AT
    again = PaidJudge(WAYS[way])
    with pytest.raises(UnusableReplies):
        judged(work, again)
    assert not again.sent, "what is known to be of no use is bought again"


def test_with_go_on_the_rest_is_asked_and_nothing_is_bought_twice(work: Work) -> None:
    stopped, went_on = PaidJudge(WAYS["refused"]), PaidJudge(WAYS["refused"])
    with pytest.raises(UnusableReplies):
        judged(work, stopped)
    ended = judged(work, went_on, go_on=True)
    assert [answered.outcome for answered in ended] == ["refused"] * ROWS
    assert (stopped.sent + went_on.sent).total() == ROWS


def test_a_model_that_becomes_useless_is_noticed_later_too(work: Work) -> None:
    judge = PaidJudge(lambda qid: kept(qid) if int(qid[1:]) <= 40 else "no")
    with pytest.raises(UnusableReplies):
        judged(work, judge)
    assert len(judge.sent) < 100


def test_few_rows_and_those_of_which_half_are_answered_are_asked_to_the_end(work: Work) -> None:
    half = PaidJudge(lambda qid: kept(qid) if int(qid[1:]) % 2 else Reply("", stop="refusal"))
    assert len(judged(work, half)) == ROWS
    judge = PaidJudge(WAYS["prose"])
    ended = list(answers(judge, requests_about(LOOKED_AT - 1), work=work, llm=LlmOptions()))
    assert len(ended) == LOOKED_AT - 1
    last = list(answers(judge, requests_about(LOOKED_AT), work=work, llm=LlmOptions(concurrency=64)))
    assert len(last) == LOOKED_AT, "nothing was left to save"


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "```json\r\n{}```", "\n```JSON  \n{}\n```  \n"])
def test_a_fence_round_an_answer_is_taken_off_and_counted(work: Work, fence: str) -> None:
    judge, watch = PaidJudge(lambda qid: fence.replace("{}", kept(qid))), ReplyWatch()
    ended = list(answers(judge, requests_about(30), work=work, llm=LlmOptions(), watch=watch))
    assert {(one.outcome, one.detail) for one in ended} == {("ok", "fenced")}
    assert judge.sent.total() == 30
    assert watch.notes() == {"fenced": 30}
    assert all(one.raw.strip().startswith("```") for one in ended)
    strange = PaidJudge(lambda qid: fence.replace("{}", kept("Q999999")))
    ended = list(answers(strange, requests_about(33)[30:], work=work, llm=LlmOptions()))
    assert {(one.outcome, one.detail) for one in ended} == {("invalid", "unknown-id")}, "it is read as strictly"


REQUEST = Request("test", "Judge.", {"id": "Q1"}, Verdict, {"id": ("Q1",)})
GOOD = Reply(json.dumps({"id": "Q1", "verdict": "keep"}))
BAD = Reply("no JSON at all")

events = st.one_of(
    st.just(GOOD),
    st.just(BAD),
    st.just(Reply(json.dumps({"id": "Q2", "verdict": "keep"}))),
    st.sampled_from([Reply("", stop=stop) for stop in ("length", "refusal", "blocked", "unreadable")]),
    st.sampled_from(
        [Failure(kind, "", status=500) for kind in ("busy", "server", "timeout", "connection", "rejected", "blocked")]
    ),
)


def end_of(happened: list[Reply | Failure], **options: Any) -> tuple[Row | Answered, int]:
    now: Row | Answered = Row(REQUEST)
    for used, event in enumerate(happened):
        if isinstance(now, Answered):
            return now, used
        now = failed(now, event, **options) if isinstance(event, Failure) else heard(now, event, **options)
    return now, len(happened)


@given(st.lists(events, min_size=13, max_size=13), st.integers(1, 6))
def test_every_row_ends_in_one_outcome_and_within_its_tries(happened: list[Reply | Failure], tries: int) -> None:
    free, _ = end_of(happened, tries=1, charged=False)
    assert not isinstance(free, Answered) or free.outcome != "exhausted", "what is not charged never exhausts"
    now, used = end_of(happened, tries=tries)
    assert isinstance(now, Answered)
    assert used <= 2 * tries
    assert now.outcome in OUTCOMES
    assert (now.value is not None) == (now.outcome in {"ok", "repaired"})
    if now.value is not None:
        assert now.value == Verdict("Q1", "keep")


def test_a_reply_that_is_no_answer_is_repaired_once() -> None:
    row = heard(Row(REQUEST, tries=5), BAD, tries=6)
    assert isinstance(row, Row)
    assert row.repairing and row.tries == 0, "the repair has tries of its own"
    assert "no JSON at all" not in row.request.instructions
    assert heard(row, GOOD, tries=6) == Answered("repaired", Verdict("Q1", "keep"), raw=GOOD.text)
    again = heard(row, BAD, tries=6)
    assert isinstance(again, Answered)
    assert (again.outcome, again.raw) == ("invalid", BAD.text)


def test_the_stops_of_a_model_are_the_outcomes_they_are_called_by() -> None:
    ends = {"refusal": "refused", "blocked": "blocked", "length": "truncated"}
    for stop, outcome in ends.items():
        answered = heard(Row(REQUEST), Reply("I", stop=stop), tries=6)  # type: ignore[arg-type]
        assert isinstance(answered, Answered)
        assert answered.outcome == outcome
    assert set(get_args(Reply.__annotations__["stop"])) <= {*ends, "end", "unreadable"}


def test_an_exhausted_row_says_what_failed_last() -> None:
    answered = failed(Row(REQUEST, tries=5), Failure("server", "secret text", status=503), tries=6)
    assert answered == Answered("exhausted", detail="6 tries; the last: the server failed (status 503)")


def probed(folder: Path, script: Script, *, times: int = 1) -> tuple[int, float]:
    with running_server(script) as server, Journal(folder) as journal:
        asked = client(f"openai:qwen?base_url={server.openai_url}&schema=vllm&price=1/2")
        hold = DurableHold(journal, asked.identity, 900.0)
        for _ in range(times):
            probe_once(asked, journal, Purse(asked.rate, asked.identity, Budget(1.0)), hold, run="r")
        return len(server.records()), hold.left()


def test_a_server_that_enforces_schemas_is_asked_once_and_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert probed(tmp_path, Script(), times=3) == (1, 0.0)
    assert not caplog.records


def test_a_reply_that_a_kill_left_unread_is_read_and_not_bought_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with running_server(Script(ignores_schema=True)) as server:
        asked = client(f"openai:qwen?base_url={server.openai_url}&schema=vllm&price=1/2")

        def probe() -> float | None:
            purse = Purse(asked.rate, asked.identity, Budget(1.0))
            with Journal(tmp_path) as journal:
                probe_once(asked, journal, purse, DurableHold(journal, asked.identity, 900.0), run="r")
            return purse.paid

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Journal, "note", killed)
            probe()
        assert not caplog.records
        paid = probe()
        assert paid
        assert paid == pytest.approx(spent_in_run(tmp_path / FILE, "r"))
        assert "without holding the model qwen to the schema" in caplog.text
        assert len(server.records()) == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (Script(ignores_schema=True), "without holding the model qwen to the schema"),
        (Script(rules=(Rule(Fault("says", text='{"verdict":"keep"}')),)), "without holding"),
        (Script(rules=(Rule(Fault("white-space")),)), "white space up to the limit"),
        (Script(rules=(Rule(Fault("broken-json")),)), "gave no reply that tells: unreadable"),
    ],
)
def test_a_server_that_does_not_is_warned_of_after_one_request(
    script: Script, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert probed(tmp_path, script, times=2)[0] == 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert said in caplog.text


def test_a_server_that_is_busy_is_left_alone_as_long_as_it_wants_and_what_no_waiting_mends_is_said(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="key"):
        probed(tmp_path / "refused", Script(rules=(Rule(Fault("unauthorized")),)))
    busy = Script(rules=(Rule(Fault("busy", hint="retry-after", wait=60.0)),))
    requests, left = probed(tmp_path, busy, times=2)
    assert requests == 1
    assert 50 < left <= 60


def test_only_servers_of_ones_own_are_probed() -> None:
    asked: Any = ["openai:gpt-4o-mini", "google:gemini-2.5-flash", "openai:m?base_url=https://eu.api.openai.com/v1"]
    assert not any(needs_probe(client(spec)) for spec in asked)
    assert needs_probe(client("openai:m?base_url=http://127.0.0.1:8000/v1"))
