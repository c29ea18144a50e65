import importlib.util
from pathlib import Path

import pytest

from culturekit.core.engines import LocalEngine, engine_for, lay_ground, stand_on
from culturekit.core.errors import MissingDependency, UsageError


def test_the_local_engine_takes_the_workers_and_nothing_else(tmp_path: Path) -> None:
    engine = engine_for("local", workers=3, folder=tmp_path)
    assert isinstance(engine, LocalEngine)
    assert engine.workers == 3
    with pytest.raises(UsageError, match="local takes no target"):
        engine_for("local?workers=3", workers=None, folder=tmp_path)


def test_an_unknown_engine_is_said_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no engine 'dusk'; expected dask or local or tcp or tls.*'dask'"):
        engine_for("dusk", workers=None, folder=tmp_path)


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
