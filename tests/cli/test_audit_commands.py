"""`audit` and `audit plan`, as a user types them."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.errors import UsageError
from culturekit.core.schemas import MATCHES
from culturekit.core.tables import read_table
from culturekit.recipes import planning
from culturekit.report.report_stage import folders_of
from culturekit.report.run_folders import RunFolders
from tests.command_line import culturekit
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of
from tests.release.sheets import clean_rows, dish, write
from tests.verify.forging import read_json, write_json


def audited(*words: object) -> tuple[int, str, str]:
    answer = culturekit("audit", *map(str, words))
    return answer.returncode, answer.stdout, answer.stderr


def test_findings_leave_with_one_and_a_mended_file_with_none(tmp_path: Path) -> None:
    path, out = (
        write(tmp_path, [*clean_rows(), dish("pavê ", qid="Q9"), dish("bobó", qid="LLM")]),
        tmp_path / "out.json",
    )
    code, answer, error = audited(str(path), "--fix", str(out))
    assert code == 1
    assert "warning  white-space                  1" in answer
    assert "row 4      name: a space at the beginning or the end in “pavê ”; write “pavê”" in answer
    assert "6 rows in the public layout: 0 errors, 1 warning, 1 note" in error
    assert "1 cell changed, 0 rows set aside" in error
    code, answer, _ = audited(str(out))
    assert code == 0
    assert answer.startswith("note     missing-qid")


def test_machines_get_every_finding(tmp_path: Path) -> None:
    path = write(tmp_path, [*clean_rows(), dish("pavê\x1b[31m", qid="Q9")])
    code, answer, _ = audited(str(path), "--json", "--fix", str(tmp_path / "out.json"))
    data = json.loads(answer)
    assert code == 1
    assert data["counts"] == {"hidden-character": 2}
    assert data["findings"][0]["row"] == 4
    assert data["findings"][0]["fixable"] is True
    assert data["fixed"]["rows"] == 5
    code, shown, _ = audited(str(path))
    assert code == 1
    assert "\x1b" not in shown


# How near forecasts come is for `test_audit_forecast` to say
pytestmark = pytest.mark.usefixtures("imputed_in_few_rounds")


@pytest.fixture(scope="module")
def run(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planned") / "run"
    shutil.copytree(small_run, root)
    rng = np.random.default_rng(0)
    for path in root.glob("matches-*/matches.parquet"):
        model = read_table(path, MATCHES)["model"][0]
        countries: list[str | None] = [COUNTRIES[n] for n in rng.choice(6, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], size=120)]
        matches_of(countries, model=model, prompts=2).write_parquet(path)
    return root


def test_a_plan_says_how_many_images_of_each_model_and_how_long_that_takes(run: Path) -> None:
    done = culturekit(
        "audit", "plan", run, "--width", "0.2", "--accuracy", "0.8", "--people", "2", "--per-hour", "100", "--json",
        ends=0,
    )  # fmt: skip
    data = json.loads(done.stdout)
    assert data["source"] == "the mapping is right in 80%, as stated"
    assert {plan["model"] for plan in data["models"]} == {"broad", "empty", "narrow"}
    for plan in data["models"]:
        assert 30 <= plan["images"] <= plan["of"] == 120
        assert plan["hours"] == pytest.approx(plan["images"] * 2 / 100)
        assert plan["reached"] == (plan["width"] <= 0.2)
        assert plan["reached"] or plan["images"] == plan["of"]
        assert plan["half"] is None or plan["half"] > plan["width"]


def test_a_plan_in_words_says_what_it_takes_to_be_known_and_what_comes_next(run: Path, tmp_path: Path) -> None:
    asked, file = ("audit", "plan", run, "--width", "0.3"), tmp_path / "audits.parquet"
    done = culturekit(*asked, ends=0)
    assert "Simulated: the mapping is" in done.stdout
    assert f"Next: culturekit annotate serve {run} --images 30" in done.stdout
    answers_about(run, 2).write_parquet(file)
    done = culturekit(*asked, "--audits", file, ends=0)
    assert f"Simulated: first audit: {file}. People are taken to be right" in done.stdout
    assert "Marked: one rater. Corrected scores rest on one rater" in done.stdout  # it said: people err as there


def answers_about(run: Path, one_of: int) -> pl.DataFrame:
    """Give right answers of one person about one of so many images."""
    tables = [read_table(path, MATCHES) for path in sorted(run.glob("matches-*/matches.parquet"))]
    images = pl.concat(table.filter(pl.int_range(pl.len()) % (2 * one_of) < 2) for table in tables)
    return audits_of(dict(zip(images["image_id"], images["country"], strict=True)))


@pytest.mark.parametrize(("one_of", "source"), [
    (2, "first audit: that of this run"),
    (5, "of generated images it may be less; answers of this run tell nothing: too few images were audited"),
])  # fmt: skip
def test_answers_that_corrected_a_run_are_its_first_audit(run: Path, tmp_path: Path, one_of: int, source: str) -> None:
    root = Path(shutil.copytree(run, tmp_path / "run"))
    answers_about(root, one_of).write_parquet(root / "audits.parquet")
    manifest, record = (read_json(root / "scores" / name) for name in ("manifest.json", "run.json"))
    manifest["inputs"]["audits"] = {"name": "audits.parquet", "sha256": digest_file(root / "audits.parquet")}
    record["inputs"]["audits"] = "../audits.parquet"
    write_json(root / "scores/manifest.json", manifest)
    write_json(root / "scores/run.json", record)
    done = culturekit("audit", "plan", root, "--width", "0.3", "--json", ends=0)
    data = json.loads(done.stdout)
    assert data["source"].endswith(source)  # it was: the mapping is right in 100% of held-out references
    assert ("one rater" in data["marked"]) == (one_of == 2)


def test_kernels_with_artifacts_are_planned_by_whole_batches(run: Path) -> None:
    asked = ("audit", "plan", run, "--kernel", "artifact")
    data = json.loads(culturekit(*asked, "--width", "0.2", "--json", ends=0).stdout)
    for plan in data["models"]:
        assert plan["images"] % 8 == 0
        assert 96 <= plan["images"] <= plan["of"] == 112  # of 120 images, in two prompts
    done = culturekit(*asked, ends=0)
    assert "from 20 of each prompt on; whole batches from 12 on" in done.stdout
    assert done.stdout.endswith(" --drawing batches\n")
    for refused in (("--accuracy", "0.9"), ("--audits", "first.parquet")):
        assert "expected neither --audits nor --accuracy" in culturekit(*asked, *refused, ends=2).stderr
    both = culturekit("audit", "plan", run, "--accuracy", "0.9", "--audits", "first.parquet")
    assert "expected --audits or --accuracy" in both.stderr


def test_a_first_audit_says_what_a_second_instrument_saves(run: Path, tmp_path: Path) -> None:
    """Another instrument that is right elsewhere narrows intervals; a copy of the first saves nothing."""
    root, file = Path(shutil.copytree(run, tmp_path / "run")), tmp_path / "audits.parquet"
    rng = np.random.default_rng(1)
    answers_about(run, 2).write_parquet(file)
    for path in sorted(root.glob("matches-*/matches.parquet")):
        truth = read_table(path, MATCHES)
        model, right = truth["model"][0], truth["country"].to_list()
        mapped = (mapped_with_error(right, accuracy=accuracy, rng=rng) for accuracy in (0.7, 0.9))
        first, other = (matches_of(labels, model=model, prompts=2) for labels in mapped)
        for folder, table in (("", first), ("-by-two", other), ("-by-copy", first)):
            location = path.parent.with_name(f"{path.parent.name}{folder}") / path.name
            if folder:
                shutil.copytree(path.parent, location.parent)
            table.write_parquet(location)
    data = read_json(root / "recipe.json")
    names = [name for name in data["stages"] if name.startswith("matches-")]
    data["stages"] += [f"{name}-by-{one}" for one in ("two", "copy") for name in names if "floor" not in name]
    write_json(root / "recipe.json", data)
    done = culturekit("audit", "plan", root, "--width", "0.3", "--audits", file, "--json", ends=0)
    second = json.loads(done.stdout)["second"]
    assert second["two"] < 0.95
    assert second["copy"] == pytest.approx(1.0, abs=0.03)
    words = culturekit("audit", "plan", root, "--width", "0.3", "--audits", file).stdout
    assert f"With two as second instrument (audit.second) its intervals are {second['two']:.2f}" in words


def test_a_plan_stands_where_one_instrument_alone_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of many prompts with one audited image each is corrected by two instruments only."""

    def refused(*_: object, **__: object) -> None:
        raise UsageError("one audited image a prompt does not tell how alike the images of a prompt are")

    monkeypatch.setattr(planning, "vendi_corrected", refused)
    folders = folders_of(run)
    monkeypatch.setattr(RunFolders, "variants", lambda *_: ["two"])
    assert planning.with_second(folders, answers_about(run, 2), "country", 8, 0) == {}
