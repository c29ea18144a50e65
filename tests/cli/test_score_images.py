import json
import re
import shlex
import shutil
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import load_recipe
from culturekit.errors import UsageError
from culturekit.pipeline.begin_evaluation import EvaluationFiles, begin_evaluation
from culturekit.pipeline.planning.plan import plan_recipe
from culturekit.records.schemas import CSPACE
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table
from tests.cli.evaluation_folder import lay_out
from tests.command_line import culturekit

PAGE = Path(__file__).parents[2] / "docs/score-images-you-already-have.md"


def commands() -> list[str]:
    """Give the commands of the page, as typed."""
    section = PAGE.read_text(encoding="utf-8").partition("## Four commands")[2]
    block = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [line.removeprefix("$ ") for line in block[1].splitlines()]


@pytest.fixture(scope="module")
def evaluated(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The page followed to its end, and what each command said."""
    here = lay_out(small_run, tmp_path_factory.mktemp("evaluator"))
    said = []
    for command in commands():
        program, *arguments = shlex.split(command)
        assert program == "culturekit"
        done = culturekit(*arguments, cwd=here)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said.append(done.stdout)
    return here, said


@pytest.mark.endtoend
def test_the_page_has_four_commands_and_they_end_at_a_report_that_names_the_models(
    evaluated: tuple[Path, list[str]],
) -> None:
    here, said = evaluated
    assert len(said) == 4
    assert said[0].splitlines()[-1] == "recipe: evaluation.yaml"
    last = said[2].splitlines()[-1]
    assert last == "report: runs/evaluation/report/report.html"
    page = (here / last.removeprefix("report: ")).read_text(encoding="utf-8")
    for model in ("sdxl", "flux"):
        assert model in page
    assert "taken from cspace.parquet" in page
    assert "0 wrong" in said[3] or "verified;" in said[3]


def test_the_encoder_is_looked_at_unless_it_is_to_be_quick(evaluated: tuple[Path, list[str]]) -> None:
    here = evaluated[0]
    assert (here / "runs/evaluation/diagnosis/manifest.json").is_file()
    done = culturekit(*shlex.split(commands()[0])[1:], "--quick", "--out", "quick.yaml", cwd=here)
    assert done.returncode == 0
    assert "diagnosis" in (here / "evaluation.yaml").read_text(encoding="utf-8")
    assert "diagnosis" not in (here / "quick.yaml").read_text(encoding="utf-8")


def test_what_is_the_same_for_every_model_is_said_once(evaluated: tuple[Path, list[str]]) -> None:
    said = evaluated[1][0].splitlines()
    assert [line for line in said if said.count(line) > 1 and line not in {"such as:"}] == []
    shared = said[said.index("every model:") :]
    assert sum("The way names are read was guessed" in line for line in said) == 1
    assert any("mapped to a prompt" in line for line in shared)


def test_a_space_typed_by_hand_serves_as_well(mistaken: Path) -> None:
    space = read_table(mistaken / "cspace.parquet", CSPACE)
    rows = space.select(pl.col("qid").alias("id"), "name", "concept", "country")
    rows.write_csv(mistaken / "mine.csv")
    done = culturekit(
        "init", "pictures", "--cspace", "mine.csv", "--prompts", "prompts.parquet", "--references", "references",
        "--encoder", "embedded", "--out", "mine.yaml", cwd=mistaken,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert culturekit("plan", "mine.yaml", cwd=mistaken).returncode == 0


def test_a_plan_reckons_with_the_size_of_pictures_and_promises_nothing_of_other_encoders(
    evaluated: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = tmp_path / "large"
    shutil.copytree(evaluated[0], here, ignore=shutil.ignore_patterns("runs"))
    monkeypatch.chdir(here)
    for path in Path("pictures/flux").iterdir():
        with path.open("ab") as file:
            file.truncate(10_000_000)

    def seconds(*settings: str) -> dict[str, float | None]:
        recipe = load_recipe(Path("evaluation.yaml"), settings)
        return {step.name: step.seconds for step in plan_recipe(recipe, tmp_path / "none")}

    found = seconds()
    assert (found["matches-flux"] or 0) > 10 * (found["matches-sdxl"] or 1)
    assert seconds("encoder=transformers:none")["matches-sdxl"] is None


def test_nothing_was_extracted_and_every_image_and_reference_was_taken(evaluated: tuple[Path, list[str]]) -> None:
    run = evaluated[0] / "runs/evaluation"
    assert not [name for name in ("graph", "candidates", "filter") if (run / name).exists()]
    for name in ("images-sdxl", "images-flux"):
        manifest = read_manifest(run / name)
        assert manifest is not None
        assert manifest.counts["ok"] == 24
        assert not manifest.drops
    references = read_manifest(run / "references")
    index = read_manifest(run / "index")
    assert references is not None
    assert index is not None
    assert references.counts["ok"] == index.counts["artifacts"] == index.counts["indexed"]


def test_a_score_is_walked_back_to_the_published_space(evaluated: tuple[Path, list[str]]) -> None:
    score = f"{evaluated[0] / 'runs/evaluation'}?metric=vs&model=sdxl&concept=art&kernel=country"
    done = culturekit("trace", score)
    assert done.returncode == 0, done.stderr
    assert "cspace.parquet, a published cultural space: no dump was read" in done.stdout


def test_the_recipe_that_is_there_already_is_not_overwritten(evaluated: tuple[Path, list[str]]) -> None:
    here = evaluated[0]
    before = (here / "evaluation.yaml").read_bytes()
    done = culturekit(*shlex.split(commands()[0])[1:], cwd=here)
    assert done.returncode == 2
    assert "there is such a file already" in done.stderr
    assert (here / "evaluation.yaml").read_bytes() == before


MISTAKES = {
    "the prompts are not there": (("--prompts", "prompt.parquet"), "there is no file 'prompt.parquet'"),
    "the space is a folder": (("--cspace", "."), "is a folder; expected a .parquet table of culturekit"),
    "the references show no artifact": (("--references", "pictures"), "named after an artifact"),
    "the pictures are elsewhere": (("PICTURES", "elsewhere"), "there is no such folder of images"),
    "the names say nothing": (("PICTURES", "unnamed"), "no image of model-a answers a prompt"),
    "a prompt has one image": (("PICTURES", "single"), "most prompts have one image"),
    "images lie beside folders": (("PICTURES", "mixed"), "some images lie in folders and some beside them"),
}


@pytest.fixture(scope="module")
def mistaken(evaluated: tuple[Path, list[str]]) -> Path:
    """The same folder, with pictures that cannot be scored beside those that can."""
    here = evaluated[0]
    pictures = sorted((here / "pictures/sdxl").iterdir())
    prompt = pictures[0].name.partition("__")[0]
    for name in ("unnamed/Model A/cover.png", f"single/sdxl/{prompt}__1.png", "mixed/a/x.png", "mixed/y.png"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(pictures[0].read_bytes())
    return here


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_said_before_anything_is_written(
    what: str, mistaken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name, value), words = MISTAKES[what]
    given = {"PICTURES": "pictures", "--cspace": "cspace.parquet", "--prompts": "prompts.parquet"}
    given |= {"--references": "references", name: value}
    monkeypatch.chdir(mistaken)
    pictures, space, prompts, references = (Path(text) for text in given.values())
    files = EvaluationFiles(pictures, space, prompts, references)
    with pytest.raises(UsageError) as error:
        begin_evaluation(files, Path("other.yaml"), encoder="embedded", quality="embedded")
    assert words in str(error.value)
    assert not Path("other.yaml").exists()


def test_an_encoder_has_to_be_named(mistaken: Path) -> None:
    done = culturekit("init", "pictures", "--cspace", "cspace.parquet", cwd=mistaken)
    assert done.returncode == 2
    assert "--encoder transformers:MODEL for pictures of real models" in done.stderr
    assert done.stdout == ""


def test_findings_end_with_one_and_the_recipe_is_there(mistaken: Path) -> None:
    extra = mistaken / "pictures/sdxl/no-such-prompt__0.png"
    extra.write_bytes(next((mistaken / "pictures/sdxl").iterdir()).read_bytes())
    done = culturekit(
        "init", "pictures", "--cspace", "cspace.parquet", "--prompts", "prompts.parquet", "--references", "references",
        "--encoder", "embedded", "--out", "second.yaml", "--json", cwd=mistaken,
    )  # fmt: skip
    extra.unlink()
    assert done.returncode == 1
    assert done.stderr == "to be looked at: sdxl: 1 file found no prompt\n"
    told = json.loads(done.stdout)
    assert set(told["models"]) == {"sdxl", "flux"}
    assert told["models"]["sdxl"]["unmatched"] == 1
    assert (mistaken / "second.yaml").is_file()
