"""Bounds of mapped diversity over tables of images, some of which were refused or not told."""

import json
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES, MATCHES, SCORES
from culturekit.metrics import CATALOG, vendi_bounds
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_bounds, score_qvs
from tests.scores.test_qvs import match_rows, match_table

ARTIFACT = QvsOptions(kernels=((0.0, 0.0, 1.0),), size=4)


def images_of(rows: list[dict[str, Any]], *, refused: set[str]) -> pl.DataFrame:
    """The images behind some matches."""
    kept = ("image_id", "model", "prompt_id", "concept", "repeat", "slot")
    table = [
        {
            **{name: row[name] for name in kept}, "path": "", "rewriter": "off", "provider_params": "{}", "sha256": "",
            "width": 1, "height": 1, "status": "refused" if row["image_id"] in refused else "ok",
        }
        for row in rows
        if row["rank"] == 1
    ]  # fmt: skip
    return pl.DataFrame(table, schema={**IMAGES.schema, "concept": pl.String()})


def world(*, refused: int = 0, abstained: int = 0) -> tuple[pl.DataFrame, pl.DataFrame, list[dict[str, Any]]]:
    """Two prompts, three repeats, four slots; of each repeat the first images are refused, the next not told."""
    rows = match_rows(slots=4, seed=3)
    gone = {row["image_id"] for row in rows if row["slot"] < refused}
    for row in rows:
        row["abstained"] = refused <= row["slot"] < refused + abstained
    return match_table([row for row in rows if row["image_id"] not in gone]), images_of(rows, refused=gone), rows


def values_of(scores: pl.DataFrame) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in scores.iter_rows(named=True)}


def test_each_batch_is_bounded_and_averaged() -> None:
    matches, images, rows = world(refused=1, abstained=1)
    answer = score_bounds(matches, images, options=ARTIFACT)
    assert SCORES.problems(answer.scores) == []
    expected = []
    for prompt in ("p0", "p1"):
        for repeat in range(3):
            known = [
                (row["continent"], row["country"], row["artifact"])
                for row in rows
                if (row["rank"], row["prompt_id"], row["repeat"]) == (1, prompt, repeat) and row["slot"] >= 2
            ]
            expected.append(vendi_bounds(known, unknown=2, weights=(0, 0, 1)))
    lows, highs = zip(*expected, strict=True)
    found = values_of(answer.scores)
    assert found["vs_worst"] == pytest.approx(sum(lows) / 6 / 4)
    assert found["vs_best"] == pytest.approx(sum(highs) / 6 / 4)
    params = json.loads(answer.scores["params"][0])
    assert (params["unknown"], params["images"]) == (12, 24)
    assert set(answer.scores["metric"]) <= set(CATALOG)
    assert set(answer.scores["n"]) == {24}


def test_the_score_of_all_images_lies_between_them() -> None:
    rows = match_rows(slots=4, seed=8)
    full = values_of(score_qvs(match_table(rows), None, options=ARTIFACT).scores)["vs"]
    matches, images, _ = world_of(rows, {row["image_id"] for row in rows if (row["slot"] + row["repeat"]) % 3 == 0})
    found = values_of(score_bounds(matches, images, options=ARTIFACT).scores)
    assert found["vs_worst"] < full < found["vs_best"]


def world_of(rows: list[dict[str, Any]], gone: set[str]) -> tuple[pl.DataFrame, pl.DataFrame, set[str]]:
    """The same images, some of them refused."""
    return match_table([row for row in rows if row["image_id"] not in gone]), images_of(rows, refused=gone), gone


def test_where_all_is_known_there_is_nothing_to_bound() -> None:
    matches, images, _ = world()
    assert score_bounds(matches, images, options=ARTIFACT).scores.is_empty()


def test_matches_of_other_images_are_refused() -> None:
    matches, images, _ = world(refused=1)
    with pytest.raises(UsageError, match="the table of images lacks"):
        score_bounds(matches, images.head(3), options=ARTIFACT)


def test_an_image_without_any_artifact_is_unknown_too() -> None:
    matches, images, _ = world(refused=1)
    none = matches.with_columns(
        **{name: pl.lit(None, MATCHES.schema[name]) for name in ("artifact_id", "artifact", "country", "continent")}
    )
    found = values_of(score_bounds(none, images, options=ARTIFACT).scores)
    assert (found["vs_worst"], found["vs_best"]) == (0.25, 1.0)
