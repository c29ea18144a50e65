"""Nothing that a later run trusts can be lost in a power cut, and what is damaged is made again."""

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.digests import digest_tree
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Work, is_sealed, seal
from culturekit.core.tables import read_table
from culturekit.generation import runner
from culturekit.generation.picture_store import Maker
from culturekit.generation.runner import ImagePlan, generate
from culturekit.index.embedding.embedding import embed
from culturekit.kg.dump import ingest as ingesting
from culturekit.kg.dump import read_dump
from culturekit.kg.dump.ingest import IngestOptions, ingest
from tests.builders.picture_tables import image_row, images_table, save_picture
from tests.conftest import HeardProgress, HereEngine
from tests.core.power_cut import DAMAGES, ForgetfulDisk, damage
from tests.generation.folder.folder_worlds import prompts
from tests.generation.test_runner import Recorder
from tests.kg.dump.dumps import array


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("which", ["part", "other", "part.seal"])
def test_a_damaged_file_counts_as_not_made(tmp_path: Path, how: str, which: str) -> None:
    (tmp_path / "part").write_bytes(b"vectors")
    (tmp_path / "other").write_bytes(b"probabilities")
    seal(tmp_path / "part", [tmp_path / "other"])
    assert is_sealed(tmp_path / "part")
    damage(tmp_path / which, how)
    assert not is_sealed(tmp_path / "part")


class Cut(Exception):
    """The power is gone."""


def ingest_all(work: Work, folder: Path) -> None:
    dump = folder / "dump.json"
    dump.write_bytes(array(60))
    ingest(work, [dump], IngestOptions())


def embed_all(work: Work, folder: Path) -> None:
    rows: list[Mapping[str, object]] = [
        image_row(folder, save_picture(folder / f"{n}.png", seed=n).name) for n in range(9)
    ]
    (folder / "3.png").write_bytes((folder / "3.png").read_bytes()[:60])
    rows[3] = image_row(folder, "3.png")
    images = read_table(images_table(folder, rows), IMAGES)
    result = embed(images, folder, "embedded", work.scratch, engine=work.engine, progress=work.progress)
    np.save(work.out / "vectors.npy", result.vectors)


def make_all(work: Work, folder: Path) -> None:
    generate(work, prompts(folder), ImagePlan(2, 2), Maker("m", "any"), seed=3)


STAGES = {"ingest": ingest_all, "embed": embed_all, "generate": make_all}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_dump, "_SMALLEST_RANGE", 900)
    monkeypatch.setattr(read_dump, "_LARGEST_RANGE", 900)
    monkeypatch.setattr("culturekit.index.embedding.embedding.PICTURES_PER_SHARD", 4)
    monkeypatch.setattr(runner, "REQUESTS_PER_SHARD", 5)
    monkeypatch.setattr(runner, "backend_of", lambda *_: Recorder())


def fresh_work(folder: Path) -> Work:
    for location in (folder, folder / "out", folder / "scratch", folder / "given"):
        location.mkdir(exist_ok=True)
    return Work({}, folder / "out", folder / "scratch", HereEngine(), HeardProgress())


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_sealed_before_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    work = fresh_work(tmp_path / "run")
    disk = ForgetfulDisk(monkeypatch)
    STAGES[stage](work, tmp_path / "run/given")
    assert disk.vouched
    assert disk.unsafe == set()


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("stage", STAGES)
def test_damaged_parts_are_made_again_and_the_bytes_are_the_same(tmp_path: Path, stage: str, how: str) -> None:
    work = fresh_work(tmp_path / "run")
    STAGES[stage](work, tmp_path / "run/given")
    expected = digest_tree(work.out)
    files = sorted(path for path in (tmp_path / "run/scratch").rglob("*") if path.is_file())
    files += sorted((work.out / "files").rglob("*.png")) if (work.out / "files").is_dir() else []
    for path in random.Random(how).sample(files, len(files) // 2):
        damage(path, how)
    STAGES[stage](work, tmp_path / "run/given")
    assert digest_tree(work.out) == expected


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGES)
def test_an_ingest_cut_before_its_store_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    whole, cut = fresh_work(tmp_path / "whole"), fresh_work(tmp_path / "cut")
    ingest_all(whole, tmp_path / "whole/given")

    def gone(*_: object, **__: object) -> None:
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(ingesting, "build_store", gone)
        with pytest.raises(Cut):
            ingest_all(cut, tmp_path / "cut/given")
    parts = sorted(cut.scratch.rglob("run-*/*"))
    assert any(path.suffix == ".arrows" for path in parts)
    for path in parts[::2]:
        damage(path, how)
    ingest_all(cut, tmp_path / "cut/given")
    assert digest_tree(cut.out) == digest_tree(whole.out)
    assert pl.read_parquet(cut.out / "items.parquet").height == 60
