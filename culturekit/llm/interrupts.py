"""Ctrl-C while questions are under way: the first press winds down, the second leaves at once.

Both are safe: what came back is on disk before it counts. SIGTERM is heeded like the first press.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["INTERRUPTED", "interruptible"]

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""


@contextlib.contextmanager
def interruptible(wind_down: Callable[[], None]) -> Iterator[None]:
    """Call `wind_down` at the first SIGINT or SIGTERM, then raise KeyboardInterrupt; leave the process at the second.

    `wind_down` returns within a few seconds. Signals reach the main thread only; in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def heed(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            os._exit(INTERRUPTED)
        pressed = True
        wind_down()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
