"""Scores of `c3`: equations by hand, what lacks a caption, many shards, and correlation of ranks with ratings."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from culturekit.builders.captions import pairs
from culturekit.builders.captions.pairs import SelectOptions, Strategy, select
from culturekit.core.engines import engine_for
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.run import run_stage
from culturekit.core.schemas import SCORES, SELECTED, SELECTION, VALUES
from culturekit.core.tables import read_table
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.embedding.embedding import save_vectors
from culturekit.index.models.letters_encoder import LettersEncoder
from culturekit.metrics import CATALOG, alignment_c3, interval
from culturekit.recipes.c3 import scores as c3_scores
from culturekit.recipes.c3.page import PAIR_CRITERIA
from culturekit.recipes.c3.pairs import EVERY, followed_by
from culturekit.recipes.c3.scores import ROLES, C3Options, C3Scores, c3, score_c3
from culturekit.scores.inputs import LabelledVectors, VectorFolder
from tests.conftest import HereEngine

WIDTHS = {"source": 6, "target": 6, "objects": 6, "image": 4, "image_target": 4}


def drawn(*, items: int = 25, seed: int = 0) -> dict[str, LabelledVectors]:
    """Draw sentence vectors and images of items, and up to three objects of each."""
    rng = np.random.default_rng(seed)
    ids = [f"caption {number:02}" for number in range(items)]
    every = dict.fromkeys(ROLES, ids)
    every["objects"] = [f"{name}#{k}" for name in ids for k in range(int(rng.integers(0, 4)))]
    return {
        role: LabelledVectors(rng.normal(size=(len(names), WIDTHS[role])).astype(np.float32), names)
        for role, names in every.items()
    }


def of_item(vectors: Mapping[str, LabelledVectors], item: str) -> dict[str, Any]:
    own: dict[str, Any] = dict.fromkeys(ROLES)
    for role, labelled in vectors.items():
        own[role] = [
            vector for vector, name in zip(labelled.vectors, labelled.ids, strict=True) if name.split("#")[0] == item
        ]
    return own


def scored(vectors: Mapping[str, LabelledVectors], **options: Any) -> C3Scores:
    """Score, and hold the answer against the declarations of the tables."""
    answer = score_c3(vectors, options=C3Options(**options))
    for table, frame in (
        (SCORES, answer.scored.scores),
        (VALUES, answer.scored.values),
        (SELECTION, answer.selection),
    ):
        assert table.problems(frame) == []
    return answer


def test_each_item_has_the_terms_of_its_own_vectors() -> None:
    vectors = drawn()
    answer = scored(vectors)
    terms = {"c3": "total", "c3_text": "text", "c3_image": "image", "c3_object": "object"}
    for row in answer.scored.values.rows(named=True):
        expected = getattr(alignment_c3(**of_item(vectors, row["item"])), terms[row["metric"]])
        assert row["value"] == (None if math.isnan(expected) else pytest.approx(expected, abs=1e-12))
    assert answer.scored.values.height == 4 * 25


def test_a_score_is_the_mean_over_items_with_an_interval_over_them() -> None:
    answer = scored(drawn(), model="nllb")
    assert answer.scored.scores.height
    for row in answer.scored.scores.rows(named=True):
        values = answer.scored.values.filter(metric=row["metric"])["value"].drop_nulls().to_list()
        expected = interval(values, prompts=list(range(len(values))), repeats=[0] * len(values))
        assert (row["value"], row["n"], row["model"]) == (pytest.approx(expected.value), len(values), "nllb")
        assert CATALOG[row["metric"]].unit == row["unit"]
        assert json.loads(row["params"]) == {"target": "population"}
        if len(values) >= 20:
            half = 2.064 * np.std(values, ddof=1) / math.sqrt(len(values))
            if len(values) == 25:
                assert row["ci_high"] - row["value"] == pytest.approx(half, rel=1e-3)


def test_missing_terms_are_counted() -> None:
    vectors = drawn()
    without = 25 - len({name.split("#")[0] for name in vectors["objects"].ids})
    assert without > 0
    answer = scored(vectors)
    assert answer.scored.left_out == {"items without the term object": without}
    assert answer.selection.height == 0, "nothing is kept unless asked for"
    own, stray = vectors["image"], np.ones((1, 4), np.float32)
    more = LabelledVectors(np.concatenate([own.vectors, stray]), [*own.ids, "nobody's image"])
    answer = scored({**vectors, "image": more})
    assert answer.scored.left_out["items without a caption"] == 1
    assert "nobody's image" not in answer.scored.values["item"]
    del vectors["image"]
    answer = scored(vectors)
    assert answer.scored.left_out["items without the term image"] == 25
    row = answer.scored.scores.filter(metric="c3_image").row(0, named=True)
    assert (row["n"], math.isnan(row["value"]), row["ci_low"]) == (0, True, None)
    assert json.loads(row["params"])["no_value"] == "vectors of one side of the term are not given"


def test_a_number_sign_within_an_id_is_part_of_it() -> None:
    ids = ["see #1 here", "item#12", "item#3", "#5"]
    vectors = LabelledVectors(np.eye(4, dtype=np.float32), ids)
    answer = scored({"source": vectors, "target": vectors})
    assert set(answer.scored.scores["ci_low"]) == {None}, "so few have no interval"
    assert {json.loads(params)["target"] for params in answer.scored.scores["params"]} == {"population"}
    assert sorted(answer.scored.values.filter(metric="c3_text")["item"]) == ["#5", "item", "see #1 here"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_vectors_changes_nothing(seed: int) -> None:
    vectors, rng = drawn(), np.random.default_rng(seed)
    mixed = {}
    for role, labelled in vectors.items():
        order = rng.permutation(len(labelled.ids))
        mixed[role] = replace(labelled, vectors=labelled.vectors[order], ids=[labelled.ids[i] for i in order])
    first, second = scored(vectors, keep=5), scored(mixed, keep=5)
    assert first.scored.values.equals(second.scored.values)
    assert first.scored.scores.equals(second.scored.scores)
    assert first.selection.equals(second.selection)


def test_what_cannot_be_scored_is_explained() -> None:
    vectors = drawn(items=3)
    narrow = LabelledVectors(np.ones((3, 5), np.float32), vectors["source"].ids)
    twice = LabelledVectors(np.ones((2, 6), np.float32), ["a", "a"])
    with pytest.raises(UsageError, match="target and objects must share one space"):
        scored({**vectors, "source": narrow})
    with pytest.raises(UsageError, match="an id stands twice among the vectors of target; found 'a'"):
        scored({**vectors, "target": twice})
    with pytest.raises(UsageError, match="there is no caption to score"):
        scored({"source": vectors["source"], "image": vectors["image"]})
    with pytest.raises(UsageError, match="strategy must be 'c3' or"):
        scored(vectors, strategy="best")
    with pytest.raises(UsageError, match="vectors must be of the roles"):
        scored({**vectors, "caption": vectors["target"]})


def test_vectors_of_which_nothing_can_be_compared_are_refused() -> None:
    vectors = drawn(items=3)
    with pytest.raises(UsageError, match=r"nothing says how well the captions fit.*found vectors of target"):
        scored({"target": vectors["target"]})
    strange = LabelledVectors(vectors["image"].vectors, ["x", "y", "z"])
    with pytest.raises(UsageError, match=r"no item has vectors of both image and image_target.*'x' and 'caption 00'"):
        scored({**vectors, "image": strange})
    with pytest.raises(UsageError, match="no item has what the strategy 'objects' ranks by"):
        scored({role: vectors[role] for role in ("source", "target")}, keep=2, strategy="objects")


def test_pictures_without_any_object_leave_the_other_terms() -> None:
    vectors = drawn(items=3)
    bare = {**vectors, "objects": LabelledVectors(np.empty((0, 6), np.float32), [])}
    answer = scored(bare).scored
    without = scored({role: own for role, own in vectors.items() if role != "objects"}).scored
    assert answer.values.equals(without.values)
    assert answer.left_out["items without the term object"] == 3


def test_single_tokens_give_the_maxima_of_the_equations(tmp_path: Path) -> None:
    """Words of the letters' encoder, embedded by the stage, against a walk over all pairs of words."""
    texts = {
        "source": {"a": "red lanterns", "b": "a tea ceremony"},
        "target": {"a": "lanterns of red silk", "b": "tea"},
    }
    folders: dict[str, Any] = {}
    for role, own in texts.items():
        path = tmp_path / f"{role}.jsonl"
        path.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in own.items()))
        stage = embed_stage(EmbedSource(texts=(path,)), encoder="letters", give="tokens")
        folders[role] = VectorFolder(run_stage(stage, tmp_path / role, engine=HereEngine()).folder)
    run_stage(c3.stage(**folders), tmp_path / "scores", engine=HereEngine())
    values = read_table(tmp_path / "scores/values.parquet", VALUES).filter(metric="c3_text")
    made = LettersEncoder()
    for item, value in values.select("item", "value").iter_rows():
        one, other = (made.encode_texts(own[item].split()).astype(float) for own in texts.values())
        assert value == pytest.approx(np.mean([max(float(s @ t) for t in other) for s in one]), abs=1e-6)


