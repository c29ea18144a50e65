"""Strategies: order, ties, terms that are missing, chance; a walk that shares nothing with them."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.builders.captions.pairs import SelectOptions, Strategy, select, select_pairs
from culturekit.core.errors import UsageError
from culturekit.core.schemas import SELECTED, VALUES
from culturekit.core.tables import read_table
from culturekit.recipes.c3.scores import C3Options, score_c3
from tests.builders.captions.pair_worlds import Terms, done, values_of
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


def test_a_pair_that_lacks_a_term_is_ranked_by_the_others_or_left_out(tmp_path: Path) -> None:
    assert kept(tmp_path, keep=6, strategies=("c3", "clip"))["c3"] == ["b", "e", "a", "c", "f"]
    assert kept(tmp_path, keep=6, strategies=("c3", "clip"), missing="leave-out") == {
        "c3": ["b", "e", "a"], "clip": ["c", "b", "e", "f", "a"],
    }  # fmt: skip


def test_every_pair_has_a_row_with_its_missing_terms_and_its_reason(tmp_path: Path) -> None:
    run = done(
        select.stage(values_of(tmp_path, SOME), options=SelectOptions(keep=2, strategies=("c3", "random"))),
        tmp_path / "selected",
    )
    assert dict(run.manifest.drops) == {
        "c3: below the number kept": 3, "c3: has none of the terms": 1, "random: below the number kept": 4,
    }  # fmt: skip
    assert run.manifest.counts == {"selected": 12, "c3 kept": 2, "random kept": 2}
    rows = {row["item"]: row for row in read_table(run.folder / "selected.parquet", SELECTED).rows(named=True)
            if row["strategy"] == "c3"}  # fmt: skip
    assert rows["c"]["missing"] == ["object"]
    assert (rows["d"]["rank"], rows["d"]["value"], len(rows["d"]["missing"])) == (None, None, 3)
    assert rows["b"]["reason"] is None


def test_fewer_pairs_than_asked_for_are_a_finding(tmp_path: Path) -> None:
    stage = select.stage(values_of(tmp_path, SOME), options=SelectOptions(keep=6, strategies=("c3", "random")))
    run = done(stage, tmp_path / "selected")
    assert run.manifest.notes["findings"] == ["there are fewer pairs than asked for: c3 keeps 5 of 6"]
    assert run.manifest.counts["c3 kept without a term"] == 2


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
