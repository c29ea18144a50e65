from pathlib import Path

import pytest

from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from tests.builders.spaces import artifact, cspace
from tests.command_line import culturekit


def run(*words: object) -> tuple[int, str]:
    answer = culturekit("prompts", "build", "cube", *map(str, words))
    return answer.returncode, answer.stderr


@pytest.fixture
def space(tmp_path: Path) -> Path:
    return write_table(tmp_path, CSPACE, cspace(*(artifact(n, popularity=n / 9) for n in range(1, 9))))


def test_a_review_goes_round(space: Path, tmp_path: Path) -> None:
    out, sheet = tmp_path / "prompts", tmp_path / "sheets/one.csv"
    words = ("--cspace", space, "--out", out, "--quota", 3, "--seed", 4)
    assert run(*words, "--review", sheet) == (0, "")
    assert sheet.read_bytes() == (out / "review.csv").read_bytes()
    assert run(*words, "--review", sheet)[0] == 0
    lines = sheet.read_text(encoding="utf-8").splitlines()
    sheet.write_text("\n".join([lines[0], lines[1].replace(",,,", ",reject,,"), *lines[2:]]), encoding="utf-8")
    filled = sheet.read_bytes()
    code, answer = run(*words, "--review", sheet)
    assert code == 2
    assert "may hold decisions" in answer
    assert sheet.read_bytes() == filled
    two = tmp_path / "two.csv"
    assert run(*words, "--decisions", sheet, "--review", two, "--replace")[0] == 0
    assert len(two.read_text(encoding="utf-8").splitlines()) == len(lines) + 1


def test_a_quota_that_is_not_met_leaves_with_one_and_still_hands_out_the_sheet(space: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "s.csv"
    words = ("--cspace", space, "--out", tmp_path / "prompts", "--quota", 20, "--review", sheet)
    code, answer = run(*words)
    assert code == 1
    assert "quota not met: cuisine in BR: 8 of 20" in answer
    assert sheet.is_file()


def test_a_limit_that_is_not_reached_leaves_with_nothing(space: Path, tmp_path: Path) -> None:
    assert run("--cspace", space, "--out", tmp_path / "p", "--per", 20)[0] == 0


def test_a_changed_sheet_makes_the_prompts_again(space: Path, tmp_path: Path) -> None:
    out, sheet = tmp_path / "prompts", tmp_path / "d.csv"
    sheet.write_text("artifact_id,concept,country,decision\nQ1,cuisine,BR,reject\n", encoding="utf-8")
    words = ("--cspace", space, "--out", out, "--decisions", sheet)
    run(*words)
    first = (out / "prompts.parquet").read_bytes()
    sheet.write_text("artifact_id,concept,country,decision\nQ2,cuisine,BR,reject\n", encoding="utf-8")
    code, answer = run(*words)
    assert code == 2
    assert "(d.csv) has other content" in answer
    assert "--replace" in answer
    assert (out / "prompts.parquet").read_bytes() == first
    code, answer = run(*words, "--replace")
    assert code == 0
    assert (out / "prompts.parquet").read_bytes() != first
