"""What a recipe `cultivate` is refused for before anything runs."""

from pathlib import Path
from typing import cast

import polars as pl
import pytest

from culturekit.config.kinds import AnyRecipe, wired
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import UsageError
from culturekit.core.schemas import DESCRIPTORS, PROMPTS, STEREOTYPES
from culturekit.core.tables import write_table
from culturekit.generation.runner import ImagePlan, list_requests
from culturekit.recipes.cultivate.recipe import Cultivate
from tests.conftest import stages_of
from tests.recipes.cultivate.marked_scenes import PROMPT


def cultivate(*stated: str) -> AnyRecipe:
    return load_any_recipe(find_recipe("cultivate"), stated)


@pytest.mark.parametrize(("scores", "like"), [("quantile: 0.75", "ahead"), ("tau: 0.4", None)])
def test_the_truth_is_scored_at_the_threshold_that_was_found(tmp_path: Path, scores: str, like: str | None) -> None:
    stages = {stage.name: stage for stage in stages_of(cultivate(f"scores={{{scores}}}"), tmp_path)}
    truth = stages["ahead-truth"]
    assert (truth.inputs["like"].parent.name if like else truth.inputs.get("like")) == like
    assert truth.options["tau"] == (None if like else 0.4)


@pytest.mark.parametrize(("countries", "compared"), [("[IR]", False), ("[IR, NG]", False), ("[IR, FR]", True)])
def test_gaps_are_left_out_before_anything_is_paid_where_there_is_one_group(
    tmp_path: Path, countries: str, compared: bool
) -> None:
    names = {stage.name for stage in stages_of(cultivate(f"ground.countries={countries}"), tmp_path)}
    assert {"gaps", "corrected-gaps"} <= names if compared else names.isdisjoint({"gaps", "corrected-gaps"})
    assert {"ahead", "judged-align", "meta", "report"} <= names


def test_countries_of_given_prompts_decide_too(tmp_path: Path) -> None:
    path = write_table(tmp_path, PROMPTS, pl.DataFrame(
        [{"prompt_id": iso, "country": iso, "text": "A photo of wrestling.", **PROMPT} for iso in ("IR", "NG")],
        schema=PROMPTS.schema,
    ))  # fmt: skip
    shown = {
        "prompt_id": "IR", "dimension": "objects", "token": "a mat", "style": "s", "necessity": "n", "proposers": [],
    }  # fmt: skip
    descriptors = write_table(tmp_path, DESCRIPTORS, pl.DataFrame([shown], schema=DESCRIPTORS.schema))
    overdone = pl.DataFrame([{"country": "IR", "token": "a rug"}], schema=STEREOTYPES.schema)
    given = (
        f"tables={{prompts: {path}, descriptors: {descriptors}, "
        f"stereotypes: {write_table(tmp_path, STEREOTYPES, overdone)}}}"
    )
    assert not cast(Cultivate, cultivate("ground=null", given)).has_groups


def test_given_tables_are_what_they_are_called(tmp_path: Path) -> None:
    for name, content in (("csv", b"prompt_id,text\n"), ("empty", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        given = f"tables={{prompts: {path}, descriptors: {path}, stereotypes: {path}}}"
        with pytest.raises(UsageError, match=r"tables.prompts: .*not a readable .*; expected the table prompts"):
            cultivate("ground=null", given)


def test_a_paid_model_makes_one_image_and_a_public_one_ten_with_the_seeds_of_the_paper(tmp_path: Path) -> None:
    """All models were asked for ten: the paper's paid ones were planned at ten times their price."""
    paid = "{name: paid, backend: 'openai:gpt-image-1', images: 1}"
    public = "{name: public, backend: 'simulated-scenes?knows=0.5'}"
    stated = [f"models=[{public}, {paid}]", "people=null", "images={slots: 10, seeds: counted}"]
    recipe = cultivate(*stated)
    assert isinstance(recipe, Cultivate)
    stages = {step.stage.name: step for step in wired(recipe, tmp_path / "run").steps}
    assert [stages[f"images-{name}"].stage.options["slots"] for name in ("public", "paid")] == [10, 1]
    assert [recipe.images_of(name) / recipe.prompts for name in ("public", "paid")] == [10, 1]
    prompts = pl.DataFrame({"prompt_id": ["a", "b"], "text": ["x", "y"]}).with_columns(
        negative_text=pl.lit(""), concept=pl.lit(""), country=pl.lit("IR"), artifact_id=pl.lit("")
    )
    made = list_requests(prompts, recipe.plan_of("public"), recipe.seed)
    assert [request.seed for request in made] == [42 + number for _ in "ab" for number in range(10)]
    assert len({request.seed for request in list_requests(prompts, ImagePlan(slots=10), 42)}) == 20


def test_files_of_wordings_are_given_in_place_of_the_shipped_ones(tmp_path: Path) -> None:
    names = ("activities", "propose", "refine", "stereotypes", "extract", "weigh", "rate")
    stated = []
    for name in names:
        (tmp_path / f"{name}.txt").write_text(f"The words of {name}.", encoding="utf-8")
        stated.append(f"wordings.{name}={tmp_path / name}.txt")
    before, after = (
        {step.stage.name: step.stage.options.get("wording") for step in wired(cultivate(*own), tmp_path / "run").steps}
        for own in ([], stated)
    )
    changed = {name for name in before if before[name] != after[name]}
    asked = {"mentions", "proposals-1", "proposals-2", "descriptors", "stereotypes"}
    models = ("even", "northern", "showy", "real")
    asked |= {f"{kind}-{model}" for kind in ("extracted", "stereotyped") for model in models}
    asked |= {f"exag-{model}-by-{kind}" for kind in ("references", "described") for model in models}
    assert changed == asked | {f"likert-{model}-by-1" for model in models[:3]}


def test_exaggeration_by_other_candidates_reads_what_was_judged_of_these_alone(tmp_path: Path) -> None:
    stages = {stage.name: stage for stage in stages_of(cultivate(), tmp_path)}
    inputs = stages["baseline-values"].inputs
    for kind in ("references", "described"):
        folders = [path.parent.name for role, path in inputs.items() if role.startswith(f"exag-{kind}")]
        assert folders == [f"exag-{model}-by-{kind}" for model in ("even", "northern", "showy", "real")]
