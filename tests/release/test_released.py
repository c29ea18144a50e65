import json
from collections import Counter
from pathlib import Path

import pytest

from culturekit.builders.space.public_cube import read_public_cube
from culturekit.release.audit_file import Audit, audit_file, counted

FOODS = {
    "Chingri fry", "Kulcha", "Enchor chingri", "Chicken 65", "Khakhra", "Gujia", "alu chat", "Katla machh bhaja",
    "Baati",
}  # fmt: skip
CORRECT = 956  # Rows whose prompt is exactly the template filled with the name without white space around it


@pytest.fixture(scope="module")
def released(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return audit_file(shared_data / "cube_1k.json", fix=tmp_path_factory.mktemp("mended") / "mended.json")


def rows_of(audit: Audit, code: str) -> dict[int | None, str]:
    return {finding.row: finding.value for finding in audit.findings if finding.code == code}


def test_the_slips_of_the_release_are_found_and_quoted(released: Audit) -> None:
    foods = rows_of(released, "prompt-name-concept")
    assert set(foods) == set(range(246, 255))
    assert set(foods.values()) == FOODS
    spaces = rows_of(released, "space-missing")
    assert len(spaces) == 25
    assert {"matefrom", "Gardenin", "Caligulain"} <= set(spaces.values())
    assert rows_of(released, "prompt-country") == {461: "Nigeria"}
    assert rows_of(released, "noun-in-name") == {198: "tanjore painting", 201: "mysore painting"}
    names = [each for each in released.findings if (each.code, each.field) == ("white-space", "name")]
    assert len(names) == 11
    assert {"Oscar Niemeyer Museum", "kanzashi"} <= set(rows_of(released, "id-is-name").values())
    broken = rows_of(released, "broken-statement")
    assert any("{=#1" in value for value in broken.values())
    assert rows_of(released, "concept-mixed") == {None: "landmarks, landscapes"}
    assert released.has_findings


def test_the_eight_duplicates_are_found_beyond_the_first(released: Audit) -> None:
    found = [finding for finding in released.findings if finding.code == "duplicate-prompt"]
    counts = Counter(finding.value for finding in found)
    assert len(found) == 8
    assert sorted(counts.values()) == [1, 1, 1, 1, 1, 1, 2]
    assert counts["An image of Calça from Brazilian clothing, realistic"] == 2


def test_rows_without_a_slip_are_left_alone(released: Audit, shared_data: Path) -> None:
    about_prompts = {
        finding.row
        for finding in released.findings
        if finding.field in {"prompt", "name"} and counted(finding) and finding.code not in {"duplicate-prompt"}
    }
    assert 1002 - len(about_prompts - {374}) == CORRECT
    before = json.loads((shared_data / "cube_1k.json").read_text(encoding="utf-8"))
    assert released.mended is not None
    after = {row.number: row.cells["prompt"] for row in released.mended.sheet.rows}
    assert {number for number, prompt in after.items() if prompt != before[number]["prompt"]} <= about_prompts


def test_the_mended_release_is_clean_and_read_whole(released: Audit) -> None:
    assert released.fixed is not None
    again = audit_file(released.fixed)
    assert not again.has_findings
    assert again.rows == 994
    public = read_public_cube(released.fixed)
    assert (public.space.height, public.prompts.height, public.drops.height) == (994, 994, 0)
    log = released.fixed.with_name("mended.json.changes.csv").read_text(encoding="utf-8")
    assert log.count("set aside") >= 8


def test_items_that_slipped_into_another_column_come_back(released: Audit) -> None:
    assert released.mended is not None
    items = {row.number: row.cells["id"] for row in released.mended.sheet.rows}
    assert items[965] == "Q243"
    assert items[719] == "Q10285"
    assert items[319] == "LLM"
