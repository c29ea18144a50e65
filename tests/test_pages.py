"""Guides, diffs and the notebook: each command is typed in its order, and what came of it is looked at."""

import ast
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.digests import read_manifest
from culturekit.core.schemas import CSPACE, DECISIONS, QUOTAS, SPACE_SAMPLE
from culturekit.core.tables import read_table
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.index.embedding.embedding import save_vectors
from culturekit.recipes.cultivate.world import simulated_pages_stage
from tests.command_line import culturekit
from tests.conftest import stage_here
from tests.outside_packages import EXAMPLES, PLUGINS
from tests.people.test_space_review import fill_in as judge_tasks
from tests.typed_pages import ROOT, blocks, by_simulated_models, follow, typed


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


# Pages that say how to add a metric, a plugin, a recipe, a stage


def apply(diff: str, root: Path) -> tuple[int, int]:
    """Apply a diff whose hunks stand once in their files; how many files and lines it touches."""
    files, lines = re.findall(r"^--- (\S+)\n((?:(?:[-+ ].*|)\n)+?)(?=^--- |\Z)", diff, re.MULTILINE), 0
    for name, hunks in files:
        text = (root / name).read_text(encoding="utf-8")
        for part in re.findall(r"(?:^(?:[ -].*|)\n)*(?:^\+.*\n)+(?:^(?: .*|)\n)*", hunks, re.MULTILINE):
            rows = part.splitlines(keepends=True)
            before, after = ("".join(row[1:] or "\n" for row in rows if row[0] not in sign) for sign in "+-")
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
            lines += sum(row[0] == "+" for row in rows)
        (root / name).write_text(text, encoding="utf-8")
    return len(files), lines


