"""A pilot: a few candidates to ask about first, drawn by hash and spread over the concepts."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from culturekit.builders.filtering.candidate_verdicts import rule_verdict
from culturekit.kg.concepts import Concept

__all__ = ["draw_pilot", "left_to_the_judge", "questions_left", "shares"]


def left_to_the_judge(
    rows: Iterable[Mapping[str, Any]], concepts: Mapping[str, Concept]
) -> Iterator[Mapping[str, Any]]:
    """Give the candidates that no rule decides."""
    return (row for row in rows if rule_verdict(row, concepts.get(row["concept"])) is None)


def questions_left(rows: Iterable[Mapping[str, Any]], concepts: Mapping[str, Concept]) -> int:
    """Count the questions to a judge: one a candidate and country in scope."""
    left = left_to_the_judge(rows, concepts)
    return sum(len(concepts[row["concept"]].codes_of(row["country_qids"])) for row in left)


def draw_pilot(rows: Iterable[Mapping[str, Any]], size: int) -> frozenset[tuple[str, str]]:
    """Draw candidates, as (concept, qid): the same ones each time, whatever order the rows come in.

    Each concept gives as many as its share of all candidates, and at least one where there is room.
    """
    drawn: dict[str, list[tuple[int, str]]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        concept, qid = row["concept"], row["qid"]
        counts[concept] = counts.get(concept, 0) + 1
        place = int.from_bytes(blake2b(f"{concept} {qid}".encode(), digest_size=8).digest(), "big")
        smallest = drawn.setdefault(concept, [])
        if len(smallest) < size:
            heapq.heappush(smallest, (-place, qid))
        elif -place > smallest[0][0]:
            heapq.heapreplace(smallest, (-place, qid))
    wanted = shares(counts, size)
    return frozenset(
        (concept, qid) for concept, smallest in drawn.items() for _, qid in heapq.nlargest(wanted[concept], smallest)
    )


def shares(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """Share out places by largest remainder, one to each first, none with more than it can fill."""
    names: Sequence[str] = sorted(counts)
    total = sum(counts.values())
    if total <= size:
        return dict(counts)
    given = {name: int(position < size) for position, name in enumerate(names)}
    exact = {name: size * counts[name] / total for name in names}
    while sum(given.values()) < size:
        open_names = [name for name in names if given[name] < counts[name]]
        given[max(open_names, key=lambda name: exact[name] - given[name])] += 1
    return given
