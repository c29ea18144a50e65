"""The page about scoring images that exist, typed, and what `init` makes of mistaken folders."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml

from culturekit.core.errors import UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import read_table
from culturekit.recipes.cube.begin_evaluation import EvaluationFiles, begin_evaluation
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from tests.command_line import culturekit
from tests.typed_pages import blocks, follow, typed

MODELS = {"sdxl": "broad", "flux": "empty"}  # What the models are called, and which simulated ones they are


def lay_out(run: Path, here: Path) -> Path:
    """Lay the files of a finished run out as an evaluator would have them; a reference picture for each artifact."""
    here.mkdir(parents=True, exist_ok=True)
    for stage in ("cspace", "prompts"):
        shutil.copy(run / f"{stage}/{stage}.parquet", here)
    for name, model in MODELS.items():
        for row in pl.read_parquet(run / f"images-{model}/images.parquet").iter_rows(named=True):
            copy(run / f"images-{model}" / row["path"], here / f"pictures/{name}", image_name(row))
    references = pl.read_parquet(run / "references/images.parquet").filter(pl.col("slot") == 0)
    for row in references.iter_rows(named=True):
        copy(run / "references" / row["path"], here / "references" / row["truth_artifact_id"], f"{row['image_id']}.png")
    return here


def image_name(row: dict[str, object]) -> str:
    return f"{row['prompt_id']}__{row['repeat']}-{row['slot']}.png"


def copy(picture: Path, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(picture, folder / name)


PAGE = Path(__file__).parents[2] / "docs/score-images-you-already-have.md"


FOUR, SENTENCES = (
    PAGE.read_text(encoding="utf-8").partition(f"## {title}")[2].partition("\n## ")[0]
    for title in ("Four commands", "From four sentences")
)


@pytest.fixture(scope="module")
def evaluated(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The page followed to its end, and what each command said."""
    here = lay_out(small_run, tmp_path_factory.mktemp("evaluator"))
    return here, follow(FOUR, here)


@pytest.mark.endtoend
def test_the_page_has_four_commands_that_end_at_a_report_of_models(evaluated: tuple[Path, list[str]]) -> None:
    here, words = evaluated
    assert len(words) == 4
    assert words[0].splitlines()[-1] == "recipe: evaluation.yaml"
    last = words[2].splitlines()[-1]
    assert last == "report: runs/evaluation/report/report.html"
    page = (here / last.removeprefix("report: ")).read_text(encoding="utf-8")
    for model in ("sdxl", "flux"):
        assert model in page
    assert "taken from cspace.parquet" in page
    assert "0 wrong" in words[3] or "verified;" in words[3]


def test_the_encoder_is_looked_at_unless_quick_and_no_recipe_is_overwritten(
    evaluated: tuple[Path, list[str]],
) -> None:
    here = evaluated[0]
    assert (here / "runs/evaluation/diagnosis/manifest.json").is_file()
    culturekit(*typed(FOUR)[0], "--quick", "--out", "quick.yaml", cwd=here, ends=0)
    assert "diagnosis" in (here / "evaluation.yaml").read_text(encoding="utf-8")
    assert "diagnosis" not in (here / "quick.yaml").read_text(encoding="utf-8")
    here = evaluated[0]
    before = (here / "evaluation.yaml").read_bytes()
    assert "there is such a file already" in culturekit(*typed(FOUR)[0], cwd=here, ends=2).stderr
    assert (here / "evaluation.yaml").read_bytes() == before


def test_what_is_the_same_for_every_model_is_said_once(evaluated: tuple[Path, list[str]]) -> None:
    lines = evaluated[1][0].splitlines()
    assert [line for line in lines if lines.count(line) > 1 and line not in {"such as:"}] == []
    shared = lines[lines.index("every model:") :]
    assert sum("The way names are read was guessed" in line for line in lines) == 1
    assert any("mapped to a prompt" in line for line in shared)


