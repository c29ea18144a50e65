"""A recipe `c3` that trains one of its models: before and after stand in the report; without torch a plan says so."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.torch_places import mend_torchvision
from culturekit.recipes.planning import plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from culturekit.verify.verify_run import verify_run
from tests.generation.diffusion.tiny_pipelines import tiny

SMALL = ("captions.count=30", "captions.sample=24", "pairs.simulated.each=1", "pairs.keep=8", "people=null",
         "finetune.steps=6", "finetune.rank=2", "finetune.rate=0.01", "finetune.batch=2", "finetune.size=16",
         "finetune.every=3", "images.size=16x16")  # fmt: skip


def training(model: Path | str, *more: str) -> AnyRecipe:
    spec = f"diffusers:{model}?steps=2&device=cpu"
    named = (*SMALL, f"models=[{{name: plain, backend: '{spec}'}}]", "finetune.model=plain")
    stated = {text.partition("=")[0]: text for text in (*named, *more)}
    return load_any_recipe(find_recipe("c3"), list(stated.values()))


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("finetune.model=other", "finetune.model is to be one of the models"),
        ("pairs.strategies=[random]", "chosen by c3: see pairs"),
        ("pairs.forms=[webdataset]", "as an imagefolder"),
        ("pairs=null", "see pairs"),
        ("finetune.name=plain", "is a model already"),
        ("finetune.steps=0", "finetune.steps"),
    ],
)
def test_a_training_of_nothing_is_refused(stated: str, said: str) -> None:
    with pytest.raises((UsageError, ConfigError, ValidationError), match=said):
        training("nowhere", stated)


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_same_captions_are_drawn_before_and_after(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    mend_torchvision()
    pytest.importorskip("diffusers")
    pytest.importorskip("peft")
    del torch
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
    scored = pl.read_parquet(folder / "faithfulness/scores.parquet")
    assert set(scored["model"]) == {"plain", "tuned"}
    page = (folder / "report/report.html").read_text(encoding="utf-8")
    assert 'id="finetune"' in page
    assert "plain before, tuned after the fine-tune" in page
    assert f"{probes[-1]:.3f}" in page
