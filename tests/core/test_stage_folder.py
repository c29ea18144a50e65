"""What was paid for and what was finished is never lost, wherever a run is cut, and two runs never share a folder."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from culturekit.core.digests import MANIFEST, Manifest, describe_outputs, read_manifest
from culturekit.core.errors import FolderInUse, UsageError
from culturekit.core.stage import Staging, hold, staging


def finish(staged: Staging, key: str, content: bytes, *, stage: str = "test") -> None:
    staged.open(key)
    (staged.out / "data").write_bytes(content)
    digest, outputs = describe_outputs(staged.out, {})
    staged.publish(
        Manifest(stage=stage, version=1, key=key, sha256=digest, code={}, packages={}, inputs={}, options={}, seeds={},
            counts={}, drops={}, outputs=outputs), b"{}",
    )  # fmt: skip


def test_a_new_result_replaces_the_old_one_whole_and_the_old_one_stays_until_then(tmp_path: Path) -> None:
    for key, content in (("k1", b"one"), ("k2", b"two")):
        with staging(tmp_path / "s", stage="test") as staged:
            finish(staged, key, content)
        assert (tmp_path / "s/data").read_bytes() == content
        assert os.listdir(tmp_path) == ["s"]
        assert sorted(os.listdir(tmp_path / "s")) == ["data", "manifest.json", "run.json"]
    with pytest.raises(OSError, match="disk full"), staging(tmp_path / "s", stage="test") as staged:
        staged.open("k3")
        (staged.out / "data").write_bytes(b"thr")
        raise OSError("disk full")
    assert (tmp_path / "s/data").read_bytes() == b"two"
    assert read_manifest(tmp_path / "s") is not None


def test_a_cut_run_goes_on_with_the_same_key_and_only_then(tmp_path: Path) -> None:
    staged = Staging(tmp_path / "s", stage="test")
    assert not staged.open("k1")
    (staged.scratch / "shard").write_bytes(b"done")
    for name in (".writing-1-x", MANIFEST):
        (staged.out / name).write_bytes(b"half")
    assert staged.open("k1")
    assert (staged.scratch / "shard").exists()
    assert os.listdir(staged.out) == []
    assert not staged.open("k2")
    assert os.listdir(staged.scratch) == []


@pytest.mark.parametrize("complete", [True, False])
def test_a_kill_between_the_two_renames_loses_nothing(tmp_path: Path, complete: bool) -> None:
    with staging(tmp_path / "s", stage="test") as staged:
        finish(staged, "k1", b"one")
    staged.open("k2")
    (staged.out / "data").write_bytes(b"two")
    if complete:
        (staged.out / MANIFEST).write_bytes((tmp_path / "s" / MANIFEST).read_bytes())
    (tmp_path / "s").rename(staged.previous)
    with staging(tmp_path / "s", stage="test"):
        assert (tmp_path / "s/data").read_bytes() == (b"two" if complete else b"one")
        assert not staged.previous.exists()


def test_what_is_no_result_of_the_stage_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/thesis.tex").write_text("years of work", encoding="utf-8")
    with staging(tmp_path / "graph", stage="graph") as staged:
        finish(staged, "k1", b"one", stage="graph")
    (tmp_path / "file").write_bytes(b"")
    for name, words in (("s", "did not write"), ("graph", "another finished stage"), ("file", "a file of that name")):
        with pytest.raises(UsageError, match=words), staging(tmp_path / name, stage="test"):
            pass
    assert sorted(os.listdir(tmp_path)) == ["file", "graph", "s"]


Holder = tuple[multiprocessing.process.BaseProcess, Connection]


def hold_and_tell(lock: Path, pipe: Connection) -> None:
    with hold(lock):
        pipe.send("held")
        pipe.recv()


@pytest.fixture
def holder(tmp_path: Path) -> Holder:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=hold_and_tell, args=(tmp_path / ".lock", theirs))
    process.start()
    assert ours.recv() == "held"
    return process, ours


def test_the_second_run_is_refused_with_the_name_of_the_first(tmp_path: Path, holder: Holder) -> None:
    process, pipe = holder
    with pytest.raises(FolderInUse) as refused, hold(tmp_path / ".lock"):
        pass
    assert f"process {process.pid} on " in str(refused.value)
    assert refused.value.exit_code == 2
    pipe.send("go")
    process.join()
    with hold(tmp_path / ".lock"):
        assert (tmp_path / ".lock").exists()
    assert os.listdir(tmp_path) == []


def test_a_killed_run_does_not_hold_the_folder(tmp_path: Path, holder: Holder) -> None:
    process, _ = holder
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with hold(tmp_path / ".lock"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_patient_run_waits_its_turn(tmp_path: Path, holder: Holder) -> None:
    process, pipe = holder
    pipe.send("go")
    with hold(tmp_path / ".lock", wait=True):
        assert (tmp_path / ".lock").exists()
    process.join()


def test_an_unreadable_lock_file_still_refuses_politely(tmp_path: Path) -> None:
    with hold(tmp_path / ".lock"):
        (tmp_path / ".lock").write_bytes(b"\xff")
        with pytest.raises(FolderInUse, match="a run that is just starting"), hold(tmp_path / ".lock"):
            pass


STEPS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.copyfile", "shutil.rmtree")
KILLED = 9
DONE = 0


def paid(staged: Staging, reply: str) -> None:
    (staged.out / "journal").mkdir(exist_ok=True)
    (staged.out / "journal" / reply).write_text(reply, encoding="ascii")


def publish(folder: Path, key: str, reply: str) -> None:
    with staging(folder, stage="test") as staged:
        staged.open(key)
        paid(staged, reply)
        finish(staged, key, key.encode())


def cut(folder: Path, key: str, reply: str) -> None:
    staged = Staging(folder, stage="test")
    staged.open(key)
    (staged.out / "half").write_bytes(b"half")
    paid(staged, reply)


def replies_in(folder: Path) -> set[str]:
    return set(os.listdir(folder / "journal")) if (folder / "journal").is_dir() else set()


def test_the_journal_of_a_finished_folder_goes_into_the_next_one_and_stays(tmp_path: Path) -> None:
    publish(tmp_path / "s", "k1", "a")
    cut(tmp_path / "s", "k2", "b")
    assert replies_in(tmp_path / "s") == {"a"}
    publish(tmp_path / "s", "k3", "c")
    assert replies_in(tmp_path / "s") == {"a", "b", "c"}
    assert os.listdir(tmp_path) == ["s"]


def test_discarding_leaves_the_journal_only(tmp_path: Path) -> None:
    publish(tmp_path / "s", "k1", "a")
    cut(tmp_path / "s", "k2", "b")
    staged = Staging(tmp_path / "s", stage="test")
    staged.discard()
    assert os.listdir(staged.partial) == ["journal"]
    assert not staged.open("k2")
    assert replies_in(staged.out) == {"a", "b"}
    assert not (staged.out / "half").exists()


def again(folder: Path) -> None:
    publish(folder, "k3", "c")


def fresh(folder: Path) -> None:
    with staging(folder, stage="test") as staged:
        staged.discard()
        staged.open("k1")
        finish(staged, "k1", b"k1")


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("run", [again, fresh])
def test_no_kill_loses_what_was_paid_for(tmp_path: Path, run: Callable[[Path], None], stride: int) -> None:
    steps = 0
    while True:
        folder = tmp_path / f"{steps}" / "s"
        folder.parent.mkdir()
        publish(folder, "k1", "a")
        cut(folder, "k2", "b")
        ended = ended_after(steps, lambda folder=folder: run(folder))  # type: ignore[misc]
        assert ended in {KILLED, DONE}
        kept = set[str]().union(*(os.listdir(path) for path in folder.parent.rglob("journal")))
        assert kept >= {"a", "b"}, steps
        run(folder)
        assert replies_in(folder) >= {"a", "b"}, steps
        assert os.listdir(folder.parent) == ["s"], steps
        if ended == DONE:
            break
        steps += stride
    assert steps > 30


def ended_after(steps: int, run: Callable[[], None]) -> int:
    """Run in a child that ends itself, as a kill would, when it has taken so many steps."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = steps

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in STEPS:
            if left == 0:
                os._exit(KILLED)
            left -= 1

    try:
        sys.addaudithook(count)
        run()
    except BaseException:
        os._exit(1)
    os._exit(DONE)
