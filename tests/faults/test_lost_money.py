"""What a process leaves behind that is killed while requests are under way: `llm cost` and the budget say the same."""

import asyncio
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from culturekit.cli.llm_commands import ledger_lines
from culturekit.core.errors import BudgetReached
from culturekit.llm.client import Outgoing, Rate
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.ledger import Ledger, journals_below, left_for, read_ledger
from culturekit.llm.purse import Purse
from culturekit.llm.rows import Question, Row
from culturekit.llm.usage import Budget
from tests.llm.fake_client import FakeClient, questions

ANSWERED, STUCK, ROWS = 5, 4, 40
HONEST = 70e-6
RATE = Rate(1.0, 2.0)


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


def ask(client: FakeClient, folder: Path, *, budget: float | None = None) -> None:
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
            ask(Stalling(marks=marks), folder)
        except KeyboardInterrupt:
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(repr(error))
        os._exit(1)
    while marks.stat().st_size < STUCK:
        time.sleep(0.01)
    os.kill(process, number)
    assert os.waitpid(process, 0)[1] == (number if number == signal.SIGKILL else 0)


def ledger_of(folder: Path) -> Ledger:
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
    before = ledger_of(tmp_path)
    assert before.total.usd == pytest.approx(ANSWERED * HONEST)
    assert (before.total.requests, before.total.perhaps_billed) == (ANSWERED, STUCK)
    assert before.total.usd_unsure == pytest.approx(STUCK * worst())
    counted = before.total.usd + before.total.usd_unsure
    assert 1.0 - (left_for(1.0, [tmp_path / "filter"]) or 0.0) == pytest.approx(counted)
    for _ in range(2):
        assert spent_by_budget(tmp_path) == pytest.approx(counted), "it neither grows nor is it forgotten"
        assert ledger_of(tmp_path).total == before.total
    lines = list(ledger_lines(before))
    assert f"{STUCK} requests got no reply, or are under way" in lines[-2]
    assert lines[-1].endswith(f"{counted:.6f} USD in all.")


def test_a_run_that_goes_on_after_a_kill_pays_for_what_it_asks_again(tmp_path: Path) -> None:
    ended_by(signal.SIGKILL, tmp_path)
    lost = ledger_of(tmp_path).total.usd_unsure
    client = FakeClient()
    with pytest.raises(BudgetReached, match=r"and up to \$0\.\d+ for replies that did not come"):
        ask(client, tmp_path, budget=lost + 20 * HONEST)
    assert client.usd + ANSWERED * HONEST + lost <= lost + 20 * HONEST
    ask(client, tmp_path, budget=1.0)
    total = ledger_of(tmp_path).total
    assert total.usd == pytest.approx(ROWS * HONEST)
    assert (total.perhaps_billed, total.usd_unsure) == (STUCK, lost)
    assert spent_by_budget(tmp_path) == pytest.approx(ROWS * HONEST + lost)
