"""Google's Gemini models, through generateContent of the Gemini API."""

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from culturekit.llm.client import Identity
from culturekit.llm.clients import gemini_api
from culturekit.llm.clients.client_options import GoogleOptions
from culturekit.llm.clients.endpoints import GOOGLE, NO_KEY
from culturekit.llm.clients.gemini_api import settings_of
from culturekit.llm.clients.image_slots import BodyTemplates
from culturekit.llm.clients.remote_client import RemoteClient, WireFormat, model_of
from culturekit.llm.clients.sending import http_client
from culturekit.llm.untrusted.redaction import Secret
from culturekit.registry import Spec, needing

__all__ = ["GoogleClient", "make"]

AS_IT_COMES: Mapping[str, object] = {
    "shouldReturnHttpResponse": True,
    "automaticFunctionCalling": {"disable": True},
}
"""What tells the SDK to leave replies as they are; none of it is sent."""


class GoogleClient(RemoteClient):
    """Asks one model to generate content."""


class GoogleConnection:
    """The google-genai SDK, told to try once, over an HTTP client that keeps what comes."""

    def __init__(self, base_url: str, model: str, secret: Secret | None, *, api_version: str, seconds: float) -> None:
        """Connect lazily; the SDK is imported here."""
        genai, http = google_sdk()
        self.types: Any = genai.types
        self.model = model
        self.http: Any = http_client(http, seconds=seconds)
        self.sdk: Any = genai.Client(
            api_key=secret.reveal() if secret else NO_KEY,
            vertexai=False,
            http_options={
                "base_url": base_url,
                "api_version": api_version,
                "timeout": round(seconds * 1000),
                "retry_options": {"attempts": 1},
                "httpx_async_client": self.http,
            },
        )

    async def ask(self, body: dict[str, Any]) -> object:
        """Ask once, with the contents and the configuration of a body as the SDK types them."""
        config = {name: value for name, value in body.items() if name not in ("contents", "generationConfig")}
        config |= body.get("generationConfig", {}) | AS_IT_COMES
        return await self.sdk.aio.models.generate_content(
            model=self.model,
            contents=[self.types.Content.model_validate_json(msgspec.json.encode(each)) for each in body["contents"]],
            config=self.types.GenerateContentConfig.model_validate_json(msgspec.json.encode(config)),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self.http.aclose()
        self.sdk.close()


def google_sdk() -> tuple[Any, Any]:
    """Import the SDK and the httpx it uses, or say which command installs them."""
    with needing("llm", "the client google"):
        from google import genai
    newer = int(genai.__version__.partition(".")[0]) >= 3
    return genai, importlib.import_module("httpx2" if newer else "httpx")


def make(spec: Spec) -> GoogleClient:
    """Make the client; nothing is imported or sent yet."""
    options = spec.read(GoogleOptions)
    base_url = GOOGLE.base_url(options.base_url)
    model = model_of(spec, "google:gemini-2.5-flash").removeprefix("models/")
    compose = partial(gemini_api.compose, settings=settings_of(model, options), templates=BodyTemplates())
    return GoogleClient(
        Identity("google", base_url, f"/{options.api_version}/models/{model}:generateContent", model),
        options,
        key=partial(GOOGLE.key, options.key_variable, base_url),
        connect=lambda secret: GoogleConnection(
            base_url, model, secret, api_version=options.api_version, seconds=options.timeout
        ),
        written=WireFormat(compose, gemini_api.wire, gemini_api.read),
    )
