"""OpenAI, and every server that speaks its protocol, asked one by one and in batches."""

import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, BinaryIO

import msgspec

from culturekit.core.registry import Spec, needing
from culturekit.llm.batches import BatchClient, BatchLimits, BatchResult, BatchRow, Job, JobState, Status
from culturekit.llm.client import Failure, FailureKind, Identity, Outgoing, Request
from culturekit.llm.clients import openai_wire
from culturekit.llm.clients.client_options import OpenAIOptions
from culturekit.llm.clients.image_slots import BodyTemplates, data_url, filled
from culturekit.llm.clients.remote_client import Connection, RemoteClient, WireFormat, http_client, model_of
from culturekit.llm.endpoints import NO_KEY, OPENAI
from culturekit.llm.failures import failure_of
from culturekit.llm.json_values import decoded
from culturekit.llm.models import model_for
from culturekit.llm.redaction import Secret

_ENDPOINTS = {"chat": "/chat/completions", "responses": "/responses"}
# What asks each endpoint, of the SDK that leaves replies as they came.
_CREATES: Mapping[str, Callable[[Any], Callable[..., Awaitable[object]]]] = {
    "/chat/completions": lambda raw: raw.chat.completions.create,
    "/responses": lambda raw: raw.responses.create,
    "/images/generations": lambda raw: raw.images.generate,
}


class OpenAIClient(RemoteClient):
    """Asks one model for chat completions or responses."""

    def batches(self) -> BatchClient:
        """Return the batches of this client."""
        return OpenAIBatches(self)


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
            http_client=http_client(_httpx_of(sdk), seconds=seconds),
        )
        self.create = _CREATES[endpoint](self.sdk.with_raw_response)
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


