"""A recipe `c3` that trains one of its models: before and after stand in the report; without torch a plan says so."""

import json
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.captions.pairs import Strategy
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.schemas import VALUES
from culturekit.core.torch_places import mend_torchvision
from culturekit.people.stages import ANSWERS_FILE
from culturekit.recipes.c3.world import simulated_ratings_stage
from culturekit.recipes.planning import plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.generation.diffusion.tiny_pipelines import tiny
from tests.recipes.built import built, stored

SMALL = ("captions.count=30", "captions.sample=24", "pairs.simulated.each=1", "pairs.keep=8", "people=null",
         "finetune.steps=6", "finetune.rank=2", "finetune.rate=0.01", "finetune.batch=2", "finetune.size=16",
         "finetune.every=3", "images.size=16x16")  # fmt: skip


def training(model: Path | str, *more: str) -> AnyRecipe:
    spec = f"diffusers:{model}?steps=2&device=cpu"
    named = (*SMALL, f"models=[{{name: plain, backend: '{spec}'}}]", "finetune.model=plain")
    stated = {text.partition("=")[0]: text for text in (*named, *more)}
    return load_any_recipe(find_recipe("c3"), list(stated.values()))


def test_a_plan_says_what_installs_the_packages_that_a_training_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    model = tmp_path / "sd"
    model.mkdir()
    (model / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
    planned = {one.name: one for one in plan_recipe(training(model), tmp_path / "run")}
    assert "pip install" in planned["finetuned-plain"].lacks
    assert "embed,generate" in planned["finetuned-plain"].lacks
    assert not planned["selected"].lacks


def needed() -> None:
    pytest.importorskip("torch")
    mend_torchvision()
    pytest.importorskip("diffusers")
    pytest.importorskip("peft")


def page_of(folder: Path) -> str:
    return (folder / "report/report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_same_captions_are_drawn_before_and_after(tmp_path: Path) -> None:
    needed()
    recipe, folder = training(tiny(tmp_path, "sd")), tmp_path / "run"
    with LocalEngine(1) as engine:
        assert {one.state for one in run_recipe(recipe, folder, engine=engine)} == {"built"}
        again = run_recipe(recipe, folder, engine=engine)
    assert [one.name for one in again if one.state != "reused"] == []
    assert verify_run(folder).exit_code == 0
    before, after = (pl.read_parquet(folder / f"images-{name}/images.parquet") for name in ("plain", "tuned"))
    keys = ("prompt_id", "repeat", "slot", "seed")
    assert before.select(keys).sort(keys).equals(after.select(keys).sort(keys)), "the same captions and seeds"
    assert set(before["sha256"]).isdisjoint(after["sha256"]), "the adapter decides what is drawn"
    probes = pl.read_parquet(folder / "finetuned-plain/training.parquet")["probe"].drop_nulls().to_list()
    assert probes[-1] < probes[0]
    assert set(pl.read_parquet(folder / "faithfulness/scores.parquet")["model"]) == {"plain", "tuned"}
    assert "plain before, tuned after the fine-tune" in page_of(folder)
    assert f"{probes[-1]:.3f}" in page_of(folder)


EVERY: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_strategy_trains_a_model_and_all_stand_side_by_side(tmp_path: Path) -> None:
    """Every weight learns in one pass; people, here their answers in a file, rate what all models draw."""
    needed()
    stated = (f"finetune.strategies=[{','.join(EVERY)}]", "finetune.learns=full", "finetune.epochs=1",
              "finetune.rate=0.001", "people={prompts: 20, pairs: 20, raters: 2}", "captions.sample=20")  # fmt: skip
    folder, model = tmp_path / "run", tiny(tmp_path, "sd")
    with LocalEngine(1) as engine:
        run_recipe(training(model, *stated), folder, engine=engine)
        unknown = stored(tmp_path / "unknown", VALUES, [])
        people = simulated_ratings_stage(folder / "to-rate-images", unknown, SimulatedPeople(scatter=0.6), seed=3)
        answers = built(people, tmp_path / "answers") / ANSWERS_FILE
        run_recipe(training(model, *stated, f"people.image_answers=[{answers}]"), folder, engine=engine)
    tuned = [f"tuned-{strategy}" for strategy in EVERY]
    rows = pl.read_parquet(folder / "compared/scores.parquet")
    about = rows["params"].str.json_decode(pl.Struct({"metric": pl.String, "a": pl.String, "b": pl.String}))
    pairs = {(row["metric"], *sorted((row["a"], row["b"]))) for row in about}
    assert {("vqascore", *sorted((one, other))) for one, other in combinations(["plain", *tuned], 2)} <= pairs
    assert {("rating_mean", *sorted((one, other))) for one, other in combinations(["plain", *tuned], 2)} <= pairs
    drawn = {name: pl.read_parquet(folder / f"images-{name}/images.parquet") for name in ("plain", *tuned)}
    assert len({frozenset(table["sha256"]) for table in drawn.values()}) > len(EVERY) - 1
    page = page_of(folder)
    assert "Every weight of the denoiser was trained" in page
    assert all(f"{name} less plain" in page for name in tuned)
