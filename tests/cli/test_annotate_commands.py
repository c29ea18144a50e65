"""The three commands of annotate in a row, as the documentation shows them."""

import json
import re
import shlex
from pathlib import Path
from unittest import mock

import orjson
import polars as pl
import pytest

from culturekit.core.schemas import KEPT
from culturekit.core.tables import write_table
from culturekit.people.answer_desk import FormServer
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.people.projects import (
    by_key,
    export,
    image_row,
    labelled,
    pictured,
    prompt_row,
    studio_tasks,
    write_images,
    write_prompts,
)
from tests.people.serving import entry


def test_forms_out_answers_in_tables_out(tmp_path: Path) -> None:
    images = [write_images(tmp_path / m, [image_row(f"{m}-{n}", m, "p") for n in range(3)]) for m in "ab"]
    prompts = write_prompts(tmp_path / "prompts", [prompt_row("p", "Image of food, India", "cuisine", "IN")])
    project, rated, people = (tmp_path / name for name in ("to-rate", "rated", "people"))
    words = ("--images", images[0], "--images", images[1], "--prompts", prompts, "--out", project, "--json")
    assert json.loads(culturekit("annotate", "export", "cube", *words, ends=0).stdout)["counts"]["items"] == 6

    def answer(row: dict[str, object], _: object) -> dict[str, object]:
        return {"belongs": "yes", "faithfulness": 4 if row["model"] == "a" else 1, "realism": 5}

    exported = labelled(studio_tasks(project), (1, 2, 3), by_key(project, answer))
    (tmp_path / "answers.json").write_bytes(orjson.dumps(exported))
    culturekit("annotate", "import", tmp_path / "answers.json", "--project", project, "--out", rated, ends=0)
    options = ("--out", people, "--also", "csv", "--resamples", "99")
    culturekit("annotate", "aggregate", "--annotations", rated / "annotations.parquet", *options, ends=0)
    table = pl.read_parquet(people / "rating_table.parquet").filter(criterion="faithfulness", concept="cuisine")
    assert table.select("model", "mean", "mark").rows() == [("a", 4.0, None), ("b", 1.0, "below 2")]
    assert (people / "rating_table.csv").is_file()
    assert "below-2" in (people / "ratings.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("words", "spoken"), [
    ("aggregate --annotations a --out b --keep slow", "no such flag"),
    ("export cube --images x --out b --form-at javascript:alert(1)", "no web address"),
    ("serve .", "not the folder of a run"),
])  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, words: str, spoken: str) -> None:
    assert spoken in culturekit("annotate", *words.split(), cwd=tmp_path, ends=2).stderr


def test_serve_prints_an_address_of_this_machine_and_ends_with_what_was_answered(run_copy: Path) -> None:
    def answered_and_ended(server: FormServer, poll_interval: float = 0.5) -> None:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        task = server.desk.sheets[sheet][0]
        answers = {"shows": "none"}
        server.desk.take(entry(run_copy / "to-audit", sheet, task, "ana", answers))
        server.saved()
        raise KeyboardInterrupt

    words = ("annotate", "serve", run_copy, "--images", "30", "--people", "1")
    with mock.patch.object(FormServer, "serve_forever", answered_and_ended):
        done = culturekit(*words, "--json", ends=0)
        started, ended = map(json.loads, done.stdout.splitlines())
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", started["address"])
        assert (ended["answered"], ended["people"]) == (1, ["ana"])
        follows = f"run {run_copy / 'recipe.json'} --workdir {run_copy}"
        assert f"Next: culturekit {follows}" in done.stderr
        again = culturekit(*words, "--intervals")
        assert "after 1 answer, corrected diversity (country kernel):" in again.stderr
        assert again.stdout.splitlines()[-1] == f"1 of {ended['wanted']} answers by 1 person"
    assert culturekit(*follows.split()).returncode in {0, 1}


@pytest.mark.parametrize("form", ["cube", "candidates", "groups of candidates", "check of a space"])
def test_serve_ends_with_a_command_that_takes_its_answers_in(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "a b"  # what is named is quoted
    folder.mkdir()
    project, spoken = folder / "form", {"belongs": "yes", "faithfulness": 4, "realism": 5}
    if form == "cube":
        export(project, pictured(folder, ["a-1"]))
    else:
        same = {"concept": "cuisine", "country_qids": ["Q155"], "roots": ["Q1000"], "path": ["Q1000"], "reason": "m"}
        rows = [{**same, "qid": f"Q{n}", "label": f"dish {n}", "verdict": "review"} for n in range(1, 30)]
        kept, spoken = write_table(folder, KEPT, rows_of(KEPT, *rows).sort(KEPT.key)), {"decision": "accept"}
        words = ["check", "sample"] if form.startswith("check") else ["review", "export"]
        words += ["--groups"] if form.startswith("groups") else []
        culturekit("cspace", *words, "--kept", kept, "--out", project, ends=0)

    def answered_and_ended(server: FormServer, poll_interval: float = 0.5) -> None:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        for task in server.desk.sheets[sheet]:
            given = entry(project, sheet, task, "ana", spoken)
            for one in given["annotations"][0]["result"]:
                one["to_name"] = "picture_1" if form == "cube" else "subject"
            server.desk.take(given)
        raise KeyboardInterrupt

    with mock.patch.object(FormServer, "serve_forever", answered_and_ended):
        ended = culturekit("annotate", "serve", project, ends=0).stderr
    ((_, *words),) = (shlex.split(line)[1:] for line in ended.splitlines() if line.startswith("Next: "))
    done = culturekit(*words)
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout.strip()
