"""Scores of `inclusion`, by hand and from the authors' annotations."""

import ast
import csv
import json
import os
from collections import Counter, defaultdict
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.metrics import (
    appeal_and_similarity,
    appeal_in_manifold,
    closer_rates,
    in_region_rates,
    survey_themes,
    task2_agreement,
    triplet_agreement,
)
from culturekit.metrics.inclusion.triplet_distances import binned_choices
from culturekit.recipes.inclusion.scores import RealFeatures, TaskOptions, score_survey, score_task1, score_task2, task2
from culturekit.verify.verify_run import verify_run
from tests.conftest import stage_here
from tests.metrics.inclusion.task_worlds import VOTES, codes, drawn_task1, drawn_task2
from tests.recipes.linguistic.test_scores import conforming


def unpacked(scores: pl.DataFrame, metric: str) -> list[dict[str, Any]]:
    return [{**row, **json.loads(row["params"])} for row in scores.filter(metric=metric).iter_rows(named=True)]


def test_rates_of_task2_stand_by_source_region_and_object_and_agreement_with_kappa() -> None:
    table = pl.concat([drawn_task2(), drawn_task2(seed=1, source="ldm")])
    answer = score_task2(table, options=TaskOptions(least=0))
    scores = conforming(answer)
    rows = unpacked(scores, "in_region_rate")
    expected = in_region_rates(table, by=("source", "region"))
    found = {
        (r["model"], r["group"], r["side"], r["target"]): (r["value"], r["n"]) for r in rows if r["by"] == ["region"]
    }
    assert found == {tuple(row[:4]): row[4:] for row in expected.iter_rows()}
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in rows)
    by_object = [row for row in rows if row["by"] == ["object"]]
    assert {(row["concept"], row["group"]) for row in by_object} == {("bag", None)}
    values = answer.values.filter(metric="in_region_rate", group="Africa", model="real")
    means = values.group_by("params").agg(pl.col("value").mean())
    known = dict(
        scores.filter(metric="in_region_rate", group="Africa", model="real").select("params", "value").iter_rows()
    )
    assert dict(means.iter_rows()) == pytest.approx(known)
    mixed = table.sample(fraction=1, shuffle=True, seed=0)
    assert score_task2(mixed, options=TaskOptions(least=0)).scores.equals(scores)
    agreement = task2_agreement(table, by=("source", "region"))
    for metric, column in (
        ("location_agreement", "pairwise"), ("location_unanimity", "unanimous"), ("location_kappa", "kappa"),
    ):  # fmt: skip
        stated = {(r["model"], r["group"], r["criterion"]): r["value"]
                  for r in unpacked(scores, metric) if r["pairs"] == "all"}  # fmt: skip
        shares = agreement.drop_nulls(column).select("source", "region", "question", column).iter_rows()
        assert stated == pytest.approx({tuple(cell): share for *cell, share in shares})
    of_pools = [row for row in unpacked(scores, "object_seen") if row["by"] == ["region"]]
    assert of_pools
    for row in of_pools:
        pool = table.filter(source=row["model"], region=row["group"], annotator_loc=row["pool"])
        assert row["value"] == pytest.approx(pool["shown"].mean())


def test_unreliable_annotators_are_left_out_and_counted() -> None:
    table = drawn_task2()
    blind = table.with_columns(
        shown=pl.when(pl.col("annotator_id") == "af0").then(pl.lit(value=False)).otherwise(pl.lit(value=True))
    )
    answer = score_task2(blind)
    gone = blind.filter(annotator_id="af0").height
    assert answer.left_out["annotations of unreliable annotators"] == gone
    assert answer.scores.filter(metric="in_region_rate").height > 0
    nobody = table.with_columns(shown=pl.lit(value=False))
    with pytest.raises(UsageError, match="no annotation is left to score"):
        score_task2(nobody)


