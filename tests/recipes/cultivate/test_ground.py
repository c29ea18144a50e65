"""From pages about the simulated world to prompts, descriptors and stereotypes, in a run and planned before it."""

from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError

from culturekit.config.recipe_parts import Llm
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import Run, run_stage
from culturekit.core.schemas import ACTIVITIES, DESCRIPTOR_TRAIL, DESCRIPTORS, PROMPTS, STEREOTYPES
from culturekit.core.stage import ToPlan
from culturekit.core.table import Table
from culturekit.core.tables import read_table
from culturekit.recipes.cultivate.preset import GROUND
from culturekit.recipes.cultivate.recipe import Ground, wire_ground
from culturekit.recipes.planning import asks

SIMULATED = {
    "reader": "simulated",
    "proposers": ["simulated:a?omits=0.2&invents=0.1", "simulated:b?omits=0.3&invents=0.1&rewords=0.3"],
    "refiner": "simulated:c?lenient=0.1",
    "stereotypes": "simulated",
}


def wired(folder: Path, ground: Ground) -> Run:
    run = Run(folder, ())
    wire_ground(run, ground, Llm())
    return run


def made(folder: Path, ground: Ground) -> dict[str, str]:
    """Run every stage; say the state of each."""
    with LocalEngine(1) as engine:
        steps = wired(folder, ground).steps
        return {step.stage.name: run_stage(step.stage, folder / step.stage.name, engine=engine).state for step in steps}


def table_in(folder: Path, role: str, table: Table) -> pl.DataFrame:
    return read_table(folder / role / f"{table.name}.parquet", table)


def test_the_simulated_world_becomes_its_own_ground_truth(tmp_path: Path) -> None:
    ground = Ground.model_validate({**SIMULATED, "countries": ["IR", "US"]})
    assert set(made(tmp_path, ground).values()) == {"built"}
    assert set(made(tmp_path, ground).values()) == {"reused"}
    prompts = table_in(tmp_path, "prompts", PROMPTS)
    assert prompts.group_by("country").len().sort("country").rows() == [("IR", 36), ("US", 36)]
    assert "A photorealistic photo of a wedding in the United States." in prompts["text"].to_list()
    read = table_in(tmp_path, "activities", ACTIVITIES).filter(form="multi-variant")
    assert read["quote"].null_count() == 0
    assert read["title"].null_count() == 0
    kept, trail = (table_in(tmp_path, "descriptors", table) for table in (DESCRIPTORS, DESCRIPTOR_TRAIL))
    assert set(kept["prompt_id"]) == set(prompts["prompt_id"])
    assert set(kept.explode("proposers", empty_as_null=False)["proposers"]) == {"simulated-a", "simulated-b"}
    assert {"kept", "merged", "wrong"} <= set(trail["outcome"])
    assert kept.height == trail.filter(outcome="kept").height
    assert set(table_in(tmp_path, "stereotypes", STEREOTYPES)["country"]) == {"IR", "US"}


def test_the_authors_models_are_planned_before_anything_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "of-nobody")
    ground = Ground.model_validate({"preset": "authors", "refiner": "openai:gpt-4o-mini"})
    assert ground.proposers == GROUND["proposers"]
    assert ground.refiner == "openai:gpt-4o-mini"
    run = wired(tmp_path / "run", ground)
    plans = {}
    for step in run.steps:
        if step.stage.asking is not None:
            folder = tmp_path / "run" / step.stage.name
            plans[step.stage.name] = asks()(ToPlan(step.stage, "to do", folder, False, {}))
    assert {name: plan.requests for name, plan in plans.items()} == {
        "mentions": None, "proposals-1": 2_880, "proposals-2": 2_880, "descriptors": 2_880, "stereotypes": 16,
    }  # fmt: skip
    dollars = {name: plan.dollars for name, plan in plans.items()}
    assert dollars.pop("mentions") is None
    known = {name: value for name, value in dollars.items() if value is not None}
    assert known.keys() == dollars.keys()
    assert known["proposals-2"] > 4 * known["proposals-1"] > 4 * known["stereotypes"] > 0, (
        "gpt-4o costs more than flash"
    )
    assert not (tmp_path / "run").exists()


def test_a_smaller_grid_is_planned_as_small_as_it_is(tmp_path: Path) -> None:
    ground = Ground.model_validate({**SIMULATED, "countries": ["IR", "US"], "per_category": 2})
    steps = {step.stage.name: step.stage for step in wired(tmp_path / "run", ground).steps}
    for name in ("proposals-1", "descriptors"):
        plan = asks()(ToPlan(steps[name], "to do", tmp_path / "run" / name, False, {}))
        assert plan.units == 2 * (2 * 5 + 6) * 5


def test_a_ground_without_a_refiner_is_refused() -> None:
    with pytest.raises(ValidationError, match="refiner"):
        Ground.model_validate({name: value for name, value in SIMULATED.items() if name != "refiner"})


@pytest.mark.parametrize(("contact", "words"), [("", "ground.contact"), ("me", "mail address")])
def test_pages_of_a_recipe_are_fetched_where_it_says_who_asks(tmp_path: Path, contact: str, words: str) -> None:
    pages = tmp_path / "pages.yaml"
    pages.write_text("pages: [{source: wikipedia, country: IR, title: Nowruz, url: https://en.wikipedia.org/wiki/N}]")
    ground = Ground.model_validate({**SIMULATED, "countries": ["IR"], "pages": str(pages), "contact": contact})
    with LocalEngine(1) as engine, pytest.raises(UsageError, match=words):
        run_stage(wired(tmp_path, ground).steps[0].stage, tmp_path / "sources", engine=engine)
