"""Looks at an audit while people answer: limits that hold over all looks together, and what is settled by them.

The error that looks may make is spent as O'Brien and Fleming's limits spend it (Lan and DeMets 1983): little at first,
nearly all at the last look. Models are audited apart, so the difference of two has the errors of both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.corrected.audit_gates import FEWEST_ANSWERED

Goal: TypeAlias = Literal["order", "top"]
"""What people answer for: which model of each pair shows more, or which of all shows most."""

State: TypeAlias = Literal["settled", "open", "not told apart", "dropped"]
"""How two models stand. Where only the top is looked for, the lower of two is `dropped` from the race: that is sure
enough to go on without it, and no statement about both; `settled` is only who stands above all that were left."""

FEWEST_AT_LOOK = 50
"""Images of a model below which nobody may look: errors estimated from fewer are not known to hold."""

_FUTILE = 0.1
"""Chance of settling a pair at the last look, foretold by this one, below which it is given up."""

_CELLS = 500
"""Intervals of the grid on which the chance of not having crossed is carried from look to look."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a look says of a model: value, standard error, and how many images were audited."""

    value: float
    error: float
    n: int


@dataclass(frozen=True, slots=True)
class Pair:
    """How two models stand: `look` is the one that settled it or gave it up, or the last that there was.

    `low` and `high` are limits of the difference that hold over all looks.
    """

    first: str
    second: str
    state: State
    look: int
    difference: float
    low: float
    high: float


def look_limits(information: Sequence[float], *, alpha: float, two_sided: bool = True) -> NDArray[np.float64]:
    """Give the standard normal limit of each look, so that all together are crossed with chance alpha where nothing is.

    Args:
        information: of each look, as a share of the last: ascending, the last 1.
        alpha: the chance.
        two_sided: whether crossing below counts as well.

    Raises:
        UsageError: an argument breaks its rule.
    """
    times = np.asarray(information, np.float64)
    if times.ndim != 1 or not len(times) or times[0] <= 0 or (np.diff(times) <= 0).any() or times[-1] != 1:
        raise argument_error("information", "ascending shares of the last look, which is 1", list(information))
    if not 0 < alpha < 1:
        raise argument_error("alpha", "between 0 and 1", alpha)
    sides = 2 if two_sided else 1
    spent = 2 * sides * ndtr(ndtri(alpha / (2 * sides)) / np.sqrt(times))
    step = math.sqrt(times[0])
    limits = [-float(ndtri(spent[0] / sides))]
    ends = _ends(limits[0] * step, step, two_sided=two_sided)
    chances = np.diff(ndtr(ends / step))
    for before, now, more in zip(times, times[1:], np.diff(spent), strict=False):
        places, step = (ends[1:] + ends[:-1]) / 2, math.sqrt(now - before)
        crossed = partial(_crossed, places=places, chances=chances, step=step, time=now, two_sided=two_sided)
        limits.append(float(brentq(lambda limit, found=crossed, more=more: found(limit) - more, 0.0, 12.0)))
        ends = _ends(limits[-1] * math.sqrt(now), math.sqrt(now), two_sided=two_sided)
        chances = np.diff(ndtr((ends[:, None] - places) / step), axis=0) @ chances
    return np.array(limits)


_limits = cache(look_limits)


def _ends(limit: float, spread: float, *, two_sided: bool) -> NDArray[np.float64]:
    """Cut what has not crossed into cells, each of which its middle stands for."""
    return np.linspace(-limit if two_sided else -9 * spread, limit, _CELLS + 1)


def _crossed(
    limit: float,
    *,
    places: NDArray[np.float64],
    chances: NDArray[np.float64],
    step: float,
    time: float,
    two_sided: bool,
) -> float:
    """Give the chance to cross a limit at the next look, of all that stand at some places now."""
    far = limit * math.sqrt(time)
    beyond = ndtr((places - far) / step) + (ndtr((-far - places) / step) if two_sided else 0.0)
    return float(chances @ beyond)


