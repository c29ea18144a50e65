"""Pairs: strategies that select them, against a walk that shares nothing with them, and exports of what was kept."""

import gc
import importlib
import json
import math
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.builders.captions.pairs import SelectOptions, Strategy, export, select, select_pairs
from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.run import StageRun
from culturekit.core.schemas import EXPORTED, SELECTED, VALUES
from culturekit.core.tables import read_table
from culturekit.recipes.c3.scores import C3Options, score_c3
from culturekit.verify.verify_run import verify_run
from tests.builders.captions.pair_worlds import Terms, done, images_of, rights_of, texts_of, values_of
from tests.recipes.c3.test_scores import drawn

SOME: Terms = {
    "a": (0.9, 0.1, 0.2), "b": (0.5, 0.5, 0.5), "c": (0.1, 0.9, None), "d": (None, None, None),
    "e": (0.5, 0.5, 0.5), "f": (None, 0.4, 0.6),
}  # fmt: skip
ALL: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")


def kept(tmp_path: Path, **options: Any) -> dict[str, list[str]]:
    values = read_table(values_of(tmp_path, SOME), VALUES)
    table = select_pairs(values, SelectOptions(**options))
    assert SELECTED.problems(table) == []
    return {
        name: table.filter(pl.col("kept") & (pl.col("strategy") == name)).sort("rank")["item"].to_list()
        for name in options["strategies"]
    }


def test_each_strategy_ranks_by_its_terms_and_ties_stand_in_order_of_items(tmp_path: Path) -> None:
    assert kept(tmp_path, keep=3, strategies=ALL[1:]) == {
        "labse": ["a", "b", "e"], "clip": ["c", "b", "e"], "objects": ["f", "b", "e"], "no-objects": ["a", "b", "c"],
        "c3": ["b", "e", "a"],
    }  # fmt: skip
    # A pair that lacks a term is ranked by the others, or left out.
    assert kept(tmp_path, keep=6, strategies=("c3", "clip"))["c3"] == ["b", "e", "a", "c", "f"]
    assert kept(tmp_path, keep=6, strategies=("c3", "clip"), missing="leave-out") == {
        "c3": ["b", "e", "a"], "clip": ["c", "b", "e", "f", "a"],
    }  # fmt: skip


def test_every_pair_has_a_row_with_its_missing_terms_and_its_reason(tmp_path: Path) -> None:
    def selected(keep: int) -> StageRun:
        options = SelectOptions(keep=keep, strategies=("c3", "random"))
        return done(select.stage(values_of(tmp_path, SOME), options=options), tmp_path / f"selected-{keep}")

    run = selected(2)
    assert dict(run.manifest.drops) == {
        "c3: below the number kept": 3, "c3: has none of the terms": 1, "random: below the number kept": 4,
    }  # fmt: skip
    assert run.manifest.counts == {"selected": 12, "c3 kept": 2, "random kept": 2}
    rows = {row["item"]: row for row in read_table(run.folder / "selected.parquet", SELECTED).rows(named=True)
            if row["strategy"] == "c3"}  # fmt: skip
    assert rows["c"]["missing"] == ["object"]
    assert (rows["d"]["rank"], rows["d"]["value"], len(rows["d"]["missing"])) == (None, None, 3)
    assert rows["b"]["reason"] is None
    manifest = selected(6).manifest
    assert manifest.notes["findings"] == ["there are fewer pairs than asked for: c3 keeps 5 of 6"]
    assert manifest.counts["c3 kept without a term"] == 2


def test_chance_is_the_seed_s_and_what_it_keeps_of_fewer_is_among_what_it_keeps_of_more(tmp_path: Path) -> None:
    three = kept(tmp_path, keep=3, strategies=("random",), seed=5)["random"]
    assert kept(tmp_path, keep=5, strategies=("random",), seed=5)["random"][:3] == three
    draws = [kept(tmp_path, keep=1, strategies=("random",), seed=seed)["random"][0] for seed in range(60)]
    assert set(draws) == set(SOME), "also those that have no term"
    assert max(Counter(draws).values()) <= 25


def test_values_of_two_scorings_are_refused(tmp_path: Path) -> None:
    values = read_table(values_of(tmp_path, SOME), VALUES)
    other = values.with_columns(model=pl.lit("other"))
    with pytest.raises(UsageError, match="one scoring"):
        select_pairs(pl.concat([values, other]), SelectOptions(keep=1))
    with pytest.raises(UsageError, match="strategies"):
        select.stage(tmp_path, options=SelectOptions(keep=1, strategies=("best",)))  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ALL[1:])
def test_what_is_kept_is_what_the_scoring_keeps(strategy: Any) -> None:
    answer = score_c3(drawn(items=40), options=C3Options(keep=15, strategy=strategy))
    table = select_pairs(answer.scored.values, SelectOptions(keep=15, strategies=(strategy,)))
    ours = table.filter("kept").sort("rank").select("item", "value")
    assert ours.rows() == answer.selection.select("item", "value").rows()


def test_a_walk_of_another_kind_gives_the_same_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    terms: Terms = {
        f"{number:03}": tuple(None if rng.random() < 0.2 else round(float(rng.random()), 1) for _ in range(3))  # type: ignore[misc]
        for number in range(200)
    }
    table = select_pairs(read_table(values_of(tmp_path, terms), VALUES), SelectOptions(keep=70, strategies=ALL[1:]))
    for strategy, uses in (("labse", [0]), ("clip", [1]), ("objects", [2]), ("no-objects", [0, 1]), ("c3", [0, 1, 2])):
        sums = {item: [each[n] for n in uses if each[n] is not None] for item, each in terms.items()}
        best = sorted((item for item in sums if sums[item]), key=lambda item: (-math.fsum(sums[item]), item))[:70]  # type: ignore[arg-type]
        assert table.filter(kept=True, strategy=strategy).sort("rank")["item"].to_list() == best


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


def test_tables_and_pictures_of_other_pairs_are_refused(given: Given, tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").write_text('{"id": "b", "text": "one"}\n')
    with pytest.raises(UsageError, match="have no caption"):
        exported(given, tmp_path / "pairs")
    with pytest.raises(UsageError, match="nothing was kept by random"):
        exported(given, tmp_path / "pairs", strategy="random")
    texts_of(tmp_path, ITEMS)
    shutil.copy(tmp_path / "picture-3.png", tmp_path / "picture-2.png")
    with pytest.raises(IntegrityError, match="not the one of its table"):
        exported(given, tmp_path / "pairs")
    (tmp_path / "rights.csv").write_text("image_id,licence\nb,CC0\n")
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
