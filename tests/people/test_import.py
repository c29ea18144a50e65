"""Exports that are not as they were handed out: each mistake has its reason, and nothing is lost."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.people.answers import annotator_of
from culturekit.people.stages import ExportFiles
from culturekit.people.tasks import Quotas
from culturekit.scores.answers import check_offered
from tests.command_line import culturekit
from tests.effort import SHARED_FIXTURE
from tests.people import projects
from tests.people.projects import Answers, answer_all, export, image_row, key_of, write_images

GOOD: projects.Answers = {"belongs": "yes", "faithfulness": 4, "realism": 2, "realism_comment": ("blurred",)}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    files = projects.pictured(folder, [f"{m}-{n}" for m in "ab" for n in range(3)], text="Image of food from India")
    projects.export(folder / "project", files, repeats=2)
    return folder / "project"


def answers(project: Path, people: tuple[int | str, ...] = (1, 2, 3), **changes: Any) -> list[dict[str, Any]]:
    return projects.labelled(
        projects.studio_tasks(project), people, projects.by_key(project, lambda *_: {**GOOD, **changes})
    )


def first_item(project: Path, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    key = projects.key_of(project)
    return next(task for task in tasks if key[task["data"]["task"]]["kind"] == "item")


def taken(tmp_path: Path, project: Path, tasks: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    (tmp_path / "answers.json").write_bytes(orjson.dumps(tasks))
    projects.import_files(tmp_path / "rated", project, tmp_path / "answers.json")
    return pl.read_parquet(tmp_path / "rated/annotations.parquet"), pl.read_parquet(
        tmp_path / "rated/quarantine.parquet"
    )


def change_result(task: dict[str, Any], words: projects.Answers) -> None:
    task["annotations"][0]["result"] = projects.result_of(words)


def put(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda task: task["annotations"][0].update({name: value})


def put_data(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda task: task["data"].update({name: value})


def put_entry(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda task: task["annotations"][0]["result"][0].update({name: value})


def say(**answers: Any) -> Callable[[dict[str, Any]], None]:
    return lambda task: change_result(task, answers)


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], Any], str, int]] = {
    "a key of a task": (lambda task: task.update(colour="red"), "unknown field", 3),
    "a key of an annotation": (put("mood", "good"), "unknown field", 1),
    "a key of a result": (put_entry("shade", 1), "unknown field", 1),
    "a key of a value": (put_entry("value", {"choices": ["yes"], "more": 1}), "unknown field", 1),
    "another project": (put_data("project", "0" * 12), "wrong project", 3),
    "no project": (lambda task: task["data"].pop("project"), "wrong project", 3),
    "an id that was never given": (put_data("task", "t" + "0" * 20), "unknown item", 3),
    "another picture": (put_data("picture_1", "pictures/other.png"), "task changed since it was handed out", 3),
    "another prompt": (put_data("prompt", "Image of food from Japan"), "task changed since it was handed out", 3),
    "a field that was not there": (put_data("model", "a"), "task changed since it was handed out", 3),
    "a question of another form": (say(**GOOD, beauty="3"), "unknown question", 1),
    "a choice that is not there": (say(belongs="perhaps", realism=5), "unknown choice", 1),
    "above the scale": (say(belongs="no", realism=6), "out of range", 1),
    "below the scale": (say(belongs="no", realism=0), "out of range", 1),
    "between two steps": (say(belongs="no", realism=4.5), "out of range", 1),
    "a step in other digits": (say(belongs="no", realism="٤"), "out of range", 1),
    "nothing at all": (say(), "required answer missing", 1),
    "no realism": (say(belongs="no"), "required answer missing", 1),
    "no faithfulness after maybe": (say(belongs="maybe", realism=4), "required answer missing", 1),
    "faithfulness after no": (say(belongs="no", faithfulness=1, realism=4), "answer to a question not asked", 1),
    "a comment nobody asked for": (say(belongs="no", realism=4, realism_comment=("fine",)),
        "answer to a question not asked", 1),
    "two of one": (say(belongs=["yes", "no"], realism=4), "several answers where one is asked", 1),
    "the same twice": (say(belongs=["no", "no"], realism=4), "answered twice", 1),
    "one question twice": (lambda task: task["annotations"][0]["result"].extend(projects.result_of({"belongs": "yes"})),
        "answered twice", 1),
    "nobody": (put("completed_by", None), "nobody signed it", 1),
    "a list of people": (put("completed_by", [1]), "nobody signed it", 1),
    "a name with a zero byte": (put("completed_by", "an\0na"), "nobody signed it", 1),
    "time that runs back": (put("lead_time", -1), "malformed", 1),
    "time in words": (put("lead_time", "long"), "malformed", 1),
    "no result": (put("result", None), "malformed", 1),
    "a result that is a word": (put("result", ["yes"]), "malformed", 1),
    "a cancellation that is no truth value": (put("was_cancelled", []), "malformed", 1),
    "another type": (put_entry("type", "rectanglelabels"), "malformed", 1),
    "another target": (put_entry("to_name", "other"), "malformed", 1),
    "no annotations": (lambda task: task.pop("annotations"), "malformed", 1),
    "the same person again": (put("completed_by", 2), "duplicate", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_goes_to_quarantine_and_the_rest_is_taken(tmp_path: Path, project: Path, name: str) -> None:
    change, reason, lost = MISTAKES[name]
    tasks = answers(project)
    whole = len(tasks) * 3
    change(first_item(project, tasks))
    annotations, quarantine = taken(tmp_path, project, tasks)
    assert set(quarantine["reason"]) == {reason}
    assert quarantine.select("task_number", "annotation_number").n_unique() == lost
    checks = pl.read_parquet(tmp_path / "rated/annotation_checks.parquet")
    pairs = annotations.select("item_id", "annotator").n_unique() + checks.select("task", "annotator").n_unique()
    unread = 3 if name == "no annotations" else lost
    assert pairs == whole - unread, "what is not in quarantine is in a table"
    assert json.loads(quarantine["raw"][0])


def test_the_command_leaves_with_1_and_says_why(tmp_path: Path, project: Path) -> None:
    tasks = answers(project)
    say(belongs="no", realism=9)(first_item(project, tasks))
    (tmp_path / "a.json").write_bytes(orjson.dumps(tasks))
    words = ("annotate", "import", tmp_path / "a.json", "--project", project, "--out", tmp_path / "out")
    assert "1 annotations in quarantine.parquet (1 out of range)" in culturekit(*words, ends=1).stderr


def test_what_is_right_is_taken_whole(tmp_path: Path, project: Path) -> None:
    annotations, quarantine = taken(tmp_path, project, answers(project))
    assert quarantine.is_empty()
    assert annotations.height == 6 * 3 * 3
    one = annotations.filter(item_id="a-0", annotator="2")
    assert dict(one.select("criterion", "value").iter_rows()) == {"belongs": None, "faithfulness": 4.0, "realism": 2.0}
    assert one.filter(criterion="realism")["text"].item() == "blurred"
    assert one["annotator_region"].unique().to_list() == ["IN"]
    assert one["in_region"].all()


@pytest.mark.parametrize(("criterion", "stated", "why"), [
    ("faithfulness", {"lowest": 0, "highest": 5}, "the scale that is stated is not the form's"),
    ("faithfulness", {"lowest": 1, "highest": 5}, ""),
    ("belongs", {"choice": "Yes"}, "did not offer the choice that is to count 1"),
    ("belongs", {"choice": "yes"}, ""),
    ("belongs", {"lowest": 1, "highest": 5}, "the scale that is stated is not the form's"),
])  # fmt: skip
def test_counts_are_held_against_forms(
    tmp_path: Path, project: Path, criterion: str, stated: dict[str, Any], why: str
) -> None:
    taken(tmp_path, project, answers(project))
    choice, *ends = (stated.get(name) for name in ("choice", "lowest", "highest"))
    with pytest.raises(UsageError, match=why) if why else nullcontext():
        check_offered(tmp_path / "rated/annotations.parquet", criterion, choice, (ends[0], ends[1]))


def test_faithfulness_after_no_is_missing_and_never_1(tmp_path: Path, project: Path) -> None:
    annotations, quarantine = taken(tmp_path, project, projects.labelled(
        projects.studio_tasks(project), (1,), lambda data, _: {"belongs": "no", "realism": 5}
    ))  # fmt: skip
    assert quarantine.is_empty()
    assert set(annotations["criterion"]) == {"belongs", "realism"}


def test_stars_are_read_as_a_scale(tmp_path: Path, project: Path) -> None:
    tasks = answers(project)
    entry = next(e for e in first_item(project, tasks)["annotations"][0]["result"] if e["from_name"] == "realism")
    entry.update(type="rating", value={"rating": 3})
    annotations, quarantine = taken(tmp_path, project, tasks)
    assert quarantine.is_empty()
    assert annotations.filter(criterion="realism")["value"].sort(descending=True)[0] == 3


def test_the_same_file_twice_is_refused_row_by_row(tmp_path: Path, project: Path) -> None:
    (tmp_path / "a").mkdir()
    for path in (tmp_path / "x.json", tmp_path / "a/x.json"):
        path.write_bytes(orjson.dumps(answers(project)))
    done = projects.import_files(tmp_path / "rated", project, tmp_path / "x.json", tmp_path / "a/x.json")
    quarantine = pl.read_parquet(tmp_path / "rated/quarantine.parquet")
    assert set(quarantine["reason"]) == {"duplicate"}
    assert set(quarantine["file"]) == {"2:x.json"}
    assert quarantine.height == 3 * len(projects.studio_tasks(project))
    assert done.manifest.counts["annotations"] == 54


def test_tasks_that_were_passed_over_are_counted(tmp_path: Path, project: Path) -> None:
    tasks = answers(project)
    first_item(project, tasks)["annotations"][1].update(was_cancelled=True, result=[])
    (tmp_path / "a.json").write_bytes(orjson.dumps(tasks))
    done = projects.import_files(tmp_path / "rated", project, tmp_path / "a.json")
    assert done.manifest.drops == {"skipped by the annotator": 1}
    assert done.manifest.notes["slots"] == {"wanted": 18, "filled": 17, "beyond": 0}


def test_care_becomes_flags_and_checks_are_in_no_average(tmp_path: Path, project: Path) -> None:
    key = projects.key_of(project)

    def answer(data: dict[str, Any], person: int | str) -> projects.Answers:
        row = key[data["task"]]
        if row["kind"] == "check" and person != 1:
            return dict(orjson.loads(row["expected"]))
        return {"belongs": "no", "realism": 1 if row["kind"] == "repeat" and person == 2 else 5}

    tasks = projects.labelled(projects.studio_tasks(project), (1, 2, 3), answer)
    first_item(project, tasks)["annotations"][2]["lead_time"] = 0.5
    annotations, quarantine = taken(tmp_path, project, tasks)
    assert quarantine.is_empty()
    flags = {
        name: rows["flags"].explode().drop_nulls().value_counts().rows()
        for (name,), rows in annotations.group_by("annotator")
    }
    assert flags == {"1": [("attention-failed", 12)], "2": [("inconsistent-repeats", 12)], "3": [("too-fast", 2)]}
    assert annotations.filter(criterion="realism")["value"].unique().to_list() == [5.0]
    checks = pl.read_parquet(tmp_path / "rated/annotation_checks.parquet")
    assert (
        checks.filter(kind="repeat", annotator="2", criterion="realism").select("choice", "expected", "held").rows()
        == [("1", "5", False)] * 2
    )


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b'"text"', b"\xff\xfe", b'[{"a": NaN}]'])
def test_a_file_that_is_no_export_is_named(tmp_path: Path, project: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"a\.json"):
        projects.import_files(tmp_path / "rated", project, tmp_path / "a.json")


def test_a_key_that_was_touched_is_refused(tmp_path: Path, project: Path) -> None:
    import shutil

    shutil.copytree(project, tmp_path / "project")
    with (tmp_path / "project/annotation_key.parquet").open("ab") as file:
        file.write(b"x")
    (tmp_path / "a.json").write_bytes(b"[]")
    with pytest.raises(IntegrityError, match="changed"):
        projects.import_files(tmp_path / "rated", tmp_path / "project", tmp_path / "a.json")


def test_addresses_of_people_become_hashes() -> None:
    assert annotator_of({"id": 3, "email": "Ana@example.org"}) == annotator_of({"email": "ana@example.org"})
    assert "example" not in str(annotator_of({"email": "ana@example.org"}))
    assert annotator_of({"id": 3, "email": ""}) == "3"
    assert annotator_of(7) == "7"
    assert annotator_of(True) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=SHARED_FIXTURE)
@given(data=st.data())
def test_no_export_breaks_the_importer(tmp_path: Path, project: Path, data: st.DataObject) -> None:
    """Whatever stands anywhere in an export, every annotation ends in a table or in quarantine."""
    from culturekit.people.answers import TaskRecord, read_exports
    from culturekit.people.importing import read_project

    name, scheme, key = read_project(project)
    task = first_item(project, answers(project))
    part: Any = task
    one: list[Any] = ["annotations", 0, "result", 0]
    depths: list[list[Any]] = [["data"], ["annotations"], *(one[:depth] for depth in (2, 3, 4)), [*one, "value"]]
    steps = data.draw(st.sampled_from(depths))
    for step in steps:
        part = part[step]
    odd = data.draw(json_values)
    if isinstance(part, dict):
        part[data.draw(st.sampled_from(sorted(part)))] = odd
    else:
        part[0] = odd
    found = read_exports([TaskRecord("x", 1, task)], key, name, scheme)
    assert len(found.good) + found.set_aside + sum(found.skipped.values()) in {3, 1}
    assert found.quarantine_table.height >= found.set_aside


def test_spellings_of_one_name_are_one_person(tmp_path: Path, project: Path) -> None:
    tasks = answers(project, people=("Ana",))
    for number, task in enumerate(tasks):
        task["annotations"][0]["completed_by"] = ("Ana", "ana ", "\uff21na", "A\u200bna")[number % 4]
    whole, aside = taken(tmp_path, project, tasks)
    assert set(whole["annotator"]) == {"Ana"}
    assert aside.is_empty()


def test_one_person_of_two_regions_is_taken_for_the_first_alone(tmp_path: Path) -> None:
    images = projects.write_images(
        tmp_path / "images", [projects.image_row(f"a-{iso}", "a", iso) for iso in ("IN", "JP")]
    )
    rows = [projects.prompt_row(iso, f"Image of food from {iso}", "cuisine", iso) for iso in ("IN", "JP")]
    projects.export(
        tmp_path / "project", ExportFiles([images], projects.write_prompts(tmp_path / "prompts", rows)), repeats=0
    )
    both, aside = taken(tmp_path, tmp_path / "project", answers(tmp_path / "project", people=(1,)))
    (home,) = set(both["annotator_region"])
    assert set(aside["reason"]) == {"one person of two regions"}
    assert aside["detail"][0].endswith(f", not {home}")
    [rater] = pl.read_parquet(tmp_path / "rated/raters.parquet").to_dicts()
    assert (rater["counted"], rater["quarantined"]) == (both.height, aside.height)


def test_who_is_wholly_in_quarantine_is_named(tmp_path: Path, project: Path) -> None:
    tasks = answers(project, people=(1, 2))
    for task in tasks:
        task["annotations"][1]["strange"] = 1
    taken(tmp_path, project, tasks)
    one, other = pl.read_parquet(tmp_path / "rated/raters.parquet").sort("annotator").to_dicts()
    assert (one["why"], other["counted"], other["quarantined"]) == (None, 0, len(tasks))
    assert other["why"] == f"{len(tasks)} answers in quarantine (unknown field)"
    note = json.loads((tmp_path / "rated/manifest.json").read_bytes())["notes"]["people"]
    assert note.startswith("2 people answered, and 1 of them counts: 1. Left out: 2 (")


def rated(tmp_path: Path, rows: list[dict[str, Any]], scheme: str, words: Any) -> pl.DataFrame:
    images = write_images(tmp_path / "images", [image_row(f"i{n}", "m", "p") for n in range(3)])
    (tmp_path / "items.csv").write_bytes(pl.DataFrame(rows).write_csv().encode())
    export(tmp_path / "project", ExportFiles([images], items=tmp_path / "items.csv"), scheme, checks=0,
           quotas=Quotas(1, 0, ("Africa", "Europe", "JP")))  # fmt: skip
    answer_all(tmp_path, (1,), words)
    assert pl.read_parquet(tmp_path / "rated/quarantine.parquet").select("reason", "field").rows() == []
    return pl.read_parquet(tmp_path / "rated/annotations.parquet")


def test_several_options_give_a_row_each(tmp_path: Path) -> None:
    rows = [{"item_id": "x", "image_id": "i0", "object": "stove", "region": "Africa"}]
    words = rated(tmp_path, rows, "inclusion_task2", lambda *_: {
        "obj": "ym", "object_regions": ["af", "eu"], "background_regions": ["na"]
    })  # fmt: skip
    found = {row["criterion"]: (row["value"], row["choice"]) for row in words.iter_rows(named=True)}
    assert found == {
        "obj": (None, "ym"),
        "object_regions/af": (1.0, "af"), "object_regions/eu": (1.0, "eu"), "object_regions/jp": (0.0, None),
        "object_regions/na": (0.0, None), "background_regions/af": (0.0, None), "background_regions/eu": (0.0, None),
        "background_regions/jp": (0.0, None), "background_regions/na": (1.0, "na"),
    }  # fmt: skip


def test_options_of_an_item_stand_under_their_own_names(tmp_path: Path) -> None:
    rows = [{"item_id": "x", "image_id": "i0", "activity": "tea", "country_name": "Japan", "country": "JP",
             "descriptors": "tatami | <b>fan</b>"}]  # fmt: skip
    base: Answers = {"faith": 4, "hal": 1, "exag": 2, "realism": 3}
    words = rated(tmp_path, rows, "cultivate", lambda *_: {**base, "relevant": ["o2"]})
    found = dict(words.select("criterion", "value").iter_rows())
    assert found["relevant/tatami"] == 0.0
    assert found["relevant/<b>fan</b>"] == 1.0


def test_chosen_pictures_are_named_wherever_they_stood(tmp_path: Path) -> None:
    rows = [
        {"item_id": "x", "reference_id": "i0", "first_id": "i1", "second_id": "i2", "object": "stove",
            "region": "Africa"},
    ]  # fmt: skip

    def answer(data: dict[str, Any], _: int | str) -> Answers:
        (row,) = [row for row in key_of(tmp_path / "project").values() if row["task"] == data["task"]]
        position = str(row["places"].index("second") + 1)
        return {"shown": ["1", position], "similar": position, "confidence": "low", "appealing": "2"}

    words = rated(tmp_path, rows, "inclusion_task1", answer)
    found = {row["criterion"]: (row["value"], row["choice"]) for row in words.iter_rows(named=True)}
    assert found["similar"] == (None, "i2")
    assert found["shown/reference"] == (1.0, "i0")
    assert found["shown/second"] == (1.0, "i2")
    assert found["shown/first"] == (0.0, None)


def test_a_list_that_items_lack_is_asked_for(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images", [image_row("i0", "m", "p")])
    (tmp_path / "items.csv").write_text("item_id,image_id,activity,country_name\nx,i0,tea,Japan\n", encoding="utf-8")
    with pytest.raises(UsageError, match="descriptors"):
        export(tmp_path / "out", ExportFiles([images], items=tmp_path / "items.csv"), "cultivate")


def test_tones_are_numbers_and_none_is_not(tmp_path: Path) -> None:
    rows = [{"item_id": f"x{n}", "image_id": f"i{n}", "prompt": "a person"} for n in range(2)]
    key: dict[str, str] = {}

    def answer(data: dict[str, Any], _: int | str) -> Answers:
        key.update({task: row["item_id"] for task, row in key_of(tmp_path / "project").items()})
        return {"correct": "yes", "monk_tone": "7" if key[data["task"]] == "x0" else "none"}

    tones = rated(tmp_path, rows, "linguistic_dialect", answer).filter(criterion="monk_tone")
    assert tones.select("item_id", "value", "choice").rows() == [("x0", 7.0, "7"), ("x1", None, "none")]
