import copy
import dataclasses
import json
import pickle

import msgspec
import pytest
from rich.pretty import pretty_repr

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.llm.redaction import Secret, key_from_environment, redact, resolve_key

CANARY = "canary-5f0c1e77aa"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Secret:
    monkeypatch.setenv("TEST_KEY", f" {CANARY}\n")
    return key_from_environment("UNSET_KEY", "TEST_KEY")


@dataclasses.dataclass(frozen=True)
class Options:
    key: Secret


def test_a_key_is_revealed_only_when_asked(secret: Secret) -> None:
    assert secret.reveal() == CANARY
    assert repr(secret) == str(secret) == f"{secret}" == "Secret(TEST_KEY)"
    options = Options(secret)
    shown = [repr(options), str(dataclasses.asdict(options)), pretty_repr(options), pretty_repr({"key": [secret]})]
    shown += [repr(secret.reveal), json.dumps({"key": secret}, default=str), repr(copy.deepcopy([secret]))]
    assert [text for text in shown if CANARY in text] == []


def test_a_pickle_holds_the_name_and_finds_the_key_again(secret: Secret) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(secret, protocol)
        assert CANARY.encode() not in pickled
        assert pickle.loads(pickled).reveal() == CANARY


def test_json_does_not_take_it(secret: Secret) -> None:
    with pytest.raises(TypeError) as caught:
        json.dumps({"key": secret})
    assert CANARY not in str(caught.value)
    with pytest.raises(TypeError):
        msgspec.json.encode({"key": secret})
    with pytest.raises(TypeError):
        vars(secret)


def test_a_key_is_known_to_the_redaction_from_its_first_moment(secret: Secret) -> None:
    assert redact(f"failed with {CANARY}!") == f"failed with [{secret.name}]!"


def test_the_option_names_a_variable_and_never_is_the_key(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    assert resolve_key("${TEST_KEY}", "UNSET_KEY").reveal() == CANARY
    assert resolve_key(None, "UNSET_KEY", secret.name).reveal() == CANARY
    for option in (CANARY, "$TEST_KEY", "${TEST_KEY}x", "${}"):
        with pytest.raises(UsageError, match="api_key is written out; expected the name") as caught:
            resolve_key(option)
        assert CANARY not in str(caught.value)
    monkeypatch.setenv("TEST_KEY", "two\nlines")
    with pytest.raises(UsageError, match=r"TEST_KEY: this is not a key; .* without spaces$"):
        key_from_environment("TEST_KEY")


def test_a_missing_key_says_which_variable_to_set() -> None:
    with pytest.raises(MissingDependency, match=r"expected the environment variable UNSET_A or UNSET_B\. Set it"):
        resolve_key("", "UNSET_A", "UNSET_B")
