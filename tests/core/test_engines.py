"""What every engine promises, and how engines are named."""

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.engines import LocalEngine, engine_for, lay_ground, stand_on
from culturekit.core.errors import CultureKitError, MissingDependency, UpstreamUnavailable, UsageError


def square(number: int) -> int:
    return number * number


def slow_first(number: int) -> int:
    time.sleep(0.5 if number == 0 else 0)
    return number


def refuse(number: int) -> int:
    if number == 2:
        raise UsageError("not two", where="item", hint="x" * 50_000)
    return number


def raise_local(_: int) -> None:
    class Gone(Exception):
        """Nobody else can import it, nor send it."""

        def __reduce__(self) -> Any:
            raise TypeError("stays here")

    raise Gone("out of paint")


def die_once(marker: Path) -> str:
    """Leave a trace; the first time, kill the worker at one item, as the kernel does when memory runs out."""
    with marker.open("a", encoding="ascii") as log:
        log.write("x")
    if marker.name == "1" and marker.stat().st_size == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die_always(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(params=["local", pytest.param("dask", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "dask":
        pytest.importorskip("distributed")
    with engine_for(request.param, workers=2, folder=tmp_path) as started:
        yield started


def test_results_come_in_the_order_of_the_items(engine: Any) -> None:
    assert engine.workers == 2
    assert list(engine.map(square, range(100))) == [n * n for n in range(100)]
    assert list(engine.map(slow_first, range(6))) == list(range(6))
    assert list(engine.map(square, [])) == []


def test_an_error_reaches_the_caller_as_it_was_or_in_its_words(engine: Any) -> None:
    with pytest.raises(UsageError, match="item: not two") as caught:
        list(engine.map(refuse, range(4)))
    assert caught.value.hint == "x" * 50_000
    assert "in refuse" in caught.value.__notes__[0]
    with pytest.raises(CultureKitError, match="Gone: out of paint"):
        list(engine.map(raise_local, [0]))


@pytest.mark.endtoend
def test_a_killed_worker_costs_its_item_and_nothing_else(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "markers").mkdir()
    markers = [tmp_path / "markers" / str(n) for n in range(12)]
    assert list(engine.map(die_once, markers)) == ["done"] * 12
    assert (tmp_path / "markers/1").stat().st_size == 2
    assert sum(marker.stat().st_size for marker in markers) <= 14, "an item that was done is not done again"
    assert list(engine.map(square, [3])) == [9]


@pytest.mark.slow
def test_an_item_that_kills_every_worker_ends_the_run_with_its_name(engine: Any) -> None:
    with pytest.raises(CultureKitError, match=r"died (3 times|again and again) on one item; found 77"):
        list(engine.map(die_always, [77]))


def test_the_local_engine_takes_the_workers_and_nothing_else(tmp_path: Path) -> None:
    engine = engine_for("local", workers=3, folder=tmp_path)
    assert isinstance(engine, LocalEngine)
    assert engine.workers == 3
    for spec, words in (("local?workers=3", "local takes no target"),
                        ("dusk", "no engine 'dusk'; expected dask or local or tcp or tls.*'dask'")):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            engine_for(spec, workers=None, folder=tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("distributed") is not None, reason="dask is installed")
@pytest.mark.parametrize("spec", ["dask", "tcp://127.0.0.1:8786"])
def test_without_dask_the_command_that_installs_it_is_said(tmp_path: Path, spec: str) -> None:
    with pytest.raises(MissingDependency, match=r"pip install -c constraints\.txt 'culturekit\[scale\]'"):
        engine_for(spec, workers=None, folder=tmp_path)


def test_the_marker_says_whether_somebody_still_asks(tmp_path: Path) -> None:
    ground = lay_ground(tmp_path / "out")
    assert ground.marker.parent == tmp_path / "out"
    assert stand_on(ground)
    ground.marker.unlink()
    assert not stand_on(ground)


def test_markers_of_dead_runs_of_this_machine_are_swept(tmp_path: Path) -> None:
    mine = lay_ground(tmp_path).marker
    dead = mine.with_name(mine.name.replace(f"-{mine.name.split('-')[-2]}-", f"-{2**22 + 1}-"))
    foreign = tmp_path / ".culturekit-engine-elsewhere-1-abc"
    for marker in (dead, foreign):
        marker.write_text("x", encoding="ascii")
    other = lay_ground(tmp_path).marker
    assert sorted(tmp_path.iterdir()) == sorted([mine, other, foreign])


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
        "from tests.core.test_engines import linger\n"
        "if __name__ == '__main__':\n"
        f"    list(LocalEngine(1).map(linger, [Path({str(tmp_path / 'pid')!r})]))\n"
    )
    (tmp_path / "parent.py").write_text(script, encoding="utf-8")
    root = Path(__file__).parents[2]
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
