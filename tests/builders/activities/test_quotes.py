import unicodedata
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from culturekit.builders.activities.extracting import find_quote

SOURCE = "Feijoada  is a\nstew of beans\u00a0with beef, cafe\u0301 and 김치.\nIt\u200b is\u202e Brazilian."


def words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


@pytest.mark.parametrize(
    ("quote", "cited"),
    [
        ("Feijoada is a stew", "Feijoada  is a\nstew"),
        (" stew of beans with\tbeef ", "stew of beans\u00a0with beef"),
        ("café", "cafe\u0301"),
        (unicodedata.normalize("NFD", "김치"), "김치"),
        ("It is Brazilian", "It\u200b is\u202e Brazilian"),
        ("It is\ufeff Braz\u200bilian.", "It\u200b is\u202e Brazilian."),
    ],
)
def test_a_quote_is_found_where_it_stands(quote: str, cited: str) -> None:
    place = find_quote(SOURCE, quote)
    assert place is not None
    assert SOURCE[slice(*place)] == cited


@pytest.mark.parametrize(
    "quote",
    ["feijoada", "Feijoada is stew", "cafe", "Feijoada is a stew ... beef", "chicken", "김ᄎ", "", " ", "...", "—"],
)
def test_what_does_not_stand_there_word_for_word_is_not_found(quote: str) -> None:
    assert find_quote(SOURCE, quote) is None


FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
LETTERS = st.sampled_from("abé\u0301\u0308 \n\u00a0가\u1100\u1161\u11a8क\u094d\u0937日Z\u200b\u200d\ufe0f\u09c7\u09be")


@given(st.text(LETTERS, max_size=30), st.text(LETTERS, max_size=10))
def test_found_means_equal_once_composed(source: str, quote: str) -> None:
    place = find_quote(source, quote)
    if place is not None:
        assert visible(source[slice(*place)]) == visible(quote)


def visible(text: str) -> str:
    return words("".join(character for character in text if character not in "\u200b\u200d\ufe0f"))


@given(st.text(LETTERS, min_size=1, max_size=30), st.data())
def test_whatever_stands_between_two_spaces_is_found_in_any_form(source: str, data: st.DataObject) -> None:
    spans = source.split(" ")
    first = data.draw(st.integers(0, len(spans) - 1))
    last = data.draw(st.integers(first, len(spans) - 1))
    quote = " ".join(spans[first : last + 1])
    assume(any(map(str.isalnum, quote)))
    assume(not unicodedata.category(visible(quote)[0]).startswith("M"))
    form = data.draw(st.sampled_from(FORMS))
    assert find_quote(source, unicodedata.normalize(form, quote)) is not None
    assert find_quote(unicodedata.normalize(form, source), quote) is not None
