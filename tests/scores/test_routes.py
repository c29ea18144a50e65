"""Two routes from image to label, side by side and image by image."""

import json
import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import DISAGREEMENTS, JUDGMENTS, MATCHES, QUALITY, SCORES, VALUES
from culturekit.metrics import CATALOG, cohen_kappa
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from culturekit.scores.routes import Routes, score_routes

OPTIONS = QvsOptions()
CONTINENTS = {"BR": "Americas", "IN": "Asia", "JP": "Asia", "TR": "Asia"}
COUNTRIES = sorted(CONTINENTS)


def match(model: str, concept: str, repeat: int, slot: int, country: str | None, **more: Any) -> dict[str, Any]:
    """One image of a prompt, named by where it stands."""
    return {
        "image_id": f"{model}-{concept}-{repeat}-{slot}", "model": model, "prompt_id": f"p-{concept}",
        "concept": concept, "repeat": repeat, "slot": slot, "rank": 1, "artifact_id": country and f"Q-{country}",
        "artifact": country and f"dish of {country}", "country": country, "countries": [country] if country else [],
        "continent": CONTINENTS.get(country or ""), "score": 0.5, "margin": 0.1, "country_margin": 0.1,
        "abstained": False, "method": "nearest", **more,
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
    return pl.DataFrame(rows, schema=MATCHES.schema)


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
