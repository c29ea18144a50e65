import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from culturekit.core.errors import FolderInUse
from culturekit.core.stage import hold

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
