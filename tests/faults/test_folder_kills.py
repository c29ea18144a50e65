from pathlib import Path

import pytest

from tests.faults.folder_kills import kill_folder


@pytest.mark.slow
def test_a_killed_intake_ends_in_the_same_bytes(tmp_path: Path) -> None:
    moments, different = kill_folder(tmp_path, images=1200, kills=5, seed=2, longest=4.0)
    assert len(moments) == 5
    assert different == []
