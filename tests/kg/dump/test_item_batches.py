import pytest

from culturekit.kg.dump.entities import lists_of


@pytest.mark.parametrize(
    "texts",
    [[[], ["a"], ["b", "c"]], [[], []], [[""], ["", ""], []], [["a\x1fb"], [], ["c", "d\x1f"]], [["\x1f"], ["e"]]],
)
def test_lists_come_back_as_they_were_whatever_is_in_them(texts: list[list[str]]) -> None:
    assert lists_of(texts).to_list() == texts
