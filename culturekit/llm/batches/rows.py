"""The rows of a run: which have ended, what the others ask next, and the answers in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from culturekit.llm.batches.standing import Ask, Standing
from culturekit.llm.client import Request
from culturekit.llm.outcomes import Answered
from culturekit.llm.reply_watch import ReplyWatch

__all__ = ["Rows"]

AT_ONCE = 500
"""Rows looked up in the journal together."""


class Rows:
    """All rows, each known by its place. Of requests that come as a sequence only keys are held."""

    def __init__(self, requests: Iterable[Request], standing: Standing, watch: ReplyWatch | None = None) -> None:
        """Take what is asked; a row is looked at when it is needed. `watch` hears how rows end."""
        self.watch = watch
        self.requests: Sequence[Request] = requests if isinstance(requests, Sequence) else list(requests)
        self.standing = standing
        self.keys: list[bytes] = [b""] * len(self.requests)
        self.ended = bytearray(len(self.requests))
        self.bought = bytearray(len(self.requests))
        self.given = 0

    def left(self) -> int:
        """Count the rows that have not ended, as far as they were looked at."""
        return self.ended.count(0)

    def done(self) -> int:
        """Count the rows that have ended, as far as they were looked at."""
        return self.ended.count(1)

    def look(self, places: Sequence[int]) -> Iterator[tuple[int, Answered | Ask]]:
        """Tell where rows stand."""
        requests = [self.requests[place] for place in places]
        for place, request in zip(places, requests, strict=True):
            self.keys[place] = self.keys[place] or self.standing.key(request)
        return zip(places, self.standing.of_all(requests, [self.keys[place] for place in places]), strict=True)

    def asks(self, under_way: Mapping[bytes, int], awaited: set[int]) -> Iterator[list[Ask]]:
        """Give what has to be asked, each once, in order, a stretch of rows at a time.

        What is under way in a job is not asked; the job's number goes into `awaited`.

        Raises:
            UnusableReplies: most of what came cannot be used, repairs that were to be asked now included.
        """
        repairs = 0
        given: set[bytes] = set()
        places = [place for place, ended in enumerate(self.ended) if not ended]
        for start in range(0, len(places), AT_ONCE):
            asks = []
            for place, step in self.look(places[start : start + AT_ONCE]):
                if isinstance(step, Answered):
                    self.ended[place] = 1
                    if self.watch is not None:
                        self.watch.count(step)
                    continue
                repairs += step.row.repairing
                self.bought[place] = 1
                if step.key in under_way:
                    awaited.add(under_way[step.key])
                elif step.key not in given:
                    given.add(step.key)
                    asks.append(step)
            if asks and self.watch is not None and self.watch.stops_before(repairs):
                raise self.watch.error(self.standing.identity.model, repairs=repairs)
            yield asks

    def answers(self) -> Iterator[Answered]:
        """Give the rows that ended, in order, as far as none before them is missing."""
        while self.given < len(self.ended) and self.ended[self.given]:
            end = min(len(self.ended), self.given + AT_ONCE)
            gap = self.ended.find(0, self.given, end)
            for place, step in self.look(range(self.given, end if gap < 0 else gap)):
                if isinstance(step, Ask):
                    return
                self.given = place + 1
                yield replace(step, bought=bool(self.bought[place]))
