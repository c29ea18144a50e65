"""A transformers model in this process, from a folder: texts, and images where the model sees."""

import asyncio
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import UsageError
from culturekit.llm.client import Failure, Identity, Outgoing, Rate, Reply, Request, Usage, how_cut
from culturekit.llm.clients.client_options import LocalOptions
from culturekit.llm.clients.local_model import LocalModel, Turn
from culturekit.llm.json_values import decoded, record, records, text
from culturekit.llm.reply_schema import expected_shape, shape_of
from culturekit.llm.untrusted.untrusted import user_message
from culturekit.llm.usage import Counts
from culturekit.registry import Spec
from culturekit.storage.digests import canonical_json, digest_tree


class LocalClient:
    """Asks a model on this machine, one question at a time."""

    rate = Rate(0.0, 0.0, source="this machine")
    caveat = "A model in this process is held to no schema while it writes: its replies are only checked afterwards."

    def __init__(self, folder: Path, options: LocalOptions) -> None:
        """Name the folder; the model is loaded on first use."""
        self.folder = folder
        self.settings = options
        self.quota = options.quota
        self.loaded: LocalModel | None = None
        self.turn = threading.Lock()

    @cached_property
    def identity(self) -> Identity:
        """Know the model by the content of its folder, wherever it lies."""
        content, _, _ = digest_tree(self.folder)
        return Identity("local", "", "generate", f"{self.folder.name}@{content[:16]}")

    @property
    def model(self) -> str:
        """What exactly answers."""
        return self.identity.model

    @property
    def options(self) -> Mapping[str, object]:
        """What decides the answers."""
        chosen = self.settings
        named = ("temperature", "top_p", "seed", "max_tokens", "dtype")
        return {name: value for name in named if (value := getattr(chosen, name)) is not None}

    def ready(self) -> None:
        """Load the model.

        Raises:
            MissingDependency: torch or transformers is not installed.
        """
        with self.turn:
            if self.loaded is None:
                self.loaded = LocalModel(self.folder, device=self.settings.device, dtype=self.settings.dtype)

    def compose(self, request: Request) -> Outgoing:
        """Write down all that decides the reply."""
        limit = self.settings.max_tokens or request.max_tokens
        body: dict[str, object] = {
            "instructions": request.instructions if request.weighed else with_shape(request),
            "data": user_message(request.data),
            "images": [image.sha256 for image in request.images],
            "max_new_tokens": limit,
            "seed": self.settings.seed + request.sample,
            "dtype": self.settings.dtype,
            "temperature": self.settings.temperature,
            "top_p": self.settings.top_p,
            **({"weighed": list(request.weighed)} if request.weighed else {}),
        }
        return Outgoing(canonical_json(body), request.images, request.sample, limit)

    async def send(self, outgoing: Outgoing) -> bytes:
        """Generate in a thread of its own; it is asked to stop when nobody waits for it any more."""
        stopped = threading.Event()
        try:
            return await asyncio.to_thread(self.generate, outgoing, stopped)
        except asyncio.CancelledError:
            stopped.set()
            raise

    def generate(self, outgoing: Outgoing, stopped: threading.Event) -> bytes:
        """Generate one reply."""
        self.ready()
        body = msgspec.json.decode(outgoing.body, type=Turn)
        with self.turn:
            if self.loaded is None or stopped.is_set():
                raise Failure("connection", "the question was called off")
            if body.weighed:
                return msgspec.json.encode(self.loaded.weigh(body, outgoing.images))
            said = self.loaded.generate(body, outgoing.images, seconds=self.settings.timeout, stopped=stopped)
        if said.stop == "time":
            raise Failure("timeout", f"no whole reply within {self.settings.timeout:g} s")
        return msgspec.json.encode(said)

    def read(self, raw: bytes) -> Reply:
        """Read a reply as `send` wrote it."""
        body = record(decoded(raw))
        if "text" not in body:
            return Reply("", stop="unreadable", detail="not a reply of this client")
        said = text(body["text"])
        counts = Counts(body)
        usage = Usage(counts.take("input_tokens") or 0, counts.take("output_tokens") or 0)
        if body.get("stop") == "length":
            return Reply(said, usage, "length", how_cut(said), self.model)
        tokens = tuple(filter(None, map(one_token, records(body.get("tokens")))))
        return Reply(said, usage, "end", "", self.model, tokens)

    async def close(self) -> None:
        """Let go of the model."""
        self.loaded = None


def with_shape(request: Request) -> str:
    """Write the instructions with the shape of the reply, to which nothing else holds the model."""
    shape = expected_shape(shape_of(request.schema_type).root)
    return f"{request.instructions}\n\nReply with nothing but one JSON object of this shape:\n{shape}"


def one_token(item: dict[str, Any]) -> tuple[str, float] | None:
    """Read a beginning of a reply and its probability as `send` wrote them; what was no number stands there as null."""
    logprob = item.get("logprob")
    return (text(item.get("token")), float(logprob)) if isinstance(logprob, int | float) else None


def make(spec: Spec) -> LocalClient:
    """Make the client; nothing is loaded yet."""
    options = spec.read(LocalOptions)
    folder = Path(spec.target)
    if not spec.target or not (folder / "config.json").is_file():
        raise UsageError(
            "there is no model in this folder",
            where=spec.target or "local",
            expected="local:FOLDER, with a config.json in it",
            hint="Nothing is downloaded here: fetch the model first.",
        )
    return LocalClient(folder, options)
