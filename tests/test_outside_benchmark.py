"""The package of `examples/geodiv`, installed in a folder of its own: a benchmark of its own, as whole as ours."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.outside_packages import EXAMPLES, PLUGINS, write_metadata

RECIPE = """
recipe: geodiv
seed: 7
entities: [house, car]
countries: [IN, JP, US]
images: {slots: 6}
models:
  - {name: first, backend: flags}
  - {name: second, backend: flags}
judge: watcher
"""
JUDGE = '''
"""A vision model that answers by the colour of the image."""

import json

from culturekit.extend import Reply, Request


class Watcher:
    model = "watcher-1"
    caveat = "The watcher sees one number."

    def ask(self, request: Request) -> Reply:
        print("the watcher speaks")
        seen = int(str(request.data["id"])[:6], 16)
        answers = request.data["answers"]
        if isinstance(answers[0], str):
            return Reply(json.dumps({"id": request.data["id"], "choice": answers[seen % len(answers)]}))
        return Reply(json.dumps({"id": request.data["id"], "value": 1 + seen % 5}))


def make(spec):
    return Watcher()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, and one with the package as pip would install it."""
    root = tmp_path_factory.mktemp("outside")
    site = root / "site"
    shutil.copytree(EXAMPLES / "geodiv/geodiv", site / "geodiv")
    shutil.copy(PLUGINS / "flags.py", site)
    (site / "watcher.py").write_text(JUDGE, "utf-8")
    write_metadata(site, "geodiv", "2.0", {"culturekit.plugins": {
        "metric.geodiv": "geodiv.family:geodiv", "recipe.geodiv": "geodiv.recipe:GEODIV",
    }})  # fmt: skip
    write_metadata(site, "flags", "1.0", {"culturekit.plugins": {"backend.flags": "flags:make"}})
    write_metadata(site, "watcher", "1.0", {"culturekit.plugins": {"judge.watcher": "watcher:make"}})
    (root / "geo.yaml").write_text(RECIPE, "utf-8")
    return root


def command(folder: Path, *words: str, code: int = 0, site: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, with the packages or without."""
    paths = [*([str(folder / "site")] if site else []), *filter(None, sys.path)]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    called = [sys.executable, "-m", "culturekit", *words]
    ended = subprocess.run(called, cwd=folder, env=given, capture_output=True, text=True, check=False)
    assert ended.returncode == code, (words, ended.stdout[-2000:], ended.stderr[-2000:])
    return ended


@pytest.mark.endtoend
def test_a_benchmark_of_another_package_is_as_whole_as_ours(folder: Path) -> None:
    planned = json.loads(command(folder, "plan", "geo.yaml", "--json").stdout)
    names = ["prompts", "images-first", "answers-first", "images-second", "answers-second", "geodiv"]
    assert [step["name"] for step in planned] == names
    done = json.loads(command(folder, "run", "geo.yaml", "--json", "--workers", "1").stdout)
    assert [stage["state"] for stage in done["stages"]] == ["built"] * 6, "what the judge prints is no data"
    again = json.loads(command(folder, "run", "geo.yaml", "--json").stdout)
    assert [stage["state"] for stage in again["stages"]] == ["reused"] * 6
    scores = pl.read_parquet(folder / "runs/geo/geodiv/scores.parquet")
    assert scores.height == 4 * 2 * (1 + 3)

    command(folder, "report", "runs/geo", "--out", "page")
    page = (folder / "page/report.html").read_text("utf-8")
    for words in ("Affluence that images show", "Diversity of backgrounds", "India", 'src="thumbnails/'):
        assert words in page
    command(folder, "site", "runs/geo", "--out", "site-of-it")
    assert "Affluence that images show" in "".join(
        path.read_text("utf-8") for path in (folder / "site-of-it/models").glob("*.html")
    )
    assert list((folder / "site-of-it/every-eval-ever").rglob("*.json"))

    walked = command(folder, "trace", "runs/geo?metric=geodiv_entity&model=first&country=IN").stdout
    assert "-IN/" in walked
    assert (
        "no stage of this run maps the images of first" in command(folder, "audit", "plan", "runs/geo", code=2).stderr
    )
    compared = ("score", "compare", "--values", "runs/geo/geodiv/values.parquet", "--out", "compared")
    command(folder, *compared)
    assert pl.read_parquet(folder / "compared/scores.parquet").height

    verdict = json.loads(command(folder, "verify", "runs/geo", "--json").stdout)
    assert verdict["findings"] == []
    missing = command(folder, "verify", "runs/geo", code=1, site=False)
    assert "the package geodiv 2.0 (recipe.geodiv)" in missing.stdout
    command(folder, "report", "runs/geo", "--out", "elsewhere", code=2, site=False)


@pytest.mark.endtoend
def test_the_numbers_are_those_of_the_method(folder: Path) -> None:
    command(folder, "run", "geo.yaml", "--workers", "1")
    root = folder / "runs/geo"
    scores = pl.read_parquet(root / "geodiv/scores.parquet")
    said = pl.read_parquet(root / "answers-first/judgments.parquet").join(
        pl.read_parquet(root / "images-first/images.parquet").select("image_id", "prompt_id", "country"),
        on="image_id", suffix="_made",
    )  # fmt: skip
    of_prompts = said.filter(task="affluence").group_by("prompt_id").agg(pl.col("value").mean())["value"]
    (row,) = scores.filter(pl.col("country").is_null(), metric="geodiv_affluence", model="first").to_dicts()
    assert row["value"] == pytest.approx(of_prompts.mean())
    allowed = {"place": 4, "weather": 5}
    found = []
    for _, cell in said.filter(task="background").group_by("prompt_id", "item"):
        shares = [count / cell.height for count in cell["choice"].value_counts()["count"]]
        product = 1.0
        for share in shares:
            product *= share**-share
        found.append((product - 1) / (allowed[cell["item"][0]] - 1))
    (row,) = scores.filter(pl.col("country").is_null(), metric="geodiv_background", model="first").to_dicts()
    assert row["value"] == pytest.approx(sum(found) / len(found))
