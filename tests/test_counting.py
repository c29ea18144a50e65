"""Numbers with what they count."""

import pytest

from culturekit.counting import counted


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("images", "image"),
        ("countries", "country"),
        ("matches", "match"),
        ("classes", "class"),
        ("boxes", "box"),
        ("rows set aside", "row set aside"),
        ("true labels worked out", "true label worked out"),
        ("image of other prompts", "image of other prompts"),
        ("image has no size", "image has no size"),
        ("quality", "quality"),
        ("ids", "id"),
        ("analysis", "analysis"),
    ],
)
def test_one_of_a_thing_is_in_the_singular(many: str, one: str) -> None:
    assert counted(1, many) == f"1 {one}"
    assert counted(0, many) == f"0 {many}"
    assert counted(1_002, many) == f"1,002 {many}"
