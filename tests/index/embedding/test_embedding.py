import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.digests import digest_bytes
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import IntegrityError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.index.embedding import embedding
from culturekit.index.embedding.embedding import Embedded, embed, load_picture, try_picture
from culturekit.index.encoder import Prepared, Vectors
from tests.builders.counting_encoder import CountingEncoder, drawn, logged, register
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress, HereEngine
from tests.core.odd_pictures import odd_picture

PICTURES = 30


class Workers(HereEngine):
    def __init__(self, workers: int) -> None:
        self.workers = workers


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "PICTURES_PER_SHARD", 10)
    register()


@pytest.fixture
def images(tmp_path: Path) -> pl.DataFrame:
    """Thirty rows: two files cut short, one picture twice under two names, one that has a row for each of two ids."""
    folder = tmp_path / "images"
    rows: list[Mapping[str, object]] = []
    for number in range(PICTURES):
        path = save_picture(folder / f"files/{number:02d}.png", seed=number)
        if number in {3, 17}:
            path.write_bytes(path.read_bytes()[:60])
        if number == 20:
            path.write_bytes((folder / "files/05.png").read_bytes())
        rows.append(image_row(folder, f"files/{number:02d}.png"))
    rows.append({**rows[7], "image_id": "07-again"})
    return read_table(images_table(folder, rows), IMAGES)


def embedded(images: pl.DataFrame, tmp_path: Path, spec: str, *, workers: int = 1, scratch: str = "one") -> Embedded:
    folder = tmp_path / scratch
    folder.mkdir(exist_ok=True)
    return embed(images, tmp_path / "images", spec, folder, engine=Workers(workers), progress=HeardProgress())


def by_hand(images: pl.DataFrame, root: Path) -> Vectors:
    vectors = []
    for path in images["path"]:
        found = picture_from((root / path).read_bytes())
        if not isinstance(found, NoPicture):
            vectors.append(drawn(hashlib.sha256(found.pixels.tobytes()).digest()))
    return np.stack(vectors)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_row_with_a_picture_has_its_vector(images: pl.DataFrame, tmp_path: Path, workers: int) -> None:
    answer = embedded(images, tmp_path, "counting", workers=workers)
    np.testing.assert_array_equal(answer.vectors, by_hand(images, tmp_path / "images"))
    assert answer.kept["image_id"].to_list() == [one for one in images["image_id"] if one not in {"03", "17"}]
    assert answer.unreadable["image_id"].to_list() == ["03", "17"]
    assert set(answer.unreadable["reason"]) == {"picture cannot be decoded"}


def test_equal_pictures_are_encoded_once(images: pl.DataFrame, tmp_path: Path) -> None:
    log = tmp_path / "log"
    answer = embedded(images, tmp_path, f"counting?log={log}", workers=2)
    assert len(logged(log)) == len(set(logged(log))) == PICTURES - 3
    rows = dict(zip(answer.kept["image_id"], np.asarray(answer.vectors), strict=True))
    np.testing.assert_array_equal(rows["05"], rows["20"])
    np.testing.assert_array_equal(rows["07"], rows["07-again"])


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_an_interruption_costs_one_shard(
    images: pl.DataFrame, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    spec = f"counting?log={log}" + ("&weights=none" if engine == "processes" else "")
    undisturbed = np.array(embedded(images, tmp_path, spec, scratch="undisturbed").vectors)
    log.unlink()
    encode = CountingEncoder.encode_prepared

    def cut_off(self: CountingEncoder, pictures: Sequence[Prepared]) -> Vectors:
        if len(logged(log)) >= 14:
            raise KeyboardInterrupt
        return encode(self, pictures)

    with monkeypatch.context() as context:
        context.setattr(CountingEncoder, "encode_prepared", cut_off)
        with pytest.raises(KeyboardInterrupt):
            embedded(images, tmp_path, spec)
    before = logged(log)
    answer = embedded(images, tmp_path, spec, workers=3)
    np.testing.assert_array_equal(answer.vectors, undisturbed)
    twice = len(logged(log)) - len(set(logged(log)))
    assert len(before) >= 14
    assert twice <= 12, "more than the shard in flight"


def test_the_embedded_encoder_gives_the_same_in_processes_as_here(images: pl.DataFrame, tmp_path: Path) -> None:
    here = embedded(images, tmp_path, "embedded")
    (tmp_path / "two").mkdir()
    with LocalEngine(2) as engine:
        there = embed(
            images, tmp_path / "images", "embedded", tmp_path / "two", engine=engine, progress=HeardProgress()
        )
    np.testing.assert_array_equal(here.vectors, there.vectors)
    assert here.unreadable.equals(there.unreadable)


@pytest.mark.parametrize("name", ["09", "20"])
@pytest.mark.parametrize("spec", ["counting", "embedded"])
def test_a_file_that_is_not_the_tables_ends_the_run(images: pl.DataFrame, tmp_path: Path, name: str, spec: str) -> None:
    save_picture(tmp_path / f"images/files/{name}.png", seed=99)
    with pytest.raises(IntegrityError, match=f"files/{name}.png.* not the one its table describes"):
        embedded(images, tmp_path, spec)
    (tmp_path / f"images/files/{name}.png").unlink()
    with pytest.raises(IntegrityError, match="no picture file"):
        embedded(images, tmp_path, spec)


def test_a_table_without_a_readable_picture_gives_no_vectors(images: pl.DataFrame, tmp_path: Path) -> None:
    answer = embedded(images.filter(pl.col("image_id").is_in(["03", "17"])), tmp_path, "counting")
    assert answer.vectors.shape == (0, 8)
    assert answer.unreadable.height == 2


def test_progress_counts_what_is_left_to_do(images: pl.DataFrame, tmp_path: Path) -> None:
    for expected, words in ((PICTURES - 1, []), (0, [f"{PICTURES - 1} were done before"])):
        progress = HeardProgress()
        (tmp_path / "one").mkdir(exist_ok=True)
        embed(images, tmp_path / "images", "counting", tmp_path / "one", engine=HereEngine(), progress=progress)
        assert (progress.total, progress.done) == (expected, expected)
        assert progress.units == ["pictures", *words]


@pytest.mark.parametrize("name", ["gone.png", "../b.png", "link.png", "folder", "changed.png"])
def test_a_folder_that_is_not_as_its_table_promises_is_an_error(tmp_path: Path, name: str) -> None:
    root = tmp_path / "images"
    (root / "folder").mkdir(parents=True)
    odd = odd_picture("png colour", 3)
    content = odd.content
    (tmp_path / "b.png").write_bytes(content)
    (root / "link.png").symlink_to("../b.png")
    (root / "changed.png").write_bytes(content + b"!")
    assert np.array_equal(
        load_picture(tmp_path, "b.png", sha256=digest_bytes(content)), odd_picture("png colour", 3).right
    )
    with pytest.raises(IntegrityError, match=name.replace(".", r"\.")):
        try_picture(root, name, sha256=digest_bytes(content))
