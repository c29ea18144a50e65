"""The recipe `c3`: what it wires and refuses, offline runs with and without a fine-tune, and its verdict."""

import json
import re
from itertools import combinations
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from culturekit.builders.captions.pairs import Strategy
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import IMAGES, SCORES, VALUES
from culturekit.core.torch_places import mend_torchvision
from culturekit.people.stages import ANSWERS_FILE
from culturekit.recipes.c3 import page
from culturekit.recipes.c3 import roles as folders
from culturekit.recipes.c3.world import simulated_ratings_stage
from culturekit.recipes.planning import pilot_encoders, plan_lines, plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from culturekit.recipes.several_runs import several_runs_stage, site_stage
from culturekit.report.run_folders import RunFolders
from culturekit.verify.verify_run import verify_run
from tests.builders.spaces import rows_of
from tests.conftest import stages_of
from tests.generation.diffusion.tiny_pipelines import tiny
from tests.index.models.tiny_transformers import make_clip, make_sentence
from tests.recipes.built import built, stored
from tests.recipes.shipped_recipes import shared_small
from tests.report.pages import Elements
from tests.report.test_site import schema


def c3(*stated: str) -> AnyRecipe:
    return load_any_recipe(find_recipe("c3"), stated)


@pytest.mark.parametrize(
    ("stated", "there", "gone"),
    [
        (
            "people=null",
            "worth truth pair-truth selected",
            "ratings pearson judged-vqascore to-rate-images to-rate-pairs",
        ),
        ("people.simulated=null", "to-rate-images to-rate-pairs worth", "rated-images pearson"),
        ("pairs=null", "aligned-steady ratings report", "selected worth aligned-pairs"),
    ],
)  # fmt: skip
def test_without_people_answers_or_pairs_the_rest_goes_on(tmp_path: Path, stated: str, there: str, gone: str) -> None:
    names = {stage.name for stage in stages_of(c3(stated), tmp_path)}
    assert set(there.split()) <= names
    assert names.isdisjoint(gone.split())


def test_single_tokens_are_compared_where_that_is_asked(tmp_path: Path) -> None:
    given = {stage.name: stage.options.get("give") for stage in stages_of(c3("encoders.tokens=true"), tmp_path)}
    assert {name.split("-")[1]: give for name, give in given.items() if name.endswith("-pairs") and give} == {
        "source": "tokens", "target": "tokens", "image": "tokens", "objects": "mean",
    }  # fmt: skip
    assert given["vectors-image-pairs"] is None, "an image is one vector in the paper, too"


def test_a_plan_says_how_long_many_pairs_take_and_reads_none_of_them(tmp_path: Path) -> None:
    """A table of 143 million pairs was read whole before it was planned, and took all memory."""
    row = {"image_id": "i", "path": "i.png", "model": "web", "rewriter": "off", "provider_params": "{}",
           "sha256": "0", "width": 1, "height": 1, "status": "ok"}  # fmt: skip
    images, captions, many = tmp_path / "images.parquet", tmp_path / "captions.csv", 1_100_000
    rows_of(IMAGES, row).sample(many, with_replacement=True).write_parquet(images)
    captions.write_text("id,text\ni,x\n")
    stated = ("pairs.simulated=null", f"pairs.images={images}", f"pairs.captions={captions}", "pairs.keep=300000",
              "pairs.listed=kept", "people.simulated=null")  # fmt: skip
    planned = {one.name: one for one in plan_recipe(c3(*stated), tmp_path / "run")}
    vectors = (f"vectors-{side}-pairs" for side in ("source", "target", "objects", "image", "image-target"))
    taking = [planned[name] for name in ("translated", "seen-pairs", *vectors, "aligned-pairs", "selected")]
    assert [one.units for one in taking] == [many] * len(taking)
    assert all(one.seconds is not None and 1 < one.seconds < 12_000 for one in taking)


