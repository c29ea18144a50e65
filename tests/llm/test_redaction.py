import copy
import dataclasses
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import warnings
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from rich.pretty import pretty_repr

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.llm import redaction
from culturekit.llm.clients.client_options import RemoteOptions
from culturekit.llm.endpoints import OPENAI, check_base_url, is_loopback, normal_base_url
from culturekit.llm.redaction import (
    KeyFilter,
    Secret,
    install_redaction,
    key_from_environment,
    know,
    redact,
    redact_bytes,
    resolve_key,
    scrub,
)

CANARY = 'canary/"5f+0c1e77==\\'
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hooks and known keys are those of the process; put them back."""
    hooks: list[tuple[Any, str]] = [(sys, "excepthook"), (sys, "unraisablehook")]
    for owner, name in [*hooks, (threading, "excepthook"), (warnings, "showwarning")]:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    factory, known, patterns = logging.getLogRecordFactory(), dict(redaction.KNOWN), list(redaction.PATTERNS)
    yield
    logging.setLogRecordFactory(factory)
    redaction.KNOWN.clear()
    redaction.KNOWN.update(known)
    redaction.PATTERNS[:] = patterns


@pytest.mark.parametrize(
    "form",
    [
        CANARY,
        quote(CANARY),
        quote(CANARY, safe=""),
        repr(CANARY),
        repr(CANARY.encode()),
        '{"key": "canary/\\"5f+0c1e77==\\\\"}',
        b64encode(CANARY.encode()).decode(),
        CANARY.encode().hex(),
        "".join(f"\\u{ord(sign):04x}" for sign in CANARY),
        "".join(f"\\u{ord(sign):04X}" for sign in CANARY),
        "".join(f"\\\\u{ord(sign):04x}" for sign in CANARY),
    ],
)
def test_a_known_key_is_blanked_in_every_form(form: str) -> None:
    know("THE_KEY", CANARY)
    assert "[THE_KEY]" in redact(f"a {form} b {form}")
    assert redact(f"a {form} b {form}").count("[THE_KEY]") == 2
    assert "5f" not in redact(f"a {form} b").replace("[THE_KEY]", "")
    assert b"[THE_KEY]" in redact_bytes(b"\xff\x00" + form.encode())
    assert redact_bytes(b"\xff\x00 nothing") == b"\xff\x00 nothing"


def test_a_key_is_blanked_wherever_only_some_of_its_characters_are_escapes() -> None:
    know("THE_KEY", "sk-0af/77be")
    for form in (r"\u0073k-0af/77be", r"sk\u002D0af\/77be", r"sk-0af\u002f77b\\u0065", r"sk-0af\\\/77be"):
        assert form != "sk-0af/77be"
        blanked = redact(f'{{"said":"{form}"}}')
        assert "77b" not in blanked
        assert blanked.startswith('{"said":"[')
    assert redact(r"sk\u002d1af/77be") == r"sk\u002d1af/77be"


def test_a_key_that_begins_as_another_is_blanked_whole() -> None:
    know("SHORT", "canary-1234")
    know("LONG", "canary-1234-5678")
    know("TINY", "the")
    assert redact("canary-1234-5678 canary-1234") == "[LONG] [SHORT]"
    assert redact("the end") == "the end", "a word is no key"


def test_variables_named_like_keys_are_known_and_paths_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary-some-key")
    monkeypatch.setenv("SSH_AUTH", "/run/user/agent.1")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Jane of Canary")
    install_redaction()
    rest = "/run/user/agent.1 Jane of Canary"
    assert redact(f"canary-some-key {rest}") == f"[SOME_API_KEY] {rest}"


def test_scrubbing_reaches_everything_behind_an_exception() -> None:
    know("THE_KEY", "canary-1234")

    def fail(key: str) -> None:
        try:
            raise ValueError(f"inner {key}", {"key": [key, key.encode()]})
        except ValueError as inner:
            inner.add_note(key)
            raise RuntimeError(key) from inner

    with pytest.raises(RuntimeError) as caught:
        fail("canary-1234")
    error = caught.value
    error.request = {"key": "canary-1234"}  # type: ignore[attr-defined]
    scrub(error)
    assert error.args == ("[THE_KEY]",)
    assert error.request is None  # type: ignore[attr-defined]
    assert error.__cause__ is not None
    assert error.__cause__.args == ("inner [THE_KEY]", {"key": ["[THE_KEY]", b"[THE_KEY]"]})
    assert error.__cause__.__notes__ == ["[THE_KEY]"]
    assert b"canary" not in pickle.dumps(error)
    frame = error.__traceback__.tb_next if error.__traceback__ else None
    assert frame is not None
    assert frame.tb_frame.f_locals == {}


def test_a_record_is_clean_before_any_handler_sees_it() -> None:
    know("THE_KEY", "canary-1234")
    install_redaction()
    record = logging.getLogger("x").makeRecord(
        "x", logging.INFO, "f", 1, "key %s", ("canary-1234",), None, extra={"key": ["canary-1234"]}
    )
    assert record.getMessage() == "key [THE_KEY]"
    assert KeyFilter().filter(record)
    assert record.__dict__["key"] == ["[THE_KEY]"]
    hooks = (sys.excepthook, threading.excepthook, logging.getLogRecordFactory())
    install_redaction()
    assert hooks == (sys.excepthook, threading.excepthook, logging.getLogRecordFactory())


def canaries() -> dict[str, str]:
    names = [f"CANARY_{number}" for number in range(17)] + [f"other{number}" for number in range(18)]
    names += ["OPENAI_API_KEY", "GEMINI_API_KEY", "my_company_token", "AZURE_SECRET", "UNSUSPICIOUS"]
    shapes = ("sk-proj-{}", "AIzaSy{}", "{}", "{}==", "a/{}+b", "{}%20x", "Ab.{}.~", "{}:{}")
    return {
        name: shapes[number % len(shapes)].replace("{}", f"c4n4ry{number:02}{b64encode(name.encode()).hex()[:20]}")
        for number, name in enumerate(names)
    }


def shown_by(how: str) -> tuple[str, list[str]]:
    """Run the process that fails; give what it shows, and the names of the keys in it, line breaks or not."""
    pytest.importorskip("openai")
    keys = canaries()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "tests.llm.canaries", how],
        env={**os.environ, **keys, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "always"}, cwd=ROOT, capture_output=True,
        text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    shown = done.stdout + done.stderr
    flat = "".join(filter(str.isalnum, shown))
    return shown, [name for name, key in keys.items() if key in shown or "".join(filter(str.isalnum, key)) in flat]


FAILURES = ["rich", *(pytest.param(how, marks=pytest.mark.slow) for how in ("plain", "chained", "group", "naked"))]


@pytest.mark.endtoend
@pytest.mark.parametrize("how", FAILURES)
def test_forty_canaries_are_nowhere_in_what_a_failing_process_shows(how: str) -> None:
    shown, hits = shown_by(how)
    if how == "naked":
        assert len(hits) == 40, "without redaction the same process shows all forty"
        return
    assert hits == []
    assert "c4n4ry" not in "".join(filter(str.isalnum, shown))
    assert shown.count("[CANARY_3]") > 5
    for proof in ("failed with", "the client failed", "in thread", "never retrieved", "warned of", "ignored in"):
        assert proof in shown, proof


SECRET = "canary-5f0c1e77aa"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Secret:
    monkeypatch.setenv("TEST_KEY", f" {SECRET}\n")
    return key_from_environment("UNSET_KEY", "TEST_KEY")


@dataclasses.dataclass(frozen=True)
class Options:
    key: Secret


def test_a_key_is_revealed_only_when_asked(secret: Secret) -> None:
    assert secret.reveal() == SECRET
    assert repr(secret) == str(secret) == f"{secret}" == "Secret(TEST_KEY)"
    options = Options(secret)
    shown = [repr(options), str(dataclasses.asdict(options)), pretty_repr(options), pretty_repr({"key": [secret]})]
    shown += [repr(secret.reveal), json.dumps({"key": secret}, default=str), repr(copy.deepcopy([secret]))]
    assert [text for text in shown if SECRET in text] == []
    assert redact(f"failed with {SECRET}!") == f"failed with [{secret.name}]!", "it is known from its first moment"
    for write in (json.dumps, msgspec.json.encode, vars):
        with pytest.raises(TypeError) as caught:
            write(secret if write is vars else {"key": secret})
        assert SECRET not in str(caught.value)


def test_a_pickle_holds_the_name_and_finds_the_key_again(secret: Secret) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(secret, protocol)
        assert SECRET.encode() not in pickled
        assert pickle.loads(pickled).reveal() == SECRET


def test_the_option_names_a_variable_and_never_is_the_key(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    assert resolve_key("${TEST_KEY}").reveal() == key_from_environment("UNSET_KEY", secret.name).reveal() == SECRET
    for option in (SECRET, "$TEST_KEY", "${TEST_KEY}x", "${}"):
        with pytest.raises(UsageError, match="api_key is written out; expected the name") as caught:
            resolve_key(option)
        assert SECRET not in str(caught.value)
    monkeypatch.setenv("TEST_KEY", "two\nlines")
    with pytest.raises(UsageError, match=r"TEST_KEY: this is not a key; .* without spaces$"):
        key_from_environment("TEST_KEY")
    with pytest.raises(MissingDependency, match=r"expected the environment variable UNSET_A or UNSET_B\. Set it"):
        key_from_environment("UNSET_A", "UNSET_B")


OFFICIAL = "https://api.openai.com/v1"
SENT_KEY = "sk-canary-4711"


def key(base_url: str, named: str = "") -> str | None:
    options = RemoteOptions(base_url=base_url, api_key=named)
    found = OPENAI.key(options.key_variable, base_url)
    return found.reveal() if found else None


def test_a_key_in_the_environment_is_not_sent_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SENT_KEY)
    monkeypatch.setenv("MINE", "mine-4711")
    for url in (OFFICIAL, "http://127.0.0.1:1/v1", "http://localhost:1", "http://[::1]:1", "https://llm.example.org"):
        assert key(url) == SENT_KEY
    for url in ("http://llm.example.org/v1", "http://10.0.0.7:8000/v1"):
        assert key(url) is None
        assert key(url, "${MINE}") == "mine-4711"


def test_a_variable_that_is_named_and_empty_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SENT_KEY)
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
        assert value not in str(caught.value) and SENT_KEY not in str(caught.value)
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
