"""Repeats and slots of the images of one prompt: those that names state, and the next free ones for the others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["MOST_REPEATS", "MOST_SLOTS", "Place", "Places"]

MOST_REPEATS = 65_535
MOST_SLOTS = 255


class Place(NamedTuple):
    """A repeat and a slot; `clash` is the file, by its number, that stated the same ones before."""

    repeat: int | None
    slot: int | None
    clash: int | None = None


class Places:
    """The places of one prompt and model; a repeat has `slots` of them, more where names say so."""

    def __init__(self, slots: int) -> None:
        """Start with every place free."""
        self.slots = slots
        self.taken: dict[tuple[int, int], int] = {}
        self.next_free = 0

    def deal(self, stated: Sequence[Mapping[str, Any]]) -> list[Place]:
        """Give each file a place: first those whose names state one, then the others, in the order of the names."""
        dealt: dict[int, Place] = {}
        repeats_of, slots_of = Counter[int](), Counter[int]()
        for number, cells in enumerate(stated):
            repeat, slot = cells.get("repeat"), cells.get("slot")
            if repeat is None and slot is None:
                continue
            if repeat is None and slot is not None:
                repeat = self.next_in(repeats_of, slot, MOST_REPEATS)
            elif slot is None and repeat is not None:
                slot = self.next_in(slots_of, repeat, MOST_SLOTS)
            dealt[number] = Place(repeat, slot)
            if repeat is not None and slot is not None and (repeat, slot) in self.taken:
                dealt[number] = Place(repeat, slot, self.taken[repeat, slot])
            elif repeat is not None and slot is not None:
                self.taken[repeat, slot] = number
        return [dealt[number] if number in dealt else self.free(number) for number in range(len(stated))]

    def next_in(self, counts: Counter[int], of: int, most: int) -> int | None:
        """Count on within a repeat or a slot; beyond what the table holds there is no number."""
        number = counts[of]
        counts[of] += 1
        return number if number <= most else None

    def free(self, number: int) -> Place:
        """Take the next free place."""
        while divmod(self.next_free, self.slots) in self.taken:
            self.next_free += 1
        place = divmod(self.next_free, self.slots)
        if place[0] > MOST_REPEATS:
            return Place(None, None)
        self.taken[place] = number
        return Place(*place)

    def holes(self, repeats: int | None) -> Iterator[tuple[int, int]]:
        """List the places that nothing took, of as many repeats as stated, or else as were begun."""
        begun = max((repeat for repeat, _ in self.taken), default=0) + 1
        for repeat in range(repeats if repeats is not None else begun):
            for slot in range(self.slots):
                if (repeat, slot) not in self.taken:
                    yield repeat, slot
