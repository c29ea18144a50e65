"""What others wrote is stored and shown so that it harms neither."""

import pytest

from culturekit.core.errors import JOINERS, printable, without_halves


@pytest.mark.parametrize(("text", "whole"), [
    ("a\ud800b", "a\ufffdb"), ("\ude8e", "\ufffd"), ("\ud83c\udf8e!", "🎎!"), ("\ud800\ud83c\udf8e", "\ufffd🎎"),
    ("東京", "東京"),
])  # fmt: skip
def test_halves_of_characters_are_joined_or_replaced(text: str, whole: str) -> None:
    assert without_halves(text) == whole


def test_what_a_terminal_obeys_is_shown_by_its_code_point() -> None:
    assert printable("a\x1b[31m\u202eb\n") == r"a\x1b[31m\u202eb\n"
    persian = "می\u200cخواهم"
    assert printable(persian, keep=JOINERS) == persian
    assert printable(persian) == "می\\u200cخواهم"
