"""What each place that takes a schema can take; the limits are those providers state, or ours where none does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["ABILITIES", "TARGETS", "Abilities", "Target"]

Target: TypeAlias = Literal["openai", "google-json", "google-schema", "vllm", "llamacpp", "ollama"]

TARGETS: tuple[Target, ...] = ("openai", "google-json", "google-schema", "vllm", "llamacpp", "ollama")

LENGTHS = frozenset({"minLength", "maxLength"})
COUNTS = frozenset({"minItems", "maxItems"})
BOUNDS = frozenset({"minimum", "maximum"})
OPEN_BOUNDS = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
PATTERN = frozenset({"pattern"})
STEP = frozenset({"multipleOf"})
INTERNET = frozenset({"email", "hostname", "ipv4", "ipv6", "uuid"})
TIMES = frozenset({"date", "time", "date-time"})


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a target enforces (`words`), what it has at all, and how much of it.

    A word about the size of a value that a target does not enforce is told to the model in the description of the
    field, and checked when the reply is read. What concerns the form of the reply is refused instead.
    """

    words: frozenset[str]
    formats: frozenset[str]
    recursion: bool = False
    open_maps: bool = False
    optional: bool = True
    whole_choices: bool = True
    bounds_on_fractions: bool = True
    depth: int = 10
    properties: int = 1000
    choices: int = 1000
    characters: int = 120_000


GRAMMAR = Abilities(
    LENGTHS | COUNTS | BOUNDS | OPEN_BOUNDS | PATTERN,
    TIMES | {"uuid"},
    recursion=True,
    open_maps=True,
    bounds_on_fractions=False,
)
"""llama.cpp writes a grammar from the schema; Ollama has it inside."""

ABILITIES: Mapping[Target, Abilities] = {
    "openai": Abilities(
        COUNTS | BOUNDS | OPEN_BOUNDS | PATTERN | STEP,
        TIMES | INTERNET | {"duration"},
        recursion=True,
        optional=False,
        properties=5000,
    ),
    "google-json": Abilities(COUNTS | BOUNDS, TIMES, open_maps=True, properties=500, choices=500),
    "google-schema": Abilities(
        COUNTS | BOUNDS, frozenset({"date-time"}), whole_choices=False, properties=500, choices=500
    ),
    "vllm": Abilities(
        LENGTHS | COUNTS | BOUNDS | OPEN_BOUNDS | PATTERN,
        TIMES | INTERNET | {"duration"},
        recursion=True,
        open_maps=True,
    ),
    "llamacpp": GRAMMAR,
    "ollama": GRAMMAR,
}
