"""A server that sends a byte now and then, for much longer than anybody should wait."""

import contextlib
import socket
import threading
from collections.abc import Iterator

__all__ = ["HEADER", "dripping"]

HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: "
DROPS = 400
"""After so many bytes the connection is closed, so that a caller who waits for ever fails and does not hang."""


@contextlib.contextmanager
def dripping(begin: bytes) -> Iterator[str]:
    """Send `begin` at once to everybody who asks, then a byte every fiftieth of a second; give the URL."""
    ended = threading.Event()

    def serve(caller: socket.socket) -> None:
        with caller, contextlib.suppress(OSError):
            caller.recv(65_536)
            caller.sendall(begin)
            for _ in range(DROPS):
                if ended.wait(0.02):
                    return
                caller.sendall(b"x")

    def accept(listener: socket.socket) -> None:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=accept, args=[listener])
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()