def features(table: pl.DataFrame, *, seed: int, dim: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    ids = sorted({*table["reference_id"], *table["first_id"], *table["second_id"]})
    return {image: rng.normal(size=dim) for image in ids}


def test_task1_stands_by_source_region_and_location() -> None:
    table = drawn_task1()
    extractors = {"clip": features(table, seed=1), "inception": features(table, seed=2)}
    real = np.random.default_rng(3).normal(size=(40, 3))
    answer = score_task1(table, extractors, RealFeatures("clip", real, 2), bins=5, options=TaskOptions(least=0))
    scores = conforming(answer)
    inside = partial(appeal_in_manifold, table, real, extractors["clip"], k=2)
    for metric, column, cell, expected in (
        ("appeal_with_similarity", "region", "group", appeal_and_similarity(table)),
        ("appeal_in_manifold", "region", "group", inside()),
        ("appeal_in_manifold", "object", "concept", inside(by=("source", "object", "annotator_loc"))),
    ):
        found = {(r["model"], r[cell], r["pool"]): (r["value"], r["n"]) for r in unpacked(scores, metric) if r[cell]}
        known = {(r["source"], r[column], r["annotator_loc"]): (r["share"], r["n"])
                 for r in expected.iter_rows(named=True)}  # fmt: skip
        assert found == known
    assert unpacked(scores, "appeal_in_manifold")[0]["k"] == 2
    for by in (("annotator_loc",), ("annotator_loc", "region")):
        found_rates = {
            (r["extractor"], r["pool"], r["group"], r["bin"]): (r["value"], r["n"])
            for r in unpacked(scores, "closer_choice_rate") if (r["group"] is None) == ("region" not in by)
        }  # fmt: skip
        assert found_rates == {
            (r["extractor"], r["annotator_loc"], r.get("region"), r["bin"]): (r["rate"], r["n"])
            for r in closer_rates(table, extractors, bins=5, by=by).iter_rows(named=True)
        }  # fmt: skip
    agreement = triplet_agreement(table, by=("source", "region"))
    found_all = {
        (r["model"], r["group"], r["criterion"]): r["value"]
        for r in unpacked(scores, "location_agreement") if r["pairs"] == "all" and "reference_source" not in r
    }  # fmt: skip
    assert found_all == pytest.approx(
        {(r["source"], r["region"], r["criterion"]): r["pairwise"] for r in agreement.iter_rows(named=True)}
    )
    by_reference = triplet_agreement(table, by=("source", "region", "reference_source"))
    assert {
        (r["model"], r["group"], r["reference_source"], r["criterion"]): r["value"]
        for r in unpacked(scores, "location_agreement") if "reference_source" in r
    } == pytest.approx(
        {(r["source"], r["region"], r["reference_source"], r["criterion"]): r["pairwise"]
         for r in by_reference.iter_rows(named=True)}
    )  # fmt: skip
    counted: dict[tuple[object, ...], list[bool]] = {}
    for r in binned_choices(table, extractors, bins=5).drop_nulls(["similar_id", "appealing_id"]).iter_rows(named=True):
        key = r["extractor"], r["annotator_loc"], r["bin"], "closer" if r["closer"] else "further"
        counted.setdefault(key, []).append(r["similar_id"] == r["appealing_id"])
    assert {
        (r["extractor"], r["pool"], r["bin"], r["chosen"]): (r["value"], r["n"])
        for r in unpacked(scores, "appeal_by_distance")
    } == {key: (pytest.approx(sum(same) / len(same)), len(same)) for key, same in counted.items()}
    assert {row["pool"] for row in unpacked(scores, "location_agreement") if row["pairs"] == "across"} == {
        "Africa", "Europe", "SouthEastAsia",
    }  # fmt: skip


NEITHER = "row 1 and .*{0} is neither first_id nor second_id.*found {0} 'first'"


@pytest.mark.parametrize(("task", "column", "change", "message"), [
    *((1, name, pl.lit("first"), NEITHER.format(name)) for name in ("similar_id", "appealing_id")),
    (1, "combo", pl.col("combo").str.to_lowercase(),
     "combo has other words.*expected A or B or C or D or E, found combo 'a'"),
    (2, "source", pl.lit("Real"), "names of source that cannot be told apart.*found 'real' and 'Real'"),
    *((2, name, pl.col(name).list.eval(pl.element().replace({"af": "Africa"})),
       f"{name} must be lists of codes such as af, eu, sea, na; found 'Africa'")
      for name in ("object_regions", "background_regions")),
])  # fmt: skip
def test_words_that_tables_of_tasks_do_not_have_are_refused(
    task: int, column: str, change: pl.Expr, message: str
) -> None:
    options = TaskOptions(least=0)
    with pytest.raises(UsageError, match=message):
        if task == 1:
            score_task1(drawn_task1().with_columns(change.alias(column)), options=options)
        else:
            score_task2(drawn_task2().with_columns(change.alias(column)), options=options)


def test_task1_needs_no_features_and_says_what_the_manifold_needs() -> None:
    table = drawn_task1()
    scores = conforming(score_task1(table, options=TaskOptions(least=0)))
    assert set(scores["metric"]) == {"appeal_with_similarity", "location_agreement", "location_unanimity"}
    with pytest.raises(UsageError, match="the manifold needs the features of generated images"):
        score_task1(table, real=RealFeatures("clip", np.eye(3), 1), options=TaskOptions(least=0))
    with pytest.raises(UsageError, match="no annotation is left"):
        score_task1(table.clear())


def test_the_survey_has_kappas_for_all_codes_and_shares_for_those_kept() -> None:
    table = codes(VOTES)
    answer = score_survey(table)
    scores = conforming(answer)
    themes = survey_themes(table)
    kappas = {row["code"]: row["value"] for row in unpacked(scores, "theme_kappa")}
    assert kappas == pytest.approx(dict(themes.kappas.drop_nulls("kappa").select("code", "kappa").iter_rows()))
    shares = {(row["code"], row["group"]): (row["value"], row["n"]) for row in unpacked(scores, "theme_share")}
    assert shares == {(r["code"], r["location"]): (r["share"], r["n"]) for r in themes.shares.iter_rows(named=True)}
    assert answer.left_out == {
        "codes that coders do not agree on": 2,
        "codes of which coders say the same of every response, so that kappa is not known": 1,
    }
    assert answer.values.height == 6


NAMED = "CULTUREKIT_TASK2_CSV"
SHARED = Path(__file__).parents[4] / "shared/data/inclusion/task2_geode.csv"
PUBLIC = Path(os.environ.get(NAMED, SHARED))
CODES = {"Africa": "af", "Europe": "eu", "SouthEastAsia": "sea"}
needs_the_file = pytest.mark.skipif(not PUBLIC.is_file(), reason=f"needs the authors' task2_geode.csv: {NAMED}")


@pytest.fixture(scope="module")
def raw() -> list[dict[str, Any]]:
    with PUBLIC.open(encoding="utf-8", newline="") as file:
        return [{**row, "said": ast.literal_eval(row["annotation_result"])} for row in csv.DictReader(file)]


def scores_of(folder: Path, *, least: float) -> pl.DataFrame:
    stage_here(task2.stage(PUBLIC, options=TaskOptions(least=least)), folder)
    return pl.read_parquet(folder / "scores.parquet")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("published") / "all"
    table = scores_of(folder, least=0)
    return folder, [{**row, **json.loads(row["params"])} for row in table.iter_rows(named=True)]


@needs_the_file
def test_what_the_file_holds(raw: list[dict[str, Any]]) -> None:
    assert len(raw) == 5378
    per_image = Counter(row["img_path"] for row in raw)
    assert Counter(per_image.values()) == {3: 1778, 2: 22}, "22 of 5,400 fell to the authors' own filter"
    cells = Counter((row["object"], row["region"]) for row in {row["img_path"]: row for row in raw}.values())
    assert set(cells.values()) == {100}
    assert len(cells) == 18
    people = Counter(place for _, place in {(row["annotator_id"], row["annotator_loc"]) for row in raw})
    assert people == {"Africa": 20, "Europe": 17, "SouthEastAsia": 15}


@needs_the_file
def test_every_rate_is_that_of_a_loop_and_the_published_ones_come_out(
    raw: list[dict[str, Any]], published: tuple[Path, list[dict[str, Any]]]
) -> None:
    answers: dict[tuple[object, ...], list[bool]] = defaultdict(list)
    for row in raw:
        side = "in" if row["annotator_loc"] == row["region"] else "out"
        for target, key in (("object", "obj"), ("background", "geo")):
            named = CODES[row["region"]] in row["said"].get(key, ())
            for region in (None, row["region"]):
                for thing in (None, row["object"]):
                    answers[region, thing, side, target].append(named)
    rows = [row for row in published[1] if row["metric"] == "in_region_rate"]
    found = {(row["group"], row["concept"], row["side"], row["target"]): row for row in rows}
    assert len(found) == len(rows) == 4 * (1 + 3 + 6 + 18)
    assert {key: (row["value"], row["n"]) for key, row in found.items()} == {
        key: (pytest.approx(sum(said) / len(said)), len(said)) for key, said in answers.items()
    }
    places = (("in", "object"), ("in", "background"), ("out", "object"), ("out", "background"))
    rates = [round(found[None, None, *place]["value"], 4) for place in places]
    assert rates == [0.7139, 0.6754, 0.5423, 0.4382]
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in rows)
    for region in CODES:
        for target in ("object", "background"):
            inside, outside = (found[region, None, side, target] for side in ("in", "out"))
            assert inside["value"] > outside["value"] + 0.1, "of real images people at home see more (figure 3a)"


