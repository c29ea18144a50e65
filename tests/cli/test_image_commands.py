"""`prompts build`, `generate`, `index embed` and `index map`, as a user types them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core import stage as stage_module
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.schemas import CSPACE, DROPS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding.embed_table import EmbedSource, TextColumns, embed_stage, embed_table, texts_of
from culturekit.index.embedding.embedding import load_vectors
from culturekit.index.matching.comparison import weights_of
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from culturekit.scores.inputs import labelled, vector_inputs
from tests.builders.counting_encoder import CountingEncoder, drawn, register
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.builders.spaces import artifact, cspace
from tests.command_line import culturekit
from tests.conftest import SMALL, stage_here, stages_of
from tests.faults.kill_and_resume import content
from tests.generation.folder.folder_worlds import fill, prompts
from tests.index.picture_world import PictureWorld, made_world

MISTAKES = Path(__file__).parents[1] / "golden/folder_mistakes.txt"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder of six images, four of which answer prompts."""
    prompts(tmp_path)
    fill(tmp_path / "pics", ["p1__0.png", "p1__1.png", "p2__0.png", "p3__0.png", "p9__0.png", "cover.png"])
    (tmp_path / "pics/notes.txt").write_text("x")
    return tmp_path


# The likeliest mistakes; what is said of each is in a golden file
MISTAKEN = {
    "the folder is called otherwise": ["--backend", "folder:Pics", "--prompts", "prompts.parquet"],
    "a field is misspelled": ["--backend", "folder:pics?pattern={promt_id}__{id}.png"],
    "nothing stands between two fields": ["--backend", "folder:pics?pattern={prompt_id}{id}.png"],
    "the list is not there": ["--backend", "folder:pics?manifest=meta.csv"],
    "the output lies in the folder": ["--backend", "folder:pics", "--out", "pics/out"],
    "a list leads out and has a wrong number": ["--backend", "folder:pics?manifest=wrong.csv"],
}


def test_the_likeliest_mistakes_get_the_expected_words(here: Path) -> None:
    (here / "wrong.csv").write_text("path,prompt_id,slot\n../p1__0.png,p1,0\np1__0.png,p1,x\n")
    lines = []
    for what, arguments in MISTAKEN.items():
        out = [] if "--out" in arguments else ["--out", "images"]
        done = culturekit("generate", *arguments, *out, cwd=here, ends=2)
        assert done.stdout == ""
        lines.append(f"# {what}\n{done.stderr}")
    assert "".join(lines) == MISTAKES.read_text(encoding="utf-8")
    assert sorted(path.name for path in here.iterdir()) == ["pics", "prompts.parquet", "wrong.csv"]


def test_a_dry_run_shows_what_maps_and_writes_nothing(here: Path) -> None:
    before = content(here)
    command = "generate --backend folder:pics --prompts prompts.parquet --slots 2 --out images"
    arguments = command.split()
    done = culturekit(*arguments, "--dry-run", cwd=here, ends=1)
    for words in (
        "pics: 6 pictures by name",
        "guessed            {prompt_id}__{id}  (4 files)",
        "p1__1.png -> p1, repeat 0, slot 1: A photo of Jollof rice, from Nigeria",
        "p9__0.png: no prompt has the id 'p9' (nearest: p",
        "no picture: .txt                 1",
        "p4, repeat 0, slot 0",
    ):
        assert words in done.stdout, done.stdout
    assert done.stderr == "to be looked at: 2 files found no prompt; 4 images have no file and should\n"
    data = json.loads(culturekit(*arguments, "--dry-run", "--json", cwd=here).stdout)
    assert (data["pictures"], data["mapped"], data["unmatched"], data["missing"]) == (6, 4, 2, 4)
    assert data["named_by"] == {"{prompt_id}__{id}": 4}
    assert content(here) == before


def test_findings_end_with_one_and_a_clean_folder_with_nought(here: Path) -> None:
    arguments = ["generate", "--backend", "folder:pics", "--prompts", "prompts.parquet", "--out", "images"]
    for state in ("built", "reused"):
        done = culturekit(*arguments, cwd=here, ends=1)
        assert state in done.stdout
        assert "to be looked at: 2 files found no prompt" in done.stderr
    for name in ("p9__0.png", "cover.png"):
        (here / "pics" / name).unlink()
    assert "input folder (a folder of images) has other content" in culturekit(*arguments, "--json", cwd=here).stderr
    assert json.loads(culturekit(*arguments, "--json", "--replace", cwd=here, ends=0).stdout)["counts"]["ok"] == 4


