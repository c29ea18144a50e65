import json

import pytest
from typer.testing import CliRunner

from culturekit.builders.judging.image_judge import probe_judge
from culturekit.cli.app import app
from culturekit.core.errors import UsageError
from tests.builders.judging.test_vqa_judgments import likely
from tests.llm.server import Answer, Script, running_server

pytest.importorskip("openai")


def spec(url: str) -> str:
    return f"openai:seer-1?base_url={url}&schema=vllm&price=0/0"


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_server_that_lists_probabilities_and_holds_schemas_is_found_good() -> None:
    with running_server(model=likely) as server:
        told = CliRunner().invoke(app, ["doctor", "--judge", spec(server.openai_url), "--json"])
        assert len(server.records()) == 2
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"] if check["group"] == "judge"}
    assert {name: check["level"] for name, check in checks.items()} == {"token probabilities": "ok", "schema": "ok"}
    assert "is 0.75" in checks["token probabilities"]["found"]


def test_a_server_that_lists_none_is_broken_and_another_is_named() -> None:
    with running_server(model=lambda _: Answer("Yes", "length", logprobs=None)) as server:
        told = CliRunner().invoke(app, ["doctor", "--judge", spec(server.openai_url)])
    assert told.exit_code == 1
    assert "token probabilities: none are listed" in told.stdout
    assert "Qwen3-VL" in told.stdout


def test_a_server_that_holds_no_schema_can_weigh_all_the_same() -> None:
    with running_server(Script(ignores_schema=True), model=likely) as server:
        listed, held = probe_judge(spec(server.openai_url))
    assert (listed.level, held.level) == ("ok", "absent")
    assert "without holding the model seer-1 to the schema" in held.found


def test_a_listing_without_yes_and_no_is_of_no_use() -> None:
    with running_server(model=lambda _: Answer("A", "length", logprobs=(("A", -0.1), ("The", -3.0)))) as server:
        listed, _ = probe_judge(spec(server.openai_url))
    assert (listed.level, "without yes or no: 'A', 'The'" in listed.found) == ("broken", True)


def test_a_server_that_is_not_there_is_named() -> None:
    (one,) = probe_judge(spec("http://127.0.0.1:9/v1"))
    assert (one.level, one.name) == ("broken", "seer-1")
    assert "http://127.0.0.1:9/v1" in one.hint


def test_who_gives_no_probabilities_is_not_asked_at_all_and_no_key_is_wanted() -> None:
    (one,) = probe_judge("openai:gpt-5.4-mini")
    assert (one.level, "not asked for probabilities" in one.found, "Qwen3-VL" in one.hint) == ("broken", True, True)


@pytest.mark.parametrize("free", ["rules", "simulated"])
def test_what_is_no_server_is_refused(free: str) -> None:
    with pytest.raises(UsageError, match="no server that could be probed"):
        probe_judge(free)
