"""Answers of people are held against the exports that they came from, though all hashes fit."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.annotate.quotas import Quotas
from culturekit.pipeline.steps.annotate_stages import ExportFiles
from culturekit.verify.verify_run import verify_run
from tests.annotate.projects import (
    Answers,
    answer_all,
    export,
    image_row,
    import_files,
    key_of,
    labelled,
    prompt_row,
    result_of,
    studio_tasks,
    write_images,
    write_prompts,
)
from tests.annotate.test_audit_scheme import IMAGES, PLACED, matches, space, truthful
from tests.annotate.test_import import MISTAKES
from tests.annotate.test_import import answers as answers_to
from tests.verify.forging import change_table, renew_inputs, reseal


def handed_out(root: Path) -> Path:
    """A project that two people are to answer."""
    table = write_images(root / "images", [image_row(image, "m", "p") for image in IMAGES])
    pl.read_parquet(table).with_columns(concept=pl.lit("cuisine")).write_parquet(table)
    files = ExportFiles([table], cspace=space(root / "space", 20), matches=[matches(root / "matches")])
    export(root / "project", files, "audit", quotas=Quotas(2))
    return root


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, what two people answered, and the tables it became."""
    root = handed_out(tmp_path_factory.mktemp("imported"))
    assert answer_all(root, (1, 2), truthful(root / "project")).manifest.counts["quarantine"] == 0
    return root


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers that name countries outside the lists and all kinds of none; some careless, some set aside."""
    root = handed_out(tmp_path_factory.mktemp("placed"))
    right, key = truthful(root / "project"), key_of(root / "project")

    def answer(data: dict[str, Any], person: int | str) -> Answers:
        if key[data["task"]]["kind"] == "check":
            return {"shows": "cannot_tell"} if person == 3 else dict(right(data, person))
        place = PLACED.get(key[data["task"]]["item_id"])
        return dict(right(data, person)) if place is None else place[0]

    answers = labelled(studio_tasks(root / "project"), (1, "a@b.org", 3), answer)
    of_items = [task for task in answers if key[task["data"]["task"]]["kind"] == "item"]
    of_items[30]["annotations"][0]["lead_time"] = 0.5
    of_items[31]["annotations"][0]["result"][0]["value"]["choices"] = ["nothing of these"]
    of_items[32]["annotations"][0]["was_cancelled"] = True
    (root / "answers.json").write_bytes(orjson.dumps(answers))
    drops = import_files(root / "rated", root / "project", root / "answers.json").manifest.drops
    assert set(drops) == {"flagged, and not in the audits", "in quarantine", "skipped by the annotator"}
    return root


def found(root: Path) -> list[str]:
    return [str(finding) for finding in verify_run(root / "rated").findings if finding.severity == "broken"]


def copied(root: Path, to: Path) -> Path:
    return Path(shutil.copytree(root, to / "copy"))


def test_untouched_answers_are_those_of_the_exports(imported: Path) -> None:
    answer = verify_run(imported / "rated")
    assert answer.exit_code == 0
    assert answer.checked["rows of audits compared with exports"] == 120
    assert answer.checked["rows of annotations compared with exports"] >= 120


def test_careless_answers_and_typed_countries_are_those_of_the_exports(placed: Path) -> None:
    answer = verify_run(placed / "rated")
    assert [str(each) for each in answer.findings if each.severity == "broken"] == []
    assert answer.checked["rows of audits compared with exports"] == 2 * len(IMAGES) - 3


def test_fifty_edited_answers_are_found(imported: Path, tmp_path: Path) -> None:
    root = copied(imported, tmp_path)
    tasks: list[dict[str, Any]] = orjson.loads((root / "answers.json").read_bytes())
    edited = 0
    for task in reversed(tasks):
        for annotation in task["annotations"]:
            result = [each for each in annotation["result"] if each["from_name"] == "country"]
            for each in result if edited < 50 else ():
                each["value"]["choices"] = ["NG" if each["value"]["choices"] != ["NG"] else "IN"]
                edited += 1
    assert edited == 50
    (root / "answers.json").write_bytes(orjson.dumps(tasks))
    renew_inputs(root / "rated")
    lines = found(root)
    assert len([line for line in lines if "nobody answered so" in line]) >= 25
    assert len([line for line in lines if "nobody named this place" in line]) >= 25


@pytest.mark.parametrize(
    ("table", "change", "problem"),
    [
        ("audits", pl.col("country").replace({"IN": "JP", "JP": "IN"}), "nobody named this place"),
        ("annotations", pl.col("choice").replace({"IN": "JP", "JP": "IN"}), "nobody answered so"),
    ],
)
def test_edited_tables_of_answers_are_found(
    imported: Path, tmp_path: Path, table: str, change: pl.Expr, problem: str
) -> None:
    root = copied(imported, tmp_path)
    change_table(root / f"rated/{table}.parquet", lambda frame: frame.with_columns(change))
    reseal(root / "rated")
    assert any(problem in line for line in found(root))


COUNTRY, IMAGE = pl.col("country"), pl.col("image_id")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (COUNTRY.replace({"KE": "UG"}).alias("country"), "nobody named this place"),
        (COUNTRY.replace({"sápmi": "gondor"}).alias("country"), "nobody named this place"),
        (pl.when(IMAGE == "m-03").then(pl.lit("Europe")).otherwise("continent").alias("continent"), "this place"),
        (pl.lit(value=False).alias("none_of_these"), "nobody answered so"),
        ((pl.col("none_of_these") | (IMAGE == "m-11")).alias("none_of_these"), "nobody answered so"),
        (pl.col("none_means").replace({"cannot tell": "no culture shown"}).alias("none_means"), "nobody answered so"),
        (pl.lit(None, pl.String).alias("none_means"), "nobody answered so"),
        ((~pl.col("offered_first")).alias("offered_first"), "nobody answered so"),
        (pl.lit(value=True).alias("as_mapped"), "nobody answered so"),
        (pl.col("annotator").replace({"1": "2"}), "an answer of the exports is missing"),
    ],
)
def test_what_became_of_any_part_of_an_answer_is_found(
    placed: Path, tmp_path: Path, change: pl.Expr, problem: str
) -> None:
    root = copied(placed, tmp_path)
    change_table(root / "rated/audits.parquet", lambda frame: frame.with_columns(change))
    reseal(root / "rated")
    assert any(problem in line for line in found(root))  # of these only the first of places was found


@pytest.mark.parametrize("table", ["audits", "annotations"])
def test_answers_that_are_missing_are_found(placed: Path, tmp_path: Path, table: str) -> None:
    root = copied(placed, tmp_path)
    change_table(root / f"rated/{table}.parquet", lambda frame: frame.slice(1))
    reseal(root / "rated")
    assert [line for line in found(root) if "an answer of the exports is missing" in line]
    change_table(
        root / f"rated/{table}.parquet",
        lambda frame: pl.concat([frame, frame.tail(1).with_columns(annotator=pl.lit("x"))]),
    )
    reseal(root / "rated")
    assert [line for line in found(root) if "nobody answered so" in line]


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers of three people, each mistake that an export can have in one of them; one asks again about nothing."""
    root = tmp_path_factory.mktemp("spoilt")
    images = write_images(root / "images", [image_row(f"m-{n}", "m", "p") for n in range(len(MISTAKES) + 2)])
    prompts = write_prompts(root / "prompts", [prompt_row("p", "Image of food from India", "cuisine", "IN")])
    export(root / "project", ExportFiles([images], prompts), per_sheet=100, repeats=12)
    tasks = answers_to(root / "project")
    key = key_of(root / "project")
    asked, again = (
        [task for task in tasks if key[task["data"]["task"]]["kind"] == kind] for kind in ("item", "repeat")
    )
    for task, (change, _, _) in zip(asked, MISTAKES.values(), strict=False):
        change(task)
    for task in again[:8]:
        task["annotations"][1]["result"] = result_of({"belongs": "maybe", "faithfulness": 4, "realism": 4})
    asked[-1]["annotations"][2]["lead_time"] = 0.1
    asked[-2]["annotations"][2]["was_cancelled"] = True
    (root / "answers.json").write_bytes(orjson.dumps([*tasks, "no task"]))
    import_files(root / "rated", root / "project", root / "answers.json")
    return root


