"""A mixture: everything from one run, but for what is exchanged against the other's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.kg.concepts import Concept
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.factors import Cause, Factor

__all__ = ["Mixture"]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Which of two runs each thing comes from: `side` is 0 or 1, and `exchanged` come from the other."""

    side: int
    exchanged: frozenset[Factor] = frozenset()

    def side_of(self, cause: Cause) -> int:
        """Tell from which run something comes as a whole."""
        return self.side ^ any(factor.cause == cause for factor in self.exchanged)

    def config(self, sides: Sequence[SpaceBehind], kind: str, concept: str) -> Mapping[str, Any] | None:
        """Put a root config together key by key; None where the run it comes from has no such concept."""
        own, other = (sides[side].concepts(kind).get(concept) for side in (self.side, 1 - self.side))
        keys = {factor.key for factor in self.exchanged if factor.cause == "config" and factor.concept == concept}
        if "concepts" in keys:
            return other
        taken = {key.partition(".")[2] for key in keys}
        if own is None or other is None or not taken:
            return own
        return {key: other.get(key) if key in taken else value for key, value in {**other, **own}.items()}

    def concept(self, sides: Sequence[SpaceBehind], kind: str, concept: str) -> Concept | None:
        """Give a root config that was put together as the stages take it."""
        config = self.config(sides, kind, concept)
        return None if config is None else Concept.model_validate(config)

    def successors_side(self) -> int:
        """Tell from which run the successors of countries come."""
        return self.side ^ any(factor.key == "successors" for factor in self.exchanged)
