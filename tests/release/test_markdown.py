import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.release.card_content import differences, is_plain
from culturekit.release.card_pages import BLOCK, block, code, escaped, table

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text())
def test_a_cell_stays_one_cell_in_one_line(text: str) -> None:
    for written in (escaped(text), code(text)):
        assert len(written.splitlines()) <= 1
        assert not re.search(r"(?<!\\)(?:\\\\)*\|", written)
        assert "<" not in written
        assert written.isprintable()


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_a_block_is_found_whole_whatever_is_in_it(labels: list[str]) -> None:
    text = table(("label",), [(escaped(label),) for label in labels])
    page = f"{block('one', text)}\n\n{block('two', text)}"
    assert [(found["name"], found["text"]) for found in BLOCK.finditer(page)] == [("one", text), ("two", text)]


@pytest.mark.parametrize(("label", "shown"), [
    ("a|b", r"a\|b"), ("<b>", "&lt;b&gt;"), ("a\nb", r"a\\nb"), ("see https://x.example", r"see https\://x.example"),
    ("x" * 200, "x" * 160 + "… \\(200 characters\\)"),
])  # fmt: skip
def test_how_labels_are_shown(label: str, shown: str) -> None:
    assert escaped(label) == shown


@given(st.text(alphabet=st.sampled_from("ab./\\:~% \n\0") | st.characters(), max_size=40))
def test_a_plain_path_stays_in_its_folder(text: str) -> None:
    if is_plain(text):
        folder = Path("/somewhere/card")
        assert Path(os.path.normpath(folder / text)).is_relative_to(folder)


@pytest.mark.parametrize("path", [
    "../x", "a/../b", "/etc/passwd", "", ".", "a//b", "./a", "a/", "C:/x", "c:x", "\\\\host\\x", "a\\..\\b", "~/x",
    "~root", "file:///etc/passwd", "https://x.example/y", "%2e%2e/x", "a\0b", "a\nb", "a\ud800b", "a\udcff", None, 3,
    ["a"],
])  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused(path: object) -> None:
    assert not is_plain(path)


@pytest.mark.parametrize("path", ["README.md", "data/cspace/art.parquet", "a..b/c", "data/cspace/*.parquet", "...x"])
def test_a_plain_path_is_taken(path: str) -> None:
    assert is_plain(path)


@given(JSON)
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert list(differences(value, value)) == []


@given(JSON, JSON)
def test_values_that_differ_are_told_apart(one: object, other: object) -> None:
    if one != other:
        assert list(differences(one, other))
