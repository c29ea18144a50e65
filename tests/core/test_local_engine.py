import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.engines import LocalEngine
from culturekit.core.errors import CultureKitError, UpstreamUnavailable, UsageError
from tests.core.test_engines import die_always


def die_while_the_first_waits(marker: Path) -> str:
    if marker.name == "0":
        time.sleep(1)
    elif not marker.exists():
        marker.write_bytes(b"")
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


class PanicException(BaseException):
    """As polars raises it when its own writing fails."""


class FarAway(TimeoutError):
    """An error of a plugin, which cannot be made anew from its text."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port} is far away")


def fail(how: str) -> None:
    raise {
        "panic": PanicException('Os { code: 28, kind: StorageFull, message: "No space left on device" }'),
        "polars": pl.exceptions.ComputeError("underlying IO error: No space left on device (os error 28)"),
        "system": OSError(28, "No space left on device", "/somewhere/part"),
        "plugin": FarAway("box", 80),
        "plain": ConnectionError("box is off"),
    }[how]


def threads(_: int) -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS")}


def linger(pipe_path: Path) -> None:
    written = pipe_path.with_suffix(".written")
    written.write_text(str(os.getpid()), encoding="ascii")
    written.rename(pipe_path)
    time.sleep(3600)


def refuse_beside_a_lingerer(folder: Path) -> None:
    if folder.name == "lingerer":
        linger(folder)
    while not folder.with_name("lingerer").exists():
        time.sleep(0.02)
    raise UsageError("not this one")


@pytest.mark.slow
def test_items_that_kill_each_others_workers_are_none_of_them_blamed(tmp_path: Path) -> None:
    with LocalEngine(4) as engine:
        markers = [tmp_path / str(n) for n in range(12)]
        assert list(engine.map(die_while_the_first_waits, markers)) == ["done"] * 12


@pytest.fixture(scope="module")
def one_worker() -> Iterator[LocalEngine]:
    """A worker that outlives what goes wrong with an item."""
    with LocalEngine(1) as engine:
        yield engine


@pytest.mark.parametrize("how", ["panic", "polars", "system"])
def test_what_the_system_refuses_a_worker_reaches_the_caller_as_that(one_worker: LocalEngine, how: str) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught:
        list(one_worker.map(fail, [how]))
    assert caught.value.errno == 28
    assert caught.value.filename == ("/somewhere/part" if how == "system" else None)


@pytest.mark.parametrize(("how", "words"), [("plugin", "box:80 is far away"), ("plain", "box is off")])
def test_other_failures_of_the_outside_cross_with_their_words(one_worker: LocalEngine, how: str, words: str) -> None:
    with pytest.raises((UpstreamUnavailable, ConnectionError), match=words):
        list(one_worker.map(fail, [how]))


@pytest.mark.endtoend
def test_workers_that_the_system_ends_are_no_mistake_of_ours() -> None:
    with LocalEngine(1) as engine, pytest.raises(UpstreamUnavailable, match="77, ended by SIGKILL"):
        list(engine.map(die_always, [77]))


@pytest.mark.endtoend
def test_an_item_of_many_pages_is_named_by_its_beginning() -> None:
    with LocalEngine(1) as engine, pytest.raises(CultureKitError) as error:
        list(engine.map(die_always, ["a long story " * 10_000]))
    assert "'a long story " in str(error.value)
    assert len(str(error.value)) < 1_000


def test_workers_do_arithmetic_on_one_thread_and_the_parent_keeps_its_own() -> None:
    before = dict(os.environ)
    with LocalEngine(1) as engine:
        assert list(engine.map(threads, [0])) == [{"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}]
    assert dict(os.environ) == before


@pytest.mark.endtoend
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    import subprocess

    script = (
        "from pathlib import Path; from culturekit.core.engines import LocalEngine\n"
        "from tests.core.test_local_engine import linger\n"
        "if __name__ == '__main__':\n"
        f"    list(LocalEngine(1).map(linger, [Path({str(tmp_path / 'pid')!r})]))\n"
    )
    (tmp_path / "parent.py").write_text(script, encoding="utf-8")
    root = Path(__file__).parents[3]
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "parent.py"], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    )
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(encoding="ascii") != "")
    worker = int((tmp_path / "pid").read_text(encoding="ascii"))
    parent.kill()
    parent.wait()
    wait_for(
        lambda: not Path(f"/proc/{worker}/stat").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]
    )


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


@pytest.mark.endtoend
def test_after_an_error_no_worker_is_left_at_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not this one"), LocalEngine(2) as engine:
        list(engine.map(refuse_beside_a_lingerer, [tmp_path / "refuser", tmp_path / "lingerer"]))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "lingerer").read_text(encoding="ascii")), 0)
