import errno
from pathlib import Path

import pytest

from tests.conftest import SMALL
from tests.effort import THOROUGH
from tests.faults.failing_io import Fault
from tests.faults.io_faults import JOURNAL_FAULTS, Result, journal_faults, stage_faults


def check(result: Result) -> None:
    assert result.hung == []
    assert result.wrong == []
    assert result.different == []


@pytest.mark.endtoend
@pytest.mark.parametrize("kind", [JOURNAL_FAULTS[1], JOURNAL_FAULTS[2]], ids=["once", "ever after"])
def test_a_disk_that_fails_under_a_journal_ends_the_run_and_costs_no_answer(tmp_path: Path, kind: Fault) -> None:
    result = journal_faults(tmp_path, every=29, kinds=[kind])
    assert result.faults >= 8
    assert result.codes[3] >= result.faults // 2
    check(result)


@pytest.mark.slow
def test_a_disk_that_fails_at_every_step_of_a_journal_ends_the_run_and_costs_no_answer(tmp_path: Path) -> None:
    result = journal_faults(tmp_path, every=5 if THOROUGH else 100)
    assert result.faults >= (300 if THOROUGH else 12)
    check(result)


@pytest.mark.slow
def test_a_disk_that_fails_along_the_small_recipe_changes_no_byte_of_it(tmp_path: Path) -> None:
    kinds = [Fault(0, errno.ENOSPC), Fault(0, errno.EIO), Fault(0, errno.ENOSPC, lasting=True)]
    rounds, faults = (2, 20) if THOROUGH else (1, 6)
    result = stage_faults(tmp_path, recipe=SMALL, faults=faults, seed=1, rounds=rounds, kinds=kinds)
    assert result.faults >= (15 if THOROUGH else 4)
    check(result)
