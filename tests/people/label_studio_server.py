"""A real Label Studio: started from its own environment, and spoken to as its own pages do."""

import http.cookiejar
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Names the program `label-studio` of the environment that has it, or the address of a server that runs already
ENVIRONMENT = "CULTUREKIT_LABEL_STUDIO"

OWNER = (
    os.environ.get("CULTUREKIT_LABEL_STUDIO_USER", "owner@example.org"),
    os.environ.get("CULTUREKIT_LABEL_STUDIO_PASSWORD", "owner-of-the-test"),
)


class Studio:
    def __init__(self, address: str) -> None:
        self.address = address
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def send(self, method: str, path: str, body: bytes | None, kind: str) -> bytes:
        headers = {"Content-Type": kind, "Referer": self.address}
        token = next((cookie.value for cookie in self.jar if cookie.name == "csrftoken"), None)
        if token:
            headers["X-CSRFToken"] = token
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:600]!r}") from error

    def call(self, method: str, path: str, value: object = None) -> Any:
        """Send JSON, get JSON."""
        body = None if value is None else json.dumps(value).encode()
        content = self.send(method, path, body, "application/json")
        return json.loads(content) if content else None

    def sign_up(self, email: str, password: str, *, invited: str = "") -> "Studio":
        """Make an account; the first one owns the place, others follow an invitation."""
        path = "/user/signup/" + (f"?token={invited}" if invited else "")
        self.send("GET", path, None, "text/html")
        form = urllib.parse.urlencode({"email": email, "password": password, "allow_newsletters": "false"})
        self.send("POST", path, form.encode(), "application/x-www-form-urlencoded")
        return self

    def sign_in(self, email: str, password: str) -> "Studio":
        self.send("GET", "/user/login/", None, "text/html")
        form = urllib.parse.urlencode({"email": email, "password": password, "persist_session": "on"})
        self.send("POST", "/user/login/", form.encode(), "application/x-www-form-urlencoded")
        return self

    def invitation(self) -> str:
        link = self.call("GET", "/api/invite")["invite_url"]
        return str(urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)["token"][0])


@contextmanager
def running_studio(folder: Path, files: Path) -> Iterator[Studio]:
    """Start a server of one's own, as docs/annotating.md says, or use the one that runs; its owner is signed in."""
    program = os.environ[ENVIRONMENT]
    if program.startswith("http"):
        yield Studio(program.rstrip("/")).sign_in(*OWNER)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    silent = {
        "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "", "COLLECT_ANALYTICS": "False", "LATEST_VERSION_CHECK": "False",
    }  # fmt: skip
    serving = {"LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true", "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(files)}
    folder.mkdir(parents=True)
    home = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    command = [program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port),
               "--data-dir", str(folder / "data"), "--username", OWNER[0], "--password", OWNER[1]]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**home, **silent, **serving}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        studio = Studio(f"http://127.0.0.1:{port}")
        for _ in range(900):
            try:
                studio.call("GET", "/api/version")
                break
            except (OSError, AssertionError):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")[-2000:]
                time.sleep(1)
        yield studio.sign_in(*OWNER)
    finally:
        process.terminate()
        process.wait(timeout=60)
