"""Realism, variety and diversity within countries, added to a finished run: verified, and tampered with."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.digests import digest_file
from culturekit.core.engines import LocalEngine
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.conftest import SMALL, HeardProgress, stages_of

MORE = ["realism.encoder=embedded", "realism.fewest=20", "within.repeats=1", "diagnosis.floor_repeats=2"]
OWN = ("vectors-real", "vectors-broad", "realism", "spread", "within")


def go_on(root: Path, more: list[str], *, workers: int) -> dict[str, str]:
    with LocalEngine(workers) as engine:
        runs = run_recipe(load_recipe(SMALL, more), root, engine=engine, progress=HeardProgress())
    return {stage.name: stage.state for stage in runs}


@pytest.fixture(scope="module")
def wider(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run with realism and diversity within countries added."""
    root = tmp_path_factory.mktemp("realism") / "small"
    shutil.copytree(small_run, root)
    go_on(root, MORE, workers=2)
    return root


@pytest.fixture
def broken(wider: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(wider, tmp_path / "small"))


def table(root: Path, stage: str) -> pl.DataFrame:
    return pl.read_parquet(root / stage / "scores.parquet")


def told(frame: pl.DataFrame) -> list[dict[str, object]]:
    return [json.loads(text) for text in frame["params"]]


@pytest.mark.endtoend
def test_the_keys_add_folders_and_leave_the_others_as_they_were(small_run: Path, wider: Path) -> None:
    for path in sorted(small_run.glob("*/*.parquet")):
        assert digest_file(path) == digest_file(wider / path.relative_to(small_run)), path
    assert {path.name for path in wider.iterdir()} - {path.name for path in small_run.iterdir()} == {
        *OWN, "vectors-narrow", "vectors-empty",
        *(f"within-{kind}-{model}" for kind in ("images", "matches") for model in ("broad", "narrow", "empty")),
    }  # fmt: skip


def test_models_are_told_apart_by_what_each_number_can_see(wider: Path) -> None:
    realism, spread, within = (table(wider, stage) for stage in ("realism", "spread", "within"))
    whole = realism.filter(pl.col("concept").is_null())
    assert set(whole["model"]) == {"broad", "narrow", "empty"}
    frechet = {row["model"]: row["value"] for row in whole.filter(metric="frechet_distance").to_dicts()}
    assert frechet["broad"] < min(frechet["empty"], frechet["narrow"])
    precision = {row["model"]: row["value"] for row in whole.filter(metric="prdc_precision").to_dicts()}
    assert precision["empty"] < 0.5 < precision["narrow"]
    assert {one["called"] for one in told(whole.filter(metric="frechet_distance"))} == {"Fréchet distance on embedded"}
    cosine = {row["model"]: row["value"] for row in spread.to_dicts()}
    assert cosine["empty"] < cosine["broad"] < cosine["narrow"], "pictures of nothing look the most varied"
    means = {row["model"]: row["value"] for row in within.filter(pl.col("country").is_null()).to_dicts()}
    assert means["narrow"] == pytest.approx(1 / 8)
    assert means["narrow"] < means["broad"]
    assert within.drop_nulls("country").group_by("model").len()["len"].to_list() == [8, 8, 8]


def test_references_are_balanced_and_models_equal(wider: Path) -> None:
    frechet = table(wider, "realism").filter(metric="frechet_distance", concept="art")
    assert frechet.height
    for one in told(frechet):
        assert (one["n_fake"], one["references"], one["equal_seed"]) == (24, "balanced", 11)


def test_the_report_has_the_section_with_n_extractor_and_cautions(wider: Path) -> None:
    page = (wider / "report/report.html").read_text(encoding="utf-8")
    section = page[page.index('<h2 id="realism">') :]
    section = section[: section.index("</section>")]
    for words in (
        "embedded is no Inception", "Fréchet distance on embedded", "24 images of each model", "drawn by seed 11",
        "What variety of looks misses", "mean cosine", "Diversity inside a country", "mean over countries", "Brazil",
        "Licence of the extractor: no weights", "By mean cosine",
    ):  # fmt: skip
        assert words in section, words
    assert "FID" not in section.replace("no FID and no KID", "")


