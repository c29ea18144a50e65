from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import digest_bytes
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.roles import SHUFFLED
from culturekit.core.schemas import ARTIFACTS, IMAGES, MATCHES
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Work
from culturekit.index.embedding.embedding import load_picture
from culturekit.index.matching.diagnosis import CEILING, ShuffleOptions, ceiling_matches, shuffle_pictures, shuffled
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.conftest import HeardProgress, HereEngine


@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 9), st.integers(0, 9))
def test_shuffling_keeps_the_pixels_of_whole_tiles(height: int, width: int, tiles: int, seed: int) -> None:
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    mixed = shuffled(picture, tiles, np.random.default_rng(seed))
    kept = picture[: mixed.shape[0], : mixed.shape[1]]
    assert mixed.shape[0] > height - max(tiles, 1) and mixed.shape[1] > width - max(tiles, 1)
    assert sorted(map(tuple, mixed.reshape(-1, 3).tolist())) == sorted(map(tuple, kept.reshape(-1, 3).tolist()))


def test_shuffled_images_are_files_of_their_own_and_the_same_every_time(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = []
    for number in range(12):
        content = encoded(np.random.default_rng(number).integers(0, 256, (32, 48, 3), np.uint8))
        (tmp_path / f"in/{number}.png").write_bytes(content)
        rows.append(
            {
                "image_id": f"i{number}", "path": f"{number}.png", "prompt_id": "p", "model": "m",
                "repeat": number // 4,
                "slot": number % 4, "rewriter": "off", "provider_params": "{}", "sha256": digest_bytes(content),
                "width": 48, "height": 32, "status": "ok", "concept": "cuisine",
            }
        )  # fmt: skip
    images = write_table(tmp_path / "in", IMAGES, pl.DataFrame(rows, schema={**IMAGES.schema, "concept": pl.String()}))
    tables = []
    for name in ("one", "two"):
        out, scratch = tmp_path / name / "out", tmp_path / name / "scratch"
        out.mkdir(parents=True)
        scratch.mkdir()
        work = Work({}, out, scratch, HereEngine(), HeardProgress())
        outcome = shuffle_pictures(work, images, ShuffleOptions(repeats=2, seed=5))
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
    own = artifacts.select(
        "artifact_id", "artifact", "countries", shown="artifact_id", country=pl.col("countries").list.first(),
        continent=pl.col("continents").list.first(), score=pl.lit(0.9), margin=pl.lit(0.1),
    )  # fmt: skip
    return pl.concat([own] * references)


def test_a_perfect_mapping_of_enough_artifacts_gives_the_highest_score_there_is() -> None:
    artifacts = space(40)
    matches = ceiling_matches(held_out(artifacts), artifacts, size=8, repeats=20, seed=1)
    assert MATCHES.problems(matches) == []
    scores = score_qvs(matches, None, options=QvsOptions(kernels=((0.0, 0.0, 1.0),))).scores
    assert scores["model"].to_list() == [CEILING]
    assert scores["value"][0] == pytest.approx(1)
    assert matches["artifact_id"].n_unique() > 30


def test_few_artifacts_are_shown_evenly() -> None:
    artifacts = space(3)
    matches = ceiling_matches(held_out(artifacts), artifacts, size=8, repeats=10, seed=1)
    counts = matches.group_by("repeat", "artifact_id").len()["len"]
    assert set(counts) == {2, 3}


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_the_rows() -> None:
    artifacts = space(12)
    rows = held_out(artifacts)
    first = ceiling_matches(rows, artifacts, size=8, repeats=3, seed=1)
    assert first.equals(ceiling_matches(rows.reverse(), artifacts.reverse(), size=8, repeats=3, seed=1))
    assert not first.equals(ceiling_matches(rows, artifacts, size=8, repeats=3, seed=2))
