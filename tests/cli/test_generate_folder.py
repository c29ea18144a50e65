import json
from pathlib import Path

import pytest

from tests.command_line import culturekit
from tests.conftest import SMALL
from tests.faults.kill_and_resume import content
from tests.generation.folder.folder_worlds import fill, prompts

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
