"""A service of images on loopback that sells jobs, for tests: what it sold, and what it is told to do wrong."""

import io
import json
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from tests.loopback import served

__all__ = ["FILE", "KEY", "Seller", "picture", "running_service", "service_file"]

KEY = "a-key-of-the-service-0123456789"

Answer = tuple[int, Mapping[str, str], bytes]

FILE: Mapping[str, Any] = {
    "model": "tiny-image-1",
    "key": {"variable": "TINY_IMAGES_KEY", "header": "x-key", "prefix": ""},
    "submit": {"url": "/v1/tiny",
        "body": {"prompt": "{prompt}", "seed": "{seed}", "width": "{width}", "height": "{height}", "steps": 4},
        "headers": {"Idempotency-Key": "{call}"}, "keep": {"id": "id", "poll": "polling_url"}},
    "poll": {"url": "{poll}", "status": "status", "done": ["Ready"], "refused": ["Content Moderated"],
        "failed": ["Error"], "every": 0.01, "longest": 0.02},
    "result": {"images": "result.sample", "revised": "result.prompt", "reason": "details.reason"},
    "size": "16x24",
    "price": 0.04,
    "price_source": "the service's page, 2026-11-01",
}  # fmt: skip


def picture(seed: int, width: int, height: int) -> bytes:
    """Draw one colour, which tells the seed."""
    file = io.BytesIO()
    Image.new("RGB", (width, height), (seed % 251, seed // 251 % 251, seed // 63001 % 251)).save(file, "PNG")
    return file.getvalue()


@dataclass
class Seller:
    """What a service has sold; `looks` is how often a job has to be looked at until it is ready."""

    url: str = ""
    looks: int = 2
    sold: list[dict[str, Any]] = field(default_factory=list)
    polled: Counter[int] = field(default_factory=Counter)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    submitting: Callable[[dict[str, Any]], Answer | None] = lambda _: None
    polling: Callable[[int, int], Answer | None] = lambda _, __: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def submit(self, body: dict[str, Any], base: str) -> Answer:
        with self.lock:
            reply = self.submitting(body)
            if reply is not None and reply[0] >= 400:
                return reply
            self.sold.append(body)
            number = len(self.sold) - 1
        return reply or as_json({"id": f"job-{number}", "polling_url": f"{base}/jobs/{number}"})

    def poll(self, number: int, base: str) -> Answer:
        with self.lock:
            self.polled[number] += 1
            look = self.polled[number]
        reply = self.polling(number, look)
        if reply is not None:
            return reply
        if look < self.looks:
            return as_json({"id": f"job-{number}", "status": "Pending", "result": None})
        return ready(number, base)

    def draw(self, number: int) -> bytes:
        body = self.sold[number]
        return picture(body.get("seed", 1), body.get("width", 16), body.get("height", 16))


def as_json(value: object, status: int = 200, **headers: str) -> Answer:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


def ready(number: int, base: str) -> Answer:
    """Say that a job is done, and where its picture is."""
    result = {"sample": f"{base}/pictures/{number}", "prompt": f"drawn as {number}"}
    return as_json({"id": f"job-{number}", "status": "Ready", "result": result})


@contextmanager
def running_service(seller: Seller | None = None) -> Iterator[Seller]:
    """Let a service run for the length of a block."""
    shop = seller or Seller()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

        def answer(self, method: str, body: dict[str, Any]) -> None:
            base = f"http://{self.headers['Host']}"
            headers = {name.lower(): value for name, value in self.headers.items()}
            shop.asked.append((method, self.path, headers))
            kind, _, number = self.path.lstrip("/").partition("/")
            if kind == "pictures":
                shown: Answer = (200, {"Content-Type": "image/png"}, shop.draw(int(number)))
            elif headers.get("x-key") != KEY:
                shown = as_json({"error": {"message": f"no such key {headers.get('x-key')}"}}, 401)
            else:
                shown = shop.submit(body, base) if method == "POST" else shop.poll(int(number), base)
            status, stated, content = shown
            self.send_response(status)
            for name, value in {**stated, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.answer("GET", {})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            form = self.headers["Content-Type"].startswith("multipart/form-data")
            self.answer("POST", form_of(self.headers["Content-Type"], content) if form else json.loads(content))

    with served(Handler) as shop.url:
        yield shop


def service_file(folder: Path, url: str, **changed: Any) -> str:
    """Write the file of a service, and give the SPEC."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump({**FILE, "base_url": url, **changed}))
    return f"service:{path}"


def form_of(kind: str, content: bytes) -> dict[str, Any]:
    """Read a form with the parser of the standard library."""
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + content)
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True).decode()  # type: ignore[union-attr]
        for part in message.iter_parts()
    }


def base64_of(seed: int) -> str:
    return b64encode(picture(seed, 8, 8)).decode()
