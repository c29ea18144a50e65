"""Numbers with what they count."""

import pytest

from culturekit.core.errors import counted, counted_reason


@pytest.mark.parametrize(("many", "one"), [
    ("images", "image"), ("countries", "country"), ("matches", "match"), ("classes", "class"), ("boxes", "box"),
    ("rows set aside", "row set aside"), ("true labels worked out", "true label worked out"),
    ("image of other prompts", "image of other prompts"), ("image has no size", "image has no size"),
    ("quality", "quality"), ("ids", "id"), ("waits for review", "waits for review"), ("analysis", "analysis"),
])  # fmt: skip
def test_one_of_a_thing_is_in_the_singular(many: str, one: str) -> None:
    assert counted(1, many) == f"1 {one}"
    assert counted(0, many) == f"0 {many}"
    assert counted(1_002, many) == f"1,002 {many}"


@pytest.mark.parametrize(("count", "reason", "said"), [
    (4_186, "image without a picture", "4,186 × image without a picture"),
    (198, "country out of scope", "198 × country out of scope"),
    (2, "waits for review", "2 × waits for review"),
    (1, "image without a picture", "1 image without a picture"),
    (2, "images without a text", "2 images without a text"),
    (1, "images without a text", "1 image without a text"),
])  # fmt: skip
def test_a_reason_that_is_said_of_each_is_not_counted_as_if_it_were_of_many(count: int, reason: str, said: str) -> None:
    assert counted_reason(count, reason) == said
