"""What every engine promises, and how engines are named."""

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.engines import LocalEngine, engine_for, lay_ground, stand_on
from culturekit.core.errors import CultureKitError, MissingDependency, UsageError


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
    with engine_for(request.param, workers=2, folder=tmp_path) as made:
        yield made


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
