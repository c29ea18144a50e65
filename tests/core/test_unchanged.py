"""What is kept in a process is kept while its files stay as they are."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import MANY, once_per_state, state_of
from culturekit.core.registry import Entry, Registry


def test_a_file_is_read_once_in_each_state(tmp_path: Path) -> None:
    file, reads = tmp_path / "words.txt", []

    @once_per_state
    def read(path: Path) -> str:
        reads.append(path)
        return path.read_text(encoding="utf-8")

    for text in ("one", "one", "two!", "six"):
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
        assert (read(file), read(file)) == (text, text)
    assert len(reads) == 3


def test_the_same_relative_name_in_another_folder_is_another_file(tmp_path: Path) -> None:
    states = []
    here = Path.cwd()
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("same", encoding="utf-8")
        os.chdir(tmp_path / name)
        states.append(state_of(Path("x")))
    os.chdir(here)
    assert states[0] != states[1]


def test_a_folder_is_another_when_a_file_in_it_is(tmp_path: Path) -> None:
    (tmp_path / "unet").mkdir()
    weights = tmp_path / "unet/weights.safetensors"
    weights.write_bytes(b"1")
    first = state_of(tmp_path)
    assert state_of(tmp_path) == first
    weights.write_bytes(b"22")
    assert state_of(tmp_path) != first


def test_a_folder_of_very_many_files_is_not_walked(tmp_path: Path) -> None:
    for number in range(MANY + 1):
        (tmp_path / f"{number}.png").touch()
    assert len(state_of(tmp_path)) == 1


@given(st.text())
def test_a_target_that_is_no_file_has_no_state(target: str) -> None:
    assert state_of(Path(f"no/such/folder/{target}")) == state_of(Path("no/such\0"))


def test_what_a_spec_names_is_made_anew_when_its_files_are_others(tmp_path: Path) -> None:
    things: Registry[list[str]] = Registry("thing", [Entry("list", "builtins:list", "")])
    calls = []
    things.make = lambda spec, **_: calls.append(str(spec)) or [str(spec)]  # type: ignore[method-assign,func-returns-value]
    weights = tmp_path / "weights"
    weights.write_bytes(b"1")
    spec = f"list:{weights}?other=5"
    first = things.kept(spec)
    assert things.kept(spec) is first
    assert things.kept("list:elsewhere") is not first
    weights.write_bytes(b"22")
    assert things.kept(spec) is not first
    assert len(calls) == 3
