import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import canonical_json
from culturekit.llm.client import Identity, Image, Outgoing
from culturekit.llm.usage import estimate, image_bound, image_estimate, input_bound

OPENAI = "https://api.openai.com/v1"


def identity(model: str, provider: str = "openai", url: str = OPENAI) -> Identity:
    return Identity(provider, url, "chat", model)


def image(width: int, height: int) -> Image:
    return Image(b"x", "image/png", hashlib.sha256(b"x").hexdigest(), width, height)


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_bound_is_above_one_token_for_each_byte_of_text(system: str, user: str) -> None:
    body = canonical_json({"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]})
    per_message = 8
    assert input_bound(Outgoing(body), identity("m")) >= len((system + user).encode()) + 3 * per_message
    assert estimate(Outgoing(body)) <= input_bound(Outgoing(body), identity("m"))


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-4o-2024-08-06", (512, 512), 255),
        ("gpt-4o", (513, 512), 425),
        ("gpt-4o-mini", (1024, 1024), 2833 + 4 * 5667),
        ("gpt-4.1", (1024, 1024), 85 + 4 * 170),
        ("gpt-5", (1024, 1024), 70 + 4 * 140),
        ("o1", (1024, 1024), 75 + 4 * 150),
        ("o3", (1024, 1024), 75 + 4 * 150),
        ("gpt-4.1-mini", (1024, 1024), 1659),
        ("gpt-4.1-mini", (4000, 4000), 2489),
        ("gpt-5-mini-2025-08-07", (32, 32), 2),
    ],
)
def test_published_examples_of_openai(model: str, size: tuple[int, int], tokens: int) -> None:
    assert image_estimate(image(*size), identity(model)) == tokens
    assert image_bound(image(*size), identity(model)) >= tokens


@pytest.mark.parametrize(("size", "tokens"), [((384, 384), 258), ((960, 540), 1548), ((385, 385), 4 * 258)])
def test_published_examples_of_google(size: tuple[int, int], tokens: int) -> None:
    assert image_estimate(image(*size), identity("gemini-2.5-flash", "google", "")) == tokens


@given(
    st.integers(1, 9000), st.integers(1, 9000), st.sampled_from(["gpt-4o", "gpt-4o-mini", "o4-mini", "gpt-5", "new"])
)
def test_the_bound_of_an_image_is_never_below_the_formula(width: int, height: int, model: str) -> None:
    for who in (identity(model), identity(model, url="http://127.0.0.1:8000/v1"), identity("gemini-3", "google", "")):
        assert image_bound(image(width, height), who) >= image_estimate(image(width, height), who)


def test_a_model_that_is_not_known_may_bill_as_much_as_any() -> None:
    known = [image_bound(image(64, 64), identity(model)) for model in ("gpt-4o", "gpt-4o-mini", "o1", "gpt-4.1-nano")]
    assert image_bound(image(64, 64), identity("new")) >= max(known) == 2833 + 8 * 5667


def test_a_model_on_a_server_of_ones_own_may_cut_a_picture_as_finely_as_any() -> None:
    here = identity("new", url="http://127.0.0.1:8000/v1")
    assert image_bound(image(3080, 3080), here) == (3080 // 14) ** 2


def test_other_scripts_take_more_tokens_a_character() -> None:
    def tokens(text: str) -> int:
        return estimate(Outgoing(canonical_json(text)))

    assert (
        tokens("a soup of rice noodles" * 20)
        < tokens("суп из рисовой лапши!!" * 20)
        < tokens("米粉湯以及其他許多亞洲的菜餚和飲料品" * 20)
    )
    assert tokens("𒀀" * 100) > 100
    assert estimate(Outgoing(("a" * 420 + "é" * 160).encode())) == 200
