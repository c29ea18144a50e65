"""Causes of a change, by exchanging one thing alone between two runs, either way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.trail.space.factors import Factor
from culturekit.trail.space.mixtures import Mixture
from culturekit.trail.space.replay import Change, Replay, seen
from culturekit.trail.space.verdicts import UNKNOWN

__all__ = ["Attribution", "attribute"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What made a row another: what is shown to have, and what may have and cannot be told apart."""

    causes: tuple[Factor, ...] = ()
    undecided: tuple[Factor, ...] = ()


def attribute(
    change: Change, factors: Sequence[Factor], replay: Replay, actual: Sequence[Mapping[tuple[str, str, str], Any]]
) -> Attribution:
    """Find the causes of a change among what differs; `actual` are the rows of both spaces by key.

    Something is a cause where the first run with the second's in its place gives another row, or the second run with
    the first's. Where exchanging shows nothing, what differs is left undecided.
    """
    own = [factor for factor in factors if not factor.concept or factor.concept in {key[0] for key in change.keys}]
    if len(own) <= 1:
        return Attribution(tuple(own))
    plain = [Mixture(side) for side in (0, 1)]
    bases = [replay.outcome(change, mixture) for mixture in plain]
    expected = [tuple(seen(rows.get(key), change.part) for key in change.keys) for rows in actual]
    stuck = [factor for factor in own if not factor.replayable]
    if any(base not in (UNKNOWN, wanted) for base, wanted in zip(bases, expected, strict=True)):
        return not_reproduced(own, stuck)
    causes, unknown = [], []
    for factor in own:
        if not factor.replayable:
            continue
        swapped = [replay.outcome(change, Mixture(side, factor)) for side in (0, 1)]
        if any(other not in (UNKNOWN, base) for other, base in zip(swapped, expected, strict=True)):
            causes.append(factor)
        elif UNKNOWN in swapped:
            unknown.append(factor)
    asked = dict.fromkeys((key[2], key[0]) for key in change.keys)
    if causes and any(replay.verdicts.may_have_changed_mind(*each) for each in asked):
        known = {*causes, *unknown}
        unknown += [factor for factor in own if factor.cause == "model" and factor not in known]
    if causes or unknown:
        return Attribution(tuple(causes), tuple(unknown))
    return Attribution(undecided=tuple(own))


def not_reproduced(own: Sequence[Factor], stuck: Sequence[Factor]) -> Attribution:
    """Say what is behind a row that today's code does not give from what it was made of."""
    if len(stuck) == 1:
        return Attribution(tuple(stuck))
    return Attribution(undecided=tuple(stuck or own))
