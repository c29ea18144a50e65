"""A connection for each request under way, none to choose from.

A pool looks through all its idle connections before each request, which costs more than the request itself where many
go at once. Here the lane that was free last is taken, and one is opened where none is.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["Lanes"]


class Lanes:
    """HTTP clients of one connection each."""

    def __init__(self, open_lane: Callable[[], Any]) -> None:
        """Start with none."""
        self.open_lane = open_lane
        self.all: list[Any] = []
        self.free: list[Any] = []

    def take(self) -> Any:  # noqa: ANN401 - a client of whichever httpx
        """Take a lane; it is given back when its reply has been read or has failed."""
        if self.free:
            return self.free.pop()
        self.all.append(self.open_lane())
        return self.all[-1]

    def give_back(self, lane: Any) -> None:  # noqa: ANN401 - a client of whichever httpx
        """Leave a lane to the next request."""
        self.free.append(lane)

    async def close(self) -> None:
        """Close all of them."""
        while self.all:
            await self.all.pop().aclose()
        self.free.clear()
