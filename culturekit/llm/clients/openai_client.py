"""OpenAI, and every server that speaks its protocol: vLLM, llama.cpp, Ollama and others."""

import importlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from culturekit.llm.client import Identity
from culturekit.llm.clients import chat_completions, responses_api
from culturekit.llm.clients.client_options import OpenAIOptions
from culturekit.llm.clients.endpoints import NO_KEY, OPENAI
from culturekit.llm.clients.image_slots import BodyTemplates
from culturekit.llm.clients.openai_settings import Settings, settings_of
from culturekit.llm.clients.remote_client import RemoteClient, WireFormat, model_of
from culturekit.llm.clients.sending import http_client
from culturekit.llm.untrusted.redaction import Secret
from culturekit.registry import Spec, needing

__all__ = ["OpenAIClient", "make"]

ENDPOINTS = {"chat": "/chat/completions", "responses": "/responses"}
CREATES: Mapping[str, Callable[[Any], Callable[..., Awaitable[object]]]] = {
    "/chat/completions": lambda raw: raw.chat.completions.create,
    "/responses": lambda raw: raw.responses.create,
    "/images/generations": lambda raw: raw.images.generate,
}
"""What asks each endpoint, of the SDK that leaves replies as they came."""

FORMATS = {"chat": chat_completions, "responses": responses_api}


class OpenAIClient(RemoteClient):
    """Asks one model for chat completions or responses."""


class OpenAIConnection:
    """The openai SDK, told to try once, over an HTTP client that keeps what comes."""

    def __init__(self, base_url: str, endpoint: str, secret: Secret | None, seconds: float) -> None:
        """Connect lazily; the SDK is imported here."""
        sdk = openai_sdk()
        self.sdk: Any = sdk.AsyncOpenAI(
            api_key=secret.reveal() if secret else NO_KEY,
            base_url=base_url,
            max_retries=0,
            timeout=seconds,
            http_client=http_client(httpx_of(sdk), seconds=seconds),
        )
        self.create = CREATES[endpoint](self.sdk.with_raw_response)
        self.arguments = frozenset(inspect.signature(self.create).parameters)

    async def ask(self, body: dict[str, Any]) -> object:
        """Ask once, by the arguments that the SDK has; what only other servers know goes beside them."""
        stated = {name: value for name, value in body.items() if name in self.arguments}
        beside = {name: value for name, value in body.items() if name not in self.arguments}
        return await self.create(**stated, **({"extra_body": beside} if beside else {}))

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.close()


def openai_sdk() -> Any:  # noqa: ANN401 - a module
    """Import the SDK, or say which command installs it."""
    with needing("llm", "the client openai"):
        return importlib.import_module("openai")


def httpx_of(sdk: Any) -> Any:  # noqa: ANN401 - modules
    """Find the httpx that the SDK uses, which is another one from version 3 on."""
    kinds = (kind for kind in sdk.DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
    return importlib.import_module(next(kinds).__module__.partition(".")[0])


def make(spec: Spec) -> OpenAIClient:
    """Make the client; nothing is imported or sent yet."""
    options = spec.read(OpenAIOptions)
    base_url = OPENAI.base_url(options.base_url)
    model = model_of(spec, "openai:gpt-4o-mini")
    endpoint = ENDPOINTS[options.api]
    settings = settings_of(model, base_url, options)
    client = OpenAIClient(
        Identity("openai", base_url, endpoint, model),
        options,
        key=partial(OPENAI.key, options.key_variable, base_url),
        connect=lambda secret: OpenAIConnection(base_url, endpoint, secret, options.timeout),
        written=format_of(options.api, settings),
    )
    if not OPENAI.owns(base_url):
        client.caveat = "The server is not OpenAI's own: whether it enforces the schema of replies is for it to decide."
    return client


def format_of(api: str, settings: Settings) -> WireFormat:
    """Choose how requests and replies look."""
    chosen = FORMATS[api]
    return WireFormat(partial(chosen.compose, settings=settings, templates=BodyTemplates()), chosen.wire, chosen.read)
