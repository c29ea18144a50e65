"""Causes held against the stages themselves: each thing really exchanged alone between two runs, either way."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from culturekit.trail.space_causes import compare_spaces, space_behind
from tests.effort import THOROUGH
from tests.trail.space_world import BRAZIL, DISH, DRINK, ITALY, ITEMS, JAPAN, STEW, World, make_run

FACTORS = {"items": "dump", "roots": "config", "hops": "config", "countries": "config", "verdicts": "model"}
PLACES = (BRAZIL, JAPAN, ITALY)

Rows = Mapping[tuple[str, str, str], Mapping[str, Any]]

SEEDS = 25 if THOROUGH else 6


def drawn(random: Random) -> World:
    """A world whose classes may hang below one another, with things of several classes and countries."""
    items = {qid: item for qid, item in ITEMS.items() if qid in {DISH, DRINK}}
    items[STEW] = ("stew", {"P279": random.sample([DISH, DRINK], random.randint(0, 2))})
    items["Q1002"] = ("soup", {"P279": [random.choice([STEW, DISH])]})
    items["Q50"] = ("always there", {"P31": [DISH, DRINK], "P495": list(PLACES)})
    for number in range(1, 11):
        kinds = random.sample([DISH, STEW, DRINK, "Q1002"], random.randint(1, 2))
        places = random.sample(PLACES, random.randint(0, 2))
        items[f"Q{number}"] = (f"thing {number} {random.choice('ab')}", {"P31": kinds, "P495": places})
    return World(
        items=items, roots=tuple(random.sample([(DISH, None), (DRINK, "drinks")], random.randint(1, 2))),
        hops=random.randint(1, 3), countries=random.choice([None, ("BR", "JP"), ("BR", "IT", "JP")]),
        verdicts={f"Q{number}": random.choice(["remove", "review"]) for number in random.sample(range(1, 11), 2)},
    )  # fmt: skip


def near(random: Random, world: World) -> World:
    """The same world with some of it from another."""
    other = drawn(random)
    items = {qid: random.choice([item, item, other.items[qid]]) for qid, item in world.items.items()}
    chosen = random.sample(["roots", "hops", "countries", "verdicts"], 2)
    return replace(world, items=items, **{name: getattr(other, name) for name in chosen})


def rows_of(run: Path) -> Rows:
    rows = pl.read_parquet(run / "cspace/cspace.parquet").to_dicts()
    return {(row["concept"], row["country"], row["artifact_id"]): row for row in rows}


def value(rows: Rows, key: tuple[str, str, str], part: str) -> object:
    row = rows.get(key)
    return "absent" if row is None else True if part == "artifact" else row[part]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, SEEDS))])
def test_what_really_makes_a_row_another_is_named(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    first = drawn(random)
    second = near(random, first)
    worlds = {"a": first, "b": second}
    for (side, world), name in itertools.product(list(worlds.items()), FACTORS):
        other = second if side == "a" else first
        worlds[f"{side}-{name}"] = replace(world, **{name: getattr(other, name)})
    spaces = {}
    for name, world in worlds.items():
        spaces[name] = rows_of(make_run(tmp_path / name, world, monkeypatch))
    found, _ = compare_spaces(space_behind(tmp_path / "a"), space_behind(tmp_path / "b"))
    assert found.height
    for row in found.iter_rows(named=True):
        key = (row["concept"], row["value"], row["qid"])
        keys = [key, (row["concept"], row["after"], row["qid"])] if row["part"] == "country" else [key]
        if row["part"] != "country" and key not in spaces["b"] and row["change"] not in {"added", "removed"}:
            continue  # the row moved to another country; its move is looked at
        expected = {
            cause
            for name, cause in FACTORS.items()
            for side in "ab"
            if [value(spaces[f"{side}-{name}"], k, row["part"]) for k in keys]
            != [value(spaces[side], k, row["part"]) for k in keys]
        }
        if expected:
            assert set(row["causes"]) <= expected, row
            assert expected & {*row["causes"], *row["undecided"]}, row
