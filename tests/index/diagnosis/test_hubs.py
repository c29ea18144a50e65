import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from culturekit.core.schemas import ARTIFACTS, HUBS, MATCHES, RECOGNITION
from culturekit.index.matching.diagnosis import hubs_of, neighbour_skew, recognition_of


def matches(*images: tuple[str, str, list[str]]) -> pl.DataFrame:
    """Images as (id, model, nearest artifacts in order)."""
    rows = [
        {
            "image_id": image, "model": model, "rank": rank, "artifact_id": near, "artifact": near.lower(),
            "country": "FR", "countries": ["FR", "IT"], "continent": "Europe", "score": 0.5, "margin": 0.0,
            "country_margin": 0.0, "abstained": False, "method": "nearest",
        }
        for image, model, nearest in images
        for rank, near in enumerate(nearest, start=1)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=MATCHES.schema)


FOUR = matches(("1", "m", ["A", "B"]), ("2", "m", ["A", "C"]), ("3", "m", ["C", "A"]), ("1", "n", ["D"]))


def test_the_artifact_that_most_images_are_near_to_comes_first() -> None:
    hubs = hubs_of(FOUR)
    assert HUBS.problems(hubs) == []
    first = hubs.row(0, named=True)
    assert (first["model"], first["artifact_id"], first["neighbours"], first["nearest"], first["share"]) == (
        "m", "A", 3, 2, 1.0,
    )  # fmt: skip
    assert hubs["artifact_id"].to_list() == ["A", "C", "B", "D"]
    assert hubs["rank"].to_list() == [1, 2, 3, 1]


def test_no_more_than_asked_for_are_listed_per_model() -> None:
    assert hubs_of(FOUR, top=1)["artifact_id"].to_list() == ["A", "D"]


def test_artifacts_that_nothing_is_near_to_count() -> None:
    few, many = neighbour_skew(FOUR, 4), neighbour_skew(FOUR, 400)
    assert many["m"] > few["m"]
    assert neighbour_skew(matches(("1", "m", ["A"]), ("2", "m", ["B"])), 2) == {"m": 0.0}


@given(st.lists(st.integers(1, 9), min_size=2, max_size=20).filter(lambda counts: len(set(counts)) > 1))
def test_the_skewness_is_that_of_the_counts(counts: list[int]) -> None:
    images = [(f"{a}/{i}", "m", [f"A{a:02}"]) for a, count in enumerate(counts) for i in range(count)]
    skew = neighbour_skew(matches(*images), len(counts))["m"]
    assert skew == pytest.approx(stats.skew(counts), abs=1e-4)


def test_recognition_counts_an_artifact_for_each_of_its_countries() -> None:
    artifacts = pl.DataFrame(
        {
            "artifact_id": ["A", "B", "C"], "artifact": ["a", "b", "c"], "concepts": [["x"]] * 3,
            "countries": [["FR", "IT"], ["IT"], ["JP"]], "continents": [["Europe"] * 2, ["Europe"], ["Asia"]],
        },
        schema=ARTIFACTS.schema,
    )  # fmt: skip
    held_out = pl.DataFrame(
        {"shown": ["A", "A", "B", "C"], "artifact_id": ["A", "B", "B", "A"], "country": ["FR", "IT", "IT", "FR"]}
    )
    table = recognition_of(held_out, artifacts)
    assert RECOGNITION.problems(table) == []
    rows = {row["country"]: row for row in table.iter_rows(named=True)}
    assert (rows[None]["shown"], rows[None]["recognised"], rows[None]["recall"]) == (4, 2, 0.5)
    assert (rows["FR"]["recall"], rows["FR"]["precision"]) == (0.5, 0.5)  # the second A went to Italy's alone
    assert (rows["IT"]["recall"], rows["IT"]["precision"]) == (1.0, 1.0)
    assert (rows["JP"]["recall"], rows["JP"]["precision"], rows["JP"]["mapped"]) == (0.0, None, 0)


def test_a_perfect_mapping_is_perfect_everywhere() -> None:
    ids = [f"Q{k}" for k in range(30)]
    countries = [[("BR", "IN", "NG")[k % 3]] for k in range(30)]
    artifacts = pl.DataFrame(
        {
            "artifact_id": ids, "artifact": ids, "concepts": [["x"]] * 30, "countries": countries,
            "continents": [["?"]] * 30,
        },
        schema=ARTIFACTS.schema,
    )  # fmt: skip
    held_out = pl.DataFrame({"shown": ids, "artifact_id": ids, "country": [row[0] for row in countries]})
    table = recognition_of(held_out, artifacts)
    assert np.allclose(table["recall"].to_list(), 1) and np.allclose(table["precision"].to_list(), 1)
