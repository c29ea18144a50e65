import pytest

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.llm.clients.client_options import RemoteOptions
from culturekit.llm.endpoints import OPENAI, check_base_url, is_loopback, normal_base_url

OFFICIAL = "https://api.openai.com/v1"
CANARY = "sk-canary-4711"


def key(base_url: str, named: str = "") -> str | None:
    options = RemoteOptions(base_url=base_url, api_key=named)
    found = OPENAI.key(options.key_variable, base_url)
    return found.reveal() if found else None


def test_a_key_in_the_environment_is_not_sent_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("MINE", "mine-4711")
    for url in (OFFICIAL, "http://127.0.0.1:1/v1", "http://localhost:1", "http://[::1]:1", "https://llm.example.org"):
        assert key(url) == CANARY
    for url in ("http://llm.example.org/v1", "http://10.0.0.7:8000/v1"):
        assert key(url) is None
        assert key(url, "${MINE}") == "mine-4711"


def test_a_variable_that_is_named_and_empty_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.delenv("MINE", raising=False)
    with pytest.raises(MissingDependency, match="MINE is not set"):
        key(OFFICIAL, "${MINE}")


def test_what_cannot_be_a_key_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    short = ("~", "EMPTY", "zq-4711")  # what stands in ordinary words
    for value in (f"{CANARY} two", f"{CANARY}\nx", f"{CANARY}é", *short):
        monkeypatch.setenv("OPENAI_API_KEY", value)
        why = " 8 letters or more" if value in short else ""
        with pytest.raises(UsageError, match=rf"^OPENAI_API_KEY.*{why}") as caught:
            key("http://127.0.0.1:8000/v1")
        assert value not in str(caught.value) and CANARY not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", "zq-47112")
    assert key("http://127.0.0.1:8000/v1") == "zq-47112"


def test_a_base_url_that_cannot_be_one_is_refused() -> None:
    hosts = ["ftp://h/v1", "http://", "h/v1", "http://u:p@h/v1", "http://u@h", "http://h:x/", "http://h/a b"]
    for url in [*hosts, "http://h/v1?a=b", "http://h/#x"]:
        with pytest.raises(ValueError, match="base_url"):
            check_base_url(url)


def test_base_urls_are_told_apart() -> None:
    assert normal_base_url("HTTPS://API.OpenAI.com/v1/") == OFFICIAL
    assert OPENAI.owns("https://eu.api.openai.com/v1")
    assert not OPENAI.owns("https://api.openai.com.evil.org/v1")
    assert not OPENAI.owns("http://api.openai.com/v1")
    assert is_loopback("http://127.8.8.8") and not is_loopback("http://128.0.0.1")
