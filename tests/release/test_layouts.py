import csv
import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.prompting.prompts import PromptOptions, build_prompts
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.release.audit_file import CODES, audit_file, counted
from culturekit.release.check_places import meanings
from tests.builders.spaces import artifact, cspace
from tests.release.cases import CASES, NEEDS_MORE, Case
from tests.release.sheets import audited, clean_rows, codes, dish, write

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


def space_of(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "space.parquet"
    cspace(*rows).write_parquet(path)
    return path


def test_a_cultural_space_is_audited_and_mended_as_a_table(tmp_path: Path) -> None:
    rows = [artifact(1), artifact(2, name="pavê "), artifact(3, country="XX"), artifact(4, country_name="Brasil")]
    rows += [artifact(5, qid=None), artifact(1, name="other"), artifact(6, artifact_id="pudim", name="pudim", qid=None)]
    path, out = space_of(tmp_path, *rows), tmp_path / "mended.parquet"
    audit = audit_file(path, fix=out)
    assert audit.layout == "cspace"
    assert codes(audit) >= {"white-space", "country-unknown", "country-spelling", "id-unknown", "duplicate-artifact"}
    assert not audit_file(out).has_findings
    mended = read_table(out, CSPACE)
    assert mended["artifact_id"].to_list() == ["LLM:pudim", "Q1", "Q2", "Q4", "Q5"]
    assert mended.filter(pl.col("artifact_id") == "Q5")["qid"].to_list() == ["Q5"]


def test_prompts_are_audited_without_and_with_their_space(tmp_path: Path, work: Work) -> None:
    space = space_of(
        tmp_path, *[artifact(number, name=name) for number, name in enumerate(["pavê", "bobó", "acarajé"], 1)]
    )
    build_prompts(work, space, PromptOptions(kinds=("cube", "underspecified", "within-country")), seed=0)
    built = read_table(work.out / "prompts.parquet", PROMPTS)
    assert audit_file(work.out / "prompts.parquet", cspace=space).findings == ()
    slips = built.with_columns(
        text=pl.when(pl.col("artifact_id") == "Q1")
        .then(pl.lit("A high resolution image of pavêfrom Brazilian cuisine, realistic"))
        .when(pl.col("artifact_id") == "Q2")
        .then(pl.lit("A high resolution image of moqueca from Brazilian cuisine, realistic"))
        .when(pl.col("artifact_id") == "Q3")
        .then(pl.lit("A panoramic view of acarajé in Brazil, realistic"))
        .otherwise("text")
    )
    path, out = write_table(tmp_path, PROMPTS, slips), tmp_path / "mended.parquet"
    assert codes(audit_file(path)) == {"space-missing", "template-concept"}
    audit = audit_file(path, cspace=space, fix=out)
    assert codes(audit) == {"space-missing", "prompt-name", "template-concept"}
    assert read_table(out, PROMPTS)["text"].to_list() == built["text"].to_list()


def test_a_negative_prompt_that_keeps_out_what_is_asked_for_is_noted(tmp_path: Path, work: Work) -> None:
    space = space_of(tmp_path, artifact(1, name="kalamkari", concept="art", subconcept="painting"))
    build_prompts(work, space, PromptOptions(templates="paper"), seed=0)
    audit = audit_file(work.out / "prompts.parquet")
    assert codes(audit) == {"negative-contradicts"}
    assert not audit.has_findings
    build_prompts(work, space, PromptOptions(templates="released"), seed=0)
    assert audit_file(work.out / "prompts.parquet").findings == ()


def test_csv_keeps_its_columns_and_guards_formulas(tmp_path: Path) -> None:
    path, out = tmp_path / "cube.csv", tmp_path / "mended.csv"
    rows = [*clean_rows(), dish("'=HYPERLINK(1) pavê ", qid="Q9", prompt="")]
    pl.DataFrame(rows).write_csv(path)
    audit = audit_file(path, fix=out)
    assert codes(audit) == {"white-space", "prompt-missing"}
    with out.open(encoding="utf-8", newline="") as file:
        mended = list(csv.DictReader(file))
    assert list(mended[0]) == list(rows[0])
    assert mended[4]["name"] == "'=HYPERLINK(1) pavê"
    assert "of =HYPERLINK(1) pavê from" in mended[4]["prompt"]
    assert not audit_file(out).has_findings


def test_the_change_log_is_safe_for_spreadsheets(tmp_path: Path) -> None:
    out = tmp_path / "mended.json"
    audited(tmp_path, [*clean_rows(), dish("=cmd|' /C calc'!A1 ", qid="Q9")], fix=out)
    with (tmp_path / "mended.json.changes.csv").open(encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert [line["after"] for line in log if line["field"] == "name"] == ["'=cmd|' /C calc'!A1"]
    assert all(not cell.startswith(("=", "+", "-", "@")) for line in log for cell in line.values())


@pytest.mark.parametrize(("content", "problem"), [
    (b"[{", "not in the public CUBE layout"), (b'{"name": "x"}', "not in the public CUBE layout"),
    (b"[1, 2]", "not in the public CUBE layout"), (b'[{"name": 3}]', "not in the public CUBE layout"),
    (b'[{"name": "\xff"}]', "not in the public CUBE layout"), (b"[" * 100_000, "not in the public CUBE layout"),
    (b'[{"name": "x"}]', "the columns are those of no layout"),
])  # fmt: skip
def test_what_is_no_file_of_a_layout_is_said(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "cube.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        audit_file(path)


def test_other_files_are_refused_with_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        audit_file(tmp_path / "none.json")
    with pytest.raises(UsageError, match="which layout"):
        audit_file(tmp_path / "cube.txt")
    (tmp_path / "cube.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="not a readable Parquet file"):
        audit_file(tmp_path / "cube.parquet")
    path = write(tmp_path, clean_rows())
    with pytest.raises(UsageError, match="keeps its layout"):
        audit_file(path, fix=tmp_path / "out.csv")
    with pytest.raises(UsageError, match="is another file"):
        audit_file(path, fix=path)
    other = tmp_path / "prompts.json"
    other.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"prompts.json: a mended copy replaces an earlier one only"):
        audit_file(path, fix=other)
    assert other.read_text(encoding="utf-8") == "mine"
    for _ in range(2):  # a copy of its own is made again
        audit_file(path, fix=tmp_path / "mended.json")


def test_an_empty_file_and_a_file_of_lacking_keys_are_audited(tmp_path: Path) -> None:
    assert audited(tmp_path, []).findings == ()
    bare = dish("pavê", qid="Q9")
    del bare["prompt"]
    out = tmp_path / "out.json"
    audit = audited(tmp_path, [*clean_rows(), bare, {"id": "Q8", "prompt": None}], fix=out)
    assert codes(audit) >= {"prompt-missing", "name-unusable", "country-unknown", "concept-unknown"}
    mended = json.loads(out.read_text(encoding="utf-8"))
    assert [row["prompt"] for row in mended[4:]] == [dish("pavê")["prompt"]]


def test_huge_and_marked_up_texts_are_set_aside_or_cut_in_what_is_told(tmp_path: Path) -> None:
    huge = dish("x" * 1_000_000, qid="Q9")
    audit = audited(
        tmp_path, [*clean_rows(), huge, dish("<script>alert(1)</script>", qid="Q8")], fix=tmp_path / "o.json"
    )
    assert {finding.row for finding in audit.findings if finding.severity != "note"} == {4}
    assert len(json.dumps(audit.as_data())) < 10_000
    assert not audit_file(tmp_path / "o.json").has_findings


@pytest.mark.parametrize(("stated", "meant"), [
    ("Guatemala", ("Guatemala",)), ("Georgia", ("Georgia",)), ("UK", ("GB",)), ("the United States", ("US",)),
    ("Korea", ("Korea, Democratic People's Republic of", "Korea, Republic of")), ("Brazil and Japan", ("BR", "JP")),
    ("Atlantis", ()),
])  # fmt: skip
def test_what_one_country_is_called_means_that_one(stated: str, meant: tuple[str, ...]) -> None:
    assert meanings(stated) == meant
