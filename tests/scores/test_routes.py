"""Two routes from image to label, and rankings of models by instruments and by corrected diversity."""

import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import DISAGREEMENTS, JUDGMENTS, QUALITY, SCORES, VALUES
from culturekit.core.tables import write_table
from culturekit.index.matching.comparison import check_mapped_alike, check_mapped_through
from culturekit.metrics import CATALOG, cohen_kappa
from culturekit.metrics.statistics.intervals import Interval
from culturekit.scores.compare import difference_of, ranks, score_ranks
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from culturekit.scores.routes import Routes, score_routes
from culturekit.scores.stability import score_stability
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.scores.picture_tables import match_table
from tests.verify.forging import read_json, write_json
from tests.verify.test_command import made, verdicts

OPTIONS = QvsOptions()
CONTINENTS = {"BR": "Americas", "IN": "Asia", "JP": "Asia", "TR": "Asia"}
COUNTRIES = sorted(CONTINENTS)


def match(model: str, concept: str, repeat: int, slot: int, country: str | None, **more: Any) -> dict[str, Any]:
    """One image of a prompt, named by where it stands."""
    return {
        "image_id": f"{model}-{concept}-{repeat}-{slot}", "model": model, "prompt_id": f"p-{concept}",
        "concept": concept, "repeat": repeat, "slot": slot, "artifact_id": country and f"Q-{country}",
        "artifact": country and f"dish of {country}", "country": country, "countries": [country] if country else [],
        "continent": CONTINENTS.get(country or ""), **more,
    }  # fmt: skip


Says = Callable[[str, int, int], str | None]


def table(
    says: Says, *, method: str, models: str = "abcd", concepts: tuple[str, ...] = ("art", "cuisine"), repeats: int = 4
) -> pl.DataFrame:
    rows = [
        match(model, concept, repeat, slot, says(model, repeat, slot), method=method)
        for model in models
        for concept in concepts
        for repeat in range(repeats)
        for slot in range(8)
    ]
    return match_table(rows)


def spread(model: str, repeat: int, slot: int) -> str:
    """Models differ in how many countries they show."""
    return COUNTRIES[(slot + repeat) % ("abcd".index(model) + 1)]


def other(model: str, repeat: int, slot: int) -> str:
    """The same but for two slots of each repeat."""
    return "BR" if slot in {2, 5} else spread(model, repeat, slot)


NEAREST = table(spread, method="nearest")
TAGS = table(other, method="vlm")


def judged(rows: pl.DataFrame, **choices: tuple[str | None, str]) -> pl.DataFrame:
    """What the judge said: yes of all images but those named."""
    found = [
        {
            "image_id": image, "prompt_id": None, "judge": "seer", "task": "image.geo-tag", "item": "artifact",
            "dimension": None, "value": None, "choice": choices.get(image.replace("-", "_"), ("yes", "ok"))[0],
            "raw": "", "outcome": choices.get(image.replace("-", "_"), ("yes", "ok"))[1],
        }
        for image in rows["image_id"]
    ]  # fmt: skip
    return pl.DataFrame(found, schema=JUDGMENTS.schema)


def without_label(rows: pl.DataFrame, *images: str) -> pl.DataFrame:
    gone = pl.col("image_id").is_in(list(images))
    names = ("artifact_id", "artifact", "country", "continent")
    return rows.with_columns(
        *(pl.when(gone).then(None).otherwise(pl.col(name)).alias(name) for name in names),
        abstained=pl.col("abstained") | gone,
    )