def test_only_a_folder_can_do_without_prompts_and_has_a_dry_run(here: Path) -> None:
    done = culturekit("generate", "--backend", "simulated", "--out", "x", cwd=here)
    assert (done.returncode, "Add --prompts" in done.stderr) == (2, True)
    arguments = ["generate", "--backend", "simulated", "--prompts", "prompts.parquet", "--dry-run", "--out", "x"]
    done = culturekit(*arguments, cwd=here)
    assert (done.returncode, "folder:DIR" in done.stderr) == (2, True)


@pytest.mark.slow
def test_a_recipe_may_have_a_model_of_images_that_exist(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    culturekit("run", SMALL, "--workdir", folder, "--until", "images", ends=0)
    mine = tmp_path / "own.yaml"
    text = SMALL.read_text(encoding="utf-8")
    mine.write_text(
        text.partition("models:")[0] + "models:\n  - {name: mine, backend: 'folder:theirs?"
        "pattern={prompt_id}/{repeat}-{slot}.png'}\n", encoding="utf-8",
    )  # fmt: skip
    (tmp_path / "theirs").symlink_to(folder / "images-broad/files")
    assert "images-mine" in culturekit("plan", mine, "--workdir", tmp_path / "run", cwd=tmp_path, ends=0).stdout
    culturekit("run", mine, "--workdir", tmp_path / "run", cwd=tmp_path, ends=0)
    assert (tmp_path / "run/report/report.html").is_file()
    assert "done" in culturekit("plan", mine, "--workdir", tmp_path / "run", cwd=tmp_path).stdout
    missing = culturekit("plan", mine, "--set", "models.0.backend=folder:nowhere", cwd=tmp_path, ends=2)
    assert "there is no such folder of images" in missing.stderr


PAID = '  - {name: gpt, backend: "openai:gpt-image-1?quality=low", buying: {budget: 5, batch: true}}\n'


def recipe_with(line: str, folder: Path) -> Path:
    text = SMALL.read_text(encoding="utf-8").replace("diagnosis:", f"{line}diagnosis:")
    path = folder / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_is_told_in_words_and_as_data(tmp_path: Path) -> None:
    command = ("generate", "--backend", "openai:gpt-image-1?quality=high", "--prompts", prompts(tmp_path))
    more = ("--slots", "2", "--plan", "--out", tmp_path / "out")
    answer = culturekit(*command, *more, ends=0)
    assert "8 images by gpt-image-1: 8 calls, 0 bought already, 8 left" in answer.stdout
    assert "nothing was sent" in answer.stdout
    data = json.loads(culturekit(*command, *more, "--json").stdout)
    assert data["usd"] == pytest.approx(8 * 0.1664, rel=0.01)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [["--plan"], ["--budget", "1"], ["--batch"], ["--concurrency", "2"]])
def test_what_costs_nothing_is_not_bought(option: list[str], tmp_path: Path) -> None:
    command = ("generate", "--backend", "simulated", "--prompts", prompts(tmp_path), "--out", tmp_path / "o")
    assert "paid services" in culturekit(*command, *option, ends=2).stderr


def test_a_recipe_plans_the_dollars_of_its_services(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_with(PAID, tmp_path))
    planned = {step.name: step for step in plan_recipe(recipe, tmp_path / "run")}
    assert planned["images-gpt"].dollars == pytest.approx(24 * 0.01088 / 2)
    assert planned["images-broad"].dollars == 0.0


def test_how_images_are_bought_is_no_part_of_what_decides_them(tmp_path: Path) -> None:
    def options(line: str) -> object:
        recipe = load_recipe(recipe_with(line, tmp_path))
        return next(stage for stage in stages_of(recipe, tmp_path) if stage.name == "images-gpt").options

    assert options(PAID) == options(PAID.replace("budget: 5, batch: true", "concurrency: 3"))
    assert options(PAID) == options(PAID.replace("quality=low", "quality=low&image_price=1&rpm=5"))
    assert options(PAID) != options(PAID.replace("quality=low", "quality=high"))