ALL: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")
NAMES = ("a", "a b", "a!", 'a"', "a#b", "a#2#b", "ä", "茶", "")


def tokens(rng: np.random.Generator, items: Sequence[str], most: int) -> list[str]:
    """Name up to so many tokens of each item; some have none."""
    return [f"{item}#{k}" for item in items for k in range(int(rng.integers(0, most + 1)))]


def drawn_tokens(seed: int = 0) -> dict[str, LabelledVectors]:
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
    monkeypatch.setattr(c3_scores, "ROWS_PER_SHARD", 17)
    monkeypatch.setattr(c3_scores, "NUMBERS_AT_ONCE", 60)
    vectors, options = drawn_tokens(), C3Options(keep=20)
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
    monkeypatch.setattr(c3_scores, "ROWS_PER_SHARD", 17)
    monkeypatch.setattr(pairs, "PAIRS_PER_SHARD", 17)
    stage = c3.stage(**stored(tmp_path, drawn_tokens(), ordered=True))
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
    run_stage(c3.stage(**stored(tmp_path, drawn_tokens(), ordered=True)), tmp_path / "scores", engine=HereEngine())
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
    run_stage(c3.stage(**stored(tmp_path, drawn_tokens(), ordered=True)), tmp_path / "scores", engine=HereEngine())
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
    stage = c3.stage(**stored(tmp_path, drawn_tokens(), ordered=True))
    with engine_for("dask", workers=2, folder=tmp_path) as engine:
        there = run_stage(stage, tmp_path / "there", engine=engine).folder
    here = run_stage(stage, tmp_path / "here", engine=HereEngine()).folder
    assert (there / "values.parquet").read_bytes() == (here / "values.parquet").read_bytes()


