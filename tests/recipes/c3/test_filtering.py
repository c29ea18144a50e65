"""Pairs in many shards: what one piece of memory gives, whatever the order of ids, and however often a run is cut."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.builders.captions import pairs
from culturekit.builders.captions.pairs import SelectOptions, Strategy, select
from culturekit.core.engines import engine_for
from culturekit.core.errors import IntegrityError
from culturekit.core.run import run_stage
from culturekit.core.schemas import SCORES, SELECTED, SELECTION, VALUES
from culturekit.core.tables import read_table
from culturekit.index.embedding.embedding import save_vectors
from culturekit.recipes.c3 import alignment
from culturekit.recipes.c3.scores import C3Options, c3, score_c3
from culturekit.scores.inputs import LabelledVectors, VectorFolder
from tests.conftest import HereEngine

ALL: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")
NAMES = ("a", "a b", "a!", 'a"', "a#b", "a#2#b", "ä", "茶", "")


def tokens(rng: np.random.Generator, items: Sequence[str], most: int) -> list[str]:
    """Name up to so many tokens of each item; some have none."""
    return [f"{item}#{k}" for item in items for k in range(int(rng.integers(0, most + 1)))]


def drawn(seed: int = 0) -> dict[str, LabelledVectors]:
    """Draw tokens of captions and objects, in no order, of items whose names try the order of names."""
    rng = np.random.default_rng(seed)
    items = [f"{name}{number}" for name in NAMES for number in range(12)]
    ids = {role: tokens(rng, items, 3) for role in ("source", "target", "objects")}
    ids |= {"image": [*items[20:], "nobody's"], "image_target": tokens(rng, items[:-15], 4)}
    return {
        role: LabelledVectors(
            rng.normal(size=(len(own), 4 if role.startswith("image") else 6)).astype(np.float32),
            [own[place] for place in rng.permutation(len(own))],
        )
        for role, own in ids.items()
    }


def stored(folder: Path, vectors: Mapping[str, LabelledVectors], *, ordered: bool) -> dict[str, Any]:
    for role, own in vectors.items():
        (folder / role).mkdir(parents=True)
        order = sorted(range(len(own.ids)), key=lambda n: own.ids[n]) if ordered else range(len(own.ids))
        save_vectors(folder / role, own.vectors[list(order)], [own.ids[n] for n in order])
    return {role: VectorFolder(folder / role) for role in vectors}


@pytest.mark.parametrize("ordered", [True, False])
def test_shards_give_what_memory_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordered: bool) -> None:
    monkeypatch.setattr(alignment, "ROWS_PER_SHARD", 17)
    monkeypatch.setattr(alignment, "NUMBERS_AT_ONCE", 60)
    vectors, options = drawn(), C3Options(keep=20)
    whole = score_c3(vectors, options=options)
    run = run_stage(c3.stage(**stored(tmp_path, vectors, ordered=ordered), options=options), tmp_path / "out",
                    engine=HereEngine())  # fmt: skip
    assert read_table(run.folder / "values.parquet", VALUES).equals(whole.scored.values)
    assert read_table(run.folder / "selection.parquet", SELECTION).sort("rank").equals(whole.selection)
    scores = read_table(run.folder / "scores.parquet", SCORES)
    for name in ("value", "ci_low", "ci_high", "n"):
        assert scores[name].to_list() == pytest.approx(whole.scored.scores[name].to_list(), abs=1e-12)
    assert dict(run.manifest.drops) == dict(whole.scored.left_out)
    assert run.manifest.counts["values"] == whole.scored.values.height


class CutEngine(HereEngine):
    """Does so many items, and is gone."""

    def __init__(self, most: int) -> None:
        self.most, self.done = most, 0

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        for item in items:
            if self.done == self.most:
                raise KeyboardInterrupt
            self.done += 1
            yield function(item)


def test_a_run_that_is_cut_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "ROWS_PER_SHARD", 17)
    monkeypatch.setattr(pairs, "PAIRS_PER_SHARD", 17)
    stage = c3.stage(**stored(tmp_path, drawn(), ordered=True))
    with pytest.raises(KeyboardInterrupt):
        run_stage(stage, tmp_path / "scores", engine=CutEngine(5))
    rest = CutEngine(-1)
    scores = run_stage(stage, tmp_path / "scores", engine=rest).folder
    whole = CutEngine(-1)
    again = run_stage(stage, tmp_path / "again", engine=whole).folder
    assert rest.done == whole.done - 5
    assert (scores / "values.parquet").read_bytes() == (again / "values.parquet").read_bytes()
    chosen = select.stage(scores / "values.parquet", options=SelectOptions(keep=9, strategies=ALL, listed="kept"))
    with pytest.raises(KeyboardInterrupt):
        run_stage(chosen, tmp_path / "selected", engine=CutEngine(2))
    rest = CutEngine(-1)
    run_stage(chosen, tmp_path / "selected", engine=rest)
    assert rest.done == -(-len(NAMES) * 12 // 17) - 2


@pytest.mark.parametrize("missing", ["sum", "leave-out"])
def test_what_is_kept_of_many_is_what_is_kept_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: Any
) -> None:
    monkeypatch.setattr(pairs, "PAIRS_PER_SHARD", 7)
    run_stage(c3.stage(**stored(tmp_path, drawn(), ordered=True)), tmp_path / "scores", engine=HereEngine())
    values = tmp_path / "scores/values.parquet"
    runs = {
        listed: run_stage(select.stage(values, options=SelectOptions(30, ALL, missing, listed, 3)), tmp_path / listed,
                          engine=HereEngine())
        for listed in ("all", "kept")
    }  # fmt: skip
    tables = {name: read_table(run.folder / "selected.parquet", SELECTED) for name, run in runs.items()}
    assert tables["kept"].equals(tables["all"].filter("kept"))
    assert runs["kept"].manifest.drops == runs["all"].manifest.drops
    counts = {name: {**run.manifest.counts, "selected": 0} for name, run in runs.items()}
    assert counts["kept"] == counts["all"]


def test_terms_that_are_not_of_the_same_items_are_refused(tmp_path: Path) -> None:
    run_stage(c3.stage(**stored(tmp_path, drawn(), ordered=True)), tmp_path / "scores", engine=HereEngine())
    table = pl.read_parquet(tmp_path / "scores/values.parquet")
    image, options = pl.col("metric") == "c3_image", SelectOptions(keep=9, listed="kept")
    renamed = table.with_columns(item=pl.when(image).then(pl.col("item") + "?").otherwise("item"))
    for wrong in (table.filter(~(image & (pl.col("item") == "a0"))), renamed):
        wrong.write_parquet(tmp_path / "values.parquet")
        with pytest.raises(IntegrityError, match="each metric of the same items"):
            run_stage(select.stage(tmp_path / "values.parquet", options=options), tmp_path / "selected",
                      engine=HereEngine())  # fmt: skip


def test_workers_of_a_cluster_give_the_same(tmp_path: Path) -> None:
    pytest.importorskip("dask.distributed")
    stage = c3.stage(**stored(tmp_path, drawn(), ordered=True))
    with engine_for("dask", workers=2, folder=tmp_path) as engine:
        there = run_stage(stage, tmp_path / "there", engine=engine).folder
    here = run_stage(stage, tmp_path / "here", engine=HereEngine()).folder
    assert (there / "values.parquet").read_bytes() == (here / "values.parquet").read_bytes()