@needs_the_file
def test_agreement_is_that_of_a_loop(raw: list[dict[str, Any]], published: tuple[Path, list[dict[str, Any]]]) -> None:
    said: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in raw:
        own, answer = CODES[row["region"]], row["said"]
        for question, yes in (("shown", answer["match"] == "ym"), ("object", own in answer.get("obj", ())),
                              ("background", own in answer.get("geo", ()))):  # fmt: skip
            said[row["region"], question, row["img_path"]].append(yes)
    items: dict[tuple[str, str], list[list[bool]]] = defaultdict(list)
    for (region, question, _), answers in said.items():
        items[region, question].append(answers)
    for (region, question), lists in items.items():
        pairs = [[one == other for one, other in combinations(answers, 2)] for answers in lists]
        yes = sum(map(sum, lists)) / sum(map(len, lists))
        chance = yes**2 + (1 - yes) ** 2
        agreed = sum(sum(own) / len(own) for own in pairs) / len(pairs)
        wanted = {"location_agreement": agreed, "location_unanimity": sum(all(own) for own in pairs) / len(pairs),
                  "location_kappa": (agreed - chance) / (1 - chance)}  # fmt: skip
        own_rows = [row for row in published[1] if (row["group"], row.get("criterion")) == (region, question)]
        found = {row["metric"]: row["value"] for row in own_rows if row["pairs"] == "all"}
        assert found == pytest.approx(wanted)


