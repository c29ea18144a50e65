"""What was paid for is never lost, wherever a run is cut: a child is ended at each of its steps on the file system."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from culturekit.core.stage import Staging, staging
from tests.core.test_stage_folder import finish

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
