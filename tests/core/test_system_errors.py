"""What the system refuses stays what it is; keys and text of others are shown so that they harm nobody."""

import errno
import os
import resource
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core import atomic
from culturekit.core.arrays import save_array, save_rows
from culturekit.core.errors import JOINERS, IntegrityError, UpstreamUnavailable, UsageError, printable, without_halves
from culturekit.core.literal_keys import is_key_name, key_problem, masked
from culturekit.core.spreadsheet_cells import export_table
from culturekit.core.table import declare
from culturekit.core.tables import read_part, read_table, save_parquet, save_part, write_frames

ROWS = pl.DataFrame({"row": np.arange(200_000, dtype=np.uint32), "id": [f"{n * 7919:x}" for n in range(200_000)]})
NUMBERS = declare("numbers by row: row u32, id str")
LIMIT = 100_000


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file grow beyond a size: every write after that fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def exported(folder: Path) -> None:
    pl.DataFrame({"id": ["a" * 50] * 10_000}).write_parquet(folder / "a.parquet")
    export_table(folder / "a.parquet", "csv")


WRITERS: dict[str, Callable[[Path], object]] = {
    "parquet": lambda folder: save_parquet(ROWS, folder / "a.parquet"),
    "frames": lambda folder: write_frames(folder, NUMBERS, [ROWS.head(100_000), ROWS.tail(100_000)]),
    "part": lambda folder: save_part(ROWS, folder / "a.arrows"),
    "array": lambda folder: save_array(folder / "a.npy", ROWS["row"].to_numpy()),
    "rows": lambda folder: save_rows(folder / "a.npy", [ROWS["row"].to_numpy()] * 2, shape=(400_000,), dtype=np.uint32),
    "json": lambda folder: atomic.write_atomically(folder / "a.json", b" " * 200_000),
    "csv": exported,
}  # fmt: skip


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("kind", WRITERS)
def test_a_write_that_is_refused_is_the_systems_error_with_its_number_and_file(tmp_path: Path, kind: str) -> None:
    with pytest.raises(OSError, match="File too large") as caught:
        WRITERS[kind](tmp_path)
    assert caught.value.errno == errno.EFBIG
    assert Path(str(caught.value.filename)).parent == tmp_path
    assert {path.name for path in tmp_path.iterdir()} <= {"csv": {"a.parquet"}, "part": {"a.arrows"}}.get(kind, set())
    failure = atomic.outside_failure(caught.value)
    assert failure is not None
    assert failure.exit_code == 3
    assert "ulimit -f" in str(failure)


def test_what_frames_raise_on_their_way_arrives_as_it_was(tmp_path: Path) -> None:
    def frames() -> Iterator[pl.DataFrame]:
        yield ROWS.head(10)
        raise IntegrityError("damaged", where="part")

    with pytest.raises(IntegrityError, match="part: damaged"):
        write_frames(tmp_path, NUMBERS, frames())
    assert list(tmp_path.iterdir()) == []


class PanicException(BaseException):
    """As the bindings of polars raise it."""


@pytest.mark.parametrize(("raised", "number"), [
    (pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"), 28),
    (OSError("Input/output error (os error 5)"), 5),
    (pl.exceptions.ComputeError("[Errno 122] Disk quota exceeded"), 122),
    (PanicException('called `unwrap()`: Os { code: 30, kind: ReadOnlyFilesystem, message: "Read-only" }'), 30),
    (MemoryError("Unable to allocate 5 GiB"), errno.ENOMEM),
    (OSError(errno.EMFILE, "Too many open files"), errno.EMFILE),
])  # fmt: skip
def test_the_number_is_found_in_whatever_form_it_is_told(raised: BaseException, number: int, tmp_path: Path) -> None:
    found = atomic.system_error(raised, tmp_path / "file")
    assert found is not None
    assert (found.errno, found.filename) == (number, str(tmp_path / "file"))
    with pytest.raises(UpstreamUnavailable) as caught, atomic.explained_outside(tmp_path):
        raise raised
    assert os.strerror(number) in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert ("bytes free" in str(caught.value)) == (number in {errno.ENOSPC, errno.EDQUOT})


@pytest.mark.parametrize("raised", [
    OSError("a device of its own kind"), TimeoutError("my model did not answer in 5 s"),
    ConnectionError("the box under the desk is off"), ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    ssl.SSLError(1, "certificate verify failed"),
])  # fmt: skip
def test_other_failures_of_the_outside_keep_their_words_and_name_who_was_asked(raised: OSError) -> None:
    with pytest.raises(UpstreamUnavailable) as caught, atomic.explained_outside("the backend desk"):
        raise raised
    assert str(caught.value).startswith(f"the backend desk: {type(raised).__name__}: {raised}")
    assert "space" not in str(caught.value)


@pytest.mark.parametrize("raised", [ValueError("ours"), UsageError("theirs"), KeyboardInterrupt(), PanicException("x")])
def test_what_is_not_the_outside_stays_as_it_is(raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught, atomic.explained_outside("anywhere"):
        raise raised
    assert caught.value is raised


@pytest.mark.parametrize(("number", "words"), [
    (errno.ENOTDIR, "a file stands where"), (errno.EISDIR, "a folder stands"),
    (errno.ENAMETOOLONG, "a name is longer than the disk allows"),
    (errno.EEXIST, "something of that name is there already"),
])  # fmt: skip
def test_a_file_in_the_place_of_a_folder_is_a_mistake_of_whoever_named_it(number: int, words: str) -> None:
    with pytest.raises(UsageError, match=f"graph/nodes.npy: {words}"), atomic.explained_outside("anywhere"):
        raise OSError(number, os.strerror(number), "graph/nodes.npy")


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EMFILE])
def test_an_unreadable_table_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    write_frames(tmp_path, NUMBERS, [ROWS.head(10)])

    def refused(_: object) -> pl.DataFrame:
        raise pl.exceptions.ComputeError(f"{os.strerror(number)} (os error {number})")

    monkeypatch.setattr(pl, "read_parquet", refused)
    monkeypatch.setattr(pl, "read_ipc_stream", refused)
    path = tmp_path / f"{NUMBERS.name}.parquet"
    with pytest.raises(OSError, match=os.strerror(number)):
        read_table(path, NUMBERS)
    with pytest.raises(OSError, match=os.strerror(number)):
        read_part(path)