ITEMS = 80


@pytest.fixture(scope="module")
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Values of a strategy that ratings follow, and of chance."""
    rng = np.random.default_rng(0)
    good = rng.normal(size=ITEMS)
    items = [f"pair {number:02}" for number in range(ITEMS)]
    values = {"c3": good, "random": rng.normal(size=ITEMS)}
    ratings = {criterion: good * 0.5 + rng.normal(size=ITEMS) for criterion in PAIR_CRITERIA}
    return (
        pl.concat([pl.DataFrame({"item": items, "strategy": name, "value": each}) for name, each in values.items()]),
        pl.concat([pl.DataFrame({"item_id": items, "criterion": criterion, "score": each})
                   for criterion, each in ratings.items()]),
    )  # fmt: skip


def test_each_criterion_is_scipys_and_all_is_their_mean(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    answer = followed_by(*tables, resamples=999, seed=1)
    assert SCORES.problems(answer.scores) == []
    assert answer.scores.height == 2 * (len(PAIR_CRITERIA) + 1)
    values, means = tables
    for strategy in ("c3", "random"):
        rows: dict[str, dict[str, Any]] = {
            params["with"]["criterion"]: row | params
            for row in answer.scores.rows(named=True)
            if (params := json.loads(row["params"]))["strategy"] == strategy
        }
        own = values.filter(strategy=strategy)["value"].to_numpy()
        found = [stats.pearsonr(own, means.filter(criterion=name)["score"].to_numpy()) for name in PAIR_CRITERIA]
        for name, one in zip(PAIR_CRITERIA, found, strict=True):
            assert rows[name]["value"] == pytest.approx(one.statistic)
            assert rows[name]["p"] == pytest.approx(one.pvalue, abs=0.05), "of permutations, beside that of t"
            assert rows[name]["ci_low"] < rows[name]["value"] < rows[name]["ci_high"]
        assert rows[EVERY]["value"] == pytest.approx(np.mean([one.statistic for one in found]))
        widest = max(rows[name]["ci_high"] - rows[name]["ci_low"] for name in PAIR_CRITERIA)
        assert rows[EVERY]["ci_high"] - rows[EVERY]["ci_low"] < widest
        assert rows[EVERY]["p"] == pytest.approx(0.001) if strategy == "c3" else rows[EVERY]["p"] > 0.05


def test_few_pairs_have_no_interval_and_none_that_vary_no_p(tables: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    values, means = (
        table.filter(pl.col(name) < "pair 05") for table, name in zip(tables, ("item", "item_id"), strict=True)
    )
    answer = followed_by(values.with_columns(value=pl.lit(1.0)), means, resamples=99, seed=1).scores
    assert set(answer["ci_low"]) == {None}
    assert {json.loads(text)["p"] for text in answer["params"]} == {None}
