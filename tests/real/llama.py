"""llama.cpp's server with SmolLM2, as the page about servers of one's own starts it."""

import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.things import LLAMA

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/llm-self-hosted.md").read_text(encoding="utf-8").partition("## Other servers")[0]


def block(kind: str) -> str:
    """Give the one block of a kind that the page has."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(found)


class Llama:
    """The server of the page, on a port of its own; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.script, self.log = folder / "serve.py", folder / "serve.log"
        self.script.write_text(block("python"), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self) -> None:
        command = [str(LLAMA), str(self.script), str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until the server answers."""
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                assert self.process.poll() is None, self.log.read_text(encoding="utf-8")[-2000:]
                time.sleep(0.5)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running_llama(folder: Path) -> Iterator[Llama]:
    """Start the server, and stop it at the end."""
    server = Llama(folder)
    server.start()
    try:
        server.wait()
        yield server
    finally:
        server.kill()