def _httpx_of(sdk: Any) -> Any:  # noqa: ANN401 - modules
    """Find the httpx that the SDK uses, which is another one from version 3 on."""
    kinds = (kind for kind in sdk.DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
    return importlib.import_module(next(kinds).__module__.partition(".")[0])


def make(spec: Spec) -> OpenAIClient:
    """Make the client; nothing is imported or sent yet."""
    options = spec.read(OpenAIOptions)
    base_url = OPENAI.base_url(options.base_url)
    model = model_of(spec, model_for("text-small"))
    endpoint = _ENDPOINTS[options.api]
    settings = openai_wire.settings_of(model, base_url, options)
    chat = options.api == "chat"
    compose = openai_wire.compose_completion if chat else openai_wire.compose_response
    client = OpenAIClient(
        Identity("openai", base_url, endpoint, model),
        options,
        key=partial(OPENAI.key, options.key_variable, base_url),
        connect=lambda secret: OpenAIConnection(base_url, endpoint, secret, options.timeout),
        written=WireFormat(
            partial(compose, settings=settings, templates=BodyTemplates()),
            partial(filled, write=data_url),
            openai_wire.read_completion if chat else openai_wire.read_response,
        ),
    )
    if not OPENAI.owns(base_url):
        client.caveat = "The server is not OpenAI's own: whether it enforces the schema of replies is for it to decide."
    return client


_NOT_DONE: Mapping[str, FailureKind] = {"batch_expired": "timeout", "batch_cancelled": "timeout"}


class _Response(msgspec.Struct):
    """The reply to one line, its body untouched."""

    status_code: Status = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Trouble(msgspec.Struct):
    """Why there is no reply to a line."""

    code: str | None = None
    message: str | None = None


class _ResultLine(msgspec.Struct):
    """A line of an output or error file."""

    custom_id: str
    response: _Response | None = None
    error: _Trouble | None = None


def _request_line(name: str, url: str, body: bytes) -> bytes:
    """Write the line of one request around its body."""
    head = msgspec.json.encode({"custom_id": name, "method": "POST", "url": url})
    return head[:-1] + b',"body":' + body + b"}\n"


def result_of(line: bytes) -> BatchResult | None:
    """Read a line of results; None where it cannot be read."""
    row: _ResultLine | None = decoded(line, _ResultLine)
    if row is None:
        return None
    response, trouble = row.response, row.error
    if response is not None and response.status_code == 200:
        return BatchResult(row.custom_id, "reply", 200, bytes(response.body))
    if response is not None and response.status_code:
        failure = failure_of(response.status_code, {}, bytes(response.body))
        return BatchResult(row.custom_id, failure.kind, response.status_code, bytes(response.body), failure.detail)
    code = (trouble.code if trouble else None) or "no response and no error"
    detail = f"{code}: {(trouble.message if trouble else None) or ''}"
    return BatchResult(row.custom_id, _NOT_DONE.get(code, "server"), 0, line.strip(), detail)


TAG = "culturekit_job"
_FILE_SECONDS = 3600.0  # how long a file may take to go up or come down
_STATES: Mapping[str, JobState] = {
    "completed": "done",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    "validating": "waiting",
}
_CROWDED = "token_limit_exceeded"  # so much of ours is waiting there already that no more is taken


class OpenAIBatches:
    """The batches of one model, through the SDK, told to try once."""

    limits = BatchLimits(rows=50_000, size=200_000_000)

    def __init__(self, client: OpenAIClient) -> None:
        """Take the client whose requests are to be batched; nothing is connected yet."""
        self.client = client
        self.url = "/v1" + client.identity.endpoint

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it leaves in a batch: just as it would alone."""
        return self.client.compose(request)

    def line(self, row: BatchRow) -> bytes:
        """Write the line of one row."""
        return _request_line(row.name, self.url, self.client.written.wire(row.outgoing))

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring up the file."""
        lines.seek(0)
        file = (f"{tag}.jsonl", lines, "application/jsonl")
        stored = await self.ask(lambda sdk, more: sdk.files.create(file=file, purpose="batch", **more), _FILE_SECONDS)
        return named(stored)

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        """Create the batch of an uploaded file."""
        del lines
        wanted = {"endpoint": self.url, "completion_window": "24h", "metadata": {TAG: tag}}
        return _read_job(await self.ask(lambda sdk, more: sdk.batches.create(input_file_id=upload, **wanted, **more)))

    async def find(self, tag: str) -> list[Job]:
        """Go through all batches there are for those with a tag."""
        found = [_job_of(batch) async for batch in self.listed()]
        return sorted((job for job in found if job.tag == tag), key=lambda job: (job.created, job.number))

    async def listed(self) -> AsyncIterator[Any]:
        """Go through the pages of the list."""
        page = await self.ask(lambda sdk, more: sdk.batches.list(limit=100, **more))
        while True:
            for batch in page.data or ():
                yield batch
            if not page.has_next_page():
                return
            page = await self.ask(lambda _, __, last=page: last.get_next_page())

    async def withdraw(self, upload: str) -> None:
        """Delete an uploaded file; one that is gone, or that a server will not delete, is left."""
        try:
            await self.ask(lambda sdk, more: sdk.files.delete(upload, **more))
        except Failure as failure:
            if failure.status not in {400, 404, 405, 409, 501}:
                raise

    async def poll(self, number: str) -> Job:
        """Ask how a batch is doing."""
        return _read_job(await self.ask(lambda sdk, more: sdk.batches.retrieve(number, **more)))

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the file of outputs, then that of errors."""
        for name in job.outputs:
            content = await self.ask(lambda sdk, more, name=name: sdk.files.content(name, **more), _FILE_SECONDS)
            for line in content.content.splitlines():
                if line.strip():
                    yield result_of(line)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def ask(self, ask: Callable[..., Awaitable[Any]], seconds: float | None = None) -> Any:  # noqa: ANN401
        """Ask the SDK, without a key where there is none, and give what it made of the answer.

        Raises:
            Failure: there is no answer that can be read.
        """

        def asked(opened: Connection) -> Awaitable[Any]:
            absent = {} if self.client.secret else {"extra_headers": {"Authorization": openai_sdk().Omit()}}
            return ask(opened.sdk, absent)

        _, answer = await self.client.through(asked, seconds=seconds, largest=None)
        if answer is None:
            raise Failure("server", "an answer that cannot be read", status=200)
        return answer


def named(stored: Any) -> str:  # noqa: ANN401 - a file of the SDK, or whatever a server brought in its place
    """Return the name of a file that was brought up.

    Raises:
        Failure: what came names none.
    """
    name = getattr(stored, "id", None)
    if not name:
        raise Failure("server", "an answer that names no file", status=200)
    return str(name)


def _read_job(batch: Any) -> Job:  # noqa: ANN401 - a batch of the SDK
    """Read what came for a batch, which may be anything."""
    try:
        if batch.id:
            return _job_of(batch)
    except (AttributeError, TypeError, ValueError):
        pass
    raise Failure("server", "an answer that names no batch", status=200)


def _job_of(batch: Any) -> Job:  # noqa: ANN401 - a batch of the SDK
    """Read what the SDK says of a batch."""
    counts = batch.request_counts
    kind, detail, rejected = _trouble_of(getattr(batch.errors, "data", None) or [])
    return Job(
        str(batch.id),
        _STATES.get(batch.status, "running"),
        tag=str((batch.metadata or {}).get(TAG, "")),
        created=float(batch.created_at or 0),
        counted=None if counts is None else (counts.completed or 0) + (counts.failed or 0),
        outputs=tuple(name for name in (batch.output_file_id, batch.error_file_id) if name),
        kind=kind,
        detail=detail,
        rejected=rejected,
    )


def _trouble_of(errors: list[Any]) -> tuple[Any, str, tuple[tuple[int, str], ...]]:
    """Read why a batch failed as a whole: what kind of failure that is, what was said, and which lines are to blame."""
    failures = [
        failure_of(400, {}, msgspec.json.encode({"error": {"code": error.code, "message": error.message}}))
        for error in errors
    ]
    detail = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
    if any(error.code == _CROWDED for error in errors):
        return "busy", detail, ()
    if any(failure.kind == "fatal" for failure in failures):
        return "fatal", detail, ()
    return "server", detail, tuple((error.line, f"{error.code}: {error.message}") for error in errors if error.line)
