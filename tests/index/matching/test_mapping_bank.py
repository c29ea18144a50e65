from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from culturekit.core.errors import UsageError
from culturekit.index.encoder import Vectors
from culturekit.index.matching.comparison import Adjustment, MappingInputs, MappingOptions
from tests.index.matching.naive_matches import artifact_scores
from tests.index.matching.test_mapping import in_memory, mapped, rows_of
from tests.index.picture_world import ENCODER, PictureWorld, made_world, write_images

EQUAL = {"image": 1.0, "text": 1.0}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PictureWorld:
    return made_world(tmp_path_factory.mktemp("worlds") / "world", each=12)


@pytest.fixture(scope="module")
def images(world: PictureWorld) -> Path:
    return world.images("fresh", world.artifacts["artifact_id"].to_list(), seed=50_000, options="confusability=0.5")


@pytest.fixture(scope="module")
def bank(world: PictureWorld) -> Path:
    return world.images("bank", world.artifacts["artifact_id"].to_list() * 2, seed=150_000, options="confusability=0.5")


def vectors_of(path: Path) -> Vectors:
    return ENCODER.encode_images([np.asarray(Image.open(path.parent / name)) for name in pl.read_parquet(path)["path"]])


@pytest.mark.parametrize("name", ["csls", "inverted-softmax"])
def test_scores_are_as_in_papers(world: PictureWorld, images: Path, bank: Path, tmp_path: Path, name: str) -> None:
    how = Adjustment(name, neighbours=7, temperature=0.1)  # type: ignore[arg-type]
    given = MappingInputs(world.index, images, adjustment=how, bank=bank)
    run = mapped(tmp_path / "matches", given, MappingOptions(k=1000))
    plain, count = in_memory(world), world.artifacts.height
    of_images, of_bank = (
        np.array([[scores[one] for one in range(count)] for scores in (artifact_scores(plain, q, "max", EQUAL)
                  for q in vectors_of(path))], np.float64)
        for path in (images, bank)
    )  # fmt: skip
    if name == "csls":
        hubs = np.sort(of_bank, axis=0)[-7:].mean(axis=0)
        mine = np.sort(of_images, axis=1)[:, -7:].mean(axis=1)
        wanted = 2 * of_images - hubs - mine[:, np.newaxis]
    else:
        wanted = of_images - 0.1 * np.log(np.exp(of_bank / 0.1).mean(axis=0))
    rows = rows_of(run)
    assert set(rows["method"]) == {f"nearest+{name}"}
    ids = world.artifacts["artifact_id"].to_list()
    got = np.full_like(wanted, np.nan)
    for image, artifact, score in rows.select("image_id", "artifact_id", "score").iter_rows():
        got[int(image[1:]), ids.index(artifact)] = score
    np.testing.assert_allclose(got, wanted, atol=2e-6)
    first = rows.filter(pl.col("rank") == 1)
    falling = np.sort(wanted, axis=1)[:, ::-1]
    np.testing.assert_allclose(first["margin"].to_numpy(), falling[:, 0] - falling[:, 1], atol=2e-6)
    assert run.manifest.notes["adjustment"]["per_artifact"] == {"fewest": 2, "most": 2}


def refused(world: PictureWorld, images: Path, bank: Path, out: Path) -> str:
    given = MappingInputs(world.index, images, adjustment=Adjustment("csls"), bank=bank)
    with pytest.raises(UsageError) as error:
        mapped(out, given)
    return str(error.value)


def test_the_images_that_are_mapped_and_the_same_pixels_in_other_files_are_no_bank(
    world: PictureWorld, images: Path, tmp_path: Path
) -> None:
    assert "25 equal files and 25 equal vectors" in refused(world, images, images, tmp_path / "matches")
    table = pl.read_parquet(images)
    (tmp_path / "again").mkdir()
    paths = [f"{number}.webp" for number in range(table.height)]
    for name, source in zip(paths, table["path"], strict=True):
        Image.open(images.parent / source).save(tmp_path / "again" / name, lossless=True)
    again = write_images(tmp_path / "again", paths, truth_artifact_id=table["truth_artifact_id"].to_list())
    assert "0 equal files and 25 equal vectors" in refused(world, images, again, tmp_path / "matches")


def test_a_bank_that_mostly_shows_few_things_is_refused(world: PictureWorld, images: Path, tmp_path: Path) -> None:
    ids = world.artifacts["artifact_id"].to_list()
    few = world.images(f"{tmp_path.name}-few", [*ids, *ids[:1] * 9], seed=250_000)
    message = refused(world, images, few, tmp_path / "matches")
    assert "not balanced" in message
    assert "artifacts 1 (Qa001) to 10 times" in message
    blind = tmp_path / "images.parquet"
    pl.read_parquet(images).drop("truth_artifact_id").write_parquet(blind)
    assert "which artifact an image shows" in refused(world, images, blind, tmp_path / "matches")