def run_copied(root: Path, *words: str) -> str:
    """Run a command of a copy of the package in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "culturekit", *words]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.endtoend
def test_the_metric_of_the_page_is_described_scored_and_verified(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "culturekit", tmp_path / "culturekit", ignore=shutil.ignore_patterns("__pycache__"))
    (diff,) = blocks(page("add-a-metric"), "diff")
    files, lines = apply(diff, tmp_path)
    assert f"{ {1: 'one'}[files] } file, {lines} lines" in page("add-a-metric")
    rng, ids = np.random.default_rng(0), [f"caption {number}" for number in range(22)]
    for role in ("source", "target", "image", "captions"):
        (tmp_path / role).mkdir()
        save_vectors(tmp_path / role, rng.normal(size=(len(ids), 4)).astype(np.float32), ids)
    assert "Weakest alignment" in run_copied(tmp_path, "metrics", "show", "c3_weakest")
    given = ("--source", "source", "--target", "target", "--image", "image", "--image-target", "captions")
    run_copied(tmp_path, "score", "c3", *given, "--out", "scores")
    values = pl.read_parquet(tmp_path / "scores/values.parquet").pivot("metric", index="item", values="value")
    assert values["c3_weakest"].equals(values.select(pl.min_horizontal("c3_text", "c3_image")).to_series())
    verdicts = json.loads(run_copied(tmp_path, "verify", "scores", "--json"))["scores"]
    assert {each["metric"]: each["verdict"] for each in verdicts}["c3_weakest"] == "verified"


def test_the_page_about_plugins_shows_the_package_as_it_is() -> None:
    paths = [*sorted((EXAMPLES / "evenness").rglob("*.py")), PLUGINS / "greys.py"]
    package = "".join(path.read_text(encoding="utf-8") for path in paths)
    for block in blocks(page("add-a-plugin"), "python"):
        assert block.strip() in package, block
    assert blocks(page("add-a-plugin"), "toml") == [(EXAMPLES / "evenness/pyproject.toml").read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", ["add-a-recipe", "add-a-stage"])
def test_a_page_that_is_read_to_the_end_is_short(name: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", page(name), flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) <= 500


@pytest.mark.endtoend
def test_the_recipe_of_the_page_runs_is_reused_planned_and_verified(tmp_path: Path) -> None:
    for name, language in (("census.py", "python"), ("census.yaml", "yaml"), ("dishes.csv", "csv")):
        (tmp_path / name).write_text(blocks(page("add-a-recipe"), language)[0], encoding="utf-8")
    (change,) = blocks(page("add-a-stage"), "diff")
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=change, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr

    def run_here(*words: str) -> str:
        return culturekit(*words, cwd=tmp_path, ends=0).stdout

    models = [f"{kind}-{model}" for model in ("broad", "homely") for kind in ("images", "truth", "copies")]
    names = ["cspace", "prompts", *models, "shown"]
    assert [step["name"] for step in json.loads(run_here("plan", "census.yaml", "--json"))] == names
    for state in ("built", "reused"):
        stages = json.loads(run_here("run", "census.yaml", "--json"))["stages"]
        assert [(Path(stage["folder"]).name, stage["state"]) for stage in stages] == [(name, state) for name in names]
    run = tmp_path / "runs/census"
    assert set(pl.read_parquet(run / "shown/distributions.parquet")["model"]) == {"broad", "homely"}
    copies = pl.read_parquet(run / "copies-homely/quality.parquet")
    assert copies.height == 4 * pl.read_parquet(run / "prompts/prompts.parquet").height
    assert "verified;" in run_here("--plugins", "census.yaml", "verify", "runs/census")
    run_here("--plugins", "census.yaml", "report", "runs/census", "--out", "page")
    assert "Pictures" in (tmp_path / "page/report.html").read_text(encoding="utf-8")


# Pages of the recipes, of captions, of activities and descriptors

# Keys that a page may name, and some that it does
KEYS = {
    "c3": ("captions|judge|objects|encoders|pairs|people|finetune", {"captions.proposer", "judge", "encoders",
        "pairs.images", "people.image_answers", "finetune"}),
    "inclusion": ("places|photographs|extractors|people|published|thresholds", {"places", "photographs.least",
        "extractors", "people.task1_answers", "published"}),
}  # fmt: skip

# What the plan of the paper's size counts, settings that it takes besides, and what report and demo of the demo say.
# Inclusion counts four models, of which the study had two.
PLANS: dict[str, tuple[dict[str, str], tuple[str, ...], str, str]] = {
    "c3": ({"captions": "1,977 questions", "images-showy": "500 images"}, (), "hard about a culture", ""),
    "cultivate": ({"images-showy": "1,440 images"}, (), "social activities", ""),
    "inclusion": (
        {"real": "1,800 images", "images-local": "1,800 images", "plain-images-local": "600 images",
         "triplets": "30,600 triplets", "to-look-at": "11,400 images"}, (),
        "Do objects look as they do in each region",
        "By people who live there, local looks most often as its region does",
    ),
    "linguistic": (
        {"images-open": "1,890 images", "images-literal": "1,890 images", "images-narrow": "840 images"},
        ("--set", "prompts.kinds=[neutral]"),
        "How evenly are skin tones spread?", "By clipscore, literal comes first instead",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_each_key_that_the_page_names_is_one_of_the_recipe(name: str) -> None:
    recipe = load_any_recipe(find_recipe(name)).model_dump()
    firsts, some = KEYS[name]
    named = re.findall(rf"`((?:{firsts})(?:\.\w+)?)[:`]", page(name))
    assert some <= set(named)
    for key in named:
        first, _, second = key.partition(".")
        assert first in recipe
        assert not second or second in recipe[first], key


def test_each_setting_of_the_page_can_be_set() -> None:
    settings = re.findall(r"`(?:--set )?((?:scores|ground)\.[\w.]+)(?:=|: )([^`]+)`", page("cultivate"))
    assert {key for key, _ in settings} == {"scores.tau", "scores.quantile", "scores.aggregate", "scores.reduce"}
    for key, value in settings:
        more = ["scores.tau=null"] if key == "scores.quantile" else []
        load_any_recipe(find_recipe("cultivate"), [*more, f"{key}={value}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_the_size_of_the_paper_is_planned_as_the_page_says(tmp_path: Path, name: str) -> None:
    planned, besides, _, _ = PLANS[name]
    demo, plan, *_ = typed(page(name))
    assert demo == ["demo", name]
    answer = culturekit(*plan, *besides, cwd=tmp_path, ends=0)
    for stage, work in planned.items():
        assert re.search(rf"^{stage} +to do +{work}", answer.stdout, re.MULTILINE), (stage, answer.stdout)
    assert list(tmp_path.iterdir()) == [], "nothing is begun"


@pytest.mark.endtoend
@pytest.mark.parametrize("name", PLANS)
def test_the_demo_ends_with_its_report(tmp_path: Path, name: str) -> None:
    *_, title, said = PLANS[name]
    shown = culturekit(*typed(page(name))[0], cwd=tmp_path, ends=0).stdout
    assert said in shown
    report = shown.splitlines()[-1].removeprefix("report: ")
    assert title in (tmp_path / report).read_text(encoding="utf-8")


@pytest.mark.slow
def test_captions_grow_as_the_page_says(tmp_path: Path) -> None:
    """Of 60 captions 20 are drawn; of the detector, which needs weights, the command asks for these alone."""
    (tmp_path / "alt-texts.csv").write_text("id,text\na,sdrows dna spmal\nb,a ravomas\n", encoding="utf-8")

    def smaller(words: list[str]) -> list[str]:
        words = ["20" if before == "--size" else word for before, word in zip(["", *words], words, strict=False)]
        return by_simulated_models([*words, *(["--captions", "60"] if "expand" in words else [])])

    text = page("captions").partition("$ culturekit captions objects --images")[0]
    follow(text, tmp_path, change=smaller)
    stage = generate_stage(
        tmp_path / "sample/prompts.parquet", ImagePlan(), backend="simulated-scenes", model="m", seed=1
    )
    stage_here(stage, tmp_path / "images")
    (tmp_path / "things.txt").write_text("a samovar\n", encoding="utf-8")
    (words,) = (each for each in typed(page("captions")) if "--detector" in each)
    refused = culturekit(*words, cwd=tmp_path)
    assert (refused.returncode != 0, "owl" in refused.stderr) == (True, True)
    assert pl.read_parquet(tmp_path / "captions/captions.parquet").height == 60
    assert pl.read_parquet(tmp_path / "sample/captions.parquet").height == 20
    assert pl.read_parquet(tmp_path / "stats/caption_stats.parquet").filter(category="all")["counted"].item() == 20
    translated = pl.read_parquet(tmp_path / "translations/translations.parquet")["text"]
    assert translated.to_list() == ["swords and lamps", "a samovar"]


@pytest.mark.slow
def test_pages_become_descriptors_as_the_page_says(tmp_path: Path) -> None:
    stage_here(simulated_pages_stage(countries=("IR",)), tmp_path / "written")
    for file in (tmp_path / "written").iterdir():
        (tmp_path / file.name).symlink_to(file)
    token = [{"token": "samovar", "style": "traditional", "necessity": "necessary"}]
    layout = {"eating": {"eating at home": {"setting": [], "objects": token}}}
    (tmp_path / "iran.json").write_text(json.dumps(layout, indent=1), encoding="utf-8")
    follow(page("descriptors"), tmp_path, change=by_simulated_models)
    prompts = pl.read_parquet(tmp_path / "prompts/prompts.parquet")
    assert prompts.height == 36
    assert pl.read_parquet(tmp_path / "stereotypes/stereotypes.parquet").height > 0
    assert pl.read_parquet(tmp_path / "published/descriptors.parquet")["token"].to_list() == ["samovar"]
    exported = json.loads((tmp_path / "files/iran.json").read_text(encoding="utf-8"))
    assert list(exported) == sorted(set(prompts["concept"]))


# A concept, a country and a list of one's own


@pytest.mark.endtoend
def test_dishes_and_belgium_as_the_page_says(tmp_path: Path, small_run: Path) -> None:
    (tmp_path / "runs/cube").mkdir(parents=True)
    (tmp_path / "runs/cube/graph").symlink_to(small_run / "graph")
    draft, _, rest = page("extend").partition("## A list instead")[0].partition("Add its prompts")
    follow(draft, tmp_path)
    concept = re.sub(r"countries: all.*", "countries: [BE, FR]", (tmp_path / "dishes.yaml").read_text(encoding="utf-8"))
    (tmp_path / "dishes.yaml").write_text(concept + blocks(rest, "yaml")[0], encoding="utf-8")
    follow(rest, tmp_path, refused="roots validate")  # before the country is there
    assert pl.read_parquet(tmp_path / "dishes/candidates.parquet").height == 23


@pytest.mark.endtoend
def test_instruments_and_festivals_from_a_list_to_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page("extend").partition("## A list instead")[2]
    (listed,), (words, recipe) = blocks(text, "csv"), blocks(text, "yaml")
    files = {"things.csv": listed, "words.yaml": words, "things.yaml": recipe}
    for name, block in files.items():
        assert f"`{name}`" in text
        (tmp_path / name).write_text(block, encoding="utf-8")
    follow(text, tmp_path)
    texts = pl.read_parquet(tmp_path / "prompts/prompts.parquet")["text"].to_list()
    assert "A photo of charango, an instrument from Bolivia" in texts
    assert "A photo of Carnival of Binche, a festival in Belgium" in texts
    run = tmp_path / "runs/things"
    matches = pl.read_parquet(run / "matches-broad/matches.parquet").filter(rank=1)
    artifacts = dict(pl.read_parquet(run / "cspace/cspace.parquet").select("artifact_id", "concept").iter_rows())
    assert {artifacts[row["artifact_id"]] == row["concept"] for row in matches.to_dicts()} == {True}
    scores = pl.read_parquet(run / "scores/scores.parquet").drop_nulls("concept")
    assert set(scores["concept"]) == {"instruments", "festivals"}
    assert "Festivals" in (run / "report/report.html").read_text(encoding="utf-8").title()
    monkeypatch.chdir(tmp_path)  # the recipe names files from where it was typed
    verified = json.loads(culturekit("verify", run, "--json").stdout)
    assert verified["exit_code"] == 0, "\n".join(f"{each}" for each in verified["findings"])


# "Publish a release" and "Draw a benchmark": a newcomer's path first, then every choice by hand

FIRST, _, REST = page("publish-a-release").partition("\n## 1. ")


def fill_in(sheet: Path, decision: str) -> None:
    """Write one decision into every row, as a person would in a spreadsheet."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([{**row, "decision": decision} for row in rows])


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("newcomer")
    before_sheet, _, after_sheet = FIRST.partition("Open `review.csv`")
    follow(before_sheet, here)
    fill_in(here / "review.csv", "reject")
    follow(after_sheet, here)
    return here


