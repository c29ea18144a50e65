"""Chromium over a pipe, so that pages can be opened, asked, measured and photographed without another package."""

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip

# The browser reads commands from file 3 and answers on file 4
SHIM = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"

FROM_HERE = ("file:", "data:", "about:")

Event = Mapping[str, Any]


@dataclass(slots=True)
class Tab:
    """A page that is open: what its console said, what it asked for, and what it did that no report may do."""

    browser: "Browser"
    session: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def ask(self, method: str, **params: object) -> Any:
        return self.browser.ask(method, self.session, **params)

    def open(self, path: Path, *, fragment: str = "") -> None:
        """Forget what was heard, and go to a file."""
        for notes in (self.said, self.asked, self.dialogs):
            notes.clear()
        self.go(path.as_uri() + fragment)

    def go(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        self.ask("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Evaluate an expression, a promise too, and give its value."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, script: str) -> None:
        for _ in range(400):
            if self.run(script):
                return
            time.sleep(0.05)
        raise AssertionError(f"never held: {script}")

    def press(self, key: str, *, text: str = "") -> None:
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40}
        shared = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": codes[key]}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def look(self, *, width: int, height: int, dark: bool = False, scale: float = 1.0) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.ask("Emulation.setEmulatedMedia", features=[theme, still])

    def picture(self, *, whole: bool = False) -> bytes:
        """Photograph the window, or the whole page, as PNG."""
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def heard(self, event: Event) -> None:
        method, params = event["method"], event["params"]
        if method == "Runtime.consoleAPICalled":
            self.said.append(f"console.{params['type']}: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.said.append(f"exception: {params['exceptionDetails'].get('text')}")
        elif method == "Log.entryAdded":
            self.said.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(FROM_HERE):
            self.asked.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self.browser.send("Page.handleJavaScriptDialog", self.session, accept=True)


@dataclass(slots=True)
class Browser:
    """A running browser: commands go in as JSON, answers and events come out, a null byte after each."""

    into: IO[bytes]
    out: IO[bytes]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    tabs: dict[str, Tab] = field(default_factory=dict)
    answers: dict[int, Event] = field(default_factory=dict)
    rest: bytes = b""

    def send(self, method: str, session: str | None = None, **params: object) -> int:
        """Send a command; give its number."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.into.write(json.dumps(message).encode() + b"\0")
        self.into.flush()
        return number

    def ask(self, method: str, session: str | None = None, **params: object) -> Any:
        number = self.send(method, session, **params)
        while number not in self.answers:
            self.hear()
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def hear(self) -> None:
        """Wait for a message: an answer is kept, an event goes to the page it is about."""
        while b"\0" not in self.rest:
            part = os.read(self.out.fileno(), 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        one, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(one)
        if "id" in message:
            self.answers[message["id"]] = message
        elif message.get("sessionId") in self.tabs:
            self.tabs[message["sessionId"]].heard(message)

    def tab(self) -> Tab:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable", session)
        return self.tabs[session]


@contextmanager
def somebody(folder: Path) -> Iterator[Tab]:
    """Give somebody a browser of their own, which saves what they save into the folder."""
    with browser(folder / "profile") as running:
        running.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        yield running.tab()


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Run Chromium with a profile of its own for the length of a block."""
    if CHROMIUM is None:
        raise FileNotFoundError("there is no Chromium here (Debian: apt-get install chromium)")
    theirs_in, into = os.pipe()
    out, theirs_out = os.pipe()
    high = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in (theirs_in, theirs_out)]
    command = [sys.executable, "-c", SHIM, *map(str, high), CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
    with subprocess.Popen(command, pass_fds=high, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for number in (theirs_in, theirs_out, *high):
            os.close(number)
        with os.fdopen(into, "wb") as writing, os.fdopen(out, "rb") as reading:
            one = Browser(writing, reading)
            try:
                yield one
            finally:
                with suppress(RuntimeError, BrokenPipeError):
                    one.ask("Browser.close")
                process.wait(600)
