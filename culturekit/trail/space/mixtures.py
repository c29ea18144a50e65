"""A mixture: everything from one run, but for what is exchanged against the other's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.kg.concepts import Concept
from culturekit.storage.digests import digest
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.factors import Cause, Factor

__all__ = ["MixedConfigs", "Mixture"]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Which of two runs each thing comes from: `side` is 0 or 1, and `exchanged` comes from the other."""

    side: int
    exchanged: Factor | None = None

    def side_of(self, cause: Cause) -> int:
        """Tell from which run something comes as a whole."""
        return self.side ^ (self.exchanged is not None and self.exchanged.cause == cause)

    def side_of_key(self, key: str) -> int:
        """Tell from which run an option or a file of the user comes that stands in no root config."""
        return self.side ^ (self.exchanged is not None and self.exchanged.key == key)

    def key_of(self, concept: str) -> str:
        """Name the key of a concept's config that is exchanged; empty for none."""
        own = self.exchanged
        if own is None or own.cause != "config" or own.concept != concept:
            return ""
        return own.key.partition(".")[2] or own.key


@dataclass(frozen=True, slots=True)
class MixedConfig:
    """A root config that was put together, as a stage takes it, and known by its content."""

    concept: Concept
    content: str


class MixedConfigs:
    """The root configs of two runs, and those that one key of the other's makes of them."""

    def __init__(self, sides: Sequence[SpaceBehind]) -> None:
        """Take the runs."""
        self.sides = sides
        self.noted = {kind: [side.concepts(kind) for side in sides] for kind in ("extract", "filter", "release")}
        self.made: dict[tuple[str, str, int, str], MixedConfig | None] = {}

    def config_of(self, kind: str, concept: str, mixture: Mixture) -> MixedConfig | None:
        """Put a config together; None where the run that it comes from has no such concept."""
        place = (kind, concept, mixture.side, mixture.key_of(concept))
        if place not in self.made:
            config = self.put_together(*place)
            self.made[place] = MixedConfig(Concept.model_validate(config), digest(config)) if config else None
        return self.made[place]

    def put_together(self, kind: str, concept: str, side: int, key: str) -> Mapping[str, Any] | None:
        """Take one key, or the whole concept, from the other run."""
        own, other = (self.noted[kind][number].get(concept) for number in (side, 1 - side))
        if key == "concepts":
            return other
        if own is None or other is None or not key:
            return own
        return {name: other.get(name) if name == key else value for name, value in {**other, **own}.items()}