def test_all_that_was_set_aside_is_worked_out_again(spoilt: Path) -> None:
    answer = verify_run(spoilt / "rated")
    assert [str(each) for each in answer.findings if each.severity == "broken"] == []
    reasons = set(pl.read_parquet(spoilt / "rated/quarantine.parquet")["reason"])
    assert reasons == {reason for _, reason, _ in MISTAKES.values()}
    assert answer.checked["answers set aside compared with exports"] > len(MISTAKES)
    flags = pl.read_parquet(spoilt / "rated/annotations.parquet")["flags"].explode()
    assert {"inconsistent-repeats", "too-fast"} <= set(flags)


SPOILT: dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "what was set aside is hidden": ("quarantine", lambda table: table.slice(1), "not set aside"),
    "another reason": (
        "quarantine", lambda table: table.with_columns(reason=pl.lit("malformed")), "is not why it was set aside",
    ),
    "other words": (
        "quarantine", lambda table: table.with_columns(pl.col("raw").str.replace("yes", "no")), "not set aside",
    ),
    "another person": ("quarantine", lambda table: table.with_columns(annotator=pl.lit("2")), "not set aside"),
    "a number behind a choice": (
        "annotations", lambda table: table.with_columns(pl.col("value").fill_null(1.0)), "nobody answered so",
    ),
    "a comment": (
        "annotations", lambda table: table.with_columns(text=pl.lit("fine").cast(pl.String)), "nobody answered so",
    ),
    "no flags": (
        "annotations", lambda table: table.with_columns(flags=pl.lit([], pl.List(pl.String))), "nobody answered so",
    ),
    "slower": ("annotations", lambda table: table.with_columns(seconds=pl.lit(60.0)), "nobody answered so"),
    "at home": ("annotations", lambda table: table.with_columns(in_region=pl.lit(value=False)), "nobody answered so"),
    "checks that held": (
        "annotation_checks", lambda table: table.with_columns(held=pl.lit(value=True)), "nobody answered so",
    ),
    "another model": ("rated_items", lambda table: table.with_columns(model=pl.lit("n")), "nobody answered so"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILT)
