"""Differences of models, worked out again from the values that were compared."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, Mean, mean, of_these, t_answer
from culturekit.verify.scores.score_rows import close, compare_row, wrong_row
from culturekit.verify.scores.student import share_below

__all__ = ["Side", "check_comparisons", "check_corrections", "check_p", "gap_of", "known_values"]

MOST_FLIPPED = 1000
"""Prompts above which a p value is that of t."""

MOST_COUNTED = 20
"""Gaps whose flips are all counted, a million of them."""

MOST_SUMS = 4000
"""With more different sums of flipped gaps they are not counted one by one."""

HOW = "from the values compared: prompt against prompt, t interval; p by all sign flips, or within chance of drawn ones"

Side = dict[str, dict[str, list[float]]]
"""Country (or nothing) -> prompt -> values."""

Row = Mapping[str, Any]

PLACE = ("benchmark", "concept", "group")

ValuesBehind = dict[tuple[Any, ...], dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]]
"""By metric and place, and by the text of their parameters: these, and the values."""


def check_comparisons(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out every difference of two models, and the correction of its p value."""
    sources = tree.inputs_of(stage, "values")
    options = stage.manifest.options
    if sources is None:
        ledger.not_verifiable(stage.name, rows, "the values that were compared are not here")
        return
    values = by_score(known_values(sources.values(), options["ignore"]))
    own = [row for row in rows if row["metric"] == "model_difference"]
    for row in own:
        with ledger.guarded("scores", f"{stage.name} row {row['row']}"):
            check_row(stage.name, row, values, options, ledger)
    check_corrections(stage.name, own, options["correction"], ledger)


def known_values(paths: Iterable[Path], ignored: Sequence[str]) -> list[dict[str, Any]]:
    """Read values that are known, without the parameters in which scores may differ."""
    rows: list[dict[str, Any]] = []
    told: dict[str, dict[str, Any]] = {}
    for path in paths:
        for row in pl.read_parquet(path).iter_rows(named=True):
            if row["value"] is not None and math.isfinite(row["value"]):
                text = row["params"]
                if text not in told:
                    told[text] = {key: value for key, value in json.loads(text).items() if key not in ignored}
                rows.append({**row, "about": told[text], "unit_id": row["prompt_id"] or row["item"]})
    return rows


def by_score(values: Sequence[dict[str, Any]]) -> ValuesBehind:
    """Gather values by what they are of."""
    behind: ValuesBehind = {}
    for one in values:
        own = behind.setdefault((one["metric"], *(one[name] for name in PLACE)), {})
        own.setdefault(one["params"], (one["about"], []))[1].append(one)
    return behind


def sides_of(row: Row, values: ValuesBehind) -> tuple[Side, Side]:
    """Gather the values of both models; those of all countries stand country by country."""
    about = row["about"]
    own = values.get((about["metric"], *(row[name] for name in PLACE)), {})
    same = [one for of, rows in own.values() if of == about["of"] for one in rows]
    exact = [one for one in same if one["country"] == row["country"]]
    stratified = row["country"] is None and not exact
    sides: dict[str, Side] = {about["a"]: {}, about["b"]: {}}
    for one in same if stratified else exact:
        if one["model"] in sides:
            country = (one["country"] or "") if stratified else ""
            sides[one["model"]].setdefault(country, {}).setdefault(one["unit_id"], []).append(one["value"])
    return sides[about["a"]], sides[about["b"]]


def check_row(
    folder: str, row: dict[str, Any], values: ValuesBehind, options: Mapping[str, Any], ledger: Ledger
) -> None:
    """Work one difference out."""
    first, second = sides_of(row, values)
    units = [{(country, unit) for country, own in side.items() for unit in own} for side in (first, second)]
    common, every = units[0] & units[1], units[0] | units[1]
    if options["paired"]:
        first, second = kept(first, common), kept(second, common)
    n = sum(len(values) for side in (first, second) for own in side.values() for values in own.values())
    gap, p, drawn = gap_of(first, second, options)
    entered = len(common) if options["paired"] else len(every)
    said = {"common": len(common), "left_out": len(every) - entered, "prompts": entered}
    limits = t_answer(gap, float(options["confidence"]))
    answer = Answer(gap.value, limits.low, limits.high)
    compare_row(folder, row, answer, n, HOW, ledger, said=said)
    check_p(folder, row, p, int(options["resamples"]) if drawn else None, ledger)