@pytest.mark.endtoend
def test_five_commands_lead_a_newcomer_from_a_dump_to_a_card(newcomer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(newcomer)
    assert len(typed(FIRST)) <= 5
    assert "yaml" not in FIRST.lower()
    assert not list(newcomer.glob("*.yaml"))
    run = newcomer / "runs/cube-release"
    assert (run / "card/README.md").is_file()
    assert culturekit("verify", run).returncode == 0
    assert set(read_table(run / "cspace/cspace.parquet", CSPACE)["verdict"]) == {"keep"}
    decided = read_table(run / "review/decisions.parquet", DECISIONS)
    assert decided.select("reviewer", "decided_on", "decision").rows() == [("Ada", "2026-11-22", "reject")]
    manifest = read_manifest(run / "cspace")
    assert manifest is not None
    assert "findings" not in manifest.notes
    described = json.loads((run / "card/facts.json").read_bytes())
    assert [stage["stage"] for stage in described["stages"]].count("review") == 1


def test_a_run_without_models_says_that_there_is_nothing_to_report_or_trace(newcomer: Path, tmp_path: Path) -> None:
    run = newcomer / "runs/cube-release"
    assert "evaluated no model" in culturekit("report", run, "--out", tmp_path / "page", ends=2).stderr
    assert "there are no scores" in culturekit("trace", f"{run}#0", ends=2).stderr


@pytest.mark.slow
def test_every_other_command_of_the_pages_works_as_typed(newcomer: Path) -> None:
    draw = page("draw-a-benchmark")
    for language, name, begin in (("yaml", "de.yaml", "language:"), ("csv", "quotas.csv", "concept,"),
                                  ("yaml", "mine.yaml", "recipe:")):  # fmt: skip
        (block,) = (text for text in blocks(draw, language) if text.startswith(begin))
        (newcomer / name).write_text(block, encoding="utf-8")
    assert len(typed(REST.partition("\n## 6. ")[0])) <= 9  # from candidates to a card that is checked
    judged, by_hand = REST.split("Import the decisions:")
    follow(judged, newcomer)
    fill_in(newcomer / "sheet.csv", "reject")
    drawn, scored = by_hand.split("What they answer")
    follow(drawn, newcomer)
    sample = read_table(newcomer / "to-check/space_sample.parquet", SPACE_SAMPLE)
    answers = {" ".join(key): "accept" for key in sample.select("concept", "qid", "country").iter_rows()}
    judge_tasks(newcomer / "to-check", answers, ["Ada", "Bo"])
    follow(scored, newcomer)
    assert "wrong keeps: 0.0 %" in (newcomer / "card/README.md").read_text(encoding="utf-8")
    public = [row for row in json.loads((newcomer / "cspace/cube.json").read_bytes()) if row["country"] == "Brazil"]
    (newcomer / "cube_1k.json").write_text(json.dumps(public[:2]), encoding="utf-8")
    follow(draw, newcomer)
    quotas = read_table(newcomer / "cube-1k/quotas.parquet", QUOTAS)
    assert quotas.filter(concept="landmarks", country="NG").row(0) == ("landmarks", "NG", 10, 0, 0)


# The notebook under `examples/`, cell by cell as Jupyter runs it
NOTEBOOK = Path(__file__).parents[1] / "examples/pictures_to_chart.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; what its last line is worth is what a notebook shows."""
    *lines, last = ast.parse(source).body
    body = lines if isinstance(last, ast.Expr) else [*lines, last]
    exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
    return (
        eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names) if isinstance(last, ast.Expr) else None
    )


def test_a_notebook_is_kept_without_outputs() -> None:
    whole = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (whole["nbformat"], len({cell["id"] for cell in CELLS})) == (4, len(CELLS))
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS if "outputs" in cell)


@pytest.mark.endtoend
def test_the_notebook_leads_from_pictures_to_a_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [run_cell(source, names) for source in CODE]
    assert [state for _, state in shown[1]] == ["built"] * len(shown[1])
    assert shown[2].height == 5
    broad, homely = shown[3]["broad"], shown[3]["homely"]
    assert 1 / 8 <= homely.value < homely.high < broad.low < broad.value <= 1
    page = shown[4]._repr_html_()
    assert page.count('<circle class="k0"') == 2
    assert ">homely</text>" in page
    assert (tmp_path / "chart.html").read_text(encoding="utf-8").endswith("</svg>")
    assert run_cell(CODE[1], names) == [(name, "reused") for name, _ in shown[1]]
