"""The three commands of annotate in a row, as the documentation shows them."""

import json
from pathlib import Path

import orjson
import polars as pl
from typer.testing import CliRunner

from culturekit.cli.app import app
from tests.annotate.projects import image_row, key_of, labelled, prompt_row, studio_tasks, write_images, write_prompts


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
    key = key_of(project)

    def answer(data: dict[str, object], _: object) -> dict[str, object]:
        row = key[str(data["task"])]
        if row["kind"] == "check":
            return dict(orjson.loads(row["expected"]))
        return {"belongs": "yes", "faithfulness": 4 if row["model"] == "a" else 1, "realism": 5}

    (tmp_path / "answers.json").write_bytes(orjson.dumps(labelled(studio_tasks(project), (1, 2, 3), answer)))
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
