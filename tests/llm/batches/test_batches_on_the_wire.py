"""Both providers' batches through their SDKs, against a server that counts."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.llm.batches.wire_runs import PROVIDERS, ask, questions
from tests.llm.server import JobPlan, Script, running_server

pytestmark = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-loopback-0123456789")


def test_a_batch_is_answered_and_its_second_run_sends_nothing(provider: str, tmp_path: Path) -> None:
    with running_server(Script(job=JobPlan(polls=3, shuffled=True))) as server:
        answers = ask(provider, server.url, tmp_path, questions(30))
        assert [answer.value.id for answer in answers] == [f"Q{n}" for n in range(30)]  # type: ignore[union-attr]
        assert {answer.outcome for answer in answers} == {"ok"}
        before = server.stats()
        assert before["jobs_made"] == 1 and before["lines_made"] == 30 and not before["broken"]
        again = ask(provider, server.url, tmp_path, questions(30), run="other")
        assert [replace(answer, bought=False) for answer in answers] == again
        assert server.stats()["requests"] == before["requests"]
