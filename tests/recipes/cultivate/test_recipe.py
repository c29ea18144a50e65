"""The recipe `cultivate`: what it wires, the published preset, its ground truth, its world, and its page."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
import yaml
from pydantic import ValidationError

from culturekit.config.kinds import AnyRecipe, recipe_kind, wired
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.config.recipe_parts import Llm
from culturekit.core import roles
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.roles import Role
from culturekit.core.run import Run, run_stage
from culturekit.core.schemas import ACTIVITIES, DESCRIPTOR_TRAIL, DESCRIPTORS, JUDGMENTS, PROMPTS, SCORES, STEREOTYPES
from culturekit.core.stage import Outcome, Stage, ToPlan, Work
from culturekit.core.table import Table
from culturekit.core.tables import read_table, write_table
from culturekit.generation.picture_store import Maker
from culturekit.generation.runner import ImagePlan, generate, list_requests
from culturekit.generation.simulated.scenes.scenes_backend import DIMENSIONS, world
from culturekit.recipes.cultivate import roles as folders
from culturekit.recipes.cultivate.page import ablations, followed, gaps, headline, verdict
from culturekit.recipes.cultivate.preset import GROUND, PUBLISHED
from culturekit.recipes.cultivate.recipe import Cultivate, Ground, Wordings, wire_ground
from culturekit.recipes.cultivate.world import PAGES, scene_truth_stage, write_pages
from culturekit.recipes.planning import asks, plan_recipe
from culturekit.report.run_folders import RunFolders
from tests.conftest import stages_of
from tests.recipes.built import built, score, texts
from tests.recipes.cultivate.test_marks import PROMPT


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


PAPER = Path(__file__).parents[3] / "examples" / "cultivate-paper.yaml"
PAID = {"dall-e-3": "openai:dall-e-3?image_price=0.04", "gpt-image-1": "openai:gpt-image-1",
        "nano-banana": "google:gemini-2.5-flash-image"}  # fmt: skip
PUBLIC = ("sd-3.5", "flux-1", "qwen-image")
SIX = ", ".join([*(f"{{name: {name}, backend: 'diffusers:some/{name}'}}" for name in PUBLIC),
                 *(f"{{name: {name}, backend: '{spec}', images: 1}}" for name, spec in PAID.items())])  # fmt: skip
NOWRUZ = "pages: [{source: wikipedia, country: IR, title: Nowruz, url: 'https://en.wikipedia.org/wiki/N'}]"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pages.yaml").write_text(NOWRUZ, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-of-nobody-at-all")
    return tmp_path


def paper(*stated: str) -> Cultivate:
    recipe = load_any_recipe(PAPER, stated).going_on(wanted=True)
    assert isinstance(recipe, Cultivate)
    return recipe


def lines(*stated: str) -> Sequence[str]:
    return list(recipe_kind("cultivate").plan(paper(*stated)))


def test_the_papers_size_is_planned_for_its_six_models(here: Path) -> None:
    """Asked for ten images each, the paid models alone were planned at ten times what the paper paid."""
    steps = {step.name: step for step in plan_recipe(paper(f"models=[{SIX}]"), here / "run")}
    images = {name: step.units for name, step in steps.items() if name.startswith("images-")}
    assert sum(filter(None, images.values())) == 3 * 5_760 + 3 * 576 == 19_008
    dollars = [steps[f"images-{name}"].dollars or 0 for name in PAID]
    assert 60 < sum(dollars) < 80
    assert steps["descriptors"].requests == 576 * 5
    assert steps["real-candidates"].units == 576 * 20
    assert "there is no such folder of images" in steps["real-candidates"].lacks
    assert "references collect" in steps["real-candidates"].lacks
    assert not (here / "run").exists()


def test_the_study_of_the_paper_has_189_forms_and_27_with_photographs(here: Path) -> None:
    people = next(line for line in lines() if line.startswith("People"))
    assert "189 forms about models and 27 about photographs, 3 people each: 648 answers" in people
    assert "108 hours" in people
    assert "$864 at $8" in people
    with pytest.raises(ConfigError, match="people rates what is not there: nobody"):
        paper("people.models=[nobody]")
    with pytest.raises(ConfigError, match="both say how many prompts"):
        paper("people.prompts=5")


def test_what_is_not_as_published_is_listed(here: Path) -> None:
    assert not [line for line in lines() if " is " in line and line.endswith(f"published {PUBLISHED['extractor']}")]
    changed = lines("extractor=openai:gpt-5.4-mini", "ground.at_most=5", "scores={quantile: 0.75}", "images.slots=4")
    said = "\n".join(changed)
    assert f"extractor is openai:gpt-5.4-mini, published {PUBLISHED['extractor']}" in said
    assert "images.slots is 4, published 10" in said
    assert "scores.tau is None, published 0.52" in said
    assert "64 tokens hold" in said
    assert "64 tokens hold" not in "\n".join(lines("extraction.reply_tokens=256"))
    assert "0.25 as in the published code, where the paper says 0.2" in said


def test_whatever_the_authors_named_is_filled_in(here: Path) -> None:
    recipe = paper()
    assert recipe.ground is not None
    assert (recipe.ground.proposers, recipe.extractor) == (GROUND["proposers"], PUBLISHED["extractor"])
    assert (recipe.seed, recipe.images.seeds, recipe.scores.tau) == (42, "counted", 0.52)
    assert "InternVL3-14B" in recipe.extractor
    assert [rater.partition("?")[0] for rater in recipe.raters] == [
        "openai:OpenGVLab/InternVL3-14B", "openai:Qwen/Qwen2.5-VL-7B-Instruct",
    ]  # fmt: skip


SIMULATED = {
    "reader": "simulated",
    "proposers": ["simulated:a?omits=0.2&invents=0.1", "simulated:b?omits=0.3&invents=0.1&rewords=0.3"],
    "refiner": "simulated:c?lenient=0.1",
    "stereotypes": "simulated",
}


def wired_ground(folder: Path, ground: Ground) -> Run:
    run = Run(folder, ())
    wire_ground(run, ground, Llm(), Wordings())
    return run


def made(folder: Path, ground: Ground) -> dict[str, str]:
    """Run every stage; say the state of each."""
    with LocalEngine(1) as engine:
        steps = wired_ground(folder, ground).steps
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
    run = wired_ground(tmp_path / "run", ground)
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
    steps = {step.stage.name: step.stage for step in wired_ground(tmp_path / "run", ground).steps}
    for name in ("proposals-1", "descriptors"):
        plan = asks()(ToPlan(steps[name], "to do", tmp_path / "run" / name, False, {}))
        assert plan.units == 2 * (2 * 5 + 6) * 5
    with pytest.raises(ValidationError, match="refiner"):
        Ground.model_validate({name: value for name, value in SIMULATED.items() if name != "refiner"})


@pytest.mark.parametrize(("contact", "words"), [("", "ground.contact"), ("me", "mail address")])
def test_pages_of_a_recipe_are_fetched_where_it_says_who_asks(tmp_path: Path, contact: str, words: str) -> None:
    pages = tmp_path / "pages.yaml"
    pages.write_text(NOWRUZ)
    ground = Ground.model_validate({**SIMULATED, "countries": ["IR"], "pages": str(pages), "contact": contact})
    with LocalEngine(1) as engine, pytest.raises(UsageError, match=words):
        run_stage(wired_ground(tmp_path, ground).steps[0].stage, tmp_path / "sources", engine=engine)


Rows = Sequence[Mapping[str, Any]]


def run_with(root: Path, tables: Mapping[Role, Rows], models: Sequence[str] = ("m",), **options: Any) -> RunFolders:
    """Store tables of scores as stages of a run."""

    def write(rows: Rows, work: Work) -> Outcome:
        write_table(work.out, SCORES, pl.DataFrame(rows, schema=SCORES.schema))
        return Outcome({"scores": len(rows)})

    for role, rows in tables.items():
        built(Stage(role.folder(), "kept", 1, partial(write, rows), {}, options), root / role.folder())
    return RunFolders(root, tuple(models), tuple(role.folder() for role in tables))


@pytest.mark.parametrize("stated", [row[1].text for row in ablations().grids[0].rows])
def test_an_ablation_can_be_set_as_it_is_written(stated: str) -> None:
    words = shlex.split(stated.replace("SPEC", "simulated:first"))
    assert words[::2] == ["--set"] * (len(words) // 2)
    load_any_recipe(find_recipe("cultivate"), words[1::2])


def test_the_caption_says_how_sure_intervals_are(tmp_path: Path) -> None:
    run = run_with(tmp_path, {folders.AHEAD: [score("align", 0.5)]}, confidence=0.8)
    shown = headline(run, run.needed(folders.AHEAD, SCORES), None, None)
    assert shown.grids[0].caption.endswith("with 80 % intervals")
    assert texts(shown.grids[0])[0] == ["m", "ALIGN", "0.500"]


@pytest.mark.parametrize("models", [("m",), ("m", "other")])
def test_correlations_stand_under_the_groups_that_there_are(tmp_path: Path, models: Sequence[str]) -> None:
    """Of one model there are none over all models."""
    about = {"metric": "align", "with": {"criterion": "faith"}, "method": "spearman"}
    own = [score("human_correlation", value, group, "m" if len(models) == 1 else "all", **about)
           for group, value in (("Asia", 0.2), ("Europe", 0.4), (None, 0.3))]  # fmt: skip
    others = [score("human_correlation", 0.9, None, "other", **about)] if len(models) > 1 else []
    found = followed(run_with(tmp_path, {roles.META: [*own, *others]}, models))
    assert found is not None
    assert found.grids[0].columns == ("metric", "Europe", "Asia", "overall", "Kendall, overall")
    assert texts(found.grids[0])[0] == ["ALIGN", "0.400", "0.200", "0.300", "–"]
    assert found.tables[0].caption.endswith("; a dash: nothing to score")


def test_every_pair_of_groups_has_its_gaps(tmp_path: Path) -> None:
    rows = [score("group_gap", value, pair, metric="align", labels="judged")
            for pair, value in (("Asia - Europe", 0.25), ("Asia - Oceania", 0.5))]  # fmt: skip
    found = gaps(run_with(tmp_path, {folders.CORRECTED_GAPS: rows}))
    assert found is not None
    assert [(grid.caption, texts(grid)[0]) for grid in found.grids] == [
        ("Gaps, Asia - Europe", ["m", "ALIGN", "0.250"]), ("Gaps, Asia - Oceania", ["m", "ALIGN", "0.500"]),
    ]  # fmt: skip


MODELS = ("broad", "showy")


def scores(labels: str, **values: tuple[float, float, float]) -> pl.DataFrame:
    """Make a table with ALIGN of models over all countries: value and limits."""
    rows = [
        {"metric": "align", "labels": labels, "model": model, "country": None, "group": None}
        | {"value": value, "ci_low": low, "ci_high": high, "n": 9}
        for model, (value, low, high) in values.items()
    ]
    return pl.DataFrame(rows, schema_overrides={"country": pl.String, "group": pl.String})


JUDGED = scores("judged", broad=(0.5, 0.49, 0.51), showy=(0.6, 0.59, 0.61))


def test_people_turn_the_order_round() -> None:
    corrected = scores("corrected", broad=(0.6, 0.55, 0.65), showy=(0.4, 0.35, 0.45))
    truth = scores("truth", broad=(0.61, 0.6, 0.62), showy=(0.41, 0.4, 0.42), real=(0.9, 0.8, 1.0))
    assert list(verdict(JUDGED, corrected, truth, MODELS)) == [
        "By the corrected scores, broad comes first in ALIGN (0.600 [0.550, 0.650]), surely ahead of the other.",
        "The truth puts broad first too.",
        "By the judge alone, showy comes first instead (0.600 [0.590, 0.610]), surely ahead of the other.",
    ]


def test_a_model_that_people_did_not_put_right_is_not_ranked_last() -> None:
    first, _ = verdict(JUDGED, scores("corrected", broad=(0.6, 0.5, 0.7)), None, MODELS)
    assert first == (
        "By the corrected scores, broad comes first in ALIGN (0.600 [0.500, 0.700], the only one with such a score)."
    )
    alone, nobody = verdict(JUDGED, None, None, MODELS)
    assert alone.startswith("By the judge alone, showy comes first")
    assert nobody == "Nobody has put the judge right: what it says of the models stands as it is."
    overlapping = scores("corrected", broad=(0.6, 0.5, 0.7), showy=(0.55, 0.45, 0.65))
    assert ", but not surely ahead of the other." in next(iter(verdict(JUDGED, overlapping, None, MODELS)))


TOLD = {"benchmark": "cultivate", "kind": "activity", "language": "en", "template_id": "t"}


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    rows = [
        {"prompt_id": f"{iso} {name}", "text": f"A photo of {name}.", "concept": category, "country": iso, **TOLD}
        for iso, name, category in (("IR", "wrestling", "games"), ("FR", "wedding", "wedding"))
    ]
    (tmp_path / "prompts").mkdir()
    return write_table(tmp_path / "prompts", PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))


def scene_truth(work: Work, prompts: Path, spec: str) -> Path:
    """Draw the scenes of a model into a folder beside the truth's."""
    folder = work.out.parent / "images"
    (folder / "scratch").mkdir(parents=True)
    drawn = Work({}, folder, folder / "scratch", work.engine, work.progress)
    generate(drawn, prompts, ImagePlan(slots=3), Maker("m", spec), seed=1)
    return folder / "images.parquet"


def test_the_truth_says_what_a_judge_without_errors_would(work: Work, prompts: Path) -> None:
    stage = scene_truth_stage(scene_truth(work, prompts, "simulated-scenes?knows=0.5&exaggerates=1"), prompts)
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
    images = scene_truth(work, prompts, "simulated-scenes?exaggerates=1")
    scene_truth_stage(images, prompts, named).run(work)
    said = read_table(work.out / "judgments.parquet", JUDGMENTS).filter(task="stereotype")
    assert said.group_by("prompt_id").len().sort("prompt_id").rows() == [("FR wedding", 3), ("IR wrestling", 6)]
    assert said.filter(item="robots")["value"].to_list() == [0, 0, 0]
    assert said.filter(item="Camel caravan")["value"].sum() > 0
    pl.read_parquet(images).drop("truth_scene").write_parquet(images)
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
    with pytest.raises(UsageError, match="has no SE; expected some of US, ES"):
        write_pages(tmp_path, ["IR", "SE"])
