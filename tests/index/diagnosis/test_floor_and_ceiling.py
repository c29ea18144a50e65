from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from culturekit.core.roles import SHUFFLED
from culturekit.core.schemas import ARTIFACTS, HUBS, IMAGES, MATCHES, RECOGNITION
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.index.embedding.embedding import load_picture
from culturekit.index.matching import diagnosis
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress, HereEngine


@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 9), st.integers(0, 9))
def test_shuffling_keeps_the_pixels_of_whole_tiles(height: int, width: int, tiles: int, seed: int) -> None:
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    mixed = diagnosis.shuffled(picture, tiles, np.random.default_rng(seed))
    kept = picture[: mixed.shape[0], : mixed.shape[1]]
    assert mixed.shape[0] > height - max(tiles, 1) and mixed.shape[1] > width - max(tiles, 1)
    assert sorted(map(tuple, mixed.reshape(-1, 3).tolist())) == sorted(map(tuple, kept.reshape(-1, 3).tolist()))


def test_shuffled_images_are_files_of_their_own_and_the_same_every_time(tmp_path: Path) -> None:
    rows: list[Mapping[str, object]] = []
    for number in range(12):
        path = save_picture(tmp_path / f"in/{number}.png", seed=number, size=(48, 32))
        folder = {"prompt_id": "p", "repeat": number // 4, "slot": number % 4, "concept": "cuisine"}
        rows.append(image_row(tmp_path / "in", path.name, **folder))
    images = images_table(tmp_path / "in", rows)
    tables = []
    for name in ("one", "two"):
        out, scratch = tmp_path / name / "out", tmp_path / name / "scratch"
        out.mkdir(parents=True)
        scratch.mkdir()
        work = Work({}, out, scratch, HereEngine(), HeardProgress())
        outcome = diagnosis.shuffle_pictures(work, images, tiles=8, repeats=2, seed=5)
        assert outcome.counts == {"images": 8}
        tables.append(read_table(work.out / "images.parquet", IMAGES))
    assert tables[0].equals(tables[1])
    assert set(tables[0]["model"]) == {SHUFFLED}
    row = tables[0].row(0, named=True)
    assert load_picture(tmp_path / "one/out", row["path"], sha256=row["sha256"]).shape == (32, 48, 3)


def space(artifacts: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "artifact_id": [f"Q{k:03}" for k in range(artifacts)], "artifact": [f"x{k}" for k in range(artifacts)],
            "concepts": [["cuisine"]] * artifacts, "countries": [[f"C{k % 5}"] for k in range(artifacts)],
            "continents": [["Asia"]] * artifacts,
        },
        schema=ARTIFACTS.schema,
    )  # fmt: skip


def held_out(artifacts: pl.DataFrame, *, references: int = 3) -> pl.DataFrame:
    """References that were all mapped to the artifact they show."""
    mine = artifacts.select(
        "artifact_id", "artifact", "countries", shown="artifact_id", country=pl.col("countries").list.first(),
        continent=pl.col("continents").list.first(), score=pl.lit(0.9), margin=pl.lit(0.1),
    )  # fmt: skip
    return pl.concat([mine] * references)


def test_a_perfect_mapping_of_enough_artifacts_gives_the_highest_score_there_is() -> None:
    artifacts = space(40)
    matches = diagnosis.ceiling_matches(held_out(artifacts), artifacts, size=8, repeats=20, seed=1)
    assert MATCHES.problems(matches) == []
    scores = score_qvs(matches, None, options=QvsOptions(kernels=((0.0, 0.0, 1.0),))).scores
    assert scores["model"].to_list() == [diagnosis.CEILING]
    assert scores["value"][0] == pytest.approx(1)
    assert matches["artifact_id"].n_unique() > 30


def test_few_artifacts_are_shown_evenly_and_the_draw_depends_on_the_seed_alone() -> None:
    artifacts = space(3)
    matches = diagnosis.ceiling_matches(held_out(artifacts), artifacts, size=8, repeats=10, seed=1)
    counts = matches.group_by("repeat", "artifact_id").len()["len"]
    assert set(counts) == {2, 3}
    artifacts = space(12)
    rows = held_out(artifacts)
    first = diagnosis.ceiling_matches(rows, artifacts, size=8, repeats=3, seed=1)
    assert first.equals(diagnosis.ceiling_matches(rows.reverse(), artifacts.reverse(), size=8, repeats=3, seed=1))
    assert not first.equals(diagnosis.ceiling_matches(rows, artifacts, size=8, repeats=3, seed=2))


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
    hubs = diagnosis.hubs_of(FOUR)
    assert HUBS.problems(hubs) == []
    first = hubs.row(0, named=True)
    assert (first["model"], first["artifact_id"], first["neighbours"], first["nearest"], first["share"]) == (
        "m", "A", 3, 2, 1.0,
    )  # fmt: skip
    assert hubs["artifact_id"].to_list() == ["A", "C", "B", "D"]
    assert hubs["rank"].to_list() == [1, 2, 3, 1]
    assert diagnosis.hubs_of(FOUR, top=1)["artifact_id"].to_list() == ["A", "D"]


def test_artifacts_that_nothing_is_near_to_count() -> None:
    few, many = diagnosis.neighbour_skew(FOUR, 4), diagnosis.neighbour_skew(FOUR, 400)
    assert many["m"] > few["m"]
    assert diagnosis.neighbour_skew(matches(("1", "m", ["A"]), ("2", "m", ["B"])), 2) == {"m": 0.0}


@given(st.lists(st.integers(1, 9), min_size=2, max_size=20).filter(lambda counts: len(set(counts)) > 1))
def test_the_skewness_is_that_of_the_counts(counts: list[int]) -> None:
    images = [(f"{a}/{i}", "m", [f"A{a:02}"]) for a, count in enumerate(counts) for i in range(count)]
    skew = diagnosis.neighbour_skew(matches(*images), len(counts))["m"]
    assert skew == pytest.approx(stats.skew(counts), abs=1e-4)


def test_recognition_counts_an_artifact_for_each_of_its_countries() -> None:
    artifacts = pl.DataFrame(
        {"artifact_id": ["A", "B", "C"], "artifact": ["a", "b", "c"], "concepts": [["x"]] * 3,
            "countries": [["FR", "IT"], ["IT"], ["JP"]], "continents": [["Europe"] * 2, ["Europe"], ["Asia"]]},
        schema=ARTIFACTS.schema,
    )  # fmt: skip
    held_out = pl.DataFrame(
        {"shown": ["A", "A", "B", "C"], "artifact_id": ["A", "B", "B", "A"], "country": ["FR", "IT", "IT", "FR"]}
    )
    table = diagnosis.recognition_of(held_out, artifacts)
    assert RECOGNITION.problems(table) == []
    rows = {row["country"]: row for row in table.iter_rows(named=True)}
    assert (rows[None]["shown"], rows[None]["recognised"], rows[None]["recall"]) == (4, 2, 0.5)
    assert (rows["FR"]["recall"], rows["FR"]["precision"]) == (0.5, 0.5)  # the second A went to Italy's alone
    assert (rows["IT"]["recall"], rows["IT"]["precision"]) == (1.0, 1.0)
    assert (rows["JP"]["recall"], rows["JP"]["precision"], rows["JP"]["mapped"]) == (0.0, None, 0)
