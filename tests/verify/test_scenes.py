"""Scenes of activities: an untouched run is verified, and whatever is changed in one is found."""

from pathlib import Path

import polars as pl
import pytest
from scipy.stats import ttest_ind

from culturekit.builders.judging.scene_judge import ExtractReads, RateReads, SceneOptions, StereotypeReads
from culturekit.generation.runner import ImagePlan
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.scene_judge_stages import extract_stage, likert_stage, stereotype_scores_stage
from culturekit.pipeline.steps.scene_score_stages import breakdown_stage
from culturekit.pipeline.steps.scene_stages import scene_truth_stage
from culturekit.records.schemas import DESCRIPTOR_MATCHES, PROMPTS, STEREOTYPES, VALUES
from culturekit.verify.verify_run import verify_run
from tests.pipeline.steps.marked_scenes import PROMPT, blank, made, marked, saved
from tests.pipeline.steps.test_scene_people_stages import ALL, gap_rows
from tests.verify.tampering import Change, broken, check_found, first, without_first

JUDGE = SceneOptions("simulated?rewords=0.3&invents=0.3&omits=0.2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes, what they show, what a judge says of them, what people mark, and gaps; tamper with copies only."""
    root = tmp_path_factory.mktemp("scenes")
    prompts = saved(root / "prompts", PROMPTS, [
        {"prompt_id": f"p-{iso}", "text": "A photo of wrestling.", "country": iso, **PROMPT} for iso in ("IR", "FR")
    ])  # fmt: skip
    stereotypes = saved(root / "stereotypes", STEREOTYPES, [
        {"country": iso, "token": token} for iso, token in (("IR", "camel caravan"), ("IR", "robots"), ("FR", "beret"))
    ])  # fmt: skip
    backend = "simulated-scenes?knows=0.7&invents=0.2&exaggerates=0.8&size=128"
    images = made(generate_stage(prompts, ImagePlan(slots=2), backend=backend, model="m", seed=1), root / "images")
    table = images / "images.parquet"
    made(scene_truth_stage(table, prompts, stereotypes), root / "truth")
    made(extract_stage(ExtractReads(table), JUDGE), root / "extracted")
    made(likert_stage(RateReads(table, prompts), JUDGE), root / "likert")
    made(stereotype_scores_stage(StereotypeReads(table, prompts, stereotypes), JUDGE), root / "stereotyped")
    named = ["setting: a bazaar; attire: fez", "attire: fez", "fez"]
    marked(root / "people", {**ALL, "other": named}, flags=["recruitment:prolific"], change=blank("i-FR"))
    gap_rows(root / "groups")
    matches = saved(root / "matches", DESCRIPTOR_MATCHES, [
        {"model": "m", "prompt_id": f"p-{iso}", "dimension": kind, "side": "reference",
         "token": token, "images": 2, "covered": covered}
        for iso, covered in (("IR", 1.0), ("FR", 0.5))
        for kind, token in (("objects", "samovar"), ("objects", "drum"), ("attire", "fez"))
    ])  # fmt: skip
    values = saved(root / "values", VALUES, [
        {"metric": "faith", "model": "m", "benchmark": "cultivate", "params": "{}", "prompt_id": f"p-{iso}",
         "item": f"i-{iso}-{value}", "country": iso, "value": value}
        for iso, value in (("IR", 0.25), ("IR", 0.35), ("FR", 0.75), ("FR", 0.85))
    ])  # fmt: skip
    made(breakdown_stage(values, matches, prompts, ["m"]), root / "breakdown")
    return root


def test_what_was_not_touched_is_verified(finished: Path) -> None:
    places = ("extracted", "likert", "stereotyped", "truth", "people/marks", "groups/gaps", "breakdown")
    answers = {place: verify_run(finished / place) for place in places}
    assert [broken(answer) for answer in answers.values()] == [[]] * 7
    read = [answers[place].checked["replies about scenes read again"] for place in places[:3]]
    assert read == [4 * 5, 4 * 3, 2 * 2 + 2 * 1]
    assert answers["people/marks"].checked["marks counted again"] == 2 * 3 * (3 + 3)
    assert answers["truth"].checked["scenes held against what was drawn"] == 4
    verdicts = [verdict.verdict for place in places[4:] for verdict in answers[place].verdicts]
    assert verdicts == ["verified"] * (6 + 2 * 4 + 2 * 3)


def test_a_category_says_how_far_images_of_its_prompts_scatter(finished: Path) -> None:
    table = pl.read_parquet(finished / "breakdown/scores.parquet").filter(
        pl.col("country").is_null(), metric="faith", model="m"
    )
    (row,) = table.rows(named=True)
    below, above = ttest_ind([0.25, 0.35], [-0.75, -0.85], equal_var=False).confidence_interval()
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx((0.55, below / 2, above / 2))


def of_task(task: str, column: str, value: object) -> Change:
    return lambda table: table.with_columns(
        pl.when(pl.col("task") == task).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )


def of_question(criterion: str, value: float) -> Change:
    return lambda table: table.with_columns(
        pl.when(pl.col("criterion") == criterion).then(pl.lit(value)).otherwise(pl.col("value")).alias("value")
    )


MARKED = "is not what people marked"
SAID = "is not what its reply says"
DRAWN = "is not what was drawn"
RELEVANT = "is not what the tables give"
TAMPERED: dict[str, tuple[str, Change, str]] = {
    "a phrase": ("extracted/judgments", first("item", "bagpipes"), SAID),
    "a dimension": ("extracted/judgments", first("dimension", "spatial"), SAID),
    "a raw reply": ("extracted/judgments", first("raw", '{"descriptors":"bagpipes"}'), SAID),
    "a number beside a phrase": ("extracted/judgments", first("value", 1.0), SAID),
    "a rating": ("likert/judgments", first("value", 6.0), SAID),
    "the words of a rating": ("likert/judgments", first("choice", "score is 0"), SAID),
    "the reply of a rating": ("likert/judgments", first("raw", '{"answer":"score is 7"}'), SAID),
    "the question of a rating": ("likert/judgments", first("item", "realism"), "other questions were asked"),
    "a probability": ("stereotyped/judgments", first("value", 0.123), SAID),
    "the listing of a probability": ("stereotyped/judgments", first("raw", '{"tokens":[]}'), SAID),
    "what a scene shows": ("truth/judgments", first("item", "bagpipes"), DRAWN),
    "something that a scene shows left out": ("truth/judgments", without_first, DRAWN),
    "how strong a stereotype is": ("truth/judgments", of_task("stereotype", "value", 0.77), DRAWN),
    "what a scene shows, as another kind": ("truth/judgments", first("dimension", "spatial"), DRAWN),
    "an image that is none": ("truth/judgments", first("image_id", "nobody"), "is no image of those"),
    "what matters to people": ("people/marks/scores", first("value", 0.9), RELEVANT),
    "how many people were asked": ("people/marks/scores", first("n", 99), RELEVANT),
    "a country of people's left out": ("people/marks/scores", without_first, "a country is missing"),
    "what an image shows to people": ("people/marks/annotations", of_question("align_marked", 0.9), MARKED),
    "what is wrong to people": ("people/marks/annotations", of_question("hal_marked", 0.9), MARKED),
    "faith made of marks": ("people/marks/annotations", of_question("faith_marked", 0.9), MARKED),
    "a rating taken over": ("people/marks/annotations", of_question("exag", 5.0), MARKED),
    "a mark left out": ("people/marks/annotations", lambda table: table.head(-1), MARKED),
    "a score of a dimension": ("breakdown/scores", first("value", 0.3), RELEVANT),
    "the prompts of a category": ("breakdown/scores", first("n", 99), RELEVANT),
    "the limits of a category": (
        "breakdown/scores", lambda t: t.with_columns(ci_low=pl.col("ci_low") + 0.01), RELEVANT,
    ),
    "the dimension of a score": (
        "breakdown/scores", lambda t: t.with_columns(pl.col("params").str.replace("attire", "spatial")), RELEVANT,
    ),
    "a category left out": ("breakdown/scores", without_first, "a score is missing"),
    "a gap": ("groups/gaps/scores", first("value", 0.05), RELEVANT),
    "the limits of a gap": ("groups/gaps/scores", lambda t: t.with_columns(ci_high=pl.col("ci_high") + 0.01), RELEVANT),
    "the images of a gap": ("groups/gaps/scores", first("n", 99), RELEVANT),
    "a gap left out": ("groups/gaps/scores", without_first, "a gap is missing"),
    "a gap of another model": ("groups/gaps/scores", first("model", "other"), "is no gap of the scores"),
    "a gap by other labels": (
        "groups/gaps/scores", lambda t: t.with_columns(pl.col("params").str.replace("truth", "judged")),
        "is no gap of the",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(TAMPERED))
def test_what_was_changed_is_found(finished: Path, what: str) -> None:
    """Also by somebody who makes the hashes fit again."""
    check_found(finished, *TAMPERED[what])