def test_a_run_without_the_keys_has_no_such_section(small_run: Path) -> None:
    assert 'id="realism"' not in (small_run / "report/report.html").read_text(encoding="utf-8")


def test_every_score_is_made_again(wider: Path) -> None:
    answer = verify_run(wider)
    assert answer.exit_code == 0, answer.findings
    found: dict[str, set[str]] = {}
    for verdict in answer.verdicts:
        if verdict.folder in OWN:
            found.setdefault(verdict.metric, set()).add(verdict.verdict)
    assert found["frechet_distance"] == found["mean_cosine"] == found["vs"] == {"verified"}
    assert found["prdc_coverage"] == found["kernel_distance"] == {"verified"}


@pytest.mark.slow
def test_one_worker_gives_the_same_bytes(wider: Path, small_run: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(small_run, tmp_path / "small"))
    go_on(root, MORE, workers=1)
    for stage in OWN:
        for path in sorted((wider / stage).iterdir()):
            if path.name != "run.json":
                assert digest_file(path) == digest_file(root / stage / path.name), path
    assert set(go_on(root, MORE, workers=1).values()) == {"reused"}


@pytest.mark.endtoend
def test_real_images_may_be_a_folder_of_pictures(wider: Path, broken: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "photos"
    pictures.mkdir()
    for number, path in enumerate(sorted((wider / "references").rglob("*.png"))[:30]):
        shutil.copyfile(path, pictures / f"{number}.png")
    states = go_on(broken, [*MORE, f"realism.real={pictures}"], workers=1)
    assert {name for name, state in states.items() if state != "reused"} == {
        "real", "vectors-real", "realism", "report",
    }  # fmt: skip
    found = table(broken, "realism")
    assert set(found["concept"]) == {None}
    assert {one["n_real"] for one in told(found)} == {30}
    page = (broken / "report/report.html").read_text(encoding="utf-8")
    assert "all that were given" in page
    same = go_on(broken, [*MORE, f"realism.real={wider / 'references'}"], workers=1)
    assert {name for name, state in same.items() if state != "reused"} == {"vectors-real", "realism", "report"}
    assert digest_file(broken / "realism/scores.parquet") == digest_file(wider / "realism/scores.parquet")


@pytest.mark.parametrize("key", ["within.repeats=1", "scores.within=country"])
def test_images_that_name_a_country_already_are_not_made_again(tmp_path: Path, key: str) -> None:
    recipe = load_recipe(SMALL, ["images.kinds=[underspecified, within-country]", key])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert not any(name.startswith("within-") for name in stages)
    assert stages["within"].inputs["matches-broad"] == tmp_path / "matches-broad/matches.parquet"
    assert stages["scores"].options["within"] == "none"


def test_inception_gives_features_and_its_own_probabilities(tmp_path: Path) -> None:
    weights = tmp_path / "fid.safetensors"
    weights.write_bytes(b"not looked at before it runs")
    recipe = load_recipe(SMALL, [f"realism.encoder=inception:{weights}?device=cpu"])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert "give=features" in str(stages["vectors-broad"].options["encoder"])
    beside = tmp_path / "vectors-broad"
    assert stages["realism"].inputs["probs-broad-vectors"] == beside / "probabilities.npy"
    assert stages["realism"].inputs["probs-broad-ids"] == beside / "ids.parquet"
    other = load_recipe(SMALL, [f"realism.classes=inception:{weights}"])
    apart = {stage.name: stage for stage in stages_of(other, tmp_path)}
    assert "embedded" in str(apart["vectors-broad"].options["encoder"])
    assert apart["realism"].inputs["probs-broad-vectors"] == tmp_path / "classes-broad/probabilities.npy"


def test_a_plan_counts_the_images_made_for_countries(wider: Path) -> None:
    planned = {step.name: step for step in plan_recipe(load_recipe(SMALL, [*MORE, "seed=12"]), wider)}
    assert planned["within-images-broad"].units == 8 * 8
    assert planned["images-broad"].units == 24
