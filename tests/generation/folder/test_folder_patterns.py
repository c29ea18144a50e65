import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.generation.folder import folder_listing
from culturekit.generation.folder.folder_detection import naming_of

TEXT = st.text(st.characters(categories=["L", "N"], include_characters=" ,.()'"), min_size=1, max_size=20)
NUMBER = st.integers(0, 10**18).map(str)
NAMED = [field for field in folder_listing.FIELDS if field != "_"]


@st.composite
def names(draw: st.DrawFn) -> tuple[str, dict[str, str], str]:
    """A pattern, the fields of a name, and the name that they make."""
    fields = draw(st.lists(st.sampled_from(NAMED), min_size=1, max_size=5, unique=True))
    between = draw(st.lists(st.sampled_from(["__", "-_-", "/", "=="]), min_size=len(fields), max_size=len(fields)))
    values = {}
    for field in fields:
        value = draw(NUMBER if field in {"repeat", "slot", "seed"} else TEXT)
        values[field] = unicodedata.normalize("NFC", value)
    text = name = ""
    for field, separator in zip(fields, ["", *between], strict=False):
        text += separator + "{" + field + "}"
        name += separator + values[field]
    return f"{text}.*", values, f"{name}.png"


@given(names())
def test_what_a_pattern_was_filled_with_is_read_back(case: tuple[str, dict[str, str], str]) -> None:
    pattern, values, name = case
    assert folder_listing.parse_pattern(pattern).fields(name) == values
    assert folder_listing.parse_pattern(pattern).fields(f"deeper/folder/{name}") == values


@given(st.text(max_size=60))
def test_any_text_is_a_pattern_or_is_refused_in_words(text: str) -> None:
    try:
        folder_listing.parse_pattern(text)
    except ValueError as error:
        assert "pattern" in str(error)


@given(
    st.text(min_size=1, max_size=80), st.sampled_from(["{prompt}__{id}.png", "{id}_{_}/{prompt_id}-{slot}", "{seed}"])
)
def test_no_name_breaks_a_pattern(name: str, pattern: str) -> None:
    fields = folder_listing.parse_pattern(pattern).fields(name)
    assert fields is None or all(value in re.sub(r"\s", " ", name) or value for value in fields.values())


@pytest.mark.parametrize(("pattern", "name", "fields"), [
    ("{prompt}__{id}.png", "a__b__7.png", {"prompt": "a__b", "id": "7"}),
    ("{prompt}__{id}.png", "a__7.PNG", {"prompt": "a", "id": "7"}),
    ("{prompt}__{id}.png", "a__7.jpg", None),
    ("{prompt}__{id}.*", "a__7.jpg", {"prompt": "a", "id": "7"}),
    ("{prompt}__{id}", "a__7.webp", {"prompt": "a", "id": "7"}),
    ("{prompt}__{id}", "a__v1.5", {"prompt": "a", "id": "v1.5"}),
    ("{model}/{prompt_id}/{repeat}-{slot}", "x/sdxl/p/0003-07.png",
     {"model": "sdxl", "prompt_id": "p", "repeat": "0003", "slot": "07"}),
    ("/{model}/{id}", "x/sdxl/1.png", None),
    ("/{model}/{id}", "sdxl/1.png", {"model": "sdxl", "id": "1"}),
    ("{prompt_id}/{prompt_id}_{slot}", "p/p_1.png", {"prompt_id": "p", "slot": "1"}),
    ("{prompt_id}/{prompt_id}_{slot}", "p/q_1.png", None),
    ("{_}-{seed}-{prompt}", "00012-77-a cat-and-dog.png", {"seed": "77", "prompt": "a cat-and-dog"}),
    ("{{x}}{id}.png", "{x}7.png", {"id": "7"}),
    ("é{id}", "e\u03017.png", {"id": "7"}),
    ("{slot}", "x.png", None),
])  # fmt: skip
def test_patterns_by_example(pattern: str, name: str, fields: dict[str, str] | None) -> None:
    assert folder_listing.parse_pattern(pattern).fields(name) == fields


@pytest.mark.parametrize(("pattern", "words"), [
    ("{promt}.png", "{promt}"), ("{prompt}{id}", "nothing between {prompt} and {id}"), ("{prompt", "brace"),
    ("image.png", "no field"), ("../{id}", ".."), ("{prompt}/", "name of a file"),
])  # fmt: skip
def test_a_wrong_pattern_is_refused_with_the_reason(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        folder_listing.parse_pattern(pattern)


def test_patterns_have_a_bar_between_them() -> None:
    assert [one.text for one in folder_listing.parse_patterns("{prompt_id}.png|{prompt}__{id}")] == [
        "{prompt_id}.png",
        "{prompt}__{id}",
    ]
    assert folder_listing.parse_patterns("") == ()


def test_texts_are_folded_until_only_what_they_say_is_left() -> None:
    assert (
        folder_listing.folded("A photo of Crème brûlée!")
        == folder_listing.folded("a_photo-of_CRE\u0300ME_bru\u0302le\u0301e")
        == "aphotoofcrèmebrûlée"
    )
    assert folder_listing.bare("A photo of Crème brûlée!") == "aphotoofcremebrulee"
    assert folder_listing.folded("写真:抹茶") == "写真抹茶"
    assert folder_listing.folded("ＡＢＣ") == "abc"


def test_numbers_in_names_count() -> None:
    assert sorted(["img10.png", "img2.png", "a", "img02b"], key=folder_listing.natural_order) == [
        "a", "img2.png", "img02b", "img10.png",
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["nosuch", "../{model}", "{model}{prompt}"])
def test_a_pattern_that_is_none_is_a_mistake_of_whoever_typed_it(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match=r"pattern .*expected such as"):
        naming_of(tmp_path, pattern=pattern, manifest="")
