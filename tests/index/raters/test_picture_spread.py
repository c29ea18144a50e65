"""Batches of pictures measured in pairs: means, and batches that are left out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.digests import digest_file
from culturekit.core.schemas import IMAGES, PAIR_DISTANCES
from culturekit.core.stage import Work
from culturekit.core.tables import write_table
from culturekit.index.raters.picture_spread import PAIR_MEASURES, measure_spread
from tests.scores.picture_tables import image_table


class Brightness:
    """Measures how far the mean brightness of pictures is apart."""

    name = "brightness"
    caveat = ""
    licence = "none needed"
    parameters: Mapping[str, Any] = {"name": "brightness", "weights": "none"}

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        return np.array([picture.mean()], np.float32)

    def distances(self, pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
        values = np.array([float(one[0]) for one in pictures])
        return np.asarray(np.abs(values[:, None] - values[None, :]), np.float64)


@pytest.fixture(autouse=True)
def brightness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PAIR_MEASURES, "kept", lambda spec: Brightness())


def drawn(folder: Path, repeats: int, *, slots: int = 3, broken: int | None = None) -> Path:
    """Grey pictures of one prompt, as bright as ten times their slot plus their repeat."""
    folder.mkdir()
    rows = []
    for repeat in range(repeats):
        for slot in range(slots):
            number = repeat * slots + slot
            path = folder / f"{number}.png"
            Image.fromarray(np.full((8, 8, 3), 10 * slot + repeat, np.uint8)).save(path)
            if number == broken:
                path.write_bytes(b"no picture")
            rows.append(
                {"image_id": f"{number:04d}", "model": "a", "prompt_id": "p", "repeat": repeat, "slot": slot,
                 "concept": "art", "path": path.name, "sha256": digest_file(path)}
            )  # fmt: skip
    table = image_table(rows)
    assert IMAGES.problems(table) == []
    return write_table(folder, IMAGES, table)


@pytest.mark.parametrize(("size", "mean", "dropped"), [(3, 40 / 3, {}), (2, 10, {"images of an incomplete batch": 2})])
def test_the_mean_is_over_all_pairs_of_full_batches_and_others_are_counted(
    work: Work, tmp_path: Path, size: int, mean: float, dropped: Mapping[str, int]
) -> None:
    outcome = measure_spread(work, drawn(tmp_path / "images", 2), "any", size=size)
    table = pl.read_parquet(work.out / "pair_distances.parquet")
    assert PAIR_DISTANCES.problems(table) == []
    assert table["distance"].to_list() == [pytest.approx(mean)] * 2
    assert table.select("model", "concept", "prompt_id", "repeat", "batch", "images").row(1) == (
        "a", "art", "p", 1, 0, size,
    )  # fmt: skip
    assert outcome.counts == {"pair_distances": 2, "images": 2 * size}
    assert outcome.drops == dropped
    assert outcome.notes["licence"] == "none needed"


def test_a_batch_with_an_unreadable_picture_has_no_distance(work: Work, tmp_path: Path) -> None:
    outcome = measure_spread(work, drawn(tmp_path / "images", 3, broken=4), "any", size=3)
    assert pl.read_parquet(work.out / "pair_distances.parquet")["repeat"].to_list() == [0, 2]
    (reason,) = outcome.drops
    assert reason.startswith("images of a batch with a picture that cannot be read")
    assert outcome.drops[reason] == 3
