from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CALIBRATION
from culturekit.core.tables import read_table
from culturekit.index.matching.comparison import MappingInputs, MappingOptions
from culturekit.index.matching.match_batch import ChannelVectors
from tests.index.matching.naive_matches import World, artifact_scores, naive_rows, unit
from tests.index.matching.test_mapping import drops_of, in_memory, mapped, rows_of
from tests.index.picture_world import ENCODER, PictureWorld, made_world, write_built

EQUAL = {"image": 1.0, "text": 1.0}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PictureWorld:
    return made_world(tmp_path_factory.mktemp("worlds") / "world", each=20)


@pytest.fixture(scope="module")
def hard(world: PictureWorld) -> Path:
    """Images that are often mistaken for those of another artifact."""
    return world.images("hard", world.artifacts["artifact_id"].to_list() * 4, seed=90_000, options="confusability=0.6")


def naive_trials(world: World) -> tuple[list[float], list[bool]]:
    """Every reference against all the others, one after the other."""
    image = world.channels["image"]
    margins, wrong = [], []
    for row, owner in enumerate(image.owners.tolist()):
        scores = artifact_scores(world, image.vectors[row], "max", EQUAL, left_out=row)
        (best, _, margin, _), *_ = naive_rows(world, scores, 1)
        margins.append(float(margin))
        wrong.append(best != owner)
    return margins, wrong


def test_each_reference_is_held_out_of_the_index(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    run = mapped(tmp_path / "matches", MappingInputs(world.index, hard), MappingOptions(k=1, max_error=0.05))
    margins, wrong = naive_trials(in_memory(world))
    curve = read_table(run.folder / "calibration.parquet", CALIBRATION)
    for threshold, accepted, errors in curve.select("threshold", "accepted", "wrong").iter_rows():
        taken = [error for margin, error in zip(margins, wrong, strict=True) if margin >= threshold]
        assert (len(taken), sum(taken)) == (accepted, errors)
    answer = run.manifest.notes["abstention"]
    assert answer["references"] == len(margins)
    assert answer["met"]
    assert answer["threshold"] == curve.filter("chosen")["threshold"].item()


def test_images_below_the_margin_keep_their_artifact(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    """References are easy here and images hard: the threshold comes from images that are like them."""
    known = world.images(
        "known", world.artifacts["artifact_id"].to_list() * 8, seed=190_000, options="confusability=0.6"
    )
    given = MappingInputs(world.index, hard, calibration=known)
    run = mapped(tmp_path / "matches", given, MappingOptions(k=2, max_error=0.2))
    words, rows = run.manifest.notes["abstention"], rows_of(run)
    first = rows.filter(pl.col("rank") == 1)
    kept = first.filter(~pl.col("abstained"))
    assert first["abstained"].to_list() == (first["margin"] < np.float32(words["threshold"])).to_list()
    assert not rows["artifact_id"].has_nulls()
    assert rows.group_by("image_id").agg(pl.col("abstained").n_unique())["abstained"].max() == 1
    truth = pl.read_parquet(hard).select("image_id", "truth_artifact_id")
    error = (kept.join(truth, on="image_id").select(pl.col("artifact_id") != pl.col("truth_artifact_id"))).to_series()
    everything = (
        first.join(truth, on="image_id").select(pl.col("artifact_id") != pl.col("truth_artifact_id")).to_series()
    )
    assert everything.mean() > 0.15  # type: ignore[operator]
    assert error.mean() <= 0.2  # type: ignore[operator]
    assert 0.2 < words["image_coverage"] == round(kept.height / first.height, 6) < 0.95
    assert run.manifest.counts["abstained"] == first.height - kept.height
    assert words["error_low"] <= words["error"] <= words["error_high"]


def test_all_abstain_where_the_error_cannot_be_kept(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    run = mapped(tmp_path / "matches", MappingInputs(world.index, hard), MappingOptions(k=1, max_error=0.0001))
    assert rows_of(run)["abstained"].all()
    assert not run.manifest.notes["abstention"]["met"]
    assert run.manifest.notes["abstention"]["image_coverage"] == 0


def test_an_index_of_texts_needs_images_to_calibrate_on(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    rows = world.artifacts.select("artifact_id", channel=pl.lit("text"), source=pl.lit("t"))
    vectors = unit(np.random.default_rng(0).normal(size=(rows.height, ENCODER.identity.dim)))
    write_built(tmp_path / "texts", rows, vectors, world.artifacts)
    options = MappingOptions(k=1, max_error=0.9)
    with pytest.raises(UsageError, match="--calibration"):
        mapped(tmp_path / "matches", MappingInputs(tmp_path / "texts", hard), options)
    given = MappingInputs(tmp_path / "texts", hard, calibration=hard)
    assert mapped(tmp_path / "matches", given, options).manifest.notes["abstention"]["references"] == 164


def test_within_a_place_references_are_tried_within_it(world: PictureWorld, hard: Path, tmp_path: Path) -> None:
    options = MappingOptions(k=1, max_error=0.2, within="concept")
    run = mapped(tmp_path / "matches", MappingInputs(world.index, hard), options)
    plain = in_memory(world)
    concepts = world.artifacts["concepts"].list.first().to_list()
    of = world.artifacts["concepts"].to_list()
    image: ChannelVectors = plain.channels["image"]
    wrong = 0
    for row, owner in enumerate(image.owners.tolist()):
        scores = artifact_scores(plain, image.vectors[row], "max", EQUAL, left_out=row)
        inside = {one: score for one, score in scores.items() if concepts[owner] in of[one]}
        wrong += naive_rows(plain, inside, 1)[0][0] != owner
    curve = read_table(run.folder / "calibration.parquet", CALIBRATION).sort("threshold")
    assert curve["wrong"][0] == wrong
    assert drops_of(run) == {}
