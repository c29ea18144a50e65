"""Lanes at work: a thread for each takes one item after another; the answers come as they are ready."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from culturekit.generation.backend import ImageReply, ImageRequest, Lane

__all__ = ["Answered", "in_lanes"]

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Answered(Generic[Item]):
    """An item and what a lane said to it."""

    item: Item
    replies: Sequence[ImageReply]


class Rounds(Generic[Item]):
    """The items that are handed out, and the answers that wait: at most one for each lane, so few are in flight."""

    def __init__(
        self, lanes: Sequence[Lane], items: Iterator[Item], requests: Callable[[Item], Sequence[ImageRequest]]
    ) -> None:
        """Take the lanes and the work."""
        self.items, self.requests = items, requests
        self.taking = threading.Lock()
        self.ended = threading.Event()
        self.ready: queue.Queue[Answered[Item] | BaseException | None] = queue.Queue(len(lanes))
        self.threads = [threading.Thread(target=self.work, args=(lane,), daemon=True) for lane in lanes]

    def next_item(self) -> Item | None:
        """Hand out the next item, unless nobody waits any more."""
        with self.taking:
            return None if self.ended.is_set() else next(self.items, None)

    def work(self, lane: Lane) -> None:
        """Let a lane answer items until none is left."""
        try:
            while (item := self.next_item()) is not None:
                self.ready.put(Answered(item, lane.generate(self.requests(item))))
        except BaseException as error:
            self.ready.put(error)
        else:
            self.ready.put(None)

    def answers(self) -> Iterator[Answered[Item]]:
        """Give answers until every lane has none left; an error of a lane is raised here."""
        going = len(self.threads)
        while going:
            answer = self.ready.get()
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                going -= 1
            else:
                yield answer

    def stop(self) -> None:
        """Let every lane finish what it is at, and no more."""
        self.ended.set()
        for thread in self.threads:
            while thread.is_alive():
                try:
                    self.ready.get(timeout=0.05)
                except queue.Empty:
                    continue


def in_lanes(
    lanes: Sequence[Lane], items: Iterator[Item], requests: Callable[[Item], Sequence[ImageRequest]]
) -> Iterator[Answered[Item]]:
    """Let lanes answer items, each one after another, while the caller keeps what was answered before.

    Args:
        lanes: each has a thread of its own.
        items: handed out in their order.
        requests: what a lane is asked for an item.
    """
    rounds = Rounds(lanes, items, requests)
    for thread in rounds.threads:
        thread.start()
    try:
        yield from rounds.answers()
    finally:
        rounds.stop()
