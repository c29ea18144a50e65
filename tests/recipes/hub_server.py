"""A stand-in for the part of the Hub's API that writes a dataset, on loopback."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import served


@dataclass
class StandInHub:
    """What was written: datasets with their files by path, and how many files each commit took."""

    token: str
    private: dict[str, bool] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: list[int] = field(default_factory=list)
    breaks_after: int | None = None  # commits after which the connection fails once
    url: str = ""


@contextmanager
def hub_on_loopback(token: str) -> Iterator[StandInHub]:
    hub = StandInHub(token)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
            """Say nothing."""

        def give(self, value: object, status: int = 200) -> None:
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def allowed(self) -> bool:
            if self.headers.get("Authorization") == f"Bearer {hub.token}":
                return True
            self.give({"error": "Invalid credentials"}, 401)
            return False

        def do_GET(self) -> None:
            if not self.allowed():
                return
            place = self.path.partition("?")[0].removeprefix("/api/datasets/")
            name, _, rest = place.partition("/tree/")
            files = hub.files.get(name.partition("/revision/")[0], {})
            if rest:
                self.give([listed(path, content) for path, content in sorted(files.items())])
            else:
                self.give({"id": name, "private": hub.private[name], "siblings": [], "tags": []})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/api/validate-yaml":
                self.give({"errors": [], "warnings": []})
            elif not self.allowed():
                return
            elif self.path == "/api/repos/create":
                self.create(json.loads(body))
            elif "/preupload/" in self.path:
                asked = json.loads(body)["files"]
                self.give(
                    {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked]}
                )
            else:
                self.commit(self.path.removeprefix("/api/datasets/").partition("/commit/")[0], body)

        def create(self, asked: Any) -> None:
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            known = name in hub.files
            if not known:
                hub.private[name] = bool(asked.get("private")) or asked.get("visibility") == "private"
                hub.files[name] = {".gitattributes": b"*.parquet filter=lfs\n"}
            self.give({"url": f"{hub.url}/datasets/{name}", "name": name}, 409 if known else 200)

        def commit(self, name: str, body: bytes) -> None:
            if hub.breaks_after is not None and len(hub.commits) >= hub.breaks_after:
                hub.breaks_after = None
                self.give({"error": "it broke"}, 422)
                return
            lines = [json.loads(line) for line in body.splitlines()]
            new = [line["value"] for line in lines if line["key"] == "file"]
            hub.files[name] |= {one["path"]: base64.b64decode(one["content"]) for one in new}
            hub.commits.append(len(new))
            self.give({"commitUrl": f"{hub.url}/datasets/{name}/commit/1", "commitOid": "1" * 40, "success": True})

    with served(Handler) as hub.url:
        yield hub


def listed(path: str, content: bytes) -> dict[str, object]:
    """Describe a file as the Hub does: with the hash that git gives it."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return {"type": "file", "path": path, "size": len(content), "oid": blob}
