import json
from pathlib import Path

import pytest

from culturekit.audit.all_checks import CODES, counted
from tests.audit.cases import CASES, NEEDS_MORE, Case
from tests.audit.sheets import audited, clean_rows, codes

IDS = [f"{number}-{case.code}" for number, case in enumerate(CASES)]
NOTES = {code.name for code in CODES if code.severity == "note"}


def test_a_clean_file_has_no_finding(tmp_path: Path) -> None:
    assert audited(tmp_path, clean_rows()).findings == ()


def test_every_code_has_a_case_and_its_own_name() -> None:
    assert {case.code for case in CASES} | NEEDS_MORE == {code.name for code in CODES}
    assert len({code.name for code in CODES}) == len(CODES)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_slip_is_found_and_its_clean_twin_is_clean(case: Case, tmp_path: Path) -> None:
    audit = audited(tmp_path, [*clean_rows(), *case.rows])
    found = [finding for finding in audit.findings if finding.code == case.code]
    assert found
    assert case.quotes in json.dumps([finding.as_data() for finding in found], ensure_ascii=False)
    assert all(finding.row is None or finding.row >= 4 or case.code == "imbalance" for finding in found)
    assert audit.has_findings == (not codes(audit) <= NOTES)
    twin = audited(tmp_path, [*clean_rows(), *case.twin])
    assert case.code not in codes(twin)
    assert not twin.has_findings


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_mended_file_is_clean_and_stays_as_it_is(case: Case, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    audited(tmp_path, [*clean_rows(), *case.rows], fix=first)
    again = audited(tmp_path, json.loads(first.read_text(encoding="utf-8")), fix=second)
    assert not [finding for finding in again.findings if counted(finding)]
    assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "second.json.changes.csv").read_text(encoding="utf-8").count("\n") == 1
