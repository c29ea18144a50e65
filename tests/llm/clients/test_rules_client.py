import msgspec
import pytest

from culturekit.core.errors import UsageError
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.rules_client import RulesClient


class Verdict(msgspec.Struct):
    id: str
    verdict: str


def verdict(label: str, description: str | None = None) -> str:
    data = {"id": "Q1", "label": label, "description": description}
    return RulesClient().ask(Request("cspace.filter", "", data, Verdict)).text


def test_the_rules_read_wording_and_answer_the_same_for_ever() -> None:
    assert verdict("feijoada") == '{"id":"Q1","verdict":"keep"}' == verdict("feijoada")
    assert verdict("Sadia", "Brazilian food company") == '{"id":"Q1","verdict":"remove"}'
    assert verdict("fragment of a kaftan") == '{"id":"Q1","verdict":"review"}'


def test_a_task_without_rules_is_refused_not_guessed() -> None:
    with pytest.raises(UsageError, match=r"no rules for poetry; expected cspace\.filter"):
        RulesClient().ask(Request("poetry", "", {}, Verdict))


def test_the_client_takes_no_options_and_says_what_it_is() -> None:
    with pytest.raises(UsageError):
        CLIENTS.make("rules?temperature=1")
    assert "reads wording only" in CLIENTS.make("rules").caveat