def check_p(folder: str, row: dict[str, Any], p: float, drawn: int | None, ledger: Ledger) -> None:
    """Compare a p value, which may rest on drawn sign flips."""
    stated = row["about"]["p"]
    fits = close(stated, p, tolerance=1e-7) if drawn is None else within_chance(stated, p, drawn)
    if not fits:
        wrong_row(folder, row, "p is not what the values give", expected=p, found=stated, ledger=ledger)


def kept(side: Side, common: set[tuple[str, str]]) -> Side:
    """Keep the prompts that both models have."""
    left = {
        country: {unit: values for unit, values in own.items() if (country, unit) in common}
        for country, own in side.items()
    }
    return {country: own for country, own in left.items() if own}


def gap_of(first: Side, second: Side, options: Mapping[str, Any]) -> tuple[Mean, float, bool]:
    """Give the difference, its p value, and whether that rests on drawn sign flips."""
    if options["paired"] and options["target"] == "population":
        strata = [
            [mean(first[country][unit]).value - mean(second[country][unit]).value for unit in sorted(first[country])]
            for country in sorted(first)
        ]
        flat = [gap / len(part) for part in strata for gap in part]
        gap = mean(strata[0]) if len(strata) == 1 else of_these(strata)
        if len(flat) > MOST_FLIPPED:
            return gap, p_of_t(mean(flat)), False
        return gap, sign_flips(flat, int(options["resamples"])), 2 ** len(flat) > options["resamples"]
    sides = [mean_of_side(side, options["target"]) for side in (first, second)]
    total = sides[0].variance + sides[1].variance
    freedom = math.nan
    if total > 0:
        freedom = total**2 / math.fsum(side.variance**2 / side.freedom for side in sides if side.variance > 0)
    gap = Mean(sides[0].value - sides[1].value, total, freedom)
    return gap, p_of_t(gap), False


def mean_of_side(side: Side, target: str) -> Mean:
    """Average a side: values, then prompts, then countries."""
    parts = []
    for country in sorted(side):
        prompts = list(side[country].values())
        parts.append(of_these(prompts) if target == "these" else mean([mean(values).value for values in prompts]))
    return parts[0] if len(parts) == 1 else together_of(parts)


def together_of(parts: Sequence[Mean]) -> Mean:
    """Average countries alike."""
    total = math.fsum(part.variance for part in parts)
    value = mean([part.value for part in parts]).value
    if not total > 0:
        return Mean(value, total, math.nan)
    freedom = total**2 / math.fsum(part.variance**2 / part.freedom for part in parts if part.variance > 0)
    return Mean(value, total / len(parts) ** 2, freedom)


def p_of_t(gap: Mean) -> float:
    """Give the two-sided p value of a mean by its t."""
    if math.isnan(gap.variance):
        return math.nan
    if gap.variance == 0:
        return 0.0 if gap.value else 1.0
    return min(1.0, 2 * share_below(-abs(gap.value) / math.sqrt(gap.variance), gap.freedom))


def sign_flips(gaps: Sequence[float], resamples: int) -> float:
    """Give the two-sided p value of a mean over all flips of its signs.

    Where these are more than were drawn, all are counted if few different sums come out, as of few different gaps, or
    if few gaps are not 0; else by the normal approximation, around which drawn flips scatter.
    """
    if len(gaps) < 2:
        return math.nan
    seen = math.fsum(gaps)
    room = 1e-13 * math.fsum(map(abs, gaps))
    if 2 ** len(gaps) > resamples:
        counted = chances_of_sums(gaps)
        if counted is not None:
            return two_sided(counted, seen, 1e4 * room)
        moving = [gap for gap in gaps if abs(gap) > room]
        if len(moving) <= MOST_COUNTED:
            return counted_flips(moving, seen, 1e4 * room)
        spread = math.sqrt(math.fsum(gap**2 for gap in gaps))
        return 1.0 if spread == 0 else math.erfc(abs(seen) / spread / math.sqrt(2))
    flips = Counter(math.fsum(s * g for s, g in zip(signs, gaps, strict=True)) for signs in signs_of(len(gaps)))
    return two_sided({flip: count / flips.total() for flip, count in flips.items()}, seen, room)