def settled_pairs(
    looks: Sequence[Mapping[str, Estimate]], planned: Sequence[int], *, goal: Goal, confidence: float = CONFIDENCE
) -> list[Pair]:
    """Say of each pair of models whether the looks so far settle which shows more.

    As often as `confidence` says no pair at all is settled falsely. A model of which no pair is open is asked about no
    more, and may lack from later looks. With the goal `top` a model that another surely beats is out of it. `planned`
    are the images of a model at each look, also at those to come. A look says something of every model that was still
    asked about, and could be corrected.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_looks(planned)
    check_choice("goal", goal, get_args(Goal))
    models = sorted({model for estimates in looks for model in estimates})
    pairs = list(combinations(models, 2))
    times = [count / planned[-1] for count in planned]
    alpha = (1 - confidence) / (max(len(pairs), 1) if goal == "order" else max(len(models) - 1, 2))
    limits = _limits(tuple(times), alpha=alpha, two_sided=goal == "order")
    found: dict[tuple[str, str], Pair] = {}
    out: set[str] = set()
    for number, estimates in enumerate(looks):
        for pair in pairs:
            known = found.get(pair)
            left = known is None or known.state == "open"
            if not left or not set(pair) <= set(estimates) or (goal == "top" and out & set(pair)):
                continue
            one = _look_at(pair, estimates, number, times, limits)
            found[pair] = replace(one, state="dropped") if goal == "top" and one.state == "settled" else one
        out = {lower_of(one) for one in found.values() if one.state == "dropped"}
    if goal == "top" and len(left_in := set(models) - out) == 1:
        (top,) = left_in
        for pair, one in found.items():
            if one.state == "dropped" and top in pair:
                found[pair] = replace(one, state="settled")
    return [found[pair] for pair in pairs if pair in found]


def lower_of(pair: Pair) -> str:
    """Name the model of a pair that shows less."""
    return pair.first if pair.difference < 0 else pair.second


def _look_at(
    pair: tuple[str, str], estimates: Mapping[str, Estimate], number: int, times: Sequence[float],
    limits: NDArray[np.float64],
) -> Pair:  # fmt: skip
    """Look at one pair: settled beyond the limit, given up where it could hardly be settled any more."""
    first, second = (estimates[model] for model in pair)
    away, error = first.value - second.value, math.hypot(first.error, second.error)
    margin = -float(stdtrit(first.n + second.n - 2, ndtr(-limits[number]))) * error  # crossed as seldom as the limit
    state: State = "open"
    if abs(away) > margin:
        state = "settled"
    elif number + 1 == len(times) or _power(away, error, times[number], float(limits[-1])) < _FUTILE:
        state = "not told apart"
    return Pair(*pair, state, number + 1, away, away - margin, away + margin)


def _power(away: float, error: float, time: float, last: float) -> float:
    """Give the chance to cross the last limit, foretold from what is seen now alone (predictive power, flat prior)."""
    return float(ndtr((abs(away) / error - last * math.sqrt(time)) / math.sqrt(1 - time))) if error > 0 else 0.0


def open_models(pairs: Sequence[Pair], models: Sequence[str], goal: Goal) -> list[str]:
    """Name the models that people still have to be asked about: of a pair that is open, or not known yet."""
    out = {lower_of(one) for one in pairs if one.state in {"dropped", "settled"}} if goal == "top" else set()
    done = {frozenset((one.first, one.second)) for one in pairs if one.state != "open"}
    left = [model for model in models if model not in out]
    return [one for one in left if any(frozenset((one, other)) not in done for other in left if other != one)]


def check_looks(planned: Sequence[int]) -> None:
    """Refuse looks that come too early, or in no order."""
    if list(planned) != sorted(set(planned)) or not planned or planned[0] < FEWEST_AT_LOOK:
        raise argument_error("looks", f"ascending numbers of images, {FEWEST_AT_LOOK} or more", list(planned))


def planned_looks(sample: pl.DataFrame | None) -> tuple[list[int], Goal] | None:
    """Read which looks a sample was drawn for: images of a model at each, and the goal; None where it has none."""
    if sample is None or "look" not in sample.columns or sample["look"].null_count() == sample.height:
        return None
    if sample["look"].null_count() or sample["goal"].n_unique() > 1:
        raise UsageError("a sample mixes looks", expected="all images drawn for the same looks and goal")
    each = sample.group_by("model", "look").len().group_by("look").agg(pl.col("len").max()).sort("look")
    goal: Goal = sample["goal"][0]
    return each["len"].cum_sum().to_list(), goal


def whole_looks(sample: pl.DataFrame, answered: pl.Series) -> dict[str, int]:
    """Count the looks of each model of which the images were answered, one after another."""
    marked = sample.with_columns(whole=pl.col("image_id").is_in(answered.implode()))
    looks = marked.group_by("model", "look").agg(pl.col("whole").mean() >= FEWEST_ANSWERED).sort("model", "look")
    whole = looks.group_by("model", maintain_order=True).agg(pl.col("whole").cast(pl.Int64).cum_prod().sum())
    return dict(whole.iter_rows())