@pytest.mark.parametrize(("number", "blamed"), [(errno.ENOENT, 0), (errno.EISDIR, 0), (errno.EIO, 1)])
def test_a_name_that_leads_to_no_file_is_not_the_machines_fault(number: int, blamed: int, tmp_path: Path) -> None:
    raised = 0
    try:
        atomic.raise_system_error(OSError(number, os.strerror(number)), tmp_path)
    except OSError:
        raised = 1
    assert raised == blamed


def test_a_part_that_is_no_longer_whole_is_damaged(tmp_path: Path) -> None:
    save_part(ROWS, tmp_path / "a.arrows")
    os.truncate(tmp_path / "a.arrows", 5_000)
    with pytest.raises(IntegrityError, match="run the same command again"):
        read_part(tmp_path / "a.arrows")


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


KEYS = [
    "sk-abcdefghij1234567890abcdefghij", "sk-proj-Ab12-Cd34_Ef56Gh78Ij90", "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ya29.A0ARrdaM1234567890abcdef", "hf_abcdefGHIJKL1234567890", "ghp_abcdefghijklmnop1234567890",
    "xoxb-1234567890-abcdefghij", "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "-----BEGIN PRIVATE KEY-----",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_known_services_are_known_by_their_shape(key: str) -> None:
    assert key_problem(f"model {key} here") == "this looks like a key that is written out"
    assert key not in masked(f"got {key}, sorry")


@pytest.mark.parametrize(("text", "blanked"), [
    ("http://jane:canary@host/v1", "http://[key]@host/v1"),
    ("https://canary@host", "https://[key]@host"),
    ("https://host/v1?key=canary&x=1", "https://host/v1?key=[key]&x=1"),
    ("Authorization: Bearer canary123", "Authorization: Bearer [key]"),
    ("{'api_key': 'canary', 'x': 1}", "{'api_key': '[key]', 'x': 1}"),
    ('{"Authorization": "Bearer canary"}', '{"Authorization": "Bearer [key]"}'),
    ("openai:m?api_key=canary&x=1", "openai:m?api_key=[key]&x=1"),
    ("basic Y2FuYXJ5OmNhbmFyeQ==", "basic [key]"),
])  # fmt: skip
def test_a_key_in_its_place_is_blanked_whatever_it_looks_like(text: str, blanked: str) -> None:
    assert masked(text) == blanked
    assert key_problem(text) is not None


@pytest.mark.parametrize("text", [
    "simulated?temperature=2", "openai:gpt-4o-mini?base_url=http://127.0.0.1:8000/v1&price=0.15/0.60&api_key=${MY_KEY}",
    "http://host:8000/a@b", "mail jane@host.example", "sk-learn is a library", "hf_hub_download",
    "a basic understanding of bearer tokens", "recipe.yaml:3: api_key: unknown key; accepted: seed",
    "write api_key=${NAME}", "the environment variable OPENAI_API_KEY or GEMINI_API_KEY",
])  # fmt: skip
def test_other_text_stays_as_it_is(text: str) -> None:
    assert masked(text) == text
    assert key_problem(text) is None


@pytest.mark.parametrize("name", ["api_key", "API-KEY", "openai_api_key", "token", "client_secret", "password"])
def test_under_the_name_of_a_key_only_the_name_of_a_variable_may_stand(name: str) -> None:
    assert is_key_name(name)
    assert key_problem("canary", name=name) == f"{name} is written out here"
    assert key_problem("$CANARY", name=name) is not None
    assert key_problem("${CANARY}", name=name) is None
    assert key_problem("", name=name) is None


@pytest.mark.parametrize("name", ["max_tokens", "monkey", "sort_key", "author", "keyboard", "tokenizer"])
def test_other_names_are_free(name: str) -> None:
    assert not is_key_name(name)
    assert key_problem("canary", name=name) is None
