import hashlib
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from culturekit.core.digests import digest_bytes
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import IntegrityError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table, write_table
from culturekit.index.embedding import embed_table, embedding
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.embedding.embedding import (
    HEAVY,
    Embedded,
    Room,
    embed,
    in_turn,
    load_picture,
    load_vectors,
    memory_for,
    save_vectors,
    try_picture,
)
from culturekit.index.encoder import Prepared, Vectors
from tests.builders.counting_encoder import CountingEncoder, drawn, logged, register
from tests.builders.picture_tables import image_row, images_table, pictures_of_one_colour, save_picture
from tests.conftest import HeardProgress, HereEngine, stage_here
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


@pytest.mark.parametrize("wrong", [0.0, float("nan"), float("inf")])
def test_a_vector_without_a_direction_is_refused(tmp_path: Path, wrong: float) -> None:
    vectors = np.ones((4, 3), np.float32)
    vectors[2] = wrong
    save_vectors(tmp_path, vectors, ["a", "b", "c", "d"])
    with pytest.raises(IntegrityError, match=r"vectors\.npy, row 2: 1 of 4 vectors have no direction.* of 'c'"):
        load_vectors(tmp_path)


def test_zeros_among_numbers_and_no_vectors_at_all_are_taken(tmp_path: Path) -> None:
    save_vectors(tmp_path, np.eye(3, dtype=np.float32), ["a", "b", "c"])
    assert load_vectors(tmp_path)[1] == ["a", "b", "c"]
    save_vectors(tmp_path, np.empty((0, 3), np.float32), [])
    assert load_vectors(tmp_path)[1] == []


@pytest.mark.parametrize(
    ("give", "wanted"), [("text", "letters"), ("tokens", "letters"), ("mean", "letters"), ("text", "embedded")]
)
def test_blocks_give_the_vectors_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, give: Literal["text", "tokens", "mean"], wanted: str
) -> None:
    """Texts, empty ones and repeated ones among them, and for `embedded` pictures, some of which were not made."""
    if wanted == "embedded":
        pictures = read_table(pictures_of_one_colour(tmp_path / "images", 20), IMAGES)
        status = pl.when(pl.col("image_id").is_in(["000003", "000017"])).then(pl.lit("failed")).otherwise("status")
        source = EmbedSource(images=write_table(tmp_path / "images", IMAGES, pictures.with_columns(status=status)))
    else:
        texts = ["a drum", " ", "tea", "a drum", *map("{} bells".format, range(15))]
        table = pl.DataFrame({"id": [f"{n:03}" for n in range(len(texts))], "text": texts})
        table.write_parquet(tmp_path / "texts.parquet")
        source = EmbedSource(texts=(tmp_path / "texts.parquet",))
    stage = embed_stage(source, encoder=wanted, give=give)
    whole = stage_here(stage, tmp_path / "whole")
    monkeypatch.setattr(embed_table, "ROWS_PER_BLOCK", 6)
    blocks = stage_here(stage, tmp_path / "blocks")
    for name in ("vectors.npy", "drops.parquet"):
        assert (whole.folder / name).read_bytes() == (blocks.folder / name).read_bytes()
    assert load_vectors(whole.folder)[1] == load_vectors(blocks.folder)[1]
    assert whole.manifest.counts["ids"] == blocks.manifest.counts["ids"]
    assert whole.manifest.drops == blocks.manifest.drops


def test_texts_in_another_order_and_ids_that_repeat_are_put_in_order_as_ever(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": ["c", "a", "b", "a"], "text": ["three", "one", "two", "one"]})
    table.write_parquet(tmp_path / "texts.parquet")
    (found,) = embed_table.text_blocks([tmp_path / "texts.parquet"], embed_table.USUAL, rows=2)
    assert found.texts == {"a": "one", "b": "two", "c": "three"}
    only = embed_table.texts_of([tmp_path / "texts.parquet"], embed_table.USUAL, only=pl.Series(["b", "z"]))
    assert only.texts == {"b": "two"}


@given(st.lists(st.integers(0, 150), min_size=1, max_size=40), st.integers(1, 6))
def test_no_more_is_taken_than_there_is_and_everybody_gets_a_turn(sizes: list[int], threads: int) -> None:
    gate, taken, most, lock = Room(100), 0, 0, threading.Lock()

    def take(size: int) -> int:
        nonlocal taken, most
        with gate.holding(size):
            with lock:
                taken += min(size, 100)
                most = max(most, taken)
            with lock:
                taken -= min(size, 100)
        return size

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(take, sizes)) == sizes
    assert most <= 100
    assert gate.taken == 0


def test_a_large_one_waits_for_the_others_and_keeps_later_ones_waiting() -> None:
    gate, order = Room(100), []
    small = gate.holding(10)
    small.__enter__()

    def take(name: str, size: int) -> None:
        with gate.holding(size):
            order.append(name)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(take, "large", 1000)
        while not gate.turn.locked():
            time.sleep(0.001)
        later = pool.submit(take, "later", 1)
        assert order == []
        small.__exit__(None, None, None)
        later.result()
    assert order == ["large", "later"]


def test_heavy_pictures_take_turns_across_processes(tmp_path: Path) -> None:
    with in_turn(tmp_path / "lock", HEAVY):
        assert not (tmp_path / "lock").exists()
    with in_turn(tmp_path / "lock", HEAVY + 1):
        assert (tmp_path / "lock").exists()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP"])
def test_memory_grows_with_the_pixels_and_not_with_the_file(form: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((300, 400, 3), np.uint8)).save(buffer, format=form)
    assert 7 * 300 * 400 <= memory_for(buffer.getvalue()) <= 40 * 300 * 400 + 2**20
    assert memory_for(b"no picture") == 10


ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["threads", "processes"])
def test_large_pictures_take_at_most_512_mib_together(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (tmp_path / "scratch").mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (707, 707, 3), dtype=np.uint8)
    large = np.tile(noise, (10, 10, 1))
    Image.fromarray(large).save(folder / "0.jpg", quality=80)
    Image.fromarray(large[:5000, :5000]).save(folder / "1.png", compress_level=1)
    for number in range(12):
        Image.fromarray(np.roll(large[:3000, :4000], number, 0)).save(folder / f"photo-{number}.jpg", quality=80)
    command = [
        sys.executable, "-m", "tests.index.embedding.embedding_peak", str(folder), str(tmp_path / "scratch"), way,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout
    kept, peak = map(int, answer.split())
    assert kept == 14
    assert peak <= 512
