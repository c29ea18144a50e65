"""The three commands of annotate in a row, as the documentation shows them."""

import json
import re
from pathlib import Path
from unittest import mock

import orjson
import polars as pl
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.people.answer_desk import FormServer
from tests.people.projects import (
    by_key,
    image_row,
    labelled,
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
    words = [
        "annotate",
        "export",
        "cube",
        "--images",
        str(images[0]),
        "--images",
        str(images[1]),
        "--prompts",
        str(prompts),
    ]
    done = CliRunner().invoke(app, [*words, "--out", str(project), "--workers", "1", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["counts"]["items"] == 6

    def answer(row: dict[str, object], _: object) -> dict[str, object]:
        return {"belongs": "yes", "faithfulness": 4 if row["model"] == "a" else 1, "realism": 5}

    (tmp_path / "answers.json").write_bytes(
        orjson.dumps(labelled(studio_tasks(project), (1, 2, 3), by_key(project, answer)))
    )
    words = ["annotate", "import", str(tmp_path / "answers.json"), "--project", str(project), "--out", str(rated)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    words = ["annotate", "aggregate", "--annotations", str(rated / "annotations.parquet"), "--out", str(people)]
    done = CliRunner().invoke(app, [*words, "--also", "csv", "--resamples", "99"])
    assert done.exit_code == 0, done.output
    table = pl.read_parquet(people / "rating_table.parquet").filter(criterion="faithfulness", concept="cuisine")
    assert table.select("model", "mean", "mark").rows() == [("a", 4.0, None), ("b", 1.0, "below 2")]
    assert (people / "rating_table.csv").is_file()
    assert "below-2" in (people / "ratings.html").read_text(encoding="utf-8")


def test_a_flag_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    words = [
        "annotate",
        "aggregate",
        "--annotations",
        str(tmp_path / "a"),
        "--out",
        str(tmp_path / "b"),
        "--keep",
        "slow",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code != 0
    assert "no such flag" in str(done.exception)


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    words = [
        "annotate",
        "export",
        "cube",
        "--images",
        "x",
        "--out",
        str(tmp_path / "b"),
        "--form-at",
        "javascript:alert(1)",
    ]
    done = CliRunner().invoke(app, words)
    assert "no web address" in str(done.exception)


def test_serve_prints_an_address_of_this_machine_and_ends_with_what_was_answered(run_copy: Path) -> None:
    def answered_and_ended(server: FormServer, poll_interval: float = 0.5) -> None:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        task = server.desk.sheets[sheet][0]
        said = {"shows": "none"}
        server.desk.take(entry(run_copy / "to-audit", sheet, task, "ana", said))
        server.saved()
        raise KeyboardInterrupt

    words = ["annotate", "serve", str(run_copy), "--images", "30", "--people", "1", "--workers", "1"]
    with mock.patch.object(FormServer, "serve_forever", answered_and_ended):
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        started, ended = map(json.loads, done.stdout.splitlines())
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", started["address"])
        assert (ended["answered"], ended["people"]) == (1, ["ana"])
        assert f"Next: culturekit run {run_copy / 'recipe.json'} --workdir {run_copy}" in done.stderr
        again = CliRunner().invoke(app, [*words, "--intervals"])
        assert "after 1 answer, corrected diversity (country kernel):" in again.stderr
        assert again.stdout.splitlines()[-1] == f"1 of {ended['wanted']} answers by 1 person"


def test_serve_refuses_a_folder_that_is_no_run(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["annotate", "serve", str(tmp_path)])
    assert "not the folder of a run" in str(done.exception)
