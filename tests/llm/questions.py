"""Requests for tests of clients, and the way to send one."""

import asyncio
import hashlib
import io
from typing import Literal

import msgspec
from PIL import Image as Picture

from culturekit.llm.client import Client, FreeClient, Image, Reply, Request
from culturekit.llm.clients.clients import CLIENTS


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small answer."""

    id: str
    verdict: Literal["keep", "remove"]


def question(label: str = "feijoada", **parts: object) -> Request:
    """Ask about a label."""
    whole = {
        "task": "cspace.filter", "instructions": "Judge the candidate.", "data": {"id": "Q1", "label": label},
        "reply": Verdict, "allowed": {"id": ("Q1",)},
    } | parts  # fmt: skip
    return Request(**whole)  # type: ignore[arg-type]


def picture(colour: str = "red") -> Image:
    """Paint a small picture."""
    held = io.BytesIO()
    Picture.new("RGB", (16, 8), colour).save(held, "PNG")
    content = held.getvalue()
    return Image(content, "image/png", hashlib.sha256(content).hexdigest(), 16, 8)


def client(spec: str) -> Client:
    """Make a far client."""
    made: Client | FreeClient = CLIENTS.make(spec)
    assert isinstance(made, Client)
    return made


def send(asked: Client, request: Request) -> bytes:
    """Send one request, and close."""

    async def once() -> bytes:
        try:
            return await asked.send(asked.compose(request))
        finally:
            await asked.close()

    return asyncio.run(once())


def sent(spec: str, request: Request) -> Reply:
    """Send one request and read the reply."""
    asked = client(spec)
    return asked.read(send(asked, request))