def counted_flips(gaps: Sequence[float], seen: float, room: float) -> float:
    """Give the two-sided p value by the sums of all flips, doubled gap by gap."""
    sums = np.zeros(1)
    for gap in gaps:
        sums = np.concatenate([sums + gap, sums - gap])
    above, below = (sums >= seen - room).mean(), (sums <= seen + room).mean()
    return min(1.0, 2 * float(min(above, below)))


def two_sided(chances: Mapping[float, float], seen: float, room: float) -> float:
    """Give the chance of a sum as far out as the one seen, on either side."""
    above = math.fsum(chance for one, chance in chances.items() if one >= seen - room)
    below = math.fsum(chance for one, chance in chances.items() if one <= seen + room)
    return min(1.0, 2 * min(above, below))


def chances_of_sums(gaps: Sequence[float]) -> dict[float, float] | None:
    """Give the chance of every sum that flips of signs can have; None where there are too many different ones."""
    scale = math.fsum(map(abs, gaps)) or 1.0
    chances = {0.0: 1.0}
    for gap in gaps:
        after: dict[float, float] = {}
        for one, chance in chances.items():
            for signed in (one + gap, one - gap):
                # Sums that differ by rounding only are the same sum.
                key = round(signed / scale, 12) * scale
                after[key] = after.get(key, 0.0) + chance / 2
        if len(after) > MOST_SUMS:
            return None
        chances = after
    return chances


def signs_of(count: int) -> Iterator[tuple[int, ...]]:
    """List all flips of signs."""
    return itertools.product((1, -1), repeat=count)


def within_chance(stated: float | None, p: float, resamples: int) -> bool:
    """Tell whether a p value of drawn flips is one that chance and the normal approximation allow."""
    if stated is None or math.isnan(p):
        return stated is None and math.isnan(p)
    return abs(stated - p) <= 6 * math.sqrt(max(p * (1 - p), 1 / resamples) / resamples) + 0.02


def check_corrections(folder: str, rows: Sequence[dict[str, Any]], correction: str, ledger: Ledger) -> None:
    """Work out the corrected p values from the plain ones, family by family."""
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        key = json.dumps([row["about"]["metric"], row["benchmark"], row["about"]["of"]], sort_keys=True)
        families.setdefault(key, []).append(row)
    for members in families.values():
        plain = [math.nan if row["about"]["p"] is None else row["about"]["p"] for row in members]
        for row, found in zip(members, holm(plain) if correction == "holm" else hochberg(plain), strict=True):
            if not close(row["about"]["p_corrected"], found) or row["about"]["family"] != len(members):
                wrong_row(
                    folder, row, "the corrected p is not that of its family", expected=found,
                    found=row["about"]["p_corrected"], ledger=ledger,
                )  # fmt: skip


def holm(p: Sequence[float]) -> list[float]:
    """Step down: the smallest times their number, the next times one less, never falling."""
    known = sorted((one, place) for place, one in enumerate(p) if not math.isnan(one))
    out, highest = [math.nan] * len(p), 0.0
    for step, (one, place) in enumerate(known):
        highest = max(highest, one * (len(known) - step))
        out[place] = min(1.0, highest)
    return out


def hochberg(p: Sequence[float]) -> list[float]:
    """Step up (Benjamini and Hochberg): each times the number over its rank, never above the next."""
    known = sorted((one, place) for place, one in enumerate(p) if not math.isnan(one))
    out, lowest = [math.nan] * len(p), 1.0
    for rank in range(len(known), 0, -1):
        one, place = known[rank - 1]
        lowest = min(lowest, one * len(known) / rank)
        out[place] = lowest
    return out
