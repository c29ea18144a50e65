from pathlib import Path

import pytest

pytest.importorskip("distributed")

from tests.conftest import SMALL
from tests.faults.dask_kills import dask_kills

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_killed_dask_workers_leave_the_bytes_of_the_local_engine(tmp_path: Path) -> None:
    result = dask_kills(SMALL, tmp_path, kills=4, seed=5, longest=3.0, workers=2)
    assert len(result.kills) == 4
    assert result.different == []
