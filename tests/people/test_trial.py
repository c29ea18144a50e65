"""A trial of known answers before people's answers count, and gold items unmarked among the others, in any form."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.people.stages import ExportFiles
from culturekit.people.tasks import Quotas
from tests.people.projects import Answers, answer_all, export, form_tasks, image_row, key_of, write_images
from tests.people.serving import desk_of, entry
from tests.people.test_audit_scheme import audited
from tests.people.test_gold_items import GOLD, known_pictures

KNOWN = [f"k{n}" for n in range(6)]
ITEMS = [f"i{n}" for n in range(8)]


def write_files(folder: Path, scheme: str) -> ExportFiles:
    """Write items of a form, and six of which the right answers are known."""
    images = write_images(folder / "images", [image_row(name, "m", "p") for name in (*ITEMS, *KNOWN)])

    def rows(names: list[str], **right: str) -> list[dict[str, Any]]:
        return [{"item_id": name, "image_id": name, "reference_id": name, "first_id": ITEMS[0], "second_id": ITEMS[1],
                 "object": "car", "region": "Africa", **right} for name in names]  # fmt: skip

    right = {"similar": "first", "shown": "reference|first"} if scheme == "inclusion_task1" else {"obj": "nm"}
    pl.DataFrame(rows(ITEMS)).write_csv(folder / "items.csv")
    pl.DataFrame(rows(KNOWN, **right)).write_csv(folder / "known.csv")
    return ExportFiles([images], items=folder / "items.csv", gold=folder / "known.csv")


def right_of(row: dict[str, Any], scheme: str, *, right: bool = True) -> Answers:
    """Answer as is right of the known items, or not."""
    if scheme == "inclusion_task2":
        return {"obj": "nm"} if right else {"obj": "ym", "object_regions": ["af"], "background_regions": ["na"]}
    where = {name: str(number) for number, name in enumerate(row["places"], 1)}
    shown = sorted([where["reference"], where["first"]])
    chosen = where["first" if right else "second"]
    return {"shown": shown, "similar": chosen, "confidence": "low", "appealing": chosen}


@pytest.mark.parametrize("scheme", ["inclusion_task1", "inclusion_task2"])
def test_answers_count_from_those_who_passed(tmp_path: Path, scheme: str) -> None:
    """Of a trial of four Ana has three right, Bo two; Cy takes none. Two more known items are gold, unmarked."""
    export(tmp_path / "project", write_files(tmp_path, scheme), scheme, quotas=Quotas(3), checks=0, repeats=0,
           trial=4, gold=2)  # fmt: skip
    key = key_of(tmp_path / "project")
    kinds = [row["kind"] for row in key.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"item": 8, "trial": 4, "gold": 2}
    trial = sorted(task for task, row in key.items() if row["kind"] == "trial")

    def answer(data: dict[str, Any], person: int | str) -> Answers | None:
        row, wrong = key[data["task"]], {"ana": trial[:1], "bo": trial[:2], "cy": []}[str(person)]
        if person == "cy" and row["kind"] == "trial":
            return None
        return right_of(row, scheme, right=data["task"] not in wrong)

    taken = answer_all(tmp_path, ["ana", "bo", "cy"], answer)
    assert taken.manifest.counts["quarantine"] == 0
    rated = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert set(rated.filter(pl.col("flags").list.contains("trial-failed"))["annotator"]) == {"bo", "cy"}
    assert set(rated["item_id"]) == set(ITEMS)
    checks = pl.read_parquet(tmp_path / "rated/annotation_checks.parquet")
    wrong = checks.filter(~pl.col("held")).select("kind", "annotator").unique().sort("annotator")
    assert wrong.rows() == [("trial", "ana"), ("trial", "bo")]
    assert checks.filter(kind="gold")["annotator"].unique().sort().to_list() == ["ana", "bo", "cy"]


def test_the_desk_begins_with_the_trial_and_ends_there_for_who_fails(tmp_path: Path) -> None:
    project = tmp_path / "project"
    export(project, write_files(tmp_path, "inclusion_task2"), "inclusion_task2", quotas=Quotas(2), checks=0,
           repeats=0, trial=4, gold=0)  # fmt: skip
    sheets = {sheet["name"]: sheet["about"] for sheet in form_tasks(project)["sheets"]}
    assert sheets["Africa-trial-1"] == "4 to try out: most must be right before other answers count"
    with desk_of(project, tmp_path / "journal/answers.jsonl") as desk:
        assert (desk.wanted, desk.size) == (16, "16 answers in all: 16 to judge (8 items, several people each).")
        for person, wrong in (("ana", 1), ("bo", 2)):
            begun = desk.begin({"annotator": person})
            assert begun["sheet"] == "Africa-trial-1"
            for number, task in enumerate(desk.sheets[begun["sheet"]]):
                answers = right_of({}, "inclusion_task2", right=number >= wrong)
                desk.take(entry(project, begun["sheet"], task, person, answers))
        assert desk.begin({"annotator": "ana"})["sheet"] == "Africa-in-2-01-1"
        refused = desk.begin({"annotator": "bo"})
        assert (refused["sheet"], "Too few" in refused["failed"], desk.answered) == (None, True, 0)


def test_a_gold_item_without_a_right_answer_and_too_few_are_refused(tmp_path: Path) -> None:
    files = write_files(tmp_path, "inclusion_task2")
    with pytest.raises(UsageError, match="too few items are known"):
        export(tmp_path / "a", files, "inclusion_task2", trial=4, gold=3)
    known = pl.read_csv(tmp_path / "known.csv")
    known.with_columns(obj=pl.lit(None, pl.String)).write_csv(tmp_path / "known.csv")
    with pytest.raises(UsageError, match="item 'k0': nobody knows what is right"):
        export(tmp_path / "b", files, "inclusion_task2", trial=1, gold=0)


def test_an_audit_has_a_trial_too(tmp_path: Path) -> None:
    """Of fourteen known pictures four are a trial; who says that nothing shows a culture has too few right."""
    files = audited(tmp_path, known_pictures(tmp_path / "gold", dict.fromkeys(GOLD, "Q0JP")))
    export(tmp_path / "project", files, "audit", quotas=Quotas(2), checks=0, repeats=0, trial=4, gold=10)

    def answer(data: dict[str, Any], person: int | str) -> Answers:
        return {"shows": "country", "country": "JP"} if person == "ana" else {"shows": "none"}

    taken = answer_all(tmp_path, ["ana", "bo"], answer)
    assert taken.manifest.notes["flagged"] == {"trial-failed": 60}
    assert set(pl.read_parquet(tmp_path / "rated/audits.parquet")["annotator"]) == {"ana"}
