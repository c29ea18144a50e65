"""What is known besides the file: a cultural space or a graph to hold it against, a tokenizer, vectors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from culturekit.audit.folding import fold
from culturekit.builders.space.space_files import read_space

__all__ = ["Knowledge", "Source", "known_from_space"]


@dataclass(frozen=True, slots=True)
class Source:
    """What one source says of items and names: the concepts they belong to, and the countries."""

    name: str
    concepts_of_item: Mapping[str, frozenset[str]] = field(default_factory=dict)
    countries_of_item: Mapping[str, frozenset[str]] = field(default_factory=dict)
    concepts_of_name: Mapping[str, frozenset[str]] = field(default_factory=dict)
    name_of_item: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything that checks may ask besides the file.

    `count_tokens` is exact where `tokens_are_exact`; `near_artifacts` are pairs whose vectors nearly agree.
    """

    sources: Sequence[Source]
    count_tokens: Callable[[str], int]
    tokens_are_exact: bool
    near_artifacts: Mapping[tuple[str, str], float] = field(default_factory=dict)


def known_from_space(path: Path) -> Source:
    """Read what a cultural space says."""
    space, _ = read_space(path)
    concepts: dict[str, set[str]] = {}
    places: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for artifact, name, concept, country in space.select("artifact_id", "name", "concept", "country").iter_rows():
        concepts.setdefault(artifact, set()).add(concept)
        places.setdefault(artifact, set()).add(country)
        named.setdefault(fold(name), set()).add(concept)
        names.setdefault(artifact, name)
    return Source(str(path), frozen(concepts), frozen(places), frozen(named), names)


def frozen(sets: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """Close sets that have been filled."""
    return {key: frozenset(values) for key, values in sets.items()}
