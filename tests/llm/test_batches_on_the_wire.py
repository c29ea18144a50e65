"""Both providers' batches through their SDKs, against a server that counts."""

import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import BudgetReached, UpstreamUnavailable, UsageError
from culturekit.llm.batch_runner import Clock, Jobs, Pauses, batches_of
from culturekit.llm.clients import google_client as google_batches
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.rows import Answered
from tests.faults.kill_and_resume import environment
from tests.faults.llm_batch_asking import asking_words, client_of
from tests.llm.fake_client import listening, questions
from tests.llm.server import Fault, JobPlan, Rule, Script, When, running_server

pytestmark = pytest.mark.parametrize("provider", ["openai", "google"])

CREATED = ("batches.create",)
QUICK, OPTIONS = Pauses(first=0.01, longest=0.05, settle=0.05), AskOptions()


def ask(
    provider: str, url: str, folder: Path, count: int, *, run: str = "run", options: AskOptions = OPTIONS, **more: Any
) -> list[Answered]:
    client, more = client_of(provider, url), {"pauses": QUICK, **more}
    with Journal(folder) as journal:
        engine = AskEngine(client, journal, options, run=run, transport=Jobs(batches_of(client), **more))
        return list(engine.ask_all(questions(count, max_tokens=60)))


class JumpingClock(Clock):
    """A clock that does not let anybody wait."""

    passed = 0.0

    def now(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-loopback-0123456789")


def test_a_batch_is_answered_at_what_the_server_counts_and_its_second_run_sends_nothing(
    provider: str, tmp_path: Path
) -> None:
    rules = (Rule(Fault("prose"), When(share=0.3, modes=("batch",), attempts=(1, 1))),)
    script = Script(rules=rules, keys=("another",))
    with running_server(script) as server:
        with pytest.raises(UsageError, match="key"):
            ask(provider, server.url, tmp_path, 2)
        server.follow(Script(rules=rules, job=JobPlan(polls=3, shuffled=True, duplicated=0.3), thinking=7))
        answers = ask(provider, server.url, tmp_path, 30)
        assert [answer.value.id for answer in answers] == [f"Q{n}" for n in range(30)]  # type: ignore[union-attr]
        assert {answer.outcome for answer in answers} == {"ok", "repaired"}
        before = server.stats()
        assert before["jobs_made"] == 2 and before["lines_made"] > 30 and not before["broken"]
        with Journal(tmp_path) as journal:
            sums = journal.reader.execute(
                "SELECT count(*), sum(input_tokens), sum(output_tokens), sum(usd) FROM exchanges"
            ).fetchone()
        assert sums[:3] == tuple(before["batch"][name] for name in ("replies", "input_tokens", "output_tokens"))
        assert sums[3] == pytest.approx(before["usd"], abs=1e-12)
        again = ask(provider, server.url, tmp_path, 30, run="other")
        assert [replace(answer, bought=False) for answer in answers] == again
        assert server.stats()["requests"] == before["requests"]


def test_a_large_batch_of_gemini_goes_as_a_file_with_the_same_answers(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server(Script(job=JobPlan(shuffled=True))) as server:
        inline = ask(provider, server.url, tmp_path / "inline", 5)
        monkeypatch.setattr(google_batches, "INLINE_BYTES", 10)
        assert ask(provider, server.url, tmp_path / "file", 5) == inline
        assert server.stats()["operations"].get("files.create", 0) >= 1
        assert not server.stats()["broken"]


def test_shuffled_lost_doubled_and_misnamed_results_end_in_the_right_rows(provider: str, tmp_path: Path) -> None:
    plan = JobPlan(shuffled=True, missing=0.2, duplicated=0.3, misnamed=0.2, swapped=0.2)
    with running_server(Script(jobs=(plan,))) as server:
        answers = ask(provider, server.url, tmp_path, 40)
        assert [answer.value.id for answer in answers] == [f"Q{n}" for n in range(40)]  # type: ignore[union-attr]
        assert {answer.outcome for answer in answers} == {"ok", "repaired"}
        stats = server.stats()
        assert 40 < stats["lines_made"] < 80 and stats["bought_twice"] == 0


@pytest.mark.parametrize("ends", ["expired", "cancelled", "failed"])
def test_jobs_that_end_early_keep_what_was_done_and_ask_the_rest_again(
    provider: str, ends: str, tmp_path: Path
) -> None:
    with running_server(Script(jobs=(JobPlan(ends=ends, share=0.5),))) as server:  # type: ignore[arg-type]
        answers = ask(provider, server.url, tmp_path, 20)
        assert {answer.outcome for answer in answers} == {"ok"}
        stats = server.stats()
        assert stats["lines_made"] == (40 if ends == "failed" else 30) and stats["bought_twice"] == 0


def test_a_creation_that_was_cut_off_is_found_again(provider: str, tmp_path: Path) -> None:
    script = Script(jobs=(JobPlan(unsaid=True),))
    with running_server(script) as server:
        answers = ask(provider, server.url, tmp_path, 10)
        assert {answer.outcome for answer in answers} == {"ok"}
        assert server.stats()["lines_made"] == 10 and server.stats()["operations"]["batches.list"] >= 1


def test_a_hint_is_waited_for_before_anything_is_sent(provider: str, tmp_path: Path) -> None:
    busy = Fault("busy", hint="retry-info" if provider == "google" else "retry-after-ms", wait=0.4)
    with running_server(Script(rules=(Rule(busy, When(operations=CREATED), times=2),))) as server:
        ask(provider, server.url, tmp_path, 3)
        stats = server.stats()
        assert stats["statuses"]["429"] == 2 and stats["early_model"] == 0 and stats["lines_made"] == 3


def test_rows_that_fail_within_a_job_are_judged_as_online(provider: str, tmp_path: Path) -> None:
    def rule(kind: str, row: str, attempts: tuple[int, int | None] = (1, None)) -> Rule:
        return Rule(Fault(kind), When(rows=(row,), modes=("batch",), attempts=attempts))

    rules = (
        rule("server-error", "Q0", (1, 1)), rule("bad-request", "Q1"),
        rule("refusal" if provider == "openai" else "prohibited", "Q2"), rule("truncated", "Q3"),
        rule("prose", "Q4", (1, 1)), rule("busy", "Q5", (1, 1)), rule("wrong-id", "Q6"),
    )  # fmt: skip
    with running_server(Script(rules=rules)) as server:
        answers = ask(provider, server.url, tmp_path, 8)
    stopped = "refused" if provider == "openai" else "blocked"
    assert [answer.outcome for answer in answers] == [
        "ok", "invalid", stopped, "truncated", "repaired", "ok", "invalid", "ok",
    ]  # fmt: skip


def test_replies_in_a_batch_that_are_not_counted_are_counted_here_and_budgeted_at_their_worst(
    provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = (Rule(Fault("no-usage"), When(modes=("batch",))),)
    budget = 0.01
    with running_server(Script(rules=rules)) as server:
        with pytest.raises(BudgetReached):
            ask(provider, server.url, tmp_path, 200, options=AskOptions(budget=budget))
        stats = server.stats()
        assert 0 < stats["usd"] <= budget
    assert caplog.text.count("it counts no tokens") == 1
    with Journal(tmp_path) as journal:
        least, here = journal.reader.execute(
            "SELECT min(input_tokens), sum(counted = 'here') FROM exchanges WHERE kind = 'reply'"
        ).fetchone()
        assert here == stats["batch"]["replies"]
        assert least > 30, "the tokens of the question are counted too"


@pytest.mark.endtoend
def test_ctrl_c_leaves_at_once_and_the_job_is_collected_later(provider: str, tmp_path: Path) -> None:
    with running_server(Script(jobs=(JobPlan(polls=10_000),))) as server:
        assert server.service is not None
        jobs = server.service.storage.jobs
        command = asking_words(provider, server.url, tmp_path)
        process = subprocess.Popen(command, env=environment())
        while not server.stats()["operations"].get("batches.get"):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
        jobs[next(iter(jobs))].plan = JobPlan()
        subprocess.run(command, env=environment(), check=True)
        assert server.stats()["bought_twice"] == 0 and len(jobs) == 4


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_a_batch_api_is_said_once_and_clearly(provider: str, status: int, tmp_path: Path) -> None:
    with listening() as ears:
        ears.status, ears.body = status, b'{"detail":"Not Found"}'
        for _ in range(2):
            with pytest.raises(UsageError, match=r"has no batch API.*found status \d+.*leave out --batch") as caught:
                ask(provider, ears.url, tmp_path, 3)
            assert ears.url in str(caught.value)
        assert len(ears.heard) == 2


def test_a_batch_for_a_server_on_this_machine_that_is_not_there_is_given_up_after_a_minute(
    provider: str, tmp_path: Path
) -> None:
    with listening() as gone:
        url = gone.url
    clock = JumpingClock()
    with pytest.raises(UpstreamUnavailable, match=r"no reply for 60 s; found connection refused.*start the server"):
        ask(provider, url, tmp_path, 3, clock=clock, pauses=Pauses())
    assert clock.passed <= 61.0
