"""Means of what a judge says, put right by people: against what people would say of all, and the rules they keep."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, VALUES
from culturekit.core.tables import write_table
from culturekit.metrics.corrected.judged_means import marked_items
from culturekit.scores.inputs import ValueTables
from culturekit.scores.judged import JudgedOptions, judged, score_judged
from culturekit.verify.verify_run import verify_run
from tests.scores.value_tables import as_values
from tests.verify.test_command import made, verdicts

PLAIN = JudgedOptions("shown", choice="yes")
COUNTRIES = {"DE": 0.8, "IN": 0.5, "NG": 0.3}
# Share of images that show what was asked for, and of those that do not which the judge finds right all the same
LENIENT = {"DE": 0.0, "IN": 0.2, "NG": 0.45}


@dataclass
class World:
    """Images of three countries, what they show, what a judge says who is lenient with some, and who was asked."""

    values: pl.DataFrame
    truth: dict[str, float]
    sample: pl.DataFrame
    annotations: pl.DataFrame


def world(seed: int = 0, *, drawn: int = 120, raters: int = 2, images: int = 4, target: str = "these") -> World:
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    truth: dict[str, float] = {}
    for country, share in COUNTRIES.items():
        for prompt in range(60):
            for image in range(images):
                item = f"{country}/{prompt:02}/{image}"
                shown = float(rng.random() < share)
                truth[item] = shown
                says = 1.0 if shown or rng.random() < LENIENT[country] else 0.0
                place = {"country": country, "item": item, "prompt_id": f"{country}/{prompt:02}", "value": says}
                about = {"benchmark": "test", "params": json.dumps({"judge": "j", "target": target})}
                rows.append({"metric": "dsg", "model": "m", **about, **place})
    chosen = sorted(rng.choice(sorted(truth), drawn, replace=False).tolist())
    sample = pl.DataFrame(
        [{"image_id": item, "model": "m", "concept": None, "prompt_id": item[:5], "stratum": item[:2],
          "chance": drawn / len(truth)} for item in chosen],
        schema=AUDIT_SAMPLE.schema,
    )  # fmt: skip
    return World(as_values(rows), truth, sample, answers(chosen, truth, raters=raters, rng=rng))


def answers(items: list[str], truth: dict[str, float], *, raters: int, rng: np.random.Generator) -> pl.DataFrame:
    """Let people answer, one in fifty times wrongly."""
    rows = []
    for item in items:
        for rater in range(raters):
            right = truth[item] == 1
            said = right if rng.random() < 0.98 else not right
            about = {
                "item_id": item, "annotator": f"{item[:2]}-p{rater}", "annotator_region": item[:2], "in_region": True,
            }  # fmt: skip
            asked = {"scheme": "form", "criterion": "shown", "flags": []}
            rows.append({**about, **asked, "choice": "yes" if said else "no"})
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def rows_of(found: pl.DataFrame, labels: str = "corrected") -> dict[str | None, dict[str, Any]]:
    rows = [{**row, "about": json.loads(row["params"])} for row in found.to_dicts()]
    return {row["country"]: row for row in rows if row["about"]["labels"] == labels}


def test_a_judge_lenient_with_some_countries_is_put_right() -> None:
    one = world(1, drawn=240)
    found = score_judged(one.values, one.annotations, one.sample, options=PLAIN).scores
    corrected, alone = rows_of(found), rows_of(found, "judged")
    for country in COUNTRIES:
        truth = np.mean([shown for item, shown in one.truth.items() if item.startswith(country)])
        assert corrected[country]["ci_low"] <= truth <= corrected[country]["ci_high"]
        assert (alone[country]["ci_low"] <= truth <= alone[country]["ci_high"]) == (country == "DE")
    assert alone["NG"]["value"] > corrected["NG"]["ci_high"]


def test_rows_stand_beside_what_the_judge_says_alone() -> None:
    one = world()
    found = score_judged(one.values, one.annotations, one.sample, options=PLAIN)
    corrected, alone = rows_of(found.scores), rows_of(found.scores, "judged")
    assert set(corrected) == set(alone) == {None, "DE", "IN", "NG"}
    assert alone[None]["value"] == pytest.approx(one.values["value"].mean())
    row = corrected[None]
    assert (row["metric"], row["model"], row["n"], row["unit"]) == ("dsg", "m", 720, "share")
    assert row["about"]["people"] == 120
    assert row["about"]["pool"] == "in-region"
    assert 0 < row["about"]["trust"] <= 1
    assert "marked" not in row["about"]
    assert "people" not in alone[None]["about"]
    assert found.left_out == {}


def test_values_of_one_country_make_a_score_over_all_countries_too() -> None:
    one = world(drawn=240)
    own = one.values.filter(country="IN")
    found = score_judged(own, one.annotations, None, options=PLAIN).scores
    corrected = rows_of(found)
    assert set(corrected) == set(rows_of(found, "judged")) == {None, "IN"}
    assert corrected[None]["value"] == corrected["IN"]["value"]


def test_one_rater_and_an_unknown_design_are_marked() -> None:
    one = world(raters=1)
    unknown = replace(PLAIN, design="unknown")
    found = score_judged(one.values, one.annotations, options=unknown).scores
    assert rows_of(found)[None]["about"]["marked"] == ["one rater", "design unknown"]
    once = one.annotations.head(1).with_columns(annotator=pl.lit("second"))
    twice = score_judged(one.values, pl.concat([one.annotations, once]), options=PLAIN).scores
    assert rows_of(twice)[None]["about"]["marked"] == ["one rater"]  # one item with two raters was enough
    assert "marked" not in rows_of(found, "judged")[None]["about"]


def test_prompts_as_a_sample_scatter_more_than_images() -> None:
    one, population = world(seed=4), world(seed=4, target="population")
    these = score_judged(one.values, one.annotations, options=PLAIN).scores
    found = score_judged(population.values, population.annotations, options=PLAIN)
    assert rows_of(found.scores)[None]["about"]["target"] == "population"
    assert rows_of(found.scores)[None]["value"] == pytest.approx(rows_of(these)[None]["value"], abs=0.02)


def test_prompts_or_countries_weigh_alike_where_that_is_asked_for() -> None:
    one = world(drawn=300)
    few = one.values.filter((pl.col("country") != "NG") | pl.col("prompt_id").str.contains("/0"))
    few = few.filter((pl.col("country") != "IN") | pl.col("item").str.ends_with("/0") | (pl.col("prompt_id") < "IN/30"))
    by = {
        alike: rows_of(score_judged(few, one.annotations, options=replace(PLAIN, alike=alike)).scores, "judged")
        for alike in ("items", "prompts", "countries")
    }
    prompts = few.group_by("country", "prompt_id").agg(pl.col("value").mean())
    countries = prompts.group_by("country").agg(pl.col("value").mean())
    assert by["items"][None]["value"] == pytest.approx(few["value"].mean())
    assert by["prompts"][None]["value"] == pytest.approx(prompts["value"].mean())
    assert by["countries"][None]["value"] == pytest.approx(countries["value"].mean())


def test_ratings_are_brought_to_the_scale_of_the_judge() -> None:
    one = world()
    rated = one.annotations.with_columns(value=pl.when(choice="yes").then(5.0).otherwise(1.0), choice=None)
    scaled = JudgedOptions("shown", lowest=1, highest=5)
    plain = score_judged(one.values, one.annotations, options=PLAIN).scores
    rated = rated.cast(dict(ANNOTATIONS.schema))  # type: ignore[arg-type]
    found = score_judged(one.values, rated, options=scaled).scores
    assert found["value"].to_list() == plain["value"].to_list()
    with pytest.raises(UsageError, match="people's ratings are not on the scale of the metric"):
        score_judged(one.values, rated, options=JudgedOptions("shown"))


def together(one: World) -> pl.DataFrame:
    return one.values.with_columns(country=pl.lit(None, pl.String))


def liked(one: World) -> pl.DataFrame:
    """Answers about images that the judge likes, mostly."""
    says = dict(one.values.select("item", "value").iter_rows())
    chosen = [item for item in one.truth if says[item] == 1][::3] + [item for item in one.truth if says[item] == 0][:10]
    return answers(chosen, one.truth, raters=1, rng=np.random.default_rng(1))


FIRST = pl.col("annotator").str.ends_with("-p0")
BAD_ANSWERS: dict[str, Callable[[World], pl.DataFrame]] = {
    "people marked too few items": lambda one: one.annotations.head(40),
    "no even draw over what the judge says": liked,
    "people say the same of nearly all items": lambda one: one.annotations.with_columns(choice=pl.lit("yes")),
    "the raters disagree too often": lambda one: one.annotations.with_columns(
        choice=pl.when(FIRST).then("choice").otherwise(pl.lit("yes"))
    ),
}


@pytest.mark.parametrize("why", list(BAD_ANSWERS))
def test_answers_that_put_nothing_right_are_refused_with_the_reason(why: str) -> None:
    one = world(seed=2)
    people = BAD_ANSWERS[why](one)
    with pytest.raises(NothingScored, match="put no score right") as refused:
        score_judged(together(one), people, options=PLAIN)
    assert why in str(refused.value)
    assert any(why in reason for reason in refused.value.left_out or {})


def test_shares_that_people_differ_in_a_little_are_no_disagreement() -> None:
    """A share of things that were ticked has no steps: near is enough, and far is refused."""
    one, rng = world(), np.random.default_rng(5)
    ticked = [0.2 + 0.6 * one.truth[item] + 0.1 * rng.random() for item in one.annotations["item_id"]]
    near = one.annotations.with_columns(value=pl.Series(ticked), choice=pl.lit(None, pl.String))
    found = score_judged(one.values, near, one.sample, options=JudgedOptions("shown")).scores
    assert rows_of(found)[None]["about"]["people"] == 120
    far = near.with_columns(value=pl.Series(rng.random(near.height)))
    with pytest.raises(UsageError, match="the raters disagree too often"):
        score_judged(together(one), far, one.sample, options=JudgedOptions("shown"))


def test_items_that_are_alike_are_no_disagreement() -> None:
    """People who say .5 to .6 of every item, a little apart, agree: less than a quarter of a share."""
    items = pl.DataFrame({"image_id": [f"i{n}" for n in range(60)], "prompt_id": "p", "country": "FR", "value": 0.5})
    said = [(f"i{n}", f"a{who}", 0.5 + 0.005 * ((n * 5 + who * 11) % 21)) for n in range(60) for who in range(2)]
    answers = pl.DataFrame(said, schema=["image_id", "annotator", "value"], orient="row")
    assert marked_items(items, answers, sample=None, span=1.0)["people"].null_count() == 0
    with pytest.raises(UsageError, match="the raters disagree too often"):
        marked_items(items, answers, sample=None)


def test_ratings_one_grade_apart_agree_though_only_two_grades_are_met() -> None:
    """Of 1 to 5; of 1 to 2 they are yes and no."""
    one, rng = world(), np.random.default_rng(5)
    shown = one.annotations["item_id"].replace_strict(one.truth, return_dtype=pl.Float64)
    second = pl.Series(rng.integers(0, 2, one.annotations.height), dtype=pl.Float64)
    rated = one.annotations.with_columns(
        value=1 + pl.when(FIRST).then(shown).otherwise(second), choice=pl.lit(None, pl.String)
    )
    found = score_judged(one.values, rated, one.sample, options=JudgedOptions("shown", lowest=1, highest=5)).scores
    assert rows_of(found)[None]["about"]["people"] == 120
    with pytest.raises(UsageError, match="the raters disagree too often"):
        score_judged(together(one), rated, one.sample, options=JudgedOptions("shown", lowest=1, highest=2))


def test_countries_that_people_did_not_look_at_are_left_out_with_the_reason() -> None:
    one = world(seed=2, drawn=240)
    people = one.annotations.filter(~pl.col("item_id").str.starts_with("IN"))
    everywhere = pl.concat([one.values, together(one)])
    found = score_judged(everywhere, people, options=PLAIN)
    assert set(rows_of(found.scores)) == {"DE", "NG"}
    few, uneven = sorted(found.left_out)
    assert few.endswith(
        "people marked too few items (m, IN, pool in-region: expected at least 30, better 150, found 0)"
    )
    assert "no even draw over" in uneven


def test_answers_outside_the_drawn_sample_and_drawn_items_without_answers_are_refused() -> None:
    one = world()
    more = world(seed=9, drawn=300).sample.vstack(one.sample).unique("image_id")
    for sample, why in (
        (one.sample.head(60), "people answered about images that were not drawn"),
        (more.with_columns(chance=pl.lit(0.5)), "too few of the drawn images"),
        (one.sample.with_columns(image_id=pl.col("image_id") + "x"), "no drawn item is among the values"),
    ):
        with pytest.raises(UsageError, match=why):
            score_judged(together(one), one.annotations, sample, options=PLAIN)
    with pytest.raises(UsageError, match="the design is known"):
        score_judged(together(one), one.annotations, one.sample, options=replace(PLAIN, design="unknown"))


def test_prompts_drawn_with_unequal_chances_are_weighed_by_them() -> None:
    rng = np.random.default_rng(3)
    one = world(images=6)
    wanted = {"DE": 15, "IN": 30, "NG": 60}
    prompts = [(country, f"{country}/{prompt:02}") for country, count in wanted.items()
               for prompt in sorted(rng.choice(60, count, replace=False))]  # fmt: skip
    rows = [
        {
            "image_id": f"{prompt}/0", "model": "m", "prompt_id": prompt, "stratum": country,
            "chance": wanted[country] / 60,
        }
        for country, prompt in prompts
    ]  # fmt: skip
    sample = pl.DataFrame(rows, schema=AUDIT_SAMPLE.schema)
    said = answers(sample["image_id"].to_list(), one.truth, raters=1, rng=rng)
    found = rows_of(score_judged(one.values, said, sample, options=PLAIN).scores)
    truth = np.mean(list(one.truth.values()))
    assert found[None]["ci_low"] <= truth <= found[None]["ci_high"]
    alike = score_judged(one.values, said, options=replace(PLAIN, design="unknown")).scores
    assert rows_of(alike)[None]["value"] < found[None]["value"] - 0.02


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"criterion": "taste"}, "answers to the question 'taste' are to be of one form"),
        ({"choice": None}, "no answer to 'shown' counts as a number"),
        ({"choice": "Yes"}, "no answer to 'shown' counts as a number, or 1"),
        ({"metrics": ("align",)}, "there are no values of a metric"),
    ],
)
def test_options_that_nothing_answers(options: dict[str, Any], why: str) -> None:
    one = world()
    with pytest.raises(UsageError, match=why):
        score_judged(one.values, one.annotations, options=replace(PLAIN, **options))


@pytest.mark.parametrize("ends", [{"lowest": 1}, {"lowest": 5, "highest": 1}, {"lowest": 1, "highest": 5}])
def test_a_scale_has_two_ends_and_is_not_of_words(ends: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be"):
        JudgedOptions("shown", choice="yes", **ends)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "alike", "sampled"), [("population", "prompts", False), ("these", "countries", True)]
)
def test_scores_made_by_hand_are_made_again_from_their_manifest(
    tmp_path: Path, target: str, alike: Any, sampled: bool
) -> None:
    one = world(seed=6, drawn=240, target=target)
    uneven = one.values.filter(
        (pl.col("country") != "IN") | pl.col("item").str.ends_with("/0") | (pl.col("prompt_id") < "IN/30")
    )
    for name, table, schema in (("values", uneven, VALUES), ("people", one.annotations, ANNOTATIONS)):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name, schema, table)
    (tmp_path / "sample").mkdir()
    write_table(tmp_path / "sample", AUDIT_SAMPLE, one.sample)
    given = (
        ValueTables([tmp_path / "values/values.parquet"]),
        tmp_path / "people/annotations.parquet",
        Files([tmp_path / "sample/audit_sample.parquet"] if sampled else []),
    )
    folder = made(judged.stage(*given, options=replace(PLAIN, alike=alike)), tmp_path / "judged")
    answer = verify_run(folder)
    assert [str(finding) for finding in answer.findings] == []
    assert verdicts(answer) == {"verified"}
    assert pl.read_parquet(folder / "scores.parquet").height == 8
