from pathlib import Path

import pytest

from culturekit.generation.runner import ImagePlan
from culturekit.generation.services.paid_runner import plan_images
from culturekit.llm.answers import LlmOptions
from tests.generation.folder.folder_worlds import prompts
from tests.generation.services.paid_images import buy, openai
from tests.llm.server import running_server

pytest.importorskip("openai")


def test_a_plan_needs_no_key_and_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plan = plan_images(
        prompts(tmp_path), ImagePlan(2, 3), backend="openai:gpt-image-1?quality=high&n=3", seed=0, out=tmp_path / "out"
    )
    assert (plan.images, plan.calls, plan.bought) == (24, 8, 0)
    assert plan.each == pytest.approx(0.1664)
    assert 24 * 0.1664 < plan.usd < 24 * 0.1664 + 0.01 < plan.most < plan.usd + 0.05
    assert "24 images by gpt-image-1: 8 calls" in next(plan.lines())


def test_what_the_journal_has_costs_nothing_and_the_plan_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with running_server() as server:
        backend, slots = openai(server), ImagePlan(slots=2)
        table, out = prompts(tmp_path / "prompts"), tmp_path / "out"
        before = plan_images(table, slots, backend=backend, seed=3, out=out)
        buy(backend, tmp_path, plan=ImagePlan(), llm=LlmOptions(budget=before.most))
        half = plan_images(table, slots, backend=backend, seed=3, out=out)
        assert (half.bought, half.calls) == (4, 8)
        assert half.usd == pytest.approx(before.usd / 2, rel=0.05)
        buy(backend, tmp_path, plan=slots, llm=LlmOptions(budget=before.most))
        sold = server.stats()["online"]
    usd = (sold["input_tokens"] * 5 + sold["output_tokens"] * 40) / 1e6
    assert usd == pytest.approx(before.usd, rel=0.05)
    assert usd < before.most
    assert plan_images(table, slots, backend=backend, seed=3, out=out, batch=True).usd == 0