@needs_the_file
def test_our_filter_takes_more_out_than_the_authors_did(raw: list[dict[str, Any]], tmp_path: Path) -> None:
    """Theirs saw comparison images of Task 1, which are not public; ours sees the photographs of this file."""
    seen: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in raw:
        seen[row["annotator_id"], row["object"], row["region"]].append(row["said"]["match"] == "ym")
    low = {cell for cell, found in seen.items() if sum(found) < 0.9 * len(found)}
    kept = [row for row in raw if (row["annotator_id"], row["object"], row["region"]) not in low]
    assert (len(low), len(seen), len(kept)) == (18, 380, 5069)
    rates = scores_of(tmp_path / "kept", least=0.9).filter(
        pl.col("group").is_null(), pl.col("concept").is_null(), metric="in_region_rate"
    )
    inside = rates.filter(pl.col("params").str.contains('"side":"in"', literal=True))
    assert sorted(inside["value"].round(4)) == [0.6819, 0.718]
    left_out = json.loads((tmp_path / "kept/manifest.json").read_text(encoding="utf-8"))["drops"]
    assert left_out["annotations of unreliable annotators"] == 5378 - 5069
    assert left_out["annotators left out of an object and region"] == 18


@needs_the_file
def test_a_verification_recomputes_all_of_it(published: tuple[Path, list[dict[str, Any]]]) -> None:
    answer = verify_run(published[0])
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}
    assert len(answer.verdicts) == len(published[1])
