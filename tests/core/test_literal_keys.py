import pytest

from culturekit.core.literal_keys import is_key_name, key_problem, masked

KEYS = [
    "sk-abcdefghij1234567890abcdefghij", "sk-proj-Ab12-Cd34_Ef56Gh78Ij90", "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ya29.A0ARrdaM1234567890abcdef", "hf_abcdefGHIJKL1234567890", "ghp_abcdefghijklmnop1234567890",
    "xoxb-1234567890-abcdefghij", "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "-----BEGIN PRIVATE KEY-----",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_known_services_are_known_by_their_shape(key: str) -> None:
    assert key_problem(f"model {key} here") == "this looks like a key that is written out"
    assert key not in masked(f"got {key}, sorry")


@pytest.mark.parametrize(("text", "blanked"), [
    ("http://jane:canary@host/v1", "http://[key]@host/v1"),
    ("https://canary@host", "https://[key]@host"),
    ("https://host/v1?key=canary&x=1", "https://host/v1?key=[key]&x=1"),
    ("Authorization: Bearer canary123", "Authorization: Bearer [key]"),
    ("{'api_key': 'canary', 'x': 1}", "{'api_key': '[key]', 'x': 1}"),
    ('{"Authorization": "Bearer canary"}', '{"Authorization": "Bearer [key]"}'),
    ("openai:m?api_key=canary&x=1", "openai:m?api_key=[key]&x=1"),
    ("basic Y2FuYXJ5OmNhbmFyeQ==", "basic [key]"),
])  # fmt: skip
def test_a_key_in_its_place_is_blanked_whatever_it_looks_like(text: str, blanked: str) -> None:
    assert masked(text) == blanked
    assert key_problem(text) is not None


@pytest.mark.parametrize("text", [
    "simulated?temperature=2", "openai:gpt-4o-mini?base_url=http://127.0.0.1:8000/v1&price=0.15/0.60&api_key=${MY_KEY}",
    "http://host:8000/a@b", "mail jane@host.example", "sk-learn is a library", "hf_hub_download",
    "a basic understanding of bearer tokens", "recipe.yaml:3: api_key: unknown key; accepted: seed",
    "write api_key=${NAME}", "the environment variable OPENAI_API_KEY or GEMINI_API_KEY",
])  # fmt: skip
def test_other_text_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert key_problem(text) is None


@pytest.mark.parametrize("name", ["api_key", "API-KEY", "openai_api_key", "token", "client_secret", "password"])
def test_under_the_name_of_a_key_only_the_name_of_a_variable_may_stand(name: str) -> None:
    assert is_key_name(name)
    assert key_problem("canary", name=name) == f"{name} is written out here"
    assert key_problem("$CANARY", name=name) is not None
    assert key_problem("${CANARY}", name=name) is None
    assert key_problem("", name=name) is None


@pytest.mark.parametrize("name", ["max_tokens", "monkey", "sort_key", "author", "keyboard", "tokenizer"])
def test_other_names_are_free(name: str) -> None:
    assert not is_key_name(name)
    assert key_problem("canary", name=name) is None
