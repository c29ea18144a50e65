import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.release.audit_file import audit_file, counted
from tests.release.cases import CASES
from tests.release.sheets import audited, clean_rows, codes, dish, write

WORDS = [
    "feijoada", "Feijoada ", "pavê", "pave\u0302", "р\u0430vê", "Q5", "", " ", "=1+1", "pa\u200bvê", "painting",
    "会席" * 60,
]  # fmt: skip
COUNTRIES = ["Brazil", "brazil ", "Japan", "Korea", "Atlantis", "", "India/Japan"]
CONCEPTS = ["cuisine", "landscapes", "landmarks", "art", "Art", "music"]
TEMPLATES = [
    "A high resolution image of {name} from Brazilian cuisine, realistic",
    "A high resolution image of {name}from Japanese cuisine, realistic",
    "A panoramic view of {name} in Japan, realistic", "An image of {name} painting from India, realistic",
    "An image of {name} from Brazil clothing, realistic, negative prompt: blurry", "{name}", "",
]  # fmt: skip
STATEMENTS = ["nan", "", " ", "[]", "['Q155']", "['{=#1', 'Q17']", "Q9", "LLM", "[["]
ROWS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["Q1", "Q2", "LLM", "", " ", "feijoada", "Q0", "x"]),
        "name": st.sampled_from(WORDS) | st.text(max_size=12),
        "country": st.sampled_from(COUNTRIES),
        "domain": st.sampled_from(CONCEPTS),
        "template": st.sampled_from(TEMPLATES) | st.text(max_size=30),
        "P495": st.sampled_from(STATEMENTS),
        "P361": st.sampled_from(STATEMENTS),
    }
)


def filled(row: Mapping[str, str]) -> dict[str, str]:
    prompt = row["template"].replace("{name}", row["name"])
    return {**{key: value for key, value in row.items() if key != "template"}, "prompt": prompt}


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=8))
def test_a_mend_leaves_nothing_to_mend(rows: list[dict[str, str]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, once, twice = write(folder, [filled(row) for row in rows]), folder / "once.json", folder / "twice.json"
        audit_file(path, fix=once)
        again = audit_file(once, fix=twice)
        assert not [finding for finding in again.findings if counted(finding)]
        assert once.read_bytes() == twice.read_bytes()


def test_all_slips_at_once_are_mended_and_nothing_is_invented(tmp_path: Path) -> None:
    rows = [*clean_rows(), *(row for case in CASES for row in case.rows)]
    audit = audited(tmp_path, rows, fix=tmp_path / "out.json")
    assert not audit_file(tmp_path / "out.json").has_findings
    assert audit.mended is not None
    for row in audit.mended.sheet.rows:
        before = rows[row.number]
        assert row.cells["id"] in {before["id"].strip(), before["P361"].strip(), "LLM"}


def test_the_row_that_stays_is_one_that_can(tmp_path: Path) -> None:
    good = dish("pavê", qid="Q9", P495="['Q155']")
    bad = {**good, "P495": "['Q17']"}
    out = tmp_path / "out.json"
    audit = audited(tmp_path, [bad, good, *clean_rows()], fix=out)
    assert codes(audit) == {"qid-country", "duplicate-prompt"}
    assert json.loads(out.read_text(encoding="utf-8"))[0] == good


def test_the_log_keeps_a_row_that_was_set_aside_whole(tmp_path: Path) -> None:
    bad = dish("fondue", "Atlantis", "Q9")
    audit = audited(tmp_path, [*clean_rows(), bad], fix=tmp_path / "out.json")
    assert audit.mended is not None
    line = next(line for line in audit.mended.log if line.action == "set aside")
    assert (line.row, json.loads(line.before)) == (4, bad)