def test_a_budget_of_what_costs_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="buying is for paid services"):
        load_recipe(recipe_with("  - {name: free, backend: simulated, buying: {budget: 5}}\n", tmp_path))


def run(*words: object) -> tuple[int, str]:
    answer = culturekit("prompts", "build", "cube", *map(str, words))
    return answer.returncode, answer.stderr


@pytest.fixture
def space(tmp_path: Path) -> Path:
    return write_table(tmp_path, CSPACE, cspace(*(artifact(n, popularity=n / 9) for n in range(1, 9))))


def test_a_review_goes_round(space: Path, tmp_path: Path) -> None:
    out, sheet = tmp_path / "prompts", tmp_path / "sheets/one.csv"
    words = ("--cspace", space, "--out", out, "--quota", 3, "--seed", 4)
    assert run(*words, "--review", sheet) == (0, "")
    assert sheet.read_bytes() == (out / "review.csv").read_bytes()
    assert run(*words, "--review", sheet)[0] == 0
    lines = sheet.read_text(encoding="utf-8").splitlines()
    sheet.write_text("\n".join([lines[0], lines[1].replace(",,,", ",reject,,"), *lines[2:]]), encoding="utf-8")
    filled = sheet.read_bytes()
    code, answer = run(*words, "--review", sheet)
    assert code == 2
    assert "may hold decisions" in answer
    assert sheet.read_bytes() == filled
    two = tmp_path / "two.csv"
    assert run(*words, "--decisions", sheet, "--review", two, "--replace")[0] == 0
    assert len(two.read_text(encoding="utf-8").splitlines()) == len(lines) + 1