def test_paid_models_have_a_price_before_anything_ran(tmp_path: Path) -> None:
    """Of captions and of images that there are not yet, by what is usually asked about one."""
    paid = "openai:gpt-4o-mini?rpm=600"
    named = [f"{key}={paid}" for key in ("captions.proposer", "judge", "objects.lister", "pairs.translator")]
    planned = {one.name: one for one in plan_recipe(c3(*named, "captions.count=9889"), tmp_path)}
    asked = {name: one for name, one in planned.items() if one.requests}
    of_images = {f"{what}-{model}" for what in ("vqascore", "seen") for model in ("steady", "showy", "plain")}
    assert set(asked) == {"captions", "named-expanded", "translated", "seen-pairs", *of_images}
    assert all(one.dollars for one in asked.values())
    assert asked["named-expanded"].requests == 9_889
    assert asked["named-expanded"].seconds == 988.9, "600 a minute are allowed"
    lines = "\n".join(plan_lines(list(planned.values())))
    assert "From the requests a minute (rpm) stated: captions, named-expanded" in lines


def test_a_pilot_times_encoders_with_weights_of_which_a_plan_knows_no_minutes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    mend_torchvision()
    pytest.importorskip("sentence_transformers")
    make_sentence(tmp_path / "labse")
    make_clip(tmp_path / "clip")
    text, image = (
        f"sentence:{tmp_path / 'labse/whole'}?device=cpu",
        f"transformers:{tmp_path / 'clip'}?device=cpu",
    )
    recipe, run = c3(f"encoders={{text: '{text}', image: '{image}'}}"), tmp_path / "run"
    vectors = {one.name: one for one in plan_recipe(recipe, run) if one.name.startswith("vectors-")}
    assert {one.seconds for one in vectors.values()} == {None}
    paces = pilot_encoders(recipe, run)
    assert set(paces) == {(text, "texts"), (image, "texts"), (image, "images")}
    piloted = {one.name: one for one in plan_recipe(recipe, run, paces=paces)}
    assert not run.exists(), "a pilot of encoders writes nothing"
    assert piloted["vectors-image-pairs"].seconds == 432 * paces[image, "images"]
    assert piloted["vectors-source-pairs"].seconds == 432 * paces[text, "texts"]


def worth(**values: float) -> pl.DataFrame:
    """Scores of strategies, each .1 wide, in both labels."""
    rows = [
        {"metric": "rating_mean", "model": model, "value": value, "ci_low": value - 0.05, "ci_high": value + 0.05,
         "n": 9, "params": f'{{"criterion":"relevance","labels":"{labels}"}}'}
        for model, value in values.items()
        for labels in ("people", "truth")
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={name: kind for name, kind in SCORES.schema.items() if name in rows[0]})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"c3": 3.5, "clip": 3.0, "random": 2.0}, "surely better than all others"),
        (
            {"c3": 3.5, "clip": 3.45, "random": 2.0},
            "surely better than random; whether better than CLIP (A_IT) is open",
        ),
        ({"c3": 3.0, "clip": 3.0}, "but not surely better than the other"),
    ],
)
def test_strategies_are_best_where_no_interval_reaches_theirs(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, float], said: str
) -> None:
    table = worth(**values).with_columns(country=pl.lit(None, pl.String), group=pl.lit(None, pl.String))
    named = table.with_columns(
        pl.col("params").str.json_path_match(f"$.{name}").alias(name) for name in ("criterion", "labels")
    )
    monkeypatch.setattr(RunFolders, "scored", lambda run, role, *names: named if role == folders.WORTH else None)
    *_, stands, best, true = page.verdict(RunFolders(Path(), ("a",), ()))
    assert stands.startswith("Nobody has put the judge right")
    assert best.startswith("By people's ratings, C³ keeps the pairs that fit best (3.")
    assert best.endswith(f", {said}.")
    assert true == "The truth puts C³ first too."


def test_answers_that_put_nothing_right_are_said_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    none = pl.DataFrame(schema={**SCORES.schema, "labels": pl.String})
    monkeypatch.setattr(RunFolders, "scored", lambda run, role, *names: none if role == folders.JUDGED else None)
    (stands,) = page.verdict(RunFolders(Path(), ("a",), ()))
    assert stands.startswith("People's answers do not put the judge right yet (the notes say why):")