def test_a_space_typed_by_hand_serves_as_well(mistaken: Path) -> None:
    space = read_table(mistaken / "cspace.parquet", CSPACE)
    rows = space.select(pl.col("qid").alias("id"), "name", "concept", "country")
    rows.write_csv(mistaken / "mine.csv")
    culturekit(
        "init", "pictures", "--cspace", "mine.csv", "--prompts", "prompts.parquet", "--references", "references",
        "--encoder", "embedded", "--out", "mine.yaml", cwd=mistaken, ends=0,
    )  # fmt: skip
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
        manifest = manifest_of(run / name)
        assert manifest.counts["ok"] == 24
        assert not manifest.drops
    references = manifest_of(run / "references")
    index = manifest_of(run / "index")
    assert references.counts["ok"] == index.counts["artifacts"] == index.counts["indexed"]


def test_a_score_is_walked_back_to_the_published_space(evaluated: tuple[Path, list[str]]) -> None:
    score = f"{evaluated[0] / 'runs/evaluation'}?metric=vs&model=sdxl&concept=art&kernel=country"
    assert "cspace.parquet, a published cultural space: no dump was read" in culturekit("trace", score, ends=0).stdout


@pytest.mark.endtoend
def test_four_sentences_lead_to_a_verified_report_in_five_commands_without_yaml(tmp_path: Path) -> None:
    sheets = blocks(SENTENCES, "csv")
    for name, text in zip(("sentences.csv", "space.csv"), sheets, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(sheets[0].splitlines()) == 1 + 4
    assert len(follow(SENTENCES, tmp_path)) == 5
    assert (tmp_path / "runs/mine/report/report.html").is_file()
    scores = pl.read_parquet(tmp_path / "runs/mine/scores/scores.parquet")
    overall = scores.filter(
        pl.col("concept").is_null(), pl.col("params").str.contains('"kernel":"country"'), metric="vs"
    )
    value = dict(overall.select("model", "value").iter_rows())
    assert value["wide"] > value["narrow"]
    space = read_table(tmp_path / "runs/mine/cspace/cspace.parquet", CSPACE)
    assert space["artifact_id"].str.starts_with("list:").all()


def test_prompts_are_read_off_the_names_of_files(mistaken: Path) -> None:
    texts = dict(pl.read_parquet(mistaken / "prompts.parquet").select("prompt_id", "text").iter_rows())
    for path in sorted((mistaken / "pictures/sdxl").iterdir()):
        prompt, _, number = path.name.partition("__")
        to = mistaken / f"named/sdxl/{texts[prompt].replace(' ', '_')}__{number.replace('-', '_')}"
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    done = culturekit(
        "init", "named", "--cspace", "cspace.parquet", "--references", "references", "--encoder", "embedded",
        "--out", "named.yaml", cwd=mistaken, ends=0,
    )  # fmt: skip
    assert "prompts: read off the names of the files, and written to named-prompts.csv" in done.stdout
    assert yaml.safe_load((mistaken / "named.yaml").read_bytes())["prompts"] == {"file": "named-prompts.csv"}
    read = pl.read_csv(mistaken / "named-prompts.csv")
    asked = pl.read_parquet(mistaken / "prompts.parquet").filter(kind="underspecified")
    assert sorted(read.rows()) == sorted(asked.select("text", "concept").iter_rows())


def test_a_sentence_that_tells_no_concept_is_left_for_a_person_to_fill_in(mistaken: Path) -> None:
    (mistaken / "two.csv").write_text("name,concept,country\nKente,art,Ghana\nRisotto,cuisine,Italy\n")
    for number, path in enumerate(sorted((mistaken / "pictures/sdxl").iterdir())):
        to = mistaken / f"unclear/sdxl/{'A_plate_of_food' if number % 2 else 'A_party_at_night'}/{number:04}.png"
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    done = culturekit(
        "init", "unclear", "--cspace", "two.csv", "--encoder", "embedded", "--out", "unclear.yaml", cwd=mistaken, ends=2
    )
    assert "it is not known what 1 of 2 sentences in file names are about" in done.stderr
    assert "--prompts unclear-prompts.csv" in done.stderr
    rows = (mistaken / "unclear-prompts.csv").read_text(encoding="utf-8-sig").split()
    assert " ".join(rows) == "prompt,concept A party at night, A plate of food,cuisine"
    assert not (mistaken / "unclear.yaml").exists()


def test_prompts_without_images_or_with_too_few_are_named_with_one(mistaken: Path) -> None:
    asked = ["A dancer in costume", "Clothes for a wedding", "A loom"]
    (mistaken / "three.csv").write_text("prompt,concept\n" + "".join(f"{text},art\n" for text in asked))
    for model in ("sdxl", "flux"):
        for number, path in enumerate(sorted((mistaken / f"pictures/{model}").iterdir())):
            to = mistaken / f"fewer/{model}/{asked[number // 8]}__{number % 8}.png"
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
    for path in (mistaken / "fewer/flux").glob(f"{asked[0]}__*"):
        path.unlink()
    (mistaken / f"fewer/sdxl/{asked[2]}__3.png").unlink()
    done = culturekit(
        "init", "fewer", "--cspace", "cspace.parquet", "--prompts", "three.csv", "--references", "references",
        "--encoder", "embedded", "--out", "fewer.yaml", cwd=mistaken, ends=1,
    )  # fmt: skip
    assert f"flux: 1 of 3 prompts has no image: {asked[0]!r}" in done.stderr
    assert f"sdxl: 1 of 3 prompts has fewer than 8 images, which are not scored: {asked[2]!r}" in done.stderr
    assert (mistaken / "fewer.yaml").is_file()


def test_plugins_and_countries_of_the_command_line_stand_in_the_recipe(mistaken: Path) -> None:
    code = "def mine(spec):\n    from culturekit.index.encoder import ENCODERS\n    return ENCODERS.make('embedded')\n"
    (mistaken / "mine_encoder.py").write_text(code, encoding="utf-8")
    (mistaken / "plugins.yaml").write_text("plugins: {encoder.mine: 'mine_encoder.py:mine'}\n", encoding="utf-8")
    culturekit(
        "--plugins", "plugins.yaml", "--countries-file", "world",
        "init", "pictures", "--cspace", "cspace.parquet", "--prompts", "prompts.parquet",
        "--references", "references", "--encoder", "mine", "--out", "plugged.yaml", cwd=mistaken, ends=0,
    )  # fmt: skip
    written = yaml.safe_load((mistaken / "plugged.yaml").read_bytes())
    assert (written["plugins"], written["countries_file"]) == ({"encoder.mine": "mine_encoder.py:mine"}, "world")
    assert culturekit("plan", "plugged.yaml", cwd=mistaken).returncode == 0
    culturekit(
        "--plugins", "plugins.yaml", "init", "pictures", "--cspace", "cspace.parquet", "--prompts", "prompts.parquet",
        "--encoder", "mine", "--out", "by-name.yaml", cwd=mistaken, ends=0,
    )  # fmt: skip
    assert not {"references", "diagnosis"} & set(yaml.safe_load((mistaken / "by-name.yaml").read_bytes()))


def test_without_references_pictures_are_needed_and_an_encoder_has_to_be_named(mistaken: Path) -> None:
    words = ("init", "pictures", "--cspace", "cspace.parquet", "--prompts", "prompts.parquet", "--out", "none.yaml")
    done = culturekit(*words, "--encoder", "embedded", cwd=mistaken)
    assert (done.returncode, "none.yaml" in done.stderr, (mistaken / "none.yaml").exists()) == (2, False, False)
    assert "references is missing: embedded knows artifacts by pictures only" in done.stderr
    done = culturekit("init", "pictures", "--cspace", "cspace.parquet", cwd=mistaken, ends=2)
    assert "--encoder transformers:MODEL for pictures of real models" in done.stderr
    assert done.stdout == ""


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
def test_mistakes_are_named_before_any_writing(what: str, mistaken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_findings_end_with_one_and_the_recipe_is_there(mistaken: Path) -> None:
    extra = mistaken / "pictures/sdxl/no-such-prompt__0.png"
    extra.write_bytes(next((mistaken / "pictures/sdxl").iterdir()).read_bytes())
    done = culturekit(
        "init", "pictures", "--cspace", "cspace.parquet", "--prompts", "prompts.parquet", "--references", "references",
        "--encoder", "embedded", "--out", "second.yaml", "--json", cwd=mistaken,
    )  # fmt: skip
    extra.unlink()
    assert done.returncode == 1
    assert json.loads(done.stderr) == {"level": "warning", "said": "to be looked at: sdxl: 1 file found no prompt"}
    data = json.loads(done.stdout)
    assert set(data["models"]) == {"sdxl", "flux"}
    assert data["models"]["sdxl"]["unmatched"] == 1
    assert (mistaken / "second.yaml").is_file()
