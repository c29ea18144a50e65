import json
from pathlib import Path

from tests.command_line import culturekit
from tests.release.sheets import clean_rows, dish, write


def run(*words: object) -> tuple[int, str, str]:
    answer = culturekit("audit", *map(str, words))
    return answer.returncode, answer.stdout, answer.stderr


def test_findings_leave_with_one_and_a_mended_file_with_none(tmp_path: Path) -> None:
    path, out = (
        write(tmp_path, [*clean_rows(), dish("pavê ", qid="Q9"), dish("bobó", qid="LLM")]),
        tmp_path / "out.json",
    )
    code, answer, error = run(str(path), "--fix", str(out))
    assert code == 1
    assert "warning  white-space                  1" in answer
    assert "row 4      name: a space at the beginning or the end in “pavê ”; write “pavê”" in answer
    assert "6 rows in the public layout: 0 errors, 1 warning, 1 note" in error
    assert "1 cell changed, 0 rows set aside" in error
    code, answer, _ = run(str(out))
    assert code == 0
    assert answer.startswith("note     missing-qid")


def test_machines_get_every_finding(tmp_path: Path) -> None:
    path = write(tmp_path, [*clean_rows(), dish("pavê\x1b[31m", qid="Q9")])
    code, answer, _ = run(str(path), "--json", "--fix", str(tmp_path / "out.json"))
    data = json.loads(answer)
    assert code == 1
    assert data["counts"] == {"hidden-character": 2}
    assert data["findings"][0]["row"] == 4
    assert data["findings"][0]["fixable"] is True
    assert data["fixed"]["rows"] == 5
    code, shown, _ = run(str(path))
    assert code == 1
    assert "\x1b" not in shown


def test_a_file_that_cannot_be_read_leaves_with_two(tmp_path: Path) -> None:
    code, _, error = run(str(tmp_path / "none.json"))
    assert code == 2
    assert "there is no such file" in error
