"""The probability of yes, and servers probed for it."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.builders.judging.image_judge import judge_name, probability_of_yes, probe_judge, vqa_request, vqascore
from culturekit.cli.app import app
from culturekit.core.errors import UsageError
from culturekit.core.schemas import JUDGMENTS
from culturekit.core.stage import QUARANTINED, Outcome, Work
from culturekit.core.tables import read_table
from culturekit.llm.client import Image, Reply, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.rows import WeighedToken, listed_tokens, listing
from tests.builders.judging.test_image_judge import Scripted, png, table
from tests.builders.judging.test_question_graph import prompts
from tests.builders.put import put
from tests.llm.server import Answer, Question, Script, running_server


def tokens(**shares: float) -> tuple[tuple[str, float], ...]:
    return tuple((token.replace("_", " "), math.log(share)) for token, share in shares.items())


def weighed(work: Work, images: Path, client: Any, **options: Any) -> tuple[Outcome, pl.DataFrame]:
    outcome = put(vqascore, work, client, images, **options)
    return outcome, read_table(work.out / "judgments.parquet", JUDGMENTS)


def of(listed: tuple[tuple[str, float], ...], share: Any = "yes-no") -> float | None:
    return probability_of_yes([WeighedToken(token, logprob) for token, logprob in listed], of=share)


def test_the_probability_of_yes_is_a_share_of_yes_and_no_or_of_everything() -> None:
    listed = tokens(Yes=0.5, _yes=0.1, No=0.15, The=0.25)
    assert of(listed) == pytest.approx(0.6 / 0.75)
    assert of(listed, "vocabulary") == pytest.approx(0.6)
    assert of(tokens(No=0.9)) == 0.0
    assert of(tokens(YES=0.9)) == 1.0
    assert of(tokens(The=0.9, Yesterday=0.1)) is None
    assert of((("Yes", 0.0), ("No", 0.0)), "vocabulary") is None, "that is more than everything"


def test_each_image_is_asked_about_its_prompt_or_what_was_sent_in_its_place(work: Work, tmp_path: Path) -> None:
    client = Scripted(lambda _: Reply("Yes", stop="length", tokens=tokens(Yes=0.7, No=0.1)))
    images = table(tmp_path / "images", {"bigos_1": png("red"), "bigos_2": png("blue")})
    outcome, rows = weighed(work, images, client, prompts=prompts(tmp_path / "p", {"p1": 'A "bowl" of soup'}))
    assert rows["value"].to_list() == pytest.approx([0.875, 0.875])
    assert rows.select("image_id", "prompt_id", "task", "item", "outcome").rows() == [
        (image, "p1", "vqascore", "prompt", "ok") for image in ("bigos_1", "bigos_2")
    ]
    assert set(rows["judge"]) == {judge_name("scripted-1", "yes-no")}
    assert json.loads(rows["raw"][0])["tokens"][0]["token"] == "Yes"
    assert [request.data["question"] for request in client.seen] == [
        'Does this figure show "A "bowl" of soup"? Please answer yes or no.'
    ] * 2
    assert not any("bigos" in str(request.data) for request in client.seen)
    assert outcome.counts == {"judgments": 2, "images": 2, "drops": 0}
    _, rows = weighed(work, table(tmp_path / "sent", {"a": png()}, prompt_sent="A red square"), client)
    assert (rows.height, "A red square" in str(client.seen[2].data)) == (1, True)
    outcome, rows = weighed(replace(work, in_run=True), table(tmp_path / "other", {"a": png()}), client)
    assert (rows.height, outcome.drops) == (0, {"the text of its prompt is not known": 1})


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply("Yes"), "invalid"),
        (Reply("A soup", tokens=tokens(A=0.9, The=0.1)), "invalid"),
        (Reply("Yes", tokens=(("Yes", 3.0),)), "invalid"),
        (Reply("I cannot.", stop="refusal"), "refused"),
        (Reply("", stop="blocked"), "blocked"),
    ],
)
def test_a_reply_without_probabilities_is_asked_for_once_and_counted(
    work: Work, tmp_path: Path, reply: Reply, outcome: str
) -> None:
    client = Scripted(lambda _: reply)
    images = table(tmp_path / "images", {"a": png()})
    ended, rows = weighed(work, images, client, prompts=prompts(tmp_path / "p", {"p1": "Soup"}))
    assert rows.select("value", "outcome").rows() == [(None, outcome)]
    assert (ended.counts[QUARANTINED], len(client.seen)) == (1, 1)


@pytest.mark.parametrize(
    "value",
    [
        None, {}, {"content": None}, {"content": []}, {"content": ["Yes"]}, {"content": [{"token": "Yes"}]},
        {"content": [{"token": 3, "logprob": -1.0}]}, {"content": [{"token": "x" * 99, "logprob": -1}]},
        {"content": [{"token": "Yes", "logprob": "-1"}]}, {"content": [{"top_logprobs": "Yes"}]},
    ],
)  # fmt: skip
def test_a_listing_of_another_shape_lists_nothing(value: object) -> None:
    assert listed_tokens(value) == ()


def test_a_listing_is_taken_with_the_token_that_was_drawn() -> None:
    place = {"token": "No", "logprob": -3, "top_logprobs": [{"token": "Yes", "logprob": -0.1, "bytes": [1]}]}
    assert listed_tokens({"content": [place, {"token": "!", "logprob": -1.0}]}) == (("Yes", -0.1), ("No", -3.0))
    assert json.loads(listing((("b", -2.0), ("a", -1.0)))) == {
        "tokens": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]
    }


def likely(question: Question) -> Answer | None:
    if "id" not in question.data:
        return None
    shares: Mapping[str, float] = {"Yes": 0.6, " No": 0.2, "The": 0.2}
    return Answer("Yes", "length", logprobs=tuple((token, math.log(share)) for token, share in shares.items()))


@pytest.mark.parametrize(
    "spec",
    [
        "google:gemini-2.5-flash",
        "openai:gpt-4o-mini?api=responses",
        "openai:o3",
        "openai:gpt-5.4-mini?thinking_budget=0",
    ],
)
def test_who_lists_none_is_not_asked(spec: str) -> None:
    picture = Image(png(), "image/png", "0" * 64, 4, 3)
    request: Request = vqa_request(picture, "Soup", instructions="x")
    with pytest.raises(UsageError, match=r"not asked for probabilities.*Qwen3-VL.*Nothing has been bought"):
        CLIENTS.make(spec).compose(request)  # type: ignore[union-attr]


def spec(url: str) -> str:
    pytest.importorskip("openai")
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
    pytest.importorskip("openai")
    (one,) = probe_judge("openai:gpt-5.4-mini")
    assert (one.level, "not asked for probabilities" in one.found, "Qwen3-VL" in one.hint) == ("broken", True, True)


@pytest.mark.parametrize("free", ["rules", "simulated"])
def test_what_is_no_server_is_refused(free: str) -> None:
    with pytest.raises(UsageError, match="no server that could be probed"):
        probe_judge(free)
