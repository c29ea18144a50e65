import json
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from tests.conftest import SMALL
from tests.faults.cluster_faults import cluster_faults, done_again

pytestmark = pytest.mark.slow


def test_killed_workers_and_schedulers_leave_the_bytes_of_the_local_engine(tmp_path: Path) -> None:
    result = cluster_faults(
        ["run", str(SMALL), "--workdir"], tmp_path, faults=4, seed=5, longest=3.0, workers=2, alone=True
    )
    assert sum(result.faults.values()) == 4
    assert result.wrong == []
    assert result.done > 50


def test_a_task_that_is_done_again_though_its_worker_is_there_is_told() -> None:
    key, one, other = "culturekit-a-1", "tcp://a", "tcp://b"
    lines = [json.dumps(what) for what in [("done", key, one), ("gone", one), ("done", key, other), ("done", key, one)]]
    done, again, wrong = done_again(lines)
    assert (done, again, len(wrong)) == (3, 2, 1)
    assert "while tcp://b" in wrong[0]
