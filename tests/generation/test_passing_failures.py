"""A backend whose server goes down: what was finished stays, and what failed is tried again."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.plugins import use_plugins
from tests.command_line import culturekit

RECIPE = """
recipe: cube
seed: {seed}
cspace: dishes.csv
prompts: {{kinds: [cube, underspecified]}}
images: {{kinds: [underspecified], slots: 4, repeats: 3}}
scores: {{size: 4}}
references: {{backend: served, per_artifact: 2}}
plugins: {{backend.served: served.py:make}}
models: [{{name: plain, backend: served}}]
"""
BACKEND = '''
"""A client of a server that {how}; the file `down` says which images it does not bring."""

from pathlib import Path

import numpy as np

from culturekit.generation.backend import Failure, Picture


class Served:
    version = "served 1"
    knows_truth = False
    {held}

    def generate(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        with Path("asked").open("a") as asked:
            asked.write("x")
        down = Path("down").read_text() if Path("down").is_file() else ""
        if down == "raise":
            raise ConnectionRefusedError(111, "connection refused")
        if down and request.seed % int(down) == 0:
            return Failure("failed", "connection refused", passing=int(down) > 1)
        pixels = np.full((32, 32, 3), request.seed % 251, np.uint8)
        return Picture(pixels, seed_honoured=True)


def make(spec):
    return Served()
'''
HELD = """
    batch_size = 4

    def lanes(self, workers):
        from contextlib import nullcontext

        return nullcontext([self])

    def release(self):
        pass
"""


@pytest.fixture(params=["asked", "held"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "dishes.csv").write_text("name,concept,country\nfeijoada,cuisine,BR\nsushi,cuisine,JP\n", "utf-8")
    held = HELD if request.param == "held" else ""
    (tmp_path / "served.py").write_text(BACKEND.format(how=request.param, held=held), "utf-8")
    (tmp_path / "recipe.yaml").write_text(RECIPE.format(seed=1), "utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    use_plugins({})


def run(*words: str, code: int = 0) -> str:
    answer = culturekit("run", "recipe.yaml", "--until", "images", *words)
    assert answer.returncode == code, answer.stderr
    return answer.stderr


def table(stage: str) -> pl.DataFrame:
    return pl.read_parquet(f"runs/recipe/{stage}/images.parquet")


def asked() -> int:
    return len(Path("asked").read_text("utf-8"))


def test_what_came_to_nothing_replaces_nothing_that_did(folder: Path) -> None:
    run()
    references, images = table("references"), table("images-plain")
    assert set(images["status"]) == set(references["status"]) == {"ok"}
    Path("recipe.yaml").write_text(RECIPE.format(seed=2), "utf-8")
    Path("down").write_text("1", "utf-8")
    answer = run(code=3)
    assert "runs/recipe/references: nothing of references came out right, and what was finished stays" in answer
    assert "none of 4 images was made: failed, connection refused" in answer
    assert table("references").equals(references)
    Path("down").write_text("raise", "utf-8")
    assert "connection refused" in run(code=3).lower()
    assert table("references").equals(references)
    Path("down").unlink()
    run()
    assert set(table("references")["status"]) == {"ok"}
    assert not table("references").equals(references)


def test_images_that_failed_in_passing_are_tried_again_and_no_others(folder: Path) -> None:
    run("--workdir", "undisturbed")
    before = asked()
    Path("down").write_text("3", "utf-8")
    run()
    first = table("images-plain")
    failed = first.filter(pl.col("status") == "failed").height
    assert 0 < failed < first.height
    assert "to try again" in culturekit("plan", "recipe.yaml").stdout
    Path("down").unlink()
    between = asked()
    assert "3 done" in run(), "references, their index, and images"
    whole = table("images-plain")
    assert whole.equals(pl.read_parquet("undisturbed/images-plain/images.parquet"))
    assert all((Path("runs/recipe/images-plain") / path).is_file() for path in whole["path"])
    lost = failed + int((pl.read_parquet("undisturbed/references/images.parquet")["seed"] % 3 == 0).sum())
    assert asked() - between < before
    if "batch_size" not in Path("served.py").read_text("utf-8"):  # a held model draws whole batches, as at first
        assert asked() - between == lost
    between = asked()
    assert "0 done" in run()
    assert asked() == between


def test_a_stage_of_a_run_is_done_again_when_asked_for(folder: Path) -> None:
    run()
    between = asked()
    answer = run("--fresh", "images")
    assert asked() - between == table("images-plain").height
    assert "1 done" in answer
    assert "there is no stage 'image'" in run("--fresh", "image", code=2)
