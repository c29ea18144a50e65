from pathlib import Path

import pytest

from culturekit.kg.dump import read_dump
from tests.faults.damaged_dumps import FORMS, damage_dumps


@pytest.mark.endtoend
@pytest.mark.parametrize("name", sorted(FORMS))
def test_no_damaged_dump_is_taken_for_a_whole_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_dump, "_SMALLEST_RANGE", 1_500)
    monkeypatch.setattr(read_dump, "_LARGEST_RANGE", 1_500)
    results = damage_dumps(FORMS[name], 40, tmp_path)
    assert set(results) <= {"refused", "harmless"}, results
    assert results["refused"] >= 25