def test_a_quota_that_is_not_met_leaves_with_one_and_still_hands_out_the_sheet(space: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "s.csv"
    words = ("--cspace", space, "--out", tmp_path / "prompts", "--quota", 20, "--review", sheet)
    code, answer = run(*words)
    assert code == 1
    assert "quota not met: cuisine in BR: 8 of 20" in answer
    assert sheet.is_file()
    assert run("--cspace", space, "--out", tmp_path / "p", "--per", 20)[0] == 0, "a limit is no quota"


def test_a_changed_sheet_makes_the_prompts_again(space: Path, tmp_path: Path) -> None:
    out, sheet = tmp_path / "prompts", tmp_path / "d.csv"
    sheet.write_text("artifact_id,concept,country,decision\nQ1,cuisine,BR,reject\n", encoding="utf-8")
    words = ("--cspace", space, "--out", out, "--decisions", sheet)
    run(*words)
    first = (out / "prompts.parquet").read_bytes()
    sheet.write_text("artifact_id,concept,country,decision\nQ2,cuisine,BR,reject\n", encoding="utf-8")
    code, answer = run(*words)
    assert code == 2
    assert "(d.csv) has other content" in answer
    assert "--replace" in answer
    assert (out / "prompts.parquet").read_bytes() == first
    code, answer = run(*words, "--replace")
    assert code == 0
    assert (out / "prompts.parquet").read_bytes() != first


@pytest.fixture(autouse=True)
def counting() -> None:
    register()


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    rows: list[Mapping[str, object]] = []
    for number in range(5):
        path = save_picture(folder / f"i{number}.png", seed=number % 4)
        if number == 1:
            path.write_bytes(b"")
        rows.append(image_row(folder, path.name))
    rows.append({**rows[0], "image_id": "i9", "path": "", "status": "failed", "reason": "no answer"})
    return images_table(folder, rows)


def test_images_become_a_folder_that_scores_take(tmp_path: Path, images: Path) -> None:
    out = tmp_path / "vectors"
    result = culturekit("index", "embed", "--images", images, "--encoder", "embedded", "--out", out, "--json", ends=0)
    vectors, ids = load_vectors(out)
    assert ids == ["i0", "i2", "i3", "i4"]
    np.testing.assert_array_equal(vectors[0], vectors[3])
    drops = read_table(out / "drops.parquet", DROPS).select("key", "reason", "detail")
    assert drops.rows() == [("i1", "picture file is empty", ""), ("i9", "image without a picture", "no answer")]
    assert json.loads(result.stdout)["counts"] == {"different": 3, "drops": 2, "ids": 4}
    manifest = manifest_of(out)
    assert manifest.notes["identity"]["name"] == "embedded"
    assert "not a cultural encoder" in manifest.notes["caveat"]


def test_images_of_which_none_can_be_embedded_are_refused(tmp_path: Path, images: Path) -> None:
    unread = pl.read_parquet(images).filter(pl.col("image_id").is_in(["i1", "i9"]))
    for table, words in ((unread, "1 image without a picture, 1 picture file is empty"), (unread.clear(), "no rows")):
        table.write_parquet(images)
        done = culturekit(
            "index", "embed", "--images", images, "--encoder", "embedded", "--out", tmp_path / "o", ends=2
        )
        assert f"no image can be embedded; found {words}" in done.stderr


def test_texts_become_a_folder_too(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("id,text\nb,a plate of rice\na,one two three four five six seven\nc,\n", encoding="utf-8")
    out = tmp_path / "vectors"
    culturekit("index", "embed", "--texts", table, "--encoder", "counting", "--out", out, ends=0)
    vectors, ids = load_vectors(out)
    assert ids == ["a", "b"]
    np.testing.assert_array_equal(vectors[1], drawn(b"a plate of rice"))
    manifest = manifest_of(out)
    assert manifest.notes["samples_too_long"] == ["a"]
    assert manifest.drops == {"empty text": 1}


@pytest.mark.parametrize(("content", "columns", "problem"), [
    ("id,text\na,x\na,y\n", TextColumns(), "one id stands for two texts; found 'a' for 'x' and for 'y'"),
    ("name,words\na,x\n", TextColumns(), "no such columns"),
    ("name,words\na,x\n", TextColumns("name", "text"), "expected name and text, found name, words"),
    ("id,text\na,\n", TextColumns(), "no text to embed"),
    ("id,text\n,x\n", TextColumns(), "a text has no id"),
])  # fmt: skip
def test_texts_that_are_not_clear_are_refused(tmp_path: Path, content: str, columns: TextColumns, problem: str) -> None:
    (tmp_path / "texts.csv").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=problem):
        texts_of([tmp_path / "texts.csv"], columns)


def test_columns_can_be_named_and_phrases_are_their_own_ids(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("name,words\na,x\n", encoding="utf-8")
    assert texts_of([tmp_path / "texts.csv"], TextColumns("name", "words")).texts == {"a": "x"}
    assert texts_of([tmp_path / "texts.csv"], TextColumns(text="words")).texts == {"x": "x"}
    pl.DataFrame({"prompt_id": ["p", "p"], "token": ["feather headdress", "red"]}).write_parquet(tmp_path / "d.parquet")
    pl.DataFrame({"phrase": ["red", "drum"]}).write_ndjson(tmp_path / "more.jsonl")
    found = texts_of([tmp_path / "d.parquet", tmp_path / "more.jsonl"], TextColumns())
    assert dict(found.texts) == {"drum": "drum", "feather headdress": "feather headdress", "red": "red"}


@pytest.mark.parametrize("given", [[], ["--images", "x.parquet", "--texts", "y.parquet"]])
def test_either_images_or_texts_are_embedded(given: list[str], tmp_path: Path) -> None:
    done = culturekit("index", "embed", "--encoder", "embedded", "--out", tmp_path / "o", *given, ends=2)
    assert "expected --images or --texts" in done.stderr


class Describing(CountingEncoder):
    give = "features"

    def describe(self, pictures: list[np.ndarray]) -> "Described":
        return Described(self.encode_prepared(pictures) * 3, np.full((len(pictures), 5), 0.2, np.float32))


class Described:
    def __init__(self, features: np.ndarray, probabilities: np.ndarray) -> None:
        self.features, self.probabilities = features, probabilities


def test_a_classifier_leaves_probabilities_as_well(work: Work, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.builders.counting_encoder.CountingEncoder", Describing)
    embed_table(work, EmbedSource(images), "counting?batch=3")
    features, probabilities = labelled(work.out), labelled(work.out, role="probs")
    np.testing.assert_allclose(np.linalg.norm(features.vectors, axis=1), 3, rtol=1e-5)
    assert probabilities.vectors.shape == (4, 5)
    assert probabilities.ids == features.ids
    assert vector_inputs({"probs": work.out, "real": work.out})["probs-vectors"].name == "probabilities.npy"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PictureWorld:
    return made_world(tmp_path_factory.mktemp("worlds") / "world", each=10, texts=True)


@pytest.fixture(scope="module")
def fresh(world: PictureWorld) -> Path:
    return world.images("fresh", world.artifacts["artifact_id"].to_list(), seed=50_000)


def mapping(world: PictureWorld, fresh: Path, out: Path, *words: str, ends: int = 0) -> str:
    """Map images, and give what was said beside the result."""
    files = ("--index", world.index, "--images", fresh, "--out", out)
    return culturekit("index", "map", *files, *words, "--json", ends=ends).stderr


def notes_of(out: Path) -> dict[str, Any]:
    notes: dict[str, Any] = json.loads((out / "manifest.json").read_text())["notes"]
    return notes


def test_every_option_reaches_the_mapping(world: PictureWorld, fresh: Path, tmp_path: Path) -> None:
    mapping(
        world, fresh, tmp_path / "out", "--k", "4", "--aggregate", "top3", "--weights", "image=0.7,text=0.3",
        "--within", "concept", "--country", "BR", "--country", "FR", "--max-error", "0.5", "--search", "numpy",
        "--encoder", "embedded",
    )  # fmt: skip
    options = json.loads((tmp_path / "out/manifest.json").read_text())["options"]
    assert options == {
        "k": 4, "aggregate": "top3", "weights": {"image": 0.7, "text": 0.3}, "within": "concept", "concepts": [],
        "countries": ["BR", "FR"], "max_error": 0.5,
    }  # fmt: skip
    assert notes_of(tmp_path / "out")["channels"] == {"image": 0.7, "text": 0.3}


def test_an_error_that_cannot_be_kept_ends_with_1(world: PictureWorld, fresh: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second time the finished folder answers
        words = mapping(world, fresh, tmp_path / "out", "--max-error", "0.001", ends=1)
        assert "every image abstains" in words
        assert "references held out" in words
    assert pl.read_parquet(tmp_path / "out/matches.parquet")["abstained"].all()


def test_vectors_of_the_same_images_are_taken_and_no_others(
    world: PictureWorld, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = embed_stage(EmbedSource(fresh), encoder="embedded")
    stage_here(stage, tmp_path / "vectors")
    given = ("--vectors", str(tmp_path / "vectors"))
    mapping(world, fresh, tmp_path / "anew")
    mapping(world, fresh, tmp_path / "taken", *given)
    anew, taken = (pl.read_parquet(tmp_path / name / "matches.parquet") for name in ("anew", "taken"))
    assert taken.equals(anew)
    assert not (tmp_path / "taken/vectors.npy").exists()
    others = world.images("others", world.artifacts["artifact_id"].to_list(), seed=60_000)
    assert "not the vectors of these images" in mapping(world, others, tmp_path / "wrong", *given, ends=4)
    vectors = bytearray((tmp_path / "vectors/vectors.npy").read_bytes())
    vectors[-2] ^= 4
    (tmp_path / "vectors/vectors.npy").write_bytes(vectors)
    for hashed, why in ((stage_module.HASHED, "changed or removed since its stage finished"), (0, "not what was made")):
        monkeypatch.setattr(stage_module, "HASHED", hashed)  # large files are known by their sizes, and looked at later
        assert why in mapping(world, fresh, tmp_path / "broken", *given, ends=4)


@pytest.mark.parametrize(
    "text", ["image", "image=x", "image=-1", "sound=1", "image=1,image=2", "image=nan", "image=inf"]
)
def test_weights_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="such as image"):
        weights_of(text)


@pytest.mark.parametrize(("words", "spoken"), [
    (("--adjust", "csls"), "go together"), (("--max-error", "0"), "above 0 and below 1"),
    (("--concept", "cuisne"), "one of cuisine"), (("--search", "quickly"), "quickly"),
])  # fmt: skip
def test_what_cannot_be_is_refused(
    world: PictureWorld, fresh: Path, tmp_path: Path, words: tuple[str, ...], spoken: str
) -> None:
    assert spoken in mapping(world, fresh, tmp_path / "out", *words, ends=2)