def rows_of(answer: Routes, metric: str, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of a metric, with their params taken apart."""
    rows = [row | json.loads(row["params"]) for row in answer.scored.scores.filter(metric=metric).iter_rows(named=True)]
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def one(answer: Routes, metric: str, **wanted: Any) -> dict[str, Any]:
    (row,) = rows_of(answer, metric, **wanted)
    return row


def test_tables_conform_and_metrics_are_in_the_catalogue() -> None:
    answer = score_routes(NEAREST, TAGS, options=OPTIONS)
    assert SCORES.problems(answer.scored.scores) == []
    assert VALUES.problems(answer.scored.values) == []
    assert DISAGREEMENTS.problems(answer.disagreements) == []
    metrics = {"vs", "route_agreement", "route_kappa", "ranking_stability"}
    assert set(answer.scored.scores["metric"]) == metrics <= set(CATALOG)


@pytest.mark.parametrize("model", ["a", "b", "c", "d"])
def test_the_share_and_kappa_are_those_counted_by_hand(model: str) -> None:
    answer = score_routes(NEAREST, TAGS, options=OPTIONS)
    pairs = [(spread(model, repeat, slot), other(model, repeat, slot)) for repeat in range(4) for slot in range(8)] * 2
    row = one(answer, "route_agreement", model=model, concept=None, level="country")
    assert row["value"] == pytest.approx(sum(x == y for x, y in pairs) / len(pairs))
    assert (row["n"], row["common"], row["between"]) == (64, 64, ["nearest", "vlm"])
    expected = cohen_kappa([x for x, _ in pairs], [y for _, y in pairs])
    assert one(answer, "route_kappa", model=model, concept=None, level="country")["value"] == pytest.approx(
        expected, nan_ok=True
    )


def test_each_route_is_scored_as_by_qvs_and_stands_under_its_kind_of_labels() -> None:
    answer = score_routes(NEAREST, TAGS, options=OPTIONS)
    for matches, labels in ((NEAREST, "mapped"), (TAGS, "tagged")):
        alone = score_qvs(matches, None, options=OPTIONS).scores.filter(pl.col("concept").is_not_null())
        side = answer.scored.scores.filter(metric="vs").filter(pl.col("params").str.contains(f'"labels":"{labels}"'))
        assert side.filter(pl.col("concept").is_not_null()).equals(alone)


def test_the_ranking_is_compared_between_the_routes() -> None:
    same = score_routes(NEAREST, TAGS, options=OPTIONS)
    row = one(same, "ranking_stability", concept=None, kernel="country")
    assert (row["value"], row["stable"], row["n"]) == (pytest.approx(1.0), True, 4)
    turned = table(lambda model, repeat, slot: spread("dcba"["abcd".index(model)], repeat, slot), method="vlm")
    row = one(score_routes(NEAREST, turned, options=OPTIONS), "ranking_stability", concept=None, kernel="country")
    assert (row["value"], row["stable"]) == (pytest.approx(-1.0), False)


def test_an_image_without_an_answer_enters_neither_score_and_is_counted() -> None:
    tags = without_label(TAGS, "d-art-0-3")
    judgments = judged(tags, d_art_0_3=(None, "refused"))
    answer = score_routes(NEAREST, tags, judgments=judgments, options=OPTIONS)
    row = one(answer, "route_agreement", model="d", concept="art", level="country")
    assert (row["n"], row["common"], row["no_answer_b"], row["named_a"], row["named_b"]) == (31, 32, 1, 32, 31)
    for labels in ("mapped", "tagged"):
        score = one(answer, "vs", model="d", concept="art", kernel="country", labels=labels)
        assert (score["n"], score["images_left_out"]) == (24, 7)
    assert sum(answer.scored.left_out.values()) == 1


def test_images_that_show_nothing_are_alike_and_do_not_raise_diversity() -> None:
    images = [f"d-art-{repeat}-{slot}" for repeat in range(4) for slot in range(8)]
    tags = without_label(TAGS, *images)
    judgments = judged(tags, **{image.replace("-", "_"): ("no", "ok") for image in images})
    answer = score_routes(NEAREST, tags, judgments=judgments, options=OPTIONS)
    score = one(answer, "vs", model="d", concept="art", kernel="artifact", labels="tagged")
    assert (score["value"], score["n"]) == (pytest.approx(1 / 8), 32)
    row = one(answer, "route_agreement", model="d", concept="art", level="artifact")
    assert (row["n"], row["none_shown_b"], math.isnan(row["value"])) == (0, 32, True)
    assert row["no_interval"].startswith("no image")


def test_a_label_that_nobody_is_sure_of_is_scored_but_not_compared() -> None:
    unsure = TAGS.with_columns(abstained=pl.col("image_id") == "d-art-0-3")
    answer = score_routes(NEAREST, unsure, judgments=judged(TAGS, d_art_0_3=("unsure", "ok")), options=OPTIONS)
    row = one(answer, "route_agreement", model="d", concept="art", level="country")
    assert (row["n"], row["abstained_b"]) == (31, 1)
    assert one(answer, "vs", model="d", concept="art", kernel="country", labels="tagged")["n"] == 32


def test_only_common_images_are_compared_and_the_rest_is_counted() -> None:
    sampled = TAGS.filter(pl.col("repeat") < 2)
    answer = score_routes(NEAREST, sampled, options=OPTIONS)
    row = one(answer, "route_agreement", model="c", concept="art", level="country")
    assert (row["n"], row["images_a"], row["images_b"], row["batches"]) == (16, 32, 16, 2)
    assert {score["n"] for score in rows_of(answer, "vs", concept="art")} == {16}
    assert answer.scored.left_out == {"images that only nearest has": 128}


def test_disagreements_are_counted_with_their_share() -> None:
    answer = score_routes(NEAREST, TAGS, options=OPTIONS)
    country = answer.disagreements.filter(level="country", model="b", concept="art")
    counted: dict[tuple[str, str], int] = {}
    for repeat in range(4):
        for slot in range(8):
            pair = spread("b", repeat, slot), other("b", repeat, slot)
            if pair[0] != pair[1]:
                counted[pair] = counted.get(pair, 0) + 1
    found = {(row["label_a"], row["label_b"]): row for row in country.iter_rows(named=True)}
    assert {pair: row["images"] for pair, row in found.items()} == counted
    assert all(row["share"] == pytest.approx(row["images"] / 32) for row in found.values())


def test_spelling_parts_no_labels() -> None:
    shouted = TAGS.with_columns(pl.col("artifact").str.to_uppercase())
    plain, loud = (score_routes(NEAREST, tags, options=OPTIONS) for tags in (TAGS, shouted))
    for metric in ("route_agreement", "route_kappa"):
        left, right = (each.scored.scores.filter(metric=metric) for each in (plain, loud))
        assert left.equals(right)


def test_quality_makes_qvs_of_both_routes() -> None:
    quality = pl.DataFrame(
        [{"image_id": image, "scorer": "one", "value": 0.5} for image in NEAREST["image_id"]], schema=QUALITY.schema
    )
    answer = score_routes(NEAREST, TAGS, quality=quality, options=OPTIONS)
    for labels in ("mapped", "tagged"):
        about = {"model": "d", "concept": "art", "kernel": "country", "labels": labels}
        assert one(answer, "qvs", **about)["value"] == pytest.approx(0.5 * one(answer, "vs", **about)["value"])
    assert rows_of(answer, "quality") == []


def test_the_order_of_rows_changes_nothing() -> None:
    one_way = score_routes(NEAREST, TAGS, options=OPTIONS)
    other_way = score_routes(NEAREST.sample(fraction=1, shuffle=True, seed=3), TAGS.reverse(), options=OPTIONS)
    assert one_way.scored.scores.equals(other_way.scored.scores)
    assert one_way.disagreements.equals(other_way.disagreements)


def test_images_that_stand_elsewhere_and_routes_with_nothing_in_common_are_refused() -> None:
    with pytest.raises(UsageError, match="stand elsewhere"):
        score_routes(NEAREST, TAGS.with_columns(repeat=(pl.col("repeat") + 1).cast(pl.UInt16)), options=OPTIONS)
    others = pl.DataFrame([("elsewhere", "one", 0.5)], schema=QUALITY.schema, orient="row")
    with pytest.raises(UsageError, match="a scorer of quality knows no image of the matches"):
        score_routes(NEAREST, TAGS, quality=others, options=OPTIONS)
    with pytest.raises(UsageError, match="no image in common"):
        score_routes(NEAREST, TAGS.with_columns(image_id=pl.col("image_id") + "x"), options=OPTIONS)


def scores(
    values: dict[str, float], *, metric: str = "vs", concept: str | None = "cuisine", **params: object
) -> pl.DataFrame:
    """One score of each model."""
    rows = [
        {
            "metric": metric, "model": model, "benchmark": "cube", "concept": concept, "params": json.dumps(params),
            "value": value, "n": 10, "unit": "share",
        }
        for model, value in values.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCORES.schema)


ONE = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0.35}
OTHER = {"a": 0.2, "b": 0.1, "c": 0.5, "d": 0.6, "e": 0.7}


def test_tau_is_that_of_the_common_models() -> None:
    answer = score_stability({"clip": scores(ONE), "siglip": scores({**OTHER, "f": 0.0})}).scores
    assert SCORES.problems(answer) == []
    expected = stats.kendalltau(list(ONE.values()), list(OTHER.values())).statistic
    assert answer["value"].to_list() == [pytest.approx(expected)]
    params = json.loads(answer["params"][0])
    assert (params["between"], params["metric"], params["stable"]) == (["clip", "siglip"], "vs", False)
    assert (answer["n"][0], answer["concept"][0]) == (5, "cuisine")
    assert answer["metric"][0] in CATALOG


def test_the_same_ranking_is_stable_and_the_opposite_is_not() -> None:
    falling = {model: 1 - value for model, value in ONE.items()}
    answer = score_stability({"a": scores(ONE), "b": scores(ONE), "c": scores(falling)}).scores
    found = {tuple(json.loads(row["params"])["between"]): row for row in answer.iter_rows(named=True)}
    assert [found[pair]["value"] for pair in (("a", "b"), ("a", "c"), ("b", "c"))] == pytest.approx([1, -1, -1])
    assert json.loads(found["a", "b"]["params"])["stable"] is True


def test_only_scores_of_the_same_thing_are_compared() -> None:
    one = pl.concat([scores(ONE, q=1, labels="mapped"), scores(ONE, q=2, labels="mapped"), scores(ONE, labels="truth")])
    other = pl.concat([scores(OTHER, q=2, labels="mapped"), scores(OTHER, labels="truth"), scores(OTHER, concept=None)])
    answer = score_stability({"x": one, "y": other}).scores
    assert [json.loads(params)["q"] for params in answer["params"]] == [2]


def test_how_the_images_were_labelled_does_not_part_them() -> None:
    one, other = scores(ONE, method="nearest", images_left_out=0), scores(OTHER, method="vlm", images_left_out=3)
    assert score_stability({"x": one, "y": other}).scores.height == 1


def test_few_models_are_counted_as_left_out() -> None:
    two = {"a": 0.1, "b": 0.2, "c": math.nan}
    answer = score_stability({"x": scores(ONE), "y": scores(two)})
    assert answer.scores.is_empty()
    assert answer.left_out == {"fewer than three models have both scores": 1}


def test_an_instrument_that_finds_all_models_alike_ranks_none() -> None:
    answer = score_stability({"x": scores(ONE), "y": scores(dict.fromkeys(ONE, 0.5))})
    assert answer.scores.is_empty()  # tau was not a number there
    assert answer.left_out == {"all models have one value by an instrument": 1}


def test_params_that_are_no_json_object_are_explained() -> None:
    broken = scores(ONE).with_columns(params=pl.lit("[]"))
    with pytest.raises(UsageError, match=r"the params of a score cannot be read; expected a JSON object.*found '\[\]'"):
        score_stability({"x": broken, "y": scores(ONE)})


def test_one_table_is_refused() -> None:
    with pytest.raises(UsageError, match="compared with another"):
        score_stability({"x": scores(ONE)})


Z = 1.959964


def score_rows(answers: Sequence[tuple[float, float, float]], *, kernel: str = "country") -> pl.DataFrame:
    rows = [
        {"metric": "vs", "model": f"m{number}", "benchmark": "cube", "concept": "art", "value": value, "ci_low": low,
         "ci_high": high, "n": 100, "unit": "share",
         "params": json.dumps({"labels": "corrected", "kernel": kernel, "confidence": 0.95, "audited": 100 + number})}
        for number, (value, low, high) in enumerate(answers)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCORES.schema)


def ranks_of(scores: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    found = score_ranks(scores).scores.filter(metric="model_rank")
    return {row["model"]: (row["value"], row["ci_low"], row["ci_high"]) for row in found.iter_rows(named=True)}


def test_what_stands_beside_a_score_stands_beside_what_it_is_compared_in(tmp_path: Path) -> None:
    scores = score_rows([(0.8, 0.78, 0.82), (0.5, 0.45, 0.55), (0.2, 0.18, 0.22)])
    marked = pl.col("params").str.replace('"audited"', '"marked": ["one rater"], "audited"', literal=True)
    (tmp_path / "in").mkdir()
    one = scores.with_columns(params=pl.when(pl.col("model") == "m1").then(marked).otherwise("params"))
    write_table(tmp_path / "in", SCORES, one)
    done = culturekit("score", "ranks", "--scores", tmp_path / "in/scores.parquet", "--out", tmp_path / "out")
    assert "(marked: one rater)" in done.stdout
    found = pl.read_parquet(tmp_path / "out/scores.parquet")
    said = {
        row["model"]: json.loads(row["params"]).get("marked", [])
        for row in found.filter(metric="model_difference").iter_rows(named=True)
    }
    assert said == {"m0 - m1": ["one rater"], "m0 - m2": [], "m1 - m2": ["one rater"]}
    ranked = found.filter(metric="model_rank")["params"]  # a rank is one among all models
    assert [json.loads(params)["marked"] for params in ranked] == [["one rater"]] * 3


def test_a_difference_takes_the_limits_that_it_depends_on() -> None:
    first, second = Interval(0.6, 0.5, 0.9, 100, "these"), Interval(0.3, 0.3, 0.34, 50, "these")
    found, p = difference_of(first, second, confidence=0.95)
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - np.hypot(0.1, 0.04))
    assert found.high == pytest.approx(0.6)
    assert 0 < p < 0.05
    assert difference_of(second, first, confidence=0.95)[1] == pytest.approx(p)
    assert difference_of(first, first, confidence=0.95)[1] == 1.0


def test_ranks_say_which_models_cannot_be_told_apart() -> None:
    scores = score_rows([(0.8, 0.78, 0.82), (0.5, 0.45, 0.55), (0.48, 0.43, 0.53), (0.2, 0.18, 0.22)])
    assert ranks_of(scores) == {"m0": (1, 1, 1), "m1": (2, 2, 3), "m2": (3, 2, 3), "m3": (4, 4, 4)}


def test_other_kernels_and_mapped_scores_are_not_mixed_in() -> None:
    mapped = score_rows([(0.9, 0.9, 0.9), (0.1, 0.1, 0.1)]).with_columns(
        params=pl.col("params").str.replace("corrected", "mapped")
    )
    both = pl.concat([score_rows([(0.5, 0.4, 0.6), (0.6, 0.5, 0.7)]), mapped])
    assert ranks_of(both) == {"m0": (2, 1, 2), "m1": (1, 1, 2)}
    with pytest.raises(UsageError, match="nothing can be ranked"):
        score_ranks(mapped)
    with pytest.raises(UsageError, match="twice"):
        score_ranks(pl.concat([both, both]))


def test_equal_models_raise_false_alarms_as_seldom_as_stated_and_ranks_hold_the_truth() -> None:
    rng = np.random.default_rng(0)
    errors = np.array([0.01, 0.02, 0.03, 0.04, 0.05])  # unequal instruments
    alarms, held, runs = 0, 0, 300
    truth = np.array([0.4, 0.4, 0.45, 0.5, 0.6])
    for _ in range(runs):
        equal = 0.5 + errors * rng.standard_normal(5)
        limits = [(value, value - Z * error, value + Z * error) for value, error in zip(equal, errors, strict=True)]
        alarms += any((low, high) != (1, 5) for _, low, high in ranks_of(score_rows(limits)).values())
        seen = truth + errors * rng.standard_normal(5)
        limits = [(value, value - Z * error, value + Z * error) for value, error in zip(seen, errors, strict=True)]
        held += all(
            low <= 1 + (truth > truth[int(model[1:])]).sum() <= high
            for model, (_, low, high) in ranks_of(score_rows(limits)).items()
        )
    assert alarms / runs <= 0.05
    assert held / runs >= 0.95


SCORES_SEEN = ((0.8, 0.78, 0.82), (0.5, 0.45, 0.55), (0.48, 0.43, 0.53))


def ranked(tmp_path: Path) -> Path:
    """Rank three models of a finished table of scores."""
    (tmp_path / "scores").mkdir()
    table = write_table(tmp_path / "scores", SCORES, score_rows(SCORES_SEEN))
    return made(ranks.stage(Numbered([table])), tmp_path / "ranks")


def test_every_difference_and_rank_is_recomputed(tmp_path: Path) -> None:
    answer = verify_run(ranked(tmp_path))
    assert [str(finding) for finding in answer.findings] == []
    assert verdicts(answer) == {"verified"}
    found = pl.read_parquet(tmp_path / "ranks/scores.parquet")
    assert dict(found["metric"].value_counts().iter_rows()) == {"model_difference": 3, "model_rank": 3}


Manifest = dict[str, Any]


def changed(folder: Path, to: Path, change: Callable[[Manifest], None]) -> Path:
    copy = Path(shutil.copytree(folder, to))
    manifest = read_json(copy / "manifest.json")
    change(manifest)
    write_json(copy / "manifest.json", manifest)
    return copy


def other_index(manifest: Manifest) -> None:
    manifest["inputs"]["index"]["sha256"] = "0" * 64


def other_rule(manifest: Manifest) -> None:
    manifest["options"]["within"] = "country"


def more_neighbours(manifest: Manifest) -> None:
    manifest["options"]["k"] += 5


@pytest.mark.parametrize(("change", "found"), [(other_index, "index 000000000000"), (other_rule, "within country")])
def test_matches_of_another_index_or_rule_are_not_compared(
    run_copy: Path, tmp_path: Path, change: Callable[[Manifest], None], found: str
) -> None:
    here, there = (run_copy / f"matches-{name}/matches.parquet" for name in ("broad", "narrow"))
    apart = changed(there.parent, tmp_path / "apart", change)
    check_mapped_alike([here, there])
    with pytest.raises(UsageError, match=f"mapped in different ways.*found {found}"):
        check_mapped_alike([here, apart / "matches.parquet"])
    shutil.rmtree(there.parent)
    apart.rename(there.parent)
    with pytest.raises(UsageError, match="mapped in different ways"):
        check_mapped_alike([run_copy / "scores/values.parquet"])


def test_a_diagnosis_lists_no_hubs_of_another_index(run_copy: Path, tmp_path: Path) -> None:
    here = run_copy / "matches-broad"
    apart = changed(here, tmp_path / "apart", other_index)
    check_mapped_through(run_copy / "index", [here / "matches.parquet"])
    with pytest.raises(UsageError, match=r"mapped through another index.*found index 000000000000"):
        check_mapped_through(run_copy / "index", [apart / "matches.parquet"])


def test_what_is_alike_or_not_known_is_compared(run_copy: Path, tmp_path: Path) -> None:
    here, there = (run_copy / f"matches-{name}/matches.parquet" for name in ("broad", "narrow"))
    deeper = changed(there.parent, tmp_path / "deeper", more_neighbours) / "matches.parquet"
    merged = Path(shutil.copy(there, tmp_path / "matches.parquet"))
    check_mapped_alike([here, deeper, merged])
    (run_copy / "scores/run.json").unlink()
    check_mapped_alike([run_copy / "scores/scores.parquet", here])
