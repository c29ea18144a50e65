"""Scores that may be withheld: what a run would write where people's answers put nothing right."""

from collections.abc import Callable

from culturekit.core.errors import NothingScored
from culturekit.scores.family import Scored, scored

__all__ = ["scored_or_none"]


def scored_or_none(score: Callable[[], Scored]) -> Scored:
    """Score; where nothing can be scored, give no rows, and why."""
    try:
        return score()
    except NothingScored as nothing:
        return scored([], left_out=nothing.left_out)
