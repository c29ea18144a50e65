import json
from pathlib import Path

import msgspec
import orjson
import pytest

from culturekit.core.errors import ConfigError, IntegrityError, UsageError
from culturekit.llm.client import FreeClient, Reply, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.rules_client import RulesClient
from culturekit.llm.journal import Entry, Journal, Reading, key_of
from tests.llm.questions import client, question

FAR = "openai:gpt-4o-mini"


def replay(spec: str) -> FreeClient:
    made = CLIENTS.make(spec)
    assert isinstance(made, FreeClient)
    return made


def script(folder: Path, *lines: object) -> Path:
    path = folder / "replies.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def row(number: str, sample: int = 0) -> Request:
    return question(data={"id": number, "label": "x"}, allowed={}, sample=sample)


def test_a_line_answers_its_row_and_its_sample(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        {"task": "cspace.filter", "id": "Q1", "text": "as it came"},
        "",
        {"task": "cspace.filter", "id": "Q1", "sample": 1, "reply": {"id": "${id}", "verdict": "keep"}},
        {"task": "cspace.filter", "id": "Q2", "text": "", "stop": "refusal", "detail": "no"},
        {"task": "cspace.filter", "reply": {"id": "${id}", "verdict": "remove"}},
    )
    strict, lenient = replay(f"replay:{path}"), replay(f"replay:{path}?miss=default")
    assert strict.ask(row("Q1")) == Reply("as it came")
    assert strict.ask(row("Q1", 1)).text == '{"id":"Q1","verdict":"keep"}'
    assert strict.ask(row("Q2")) == Reply("", stop="refusal", detail="no")
    with pytest.raises(UsageError, match=r"no recorded reply to cspace\.filter, row Q9, sample 0"):
        strict.ask(row("Q9"))
    assert lenient.ask(row("Q9")).text == '{"id":"Q9","verdict":"remove"}'
    with pytest.raises(UsageError):
        lenient.ask(question(task="another.task"))
    assert strict.model == lenient.model
    assert strict.model.startswith("replay-")
    assert "no model was asked" in strict.caveat


def test_a_line_answers_the_request_with_its_key(tmp_path: Path) -> None:
    far = client(FAR)
    key = key_of(far.identity, far.compose(row("Q1"))).hex()
    path = script(tmp_path, {"key": key, "text": "bought"})
    assert replay(f"replay:{path}?client={FAR}").ask(row("Q1")).text == "bought"
    for name, more in (("Q2", ""), ("Q1", "%3Fseed=1")):
        with pytest.raises(UsageError, match="no recorded reply"):
            replay(f"replay:{path}?client={FAR}{more}").ask(row(name))
    with pytest.raises(ConfigError, match="client=SPEC"):
        replay(f"replay:{path}")


def test_all_lines_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    path = script(
        tmp_path, {"task": "t", "id": "Q1", "text": "a"}, {"task": "t", "id": "Q1", "text": "b"}, "{broken",
        {"task": "t"}, {"task": "t", "text": "a", "reply": {}}, {"task": "t", "text": "a", "unknown": 1}, {"text": "a"},
    )  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        replay(f"replay:{path}")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5, 6, 7]


def test_paths_that_hold_nothing_are_refused(tmp_path: Path) -> None:
    for wrong in ("replay", f"replay:{tmp_path / 'absent'}", f"replay:{tmp_path}", f"replay:{tmp_path}?client={FAR}"):
        with pytest.raises(UsageError):
            replay(wrong)
    (tmp_path / "replies.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(IntegrityError):
        replay(f"replay:{tmp_path}?client={FAR}")


def chat(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()


def test_a_journal_is_replayed_through_the_client_that_wrote_it(tmp_path: Path) -> None:
    far = client(FAR)

    def entry(name: str, text: str, run: str = "one", kind: str = "reply") -> Entry:
        outgoing = far.compose(row(name))
        return Entry(key_of(far.identity, outgoing), run, 1, "online", 200, kind, chat(text), outgoing.body)

    with Journal(tmp_path / "journal") as journal:
        said = [entry("Q1", "first"), entry("Q1", "later, no answer", "two"), entry("Q2", "raw", kind="busy")]
        numbers = journal.append_all([*said, entry("Q3", "not an answer")])
        for number, outcome in zip(numbers, ("ok", "invalid", "", "invalid"), strict=True):
            if outcome:
                journal.note(number, Reading(outcome))
        journal.remember("flush", b"notes go with the next commit")
    for folder in (tmp_path, tmp_path / "journal"):
        again = replay(f"replay:{folder}?client={FAR}")
        assert again.ask(row("Q1")).text == "first"
        assert again.ask(row("Q3")).text == "not an answer"
        for absent in ("Q2", "Q4"):
            with pytest.raises(UsageError, match="no recorded reply"):
                again.ask(row(absent))
    assert replay(f"replay:{tmp_path}?client={FAR}&run=two").ask(row("Q1")).text == "later, no answer"
    with pytest.raises(UsageError, match="no recorded reply"):
        replay(f"replay:{tmp_path}?client=openai:gpt-4o").ask(row("Q1"))
    with pytest.raises(UsageError, match="far clients"):
        replay(f"replay:{tmp_path}?client=rules")


class Verdict(msgspec.Struct):
    id: str
    verdict: str


def verdict(label: str, description: str | None = None) -> str:
    data = {"id": "Q1", "label": label, "description": description}
    return RulesClient().ask(Request("cspace.filter", "", data, Verdict)).text


def test_the_rules_read_wording_and_answer_the_same_for_ever() -> None:
    assert verdict("feijoada") == '{"id":"Q1","verdict":"keep"}' == verdict("feijoada")
    said = orjson.loads(verdict("Sadia", "Brazilian food company"))
    assert (said["verdict"], said["why"]) == ("remove", "its words name an organisation, an event or a work")
    assert orjson.loads(verdict("fragment of a kaftan"))["verdict"] == "review"


def test_a_task_without_rules_is_refused_not_guessed_and_options_are_none() -> None:
    assert "reads wording only" in CLIENTS.make("rules").caveat
    with pytest.raises(UsageError):
        CLIENTS.make("rules?temperature=1")
    with pytest.raises(UsageError, match=r"no rules for poetry; expected cspace\.filter"):
        RulesClient().ask(Request("poetry", "", {}, Verdict))