@pytest.mark.parametrize("values", [[0.5], [0.3, 0.3 + 1e-16, 0.3], [0.0, 0.25, 1.0]])
def test_scores_in_steps_are_all_counted_also_where_they_are_alike(values: list[float]) -> None:
    counts, edges = page.in_steps(pl.Series(values))
    assert counts.sum() == len(values)
    assert len(counts) == len(edges) - 1
    assert edges[0] == min(values)


@pytest.fixture(scope="module")
def finished(shared_folder: Path) -> Path:
    return shared_small("c3", shared_folder)


@pytest.mark.slow
def test_images_of_other_captions_stand_beside_those_of_the_culture(finished: Path) -> None:
    """Figures 3 and 4 of the paper: how people rate images of COCO's captions, and some of these."""
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    above: dict[str, float] = {}
    for what in ("images", "coco"):
        about = pl.read_parquet(finished / f"rated-{what}/rated_items.parquet").select("item_id", "model")
        rated = pl.read_parquet(finished / f"rated-{what}/annotations.parquet").join(about, on="item_id")
        ratings = rated.filter(model="plain")["value"].drop_nulls()
        above[what] = ratings.filter(ratings >= 3).len() / ratings.len()
        assert f"{above[what]:.1%}" in page
    assert above["coco"] > above["images"], "fewer things are easier to draw"
    assert {"plain, coco", "plain, this benchmark"} <= set(re.findall(r"<bdi>([^<]+)</bdi>", page))


@pytest.mark.slow
def test_it_is_a_site_whose_records_hold_nothing_that_only_the_simulation_knows(finished: Path, tmp_path: Path) -> None:
    with LocalEngine(1) as engine:
        run_stage(site_stage([finished]), tmp_path / "site", engine=engine)
    pages = {path: Elements(path.read_text(encoding="utf-8")) for path in (tmp_path / "site").rglob("*.html")}
    places = {(path.parent / place).resolve() for path, page in pages.items() for place in page.values("href", "src")
              if not place.startswith(("#", "data:"))}  # fmt: skip
    assert all(place.is_file() for place in places)
    assert {path for path in pages if path.name != "index.html"} <= places
    assert len(pages) == 1 + 1 + 3
    showy = next((tmp_path / "site/models").glob("*showy*")).read_text(encoding="utf-8")
    checked = jsonschema.Draft7Validator(schema("instance_level_eval"))
    for record in map(json.loads, map(Path.read_bytes, (tmp_path / "site/every-eval-ever").rglob("*.json"))):
        jsonschema.validate(record, schema("eval"))
        path = tmp_path / "site/every-eval-ever" / record["detailed_evaluation_results"]["file_path"]
        values: dict[str, list[float]] = {}
        for sample in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            checked.validate(sample)
            assert sample["output"]["raw"] == [sample["sample_id"]]
            values.setdefault(sample["evaluation_result_id"], []).append(sample["evaluation"]["score"])
        scores = {one["evaluation_result_id"]: one["score_details"]["score"] for one in record["evaluation_results"]}
        kinds = {name.partition("-")[0].partition("/")[0] for name in values}
        assert kinds == {"aligned", "faithfulness", "difficulty"}
        assert {name: sum(found) / len(found) for name, found in values.items()} == pytest.approx(
            {name: scores[name] for name in values}
        )
        for one in record["evaluation_results"]:
            told = one["score_details"]["details"]
            row = pl.read_parquet(finished / told["folder"] / "scores.parquet").row(int(told["row"]), named=True)
            assert (row["model"], row["value"]) == (record["model_info"]["name"], one["score_details"]["score"])
            assert "truth" not in told["folder"]
            if row["model"] == "showy":
                assert f"row {told['row']} of {told['folder']}/scores.parquet" in showy


@pytest.mark.slow
def test_runs_without_a_common_scale_are_on_no_page_together(finished: Path, small_run: Path) -> None:
    with pytest.raises(UsageError, match="nothing in common"):
        site_stage([finished, small_run])
    with pytest.raises(UsageError, match="share no scale"):
        several_runs_stage([finished, small_run])
    with pytest.raises(UsageError, match="one headline score"):
        site_stage([finished], "somebody/c3")


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
