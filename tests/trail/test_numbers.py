"""Any number of any recipe is walked back to pictures, replies and answers, by the command and by a click."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import SCORES
from culturekit.core.tables import read_table
from culturekit.trail.numbers import NumberWalk
from culturekit.trail.walk_back import find_score
from tests.command_line import culturekit
from tests.recipes.shipped_recipes import shared_small

pytestmark = pytest.mark.slow

RECIPES = ("cultivate", "c3", "inclusion", "linguistic")
NUMBERS = 10


@pytest.fixture(params=RECIPES)
def finished(request: pytest.FixtureRequest, shared_folder: Path) -> Path:
    return shared_small(request.param, shared_folder)


def spread(found: list[Any], count: int = NUMBERS) -> list[Any]:
    """Take some of a list, from its beginning to its end."""
    return found[:: max(1, len(found) // count)][:count]


@pytest.mark.parametrize("recipe", ["cube", *RECIPES])
def test_ten_scores_of_each_recipe_lead_to_an_image_and_to_what_was_said_of_it(
    recipe: str, shared_folder: Path
) -> None:
    finished = shared_small(recipe, shared_folder)
    tables = sorted(finished.glob("*/scores.parquet"))
    rows = [(path.parent, row) for path in tables for row in range(read_table(path, SCORES).height)]
    said = 0
    for folder, row in spread(rows):
        done = culturekit("trace", f"{folder}#{row}", "--images", "3", "--json")
        trail = json.loads(done.stdout)
        stated = pl.read_parquet(folder / "scores.parquet").row(row, named=True)
        assert trail["score"]["value"] == stated["value"]
        for mapped in (trail, *trail["more"]) if "image" in trail else ():  # a count of artifacts
            assert Path(mapped["image"]).is_file()
            assert mapped["prompt"]
            said += bool(mapped["neighbours"] and mapped["dump_line"])
        assert "image" in trail or trail["items"], (folder.name, row)
        for item in trail.get("items", ()):
            assert item["images"], (folder.name, row, item["name"])
            assert all(Path(image["path"]).is_file() and image["prompt"] for image in item["images"])
            said += bool(item["replies"] or item["answers"])
    assert said, "replies of judges, answers of people, or lines of the dump stand beside some"


class Links(HTMLParser):
    """The targets of a page's links, the ids it has, and its pictures by the id they stand below."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.to: list[str] = []
        self.ids: set[str] = set()
        self.pictures: dict[str, list[str]] = {}
        self.at = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if "id" in said:
            self.ids.add(said["id"])
            self.at = said["id"]
        self.to += [said["href"]] if tag == "a" and "href" in said else []
        if tag == "img":
            self.pictures.setdefault(self.at, []).append(said["src"])


def test_every_number_of_a_report_is_a_link_to_pictures_that_are_there(finished: Path) -> None:
    report = finished / "report"
    links = [target for target in Links(report / "report.html").to if target.startswith("behind/")]
    assert len(links) >= NUMBERS
    pages = {name: Links(report / name) for name in {target.partition("#")[0] for target in links}}
    for target in links:
        name, _, anchor = target.partition("#")
        assert anchor in pages[name].ids, target
    for name, page in pages.items():
        shown = [src for sources in page.pictures.values() for src in sources]
        assert shown, name
        assert all((report / name).parent.joinpath(src).resolve().is_file() for src in shown)
    assert (report / "report.html").stat().st_size < 5_000_000


def test_values_behind_a_mean_are_those_it_is_the_mean_of(shared_folder: Path) -> None:
    folder = shared_small("c3", shared_folder) / "ratings"
    scores = read_table(folder / "scores.parquet", SCORES).filter(metric="rating_mean")
    walk = NumberWalk(folder)
    for score in scores.iter_rows(named=True):
        stage, values = walk.values_behind(score)
        assert stage == folder.resolve()
        assert values.height == score["n"]
        assert values["value"].mean() == pytest.approx(score["value"])


def test_what_images_truly_show_is_behind_scores_of_it_alone(shared_folder: Path) -> None:
    folder = shared_small("cultivate", shared_folder)
    judged, gaps = (NumberWalk(folder / name) for name in ("judged-align", "corrected-gaps"))
    score = read_table(folder / "judged-align" / "scores.parquet", SCORES).row(0, named=True)
    assert judged.trail(score).values.name == "by-group"
    assert "ahead-truth" not in {stage.name for stage in judged.above}, "simulated people know it, too"
    true = pl.col("params").str.json_path_match("$.labels") == "truth"
    score = read_table(folder / "corrected-gaps" / "scores.parquet", SCORES).filter(true).row(0, named=True)
    assert gaps.trail(score).values.name == "ahead-truth"


def test_a_reference_to_a_run_names_its_folders_of_scores_and_finds_one_by_conditions(shared_folder: Path) -> None:
    folder = shared_small("cultivate", shared_folder)
    found, score = find_score(f"{folder}?metric=align&model=even&folder=ahead&country=US")
    assert (found.name, score["country"]) == ("ahead", "US")
    with pytest.raises(UsageError, match=r"in several folders.*ahead"):
        find_score(f"{folder}#0")


def test_a_table_that_is_not_the_one_its_stage_wrote_is_refused(shared_folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(shared_small("c3", shared_folder), tmp_path / "c3")
    path = copy / "ratings" / "values.parquet"
    pl.read_parquet(path).with_columns(value=pl.col("value") + 1).write_parquet(path)
    score = read_table(copy / "ratings" / "scores.parquet", SCORES).row(0, named=True)
    with pytest.raises(IntegrityError, match="not the one its stage wrote"):
        NumberWalk(copy / "ratings").trail(score)
    walk = NumberWalk(copy / "worth")
    score = read_table(copy / "worth" / "scores.parquet", SCORES).row(0, named=True)
    image = walk.trail(score).items[0].images[0]
    image.path.write_bytes(b"another picture")
    with pytest.raises(IntegrityError, match="not the one its table describes"):
        NumberWalk(copy / "worth").trail(score)
