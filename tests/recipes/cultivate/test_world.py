from pathlib import Path

import polars as pl
import pytest
import yaml

from culturekit.core.errors import UsageError
from culturekit.core.schemas import JUDGMENTS, PROMPTS, STEREOTYPES
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.generation.picture_store import Maker
from culturekit.generation.runner import ImagePlan, generate
from culturekit.generation.simulated.scenes.scenes_backend import DIMENSIONS, world
from culturekit.recipes.cultivate.world import PAGES, scene_truth_stage, write_pages

TOLD = {"benchmark": "cultivate", "kind": "activity", "language": "en", "template_id": "t"}


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    rows = [
        {"prompt_id": f"{iso} {name}", "text": f"A photo of {name}.", "concept": category, "country": iso, **TOLD}
        for iso, name, category in (("IR", "wrestling", "games"), ("FR", "wedding", "wedding"))
    ]
    (tmp_path / "prompts").mkdir()
    return write_table(tmp_path / "prompts", PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))


def made(work: Work, prompts: Path, spec: str) -> Path:
    """Draw the scenes of a model into a folder beside the truth's."""
    folder = work.out.parent / "images"
    (folder / "scratch").mkdir(parents=True)
    drawn = Work({}, folder, folder / "scratch", work.engine, work.progress)
    generate(drawn, prompts, ImagePlan(slots=3), Maker("m", spec), seed=1)
    return folder / "images.parquet"


def test_the_truth_says_what_a_judge_without_errors_would(work: Work, prompts: Path) -> None:
    stage = scene_truth_stage(made(work, prompts, "simulated-scenes?knows=0.5&exaggerates=1"), prompts)
    counts = stage.run(work).counts
    said = read_table(work.out / "judgments.parquet", JUDGMENTS)
    assert counts == {"judgments": said.height, "images": 6}
    for _, rows in said.filter(task="extract").group_by("image_id"):
        assert set(rows["dimension"]) == set(DIMENSIONS)
    strengths = said.filter(task="stereotype")
    assert strengths.height == 6 * 6
    assert set(strengths.filter(prompt_id="IR wrestling")["item"]) == set(world().stereotypes("IR"))
    assert set(strengths["value"]) <= {0.0, 0.5, 1.0}
    assert strengths["value"].sum() >= 6 * 2


def test_stereotypes_that_a_model_named_have_a_row_each(work: Work, prompts: Path) -> None:
    (work.out.parent / "said").mkdir()
    rows = [("IR", "Camel caravan"), ("IR", "robots"), ("FR", "beret")]
    named = write_table(
        work.out.parent / "said", STEREOTYPES, pl.DataFrame(rows, schema=STEREOTYPES.schema, orient="row")
    )
    images = made(work, prompts, "simulated-scenes?exaggerates=1")
    scene_truth_stage(images, prompts, named).run(work)
    said = read_table(work.out / "judgments.parquet", JUDGMENTS).filter(task="stereotype")
    assert said.group_by("prompt_id").len().sort("prompt_id").rows() == [("FR wedding", 3), ("IR wrestling", 6)]
    assert said.filter(item="robots")["value"].to_list() == [0, 0, 0]
    assert said.filter(item="Camel caravan")["value"].sum() > 0


def test_images_without_truth_are_refused(work: Work, prompts: Path) -> None:
    images = made(work, prompts, "simulated-scenes")
    table = pl.read_parquet(images).drop("truth_scene")
    table.write_parquet(images)
    with pytest.raises(UsageError, match="do not come with the truth"):
        scene_truth_stage(images, prompts).run(work)


def test_every_activity_that_is_extracted_stands_on_a_page_of_its_category(tmp_path: Path) -> None:
    assert write_pages(tmp_path, ["US", "IR"]) == 6
    listed = yaml.safe_load((tmp_path / PAGES).read_text())["pages"]
    for iso in ("US", "IR"):
        pages = [page for page in listed if page["country"] == iso]
        assert sorted(category for page in pages for category in page["categories"]) == [
            "celebrations", "dances", "games", "greetings", "religious",
        ]  # fmt: skip
        for page in pages:
            text = (tmp_path / page["file"]).read_text().replace("&#x27;", "'")
            for category in page["categories"]:
                counts = [text.count(name) for name in world().categories[category].activities]
                assert min(counts) >= 1
                assert max(counts) >= 2, "some are named twice"
    assert "the United States" in (tmp_path / "US-games.wikitext").read_text()


def test_a_country_of_another_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no SE; expected some of US, ES"):
        write_pages(tmp_path, ["IR", "SE"])
