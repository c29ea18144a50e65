"""A socket whose exchange ends in time: a server that sends a byte now and then, in a header or a body, is left.

The timeout of a socket is one on silence: it begins again with every byte.
"""

import io
import socket
import time
from typing import cast


class TimedSocket:
    """Stands for a connected socket in `http.client`.

    `until`, on the monotonic clock, is when everything has to be done; `silence` is how many seconds may pass without
    a byte.
    """

    def __init__(self, connected: socket.socket, *, until: float, silence: float) -> None:
        """Take a socket over."""
        self.connected, self.until, self.silence = connected, until, silence

    def wait_no_longer(self) -> None:
        """Let the next step end in time."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long as a whole")
        self.connected.settimeout(min(left, self.silence))

    def sendall(self, content: bytes) -> None:
        """Send, in the time that is left."""
        self.wait_no_longer()
        self.connected.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what comes as a file; `http.client` asks for no other than "rb"."""
        raw = cast("io.RawIOBase", self.connected.makefile("rb", buffering=0))
        return io.BufferedReader(_TimedReader(raw, self))

    def close(self) -> None:
        """Close it; a file that was made of it stays open."""
        self.connected.close()


class _TimedReader(io.RawIOBase):
    """Reads what comes through a timed socket."""

    def __init__(self, raw: io.RawIOBase, timed: TimedSocket) -> None:
        self.raw, self.timed = raw, timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int | None:
        """Read what is there, or wait for it no longer than there is time."""
        self.timed.wait_no_longer()
        return self.raw.readinto(buffer)  # type: ignore[arg-type]

    def close(self) -> None:
        self.raw.close()
        super().close()