def test_what_importing_says_of_answers_is_not_taken_at_its_word(spoilt: Path, tmp_path: Path, name: str) -> None:
    table, change, problem = SPOILT[name]
    root = copied(spoilt, tmp_path)
    change_table(root / f"rated/{table}.parquet", change)
    reseal(root / "rated")
    assert any(problem in line and table in line for line in found(root)), found(root)


def test_good_answers_cannot_be_moved_aside(spoilt: Path, tmp_path: Path) -> None:
    root = copied(spoilt, tmp_path)
    tasks = orjson.loads((root / "answers.json").read_bytes())
    aside = pl.read_parquet(root / "rated/quarantine.parquet")
    number = next(n for n in range(1, len(tasks)) if n not in set(aside["task_number"]))
    one = tasks[number - 1]["annotations"][0]
    item = key_of(root / "project")[tasks[number - 1]["data"]["task"]]["item_id"]
    moved = aside.head(1).with_columns(
        task_number=pl.lit(number, pl.UInt32), annotation_number=pl.lit(1, pl.UInt32), annotator=pl.lit("1"),
        task=pl.lit(tasks[number - 1]["data"]["task"]), item_id=pl.lit(item), reason=pl.lit("malformed"),
        raw=pl.lit(orjson.dumps(one, option=orjson.OPT_SORT_KEYS).decode()),
    )  # fmt: skip
    change_table(root / "rated/quarantine.parquet", lambda table: pl.concat([table, moved]))
    mine = (pl.col("item_id") == item) & (pl.col("annotator") == "1")
    for table in ("annotations", "annotation_checks"):
        path = root / f"rated/{table}.parquet"
        frame = pl.read_parquet(path)
        frame.filter(~mine).write_parquet(path)
    reseal(root / "rated")
    assert any("expected an answer that counts, found malformed" in line for line in found(root))
