"""Gaps between groups of countries or of people, recomputed from the values that were compared."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import t_answer
from culturekit.verify.scores.comparisons import Side, check_corrections, check_p, gap_of, known_values
from culturekit.verify.scores.score_rows import SCORES_FILE, compare_row

__all__ = ["check_gaps"]

OF_PEOPLE = "group"
"""The scheme whose groups stand in the values themselves."""

COUNTS = ("images_left_out",)
"""Params in which values of one score may differ."""

FEWEST_PROMPTS = 20
FLIPS = 9999
HOW = "from the values: means of images, prompts and countries of each group, Welch's t; paired prompts by sign flips"

Values: TypeAlias = Sequence[Mapping[str, Any]]


def check_gaps(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Recompute every gap, the correction of its p value, and which gaps there must be."""
    sources = [tree.source(stage, role) for role in stage.manifest.inputs]
    if None in sources:
        for row in rows:
            ledger.judge(stage.name, row, "not verifiable", "the values that were compared are not here")
        return
    options = stage.manifest.options
    known = known_values([path for path in sources if path is not None], COUNTS)
    values = [{**one, "side": side} for one in known if (side := side_of(one, options)) is not None]
    expected = {key_of(score, a, b): (score, a, b) for score, a, b in pairs_of(values)}
    for row in rows:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            about = row["about"]
            score = (row["model"], row["benchmark"], about["metric"], about["of"], row["concept"])
            key = key_of(score, about["a"], about["b"])
            if key not in expected or row["metric"] != "group_gap":
                ledger.broken("scores", f"{stage.name}/{SCORES_FILE} row {row['row']}", "is no gap of the values")
                ledger.judge(stage.name, row, "wrong", HOW)
                continue
            del expected[key]
            check_row(stage.name, row, values, options, ledger)
    for score, a, b in expected.values():
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a gap is missing", expected=f"{a} - {b} of {score}")
    check_corrections(stage.name, rows, options["correction"], ledger)


def side_of(value: Mapping[str, Any], options: Mapping[str, Any]) -> str | None:
    """Give the group that a value belongs to."""
    found = value["group"] if options["scheme"] == OF_PEOPLE else options["groups"].get(value["country"])
    return None if found is None else str(found)


def key_of(score: tuple[Any, ...], a: str, b: str) -> str:
    """Name a gap, whatever the order of its params."""
    return json.dumps([score, a, b], sort_keys=True)


def pairs_of(values: Values) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """Give every two groups of every score of a model, and over its concepts where there are several."""
    scores: dict[str, tuple[tuple[Any, ...], dict[str | None, set[str]]]] = {}
    for one in values:
        score = (one["model"], one["benchmark"], one["metric"], one["about"])
        concepts = scores.setdefault(json.dumps(score, sort_keys=True), (score, {}))[1]
        concepts.setdefault(one["concept"], set()).add(one["side"])
    for score, concepts in scores.values():
        if None not in concepts and len(concepts) > 1:
            concepts[None] = set().union(*concepts.values())
        for concept, sides in concepts.items():
            for a, b in itertools.combinations(sorted(sides), 2):
                yield (*score, concept), a, b


def check_row(folder: str, row: dict[str, Any], values: Values, options: Mapping[str, Any], ledger: Ledger) -> None:
    """Recompute one gap."""
    about = row["about"]
    same = [
        one for one in values
        if (one["model"], one["benchmark"], one["metric"]) == (row["model"], row["benchmark"], about["metric"])
        and one["about"] == about["of"]
    ]  # fmt: skip
    own = [one for one in same if one["concept"] == row["concept"]] or same
    first, second = (part_of(own, about[side]) for side in ("a", "b"))
    prompts = [{prompt for country in side.values() for prompt in country} for side in (first, second)]
    paired = prompts[0] == prompts[1] and options["scheme"] == OF_PEOPLE
    target = target_of(first, second) if options["target"] == "auto" else options["target"]
    if paired:
        first, second = without_countries(first), without_countries(second)
    gap, p, drawn = gap_of(first, second, {"paired": paired, "target": target, "resamples": FLIPS})
    units = [sum(map(len, side.values())) for side in (first, second)]
    said = {
        "scheme": options["scheme"], "target": target, "paired": paired, "prompts": units[0] if paired else sum(units),
        "countries": {about[side]: countries_of(own, about[side]) for side in ("a", "b")},
    }  # fmt: skip
    n = sum(one["side"] in {about["a"], about["b"]} for one in own)
    compare_row(folder, row, t_answer(gap, float(options["confidence"])), n, HOW, ledger, said=said)
    check_p(folder, row, p, FLIPS if drawn else None, ledger)


def part_of(values: Values, group: str) -> Side:
    """Gather the values of a group by country and prompt."""
    side: Side = {}
    for one in values:
        if one["side"] == group:
            side.setdefault(one["country"] or "", {}).setdefault(one["unit_id"], []).append(one["value"])
    return side


def countries_of(values: Values, group: str) -> list[str]:
    """List the countries that stand for a group."""
    return sorted({str(one["country"]) for one in values if one["side"] == group and one["country"] is not None})


def target_of(first: Side, second: Side) -> str:
    """Say what a gap can speak about: other prompts need 20 of them, and two in each country."""
    counts = [len(prompts) for side in (first, second) for prompts in side.values()]
    return "population" if sum(counts) >= FEWEST_PROMPTS and min(counts) > 1 else "these"


def without_countries(side: Side) -> Side:
    """Put the prompts of all countries together: pairs are of prompts."""
    prompts: dict[str, list[float]] = {}
    for country in side.values():
        for prompt, values in country.items():
            prompts.setdefault(prompt, []).extend(values)
    return {"": prompts}
