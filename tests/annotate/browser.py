"""A headless Chromium, driven over its debugging pipe: no port, no package."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Page", "open_page"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


class Page:
    """One tab: commands go in, and what the page asked for, said or raised is remembered."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.to_browser = to_browser
        self.from_browser = from_browser
        self.waiting = b""
        self.number = 0
        self.session: str | None = None
        self.asked: list[str] = []
        self.complaints: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def next_message(self) -> dict[str, Any]:
        """Read one message, and remember it if it is an event."""
        while b"\0" not in self.waiting:
            chunk = os.read(self.from_browser, 1 << 20)
            if not chunk:
                raise AssertionError("Chromium ended")
            self.waiting += chunk
        head, _, self.waiting = self.waiting.partition(b"\0")
        message: dict[str, Any] = json.loads(head)
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"].get("exception", params)))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}:
            self.complaints.append(str(params["args"]))
        return message

    def go(self, url: str) -> None:
        """Open an address, and wait until the page is there."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Give the value of an expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression holds."""
        for _ in range(400):
            if self.run(script):
                return
            time.sleep(0.05)
        raise AssertionError(f"never held: {script}")

    def press(self, key: str, *, text: str = "", shift: bool = False) -> None:
        """Press a key."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39}
        shared: dict[str, Any] = {
            "key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": codes.get(key, 0),
            "modifiers": 8 if shift else 0,
        }  # fmt: skip
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path, *, width: int, height: int, dark: bool) -> None:
        """Take a picture of the whole page at a width, in a theme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def open_page(profile: Path, downloads: Path) -> Iterator[Page]:
    """Start Chromium with a profile of its own, and give a tab."""
    low_into, to_browser = os.pipe()
    from_browser, low_out = os.pipe()
    # Chromium reads from 3 and writes to 4: its ends lie higher first, so that neither is overwritten.
    into, out = (fcntl.fcntl(low, fcntl.F_DUPFD, 20) for low in (low_into, low_out))
    os.close(low_into)
    os.close(low_out)

    def pipes() -> None:
        os.dup2(into, 3)
        os.dup2(out, 4)

    process = subprocess.Popen(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        preexec_fn=pipes,
        pass_fds=(3, 4, into, out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    page = Page(to_browser, from_browser)
    try:
        page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads), eventsEnabled=True)
        target = page.call("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        yield page
    finally:
        process.terminate()
        process.wait(timeout=30)
        for descriptor in (to_browser, from_browser, into, out):
            os.close(descriptor)
