from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.errors import IntegrityError
from culturekit.kg.lines import entity_lines, split_lines
from culturekit.kg.members import Chunk


def chunks(*pieces: bytes) -> list[Chunk]:
    """One member, cut anywhere."""
    offsets = [sum(map(len, pieces[:number])) for number in range(len(pieces))]
    return [Chunk(0, offset, piece) for offset, piece in zip(offsets, pieces, strict=True)]


def cut(content: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [content[a:b] for a, b in pairwise(edges)]


@given(st.binary(max_size=60).map(lambda b: b.replace(b"x", b"\n")), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_where_chunks_end(content: bytes, places: list[int]) -> None:
    lines = list(split_lines(chunks(*cut(content, places)), name="t"))
    expected = content.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert [line.content for line in lines] == expected
    for number, line in enumerate(lines, start=1):
        assert line.number == number
        assert content[line.offset :].startswith(line.content)


def test_a_line_that_runs_into_the_next_member_belongs_where_it_begins() -> None:
    lines = list(split_lines([Chunk(0, 0, b"a\nb"), Chunk(1, 0, b"c\nd\n")], name="t"))
    assert [(line.content, line.member, line.offset) for line in lines] == [
        (b"a", 0, 0), (b"bc", 0, 2), (b"d", 1, 2),
    ]  # fmt: skip


def entities(content: bytes) -> list[bytes]:
    return [line.content for line in entity_lines(chunks(content), name="t")]


def test_an_array_and_a_file_of_lines_hold_the_same_entities() -> None:
    expected = [b'{"id":1}', b'{"id":2}']
    assert entities(b'[\n{"id":1},\n{"id":2}\n]\n') == expected
    assert entities(b'[{"id":1},\r\n{"id":2}\r\n]') == expected
    assert entities(b'{"id":1}\n{"id":2}\n') == expected
    assert entities(b'\n{"id":1}\n\n{"id":2}') == expected


@pytest.mark.parametrize("content", [b'[\n{"id":1},\n', b"[\n", b'[\n{"id":1,"a":[]'])
def test_an_array_that_is_never_closed_was_cut(content: bytes) -> None:
    with pytest.raises(IntegrityError, match="ends before the array does"):
        entities(content)


def test_more_after_the_end_of_the_array_is_an_error() -> None:
    with pytest.raises(IntegrityError, match="line 4"):
        entities(b'[\n{"id":1}\n]\n{"id":2}\n')
