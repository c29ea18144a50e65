"""The dask engine on a real cluster of this machine: a scheduler and workers that are processes of their own."""

import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed")

from distributed import Client, LocalCluster
from distributed.comm import CommClosedError

from culturekit.core import engines as shared_ground
from culturekit.core.dask_engine import DaskEngine, Options
from culturekit.core.engines import LocalEngine, Task, end_series, engine_for, lay_ground, work_on
from culturekit.core.errors import IntegrityError, UpstreamUnavailable, UsageError
from tests.core.test_engines import square

pytestmark = [
    pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]  # fmt: skip


@dataclass(frozen=True)
class Shard:
    number: int
    part: Path


def write_part(shard: Shard) -> int:
    """Write a file under a relative name, and leave a trace of who did it."""
    with shard.part.with_suffix(".log").open("a", encoding="ascii") as log:
        log.write(f"{os.getpid()}\n")
    shard.part.write_bytes(bytes([shard.number]) * 100)
    return shard.number


def settings(_: int) -> tuple[str | None, str]:
    return os.environ.get("POLARS_MAX_THREADS"), str(Path.cwd())


def page_faults(arrays: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(arrays):
        np.ones(2**15, dtype=np.float32)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def linger(folder: Path) -> None:
    with (folder / "begun").open("a", encoding="ascii") as log:
        log.write("x")
    time.sleep(2)


def local_cluster(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1",
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}, memory_limit=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster(2) as result:
        yield result


@pytest.fixture
def engine(cluster: LocalCluster, tmp_path: Path) -> Iterator[DaskEngine]:
    with DaskEngine(cluster.scheduler_address, folder=tmp_path) as result:
        yield result


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries are not told")
def test_workers_do_not_take_memory_from_the_system_for_each_array_anew(engine: DaskEngine) -> None:
    assert max(engine.map(page_faults, [1000] * 4)) < 8000, "an array has 32 pages"


def test_parts_are_the_local_engines_once(engine: DaskEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dask", "local"):
        (tmp_path / name).mkdir()
    shards = {name: [Shard(n, tmp_path / name / f"{n}.part") for n in range(12)] for name in ("dask", "local")}
    with LocalEngine(2) as local:
        assert list(engine.map(write_part, shards["dask"])) == list(local.map(write_part, shards["local"]))
    for one, other in zip(shards["dask"], shards["local"], strict=True):
        assert one.part.read_bytes() == other.part.read_bytes()
        assert len(one.part.with_suffix(".log").read_text(encoding="ascii").splitlines()) == 1


def test_workers_work_where_it_began(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DaskEngine(cluster.scheduler_address, folder=Path("out")) as engine:
        assert list(engine.map(write_part, [Shard(7, Path("seven.part"))])) == [7]
        assert Path("seven.part").read_bytes() == bytes([7]) * 100


def test_what_is_left_when_the_caller_stops_is_not_begun(cluster: LocalCluster, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), DaskEngine(cluster.scheduler_address, folder=tmp_path) as engine:
        for _ in engine.map(linger, [tmp_path] * 10):
            raise KeyboardInterrupt
    begun = (tmp_path / "begun").stat().st_size
    time.sleep(3)
    assert (tmp_path / "begun").stat().st_size <= begun
    assert begun < 10
    assert not list(tmp_path.glob(".culturekit-engine-*"))


def test_what_nobody_waits_for_any_more_ends_before_others_go_on(cluster: LocalCluster, tmp_path: Path) -> None:
    with DaskEngine(cluster.scheduler_address, folder=tmp_path) as engine:
        assert engine.ground is not None
        stray = engine.client.submit(work_on, Task("series", linger, tmp_path, engine.ground), pure=False)
        wait_for(tmp_path / "begun")
        engine.wait_while(end_series, "series")
        assert stray.done()
        late = engine.client.submit(work_on, Task("series", square, 2, engine.ground), pure=False)
        assert late.result() is None


def test_a_run_waits_for_what_a_killed_one_left_at_work(cluster: LocalCluster, tmp_path: Path) -> None:
    with Client(cluster, set_as_default=False) as client:
        ground = lay_ground(tmp_path)
        stray = client.submit(work_on, Task("killed", linger, tmp_path, ground), pure=False)
        wait_for(tmp_path / "begun")
        ground.marker.unlink()
        with DaskEngine(cluster.scheduler_address, folder=tmp_path):
            assert stray.done()


def test_a_scheduler_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culturekit.core.dask_engine.CONNECTING_SECONDS", 1)
    with pytest.raises(UpstreamUnavailable, match=r"tcp://127\.0\.0\.1:9: the dask scheduler cannot be reached"):
        DaskEngine("tcp://127.0.0.1:9", folder=tmp_path / "out").__enter__()
    assert not list((tmp_path / "out").iterdir())


def test_a_scheduler_without_workers_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culturekit.core.dask_engine.SECONDS_BETWEEN_LOOKS", 0.2)
    with local_cluster(0) as empty, pytest.raises(UpstreamUnavailable, match="no worker for 1 seconds"):
        DaskEngine(empty.scheduler_address, folder=tmp_path, options=Options(wait=1)).__enter__()


def test_other_versions_are_refused(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**shared_ground.versions_here(), "numpy": "1.0"}
    monkeypatch.setattr(shared_ground, "versions_here", lambda: other)
    with pytest.raises(UsageError, match=r"other versions.*expected numpy 1\.0, found numpy"):
        DaskEngine(cluster.scheduler_address, folder=tmp_path).__enter__()


def test_a_worker_must_see_the_folder(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(folder: Path) -> shared_ground.SharedGround:
        ground = lay_ground(folder)
        return replace(ground, marker=tmp_path / "not-mounted" / ground.marker.name, patience=0.5)

    monkeypatch.setattr("culturekit.core.dask_engine.lay_ground", elsewhere)
    with pytest.raises(UsageError, match=r"not-mounted on .*does not see the folder.*a file system that all machines"):
        DaskEngine(cluster.scheduler_address, folder=tmp_path).__enter__()


def test_a_lost_marker_ends_the_run(engine: DaskEngine) -> None:
    assert engine.ground is not None
    engine.ground.marker.unlink()
    with pytest.raises(IntegrityError, match="removed while the workers needed it"):
        list(engine.map(square, [1]))


def test_a_lost_scheduler_is_said(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    scheduler = started("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    try:
        address = address_in(file)
        worker = started("worker", address, "--nthreads", "1")
        try:
            with DaskEngine(address, folder=tmp_path) as engine, pytest.raises(UpstreamUnavailable, match="lost"):
                for _ in engine.map(linger, [tmp_path] * 5):
                    scheduler.kill()
        finally:
            worker.kill()
            worker.wait()
    finally:
        scheduler.kill()
        scheduler.wait()


def started(role: str, *options: str) -> "subprocess.Popen[bytes]":
    script = f"import sys; from distributed.cli.dask_{role} import main; main(sys.argv[1:])"
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", script, *options, "--no-dashboard"],
        stderr=subprocess.DEVNULL, cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.is_file() or not file.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def address_in(file: Path) -> str:
    import json

    wait_for(file)
    return str(json.loads(file.read_text(encoding="utf-8"))["address"])


def test_a_cluster_of_this_machine_has_as_many_workers_as_asked_for(tmp_path: Path) -> None:
    with engine_for("dask", workers=1, folder=tmp_path) as engine:
        assert engine.workers == 1
        assert list(engine.map(settings, [0])) == [("1", str(Path.cwd()))]


@pytest.mark.parametrize(("spec", "workers", "words"), [
    ("tcp://127.0.0.1:8786", 3, "those it has"), ("tcp://nowhere", None, "not the address"),
    ("dask:tcp", None, "no engine"), ("dask?threads=2", None, "no option threads"),
])  # fmt: skip
def test_what_makes_no_sense_is_said(tmp_path: Path, spec: str, workers: int | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        engine_for(spec, workers=workers, folder=tmp_path)


def test_how_many_workers_a_lost_scheduler_has_is_said_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise CommClosedError("in <TCP (closed)>: stream is closed.")

    engine = DaskEngine("tcp://127.0.0.1:9", folder=tmp_path)
    monkeypatch.setattr(engine, "client", SimpleNamespace(nthreads=gone))
    with pytest.raises(UpstreamUnavailable, match=r"closed\)>: stream is closed\. What was done"):
        _ = engine.workers
