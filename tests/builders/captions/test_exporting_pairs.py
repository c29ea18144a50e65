"""Exports: what stands in them, the same bytes again, licences, and what other libraries read."""

import gc
import importlib
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from culturekit.builders.captions.pairs import SelectOptions, export, select
from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.run import StageRun
from culturekit.core.schemas import EXPORTED
from culturekit.core.tables import read_table
from culturekit.verify.verify_run import verify_run
from tests.builders.captions.pair_worlds import Terms, done, images_of, rights_of, texts_of, values_of

ITEMS = ["../../etc/passwd", "b\u2028", "c <b>", "d", "e"]
BEST = ["c <b>", "b\u2028", "../../etc/passwd"]
Given = tuple[Path, Path, Path, Path | None]
BOTH: Any = ("imagefolder", "webdataset")


@pytest.fixture
def given(tmp_path: Path) -> Given:
    terms: Terms = {item: (0.1, 0.1, score) for item, score in zip(ITEMS, (0.5, 0.6, 0.7, 0.2, 0.1), strict=True)}
    stage = select.stage(values_of(tmp_path, terms), options=SelectOptions(keep=3))
    selected = done(stage, tmp_path / "selected").folder / "selected.parquet"
    return (selected, texts_of(tmp_path, ITEMS), images_of(tmp_path, ITEMS), rights_of(tmp_path, ITEMS))


def exported(given: Given, out: Path, **options: Any) -> StageRun:
    return done(export.stage(*given, **options), out)


def test_pairs_stand_best_first_with_captions_licences_and_the_bytes_of_their_pictures(
    given: Given, tmp_path: Path
) -> None:
    run = exported(given, tmp_path / "pairs", forms=BOTH, per_shard=2)
    table = read_table(run.folder / "exported.parquet", EXPORTED)
    assert run.manifest.counts == {"exported": 6, "pairs": 3}
    lines = [json.loads(line) for line in (run.folder / "imagefolder/metadata.jsonl").read_text().split("\n")[:-1]]
    assert [line["item"] for line in lines] == BEST
    assert lines[0] == {
        "file_name": "000001.png", "item": "c <b>", "rank": 1, "text": "a colour called c <b>",
        "sha256": digest_file(tmp_path / "picture-2.png"), "licence": "CC0", "source": "https://example.org/2",
        "author": "somebody",
    }  # fmt: skip
    for line in lines:
        assert digest_file(run.folder / "imagefolder" / line["file_name"]) == line["sha256"]
    assert sorted(path.name for path in (run.folder / "webdataset").iterdir()) == ["pairs-00000.tar", "pairs-00001.tar"]
    with tarfile.open(run.folder / "webdataset/pairs-00000.tar") as shard:
        members = shard.getmembers()
        assert [each.name for each in members] == [
            f"00000{n}.{kind}" for n in (1, 2) for kind in ("png", "json", "txt")
        ]
        assert {(each.mtime, each.uid, each.gid, each.uname) for each in members} == {(0, 0, 0, "")}
    assert set(table.filter(form="webdataset")["path"]) == {
        "webdataset/pairs-00000.tar/000001.png", "webdataset/pairs-00000.tar/000002.png",
        "webdataset/pairs-00001.tar/000003.png",
    }  # fmt: skip


@pytest.mark.parametrize("rights", ["none", "empty"])
def test_a_pair_without_a_licence_is_refused_left_out_or_taken_in_and_counted(
    given: Given, tmp_path: Path, rights: str
) -> None:
    folder = tmp_path / "rights"
    folder.mkdir()
    path = None if rights == "none" else rights_of(folder, ITEMS[1:2], licence=" ")
    some = (*given[:3], path)
    with pytest.raises(UsageError, match="3 of 3 without, such as 'c <b>'"):
        exported(some, tmp_path / "refused")
    with pytest.raises(UsageError, match="3 of 3 without"):
        exported(some, tmp_path / "none left", unlicensed="leave-out")
    run = exported(some, tmp_path / "taken", unlicensed="include")
    assert run.manifest.counts["pairs without a licence"] == 3
    assert verify_run(run.folder).exit_code == 0
    folder = tmp_path / "one"
    folder.mkdir()
    some = (*given[:3], rights_of(folder, ITEMS[1:2]))
    run = exported(some, tmp_path / "left out", unlicensed="leave-out")
    assert (run.manifest.counts["pairs"], run.manifest.drops) == (1, {"pairs without a licence": 2})
    assert verify_run(run.folder).exit_code == 0


def test_a_picture_that_is_not_the_one_of_its_table_is_refused(given: Given, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "picture-3.png", tmp_path / "picture-2.png")
    with pytest.raises(IntegrityError, match="not the one of its table"):
        exported(given, tmp_path / "pairs")


def test_tables_of_other_pairs_are_refused(given: Given, tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").write_text('{"id": "b", "text": "one"}\n')
    with pytest.raises(UsageError, match="have no caption"):
        exported(given, tmp_path / "pairs")
    with pytest.raises(UsageError, match="nothing was kept by random"):
        exported(given, tmp_path / "pairs", strategy="random")
    (tmp_path / "rights.csv").write_text("image_id,licence\nb,CC0\n")
    texts_of(tmp_path, ITEMS)
    with pytest.raises(UsageError, match="lacks columns"):
        exported(given, tmp_path / "pairs")


@pytest.mark.external
def test_datasets_reads_the_folder(given: Given, tmp_path: Path) -> None:
    """Needs `python -m pip install datasets pillow`."""
    datasets: Any = pytest.importorskip("datasets")
    run = exported(given, tmp_path / "pairs")
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(run.folder / "imagefolder"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded["item"][:] == BEST
    assert loaded["licence"][:] == ["CC0"] * 3
    assert loaded[1]["text"] == "a colour called b\u2028"
    assert loaded[1]["image"].getpixel((0, 0)) == (40, 90, 170)


@pytest.mark.external
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_webdataset_reads_the_shards(given: Given, tmp_path: Path) -> None:
    """Needs `python -m pip install webdataset`, and torch."""
    pytest.importorskip("webdataset")
    read: Any = importlib.import_module("webdataset").WebDataset
    run = exported(given, tmp_path / "pairs", forms=("webdataset",), per_shard=2)
    shards = [str(path) for path in sorted((run.folder / "webdataset").glob("*.tar"))]
    samples = list(read(shards, shardshuffle=False).decode("rgb8").to_tuple("png", "txt", "json"))
    assert [told["item"] for _, _, told in samples] == BEST
    assert [text for _, text, _ in samples] == [f"a colour called {item}" for item in BEST]
    assert samples[1][0][0, 0].tolist() == [40, 90, 170]
    gc.collect()  # it leaves shards open, and says so here rather than at the end of all tests
