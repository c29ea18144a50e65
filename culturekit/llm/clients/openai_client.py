"""OpenAI, and every server that speaks its protocol, asked one by one and in batches."""

import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import msgspec

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec, needing
from culturekit.llm.batches import BatchClient, BatchLimits, BatchResult, Job, JobState, Status
from culturekit.llm.client import Failure, FailureKind, Identity, Outgoing, Reply, Request, Stop, how_cut
from culturekit.llm.clients.client_options import OpenAIOptions
from culturekit.llm.clients.image_slots import BodyTemplates, data_url, filled, slot_of
from culturekit.llm.clients.remote_client import Connection, RemoteClient, WireFormat, http_client, model_of
from culturekit.llm.endpoints import NO_KEY, OPENAI
from culturekit.llm.failures import failure_of, shortened
from culturekit.llm.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.models import Habits, habits_of, model_for
from culturekit.llm.redaction import Secret
from culturekit.llm.reply_schema import response_format
from culturekit.llm.rows import MOST_LISTED, listed_tokens, refuse_weighing
from culturekit.llm.usage import stated_usage

_ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class _Settings:
    """How the requests of one client look.

    `room` is how many tokens may be spent on thinking, on top of those of the answer. `weighs` is False for a model
    that is known to give no probabilities of tokens as it is asked here.
    """

    model: str
    options: OpenAIOptions
    limit_field: str
    temperature: float | None
    room: int
    weighs: bool

    @property
    def effort(self) -> str:
        """How much the model thinks; empty where it is not asked."""
        return self.options.reasoning_effort or ""

    def limit(self, request: Request) -> int:
        return (self.options.max_tokens or request.max_tokens) + self.room

    def format(self, request: Request) -> dict[str, Any]:
        return response_format(request.schema_type, self.options.schema or "openai")

    def sampling(self, sample: int) -> dict[str, Any]:
        """Return how tokens are drawn; samples of one question are drawn from different seeds."""
        seed = None if self.options.seed is None else self.options.seed + sample
        chosen = {"temperature": self.temperature, "top_p": self.options.top_p, "seed": seed}
        return {name: value for name, value in chosen.items() if value is not None}


def settings_of(model: str, base_url: str, options: OpenAIOptions) -> _Settings:
    """Choose what the SPEC leaves open.

    Models of OpenAI that think take no temperature and count their thoughts as output; a name that is not known is
    asked with nothing that it could refuse. Servers of one's own know `max_tokens` only.
    """
    official = OPENAI.owns(base_url)
    habits = habits_of(model, "openai") if official else Habits(samples=True)
    effort = options.reasoning_effort
    if effort and habits.efforts and effort not in habits.efforts:
        raise UsageError(
            f"{model} does not think with this effort",
            expected=f"reasoning_effort as one of {', '.join(habits.efforts)}",
            found=effort,
            where="the SPEC of the model",
            hint=f"Write openai:{model}?reasoning_effort={habits.efforts[0]}, or leave it away.",
        )
    room = options.thinking_budget
    if room is None:
        room = _ROOM_TO_THINK if habits.thinks and effort != "none" else 0
    return _Settings(
        model,
        options,
        options.max_tokens_field or ("max_completion_tokens" if official else "max_tokens"),
        0.0 if options.temperature is None and habits.samples else options.temperature,
        room,
        weighs=not room and (not habits.thinks or (habits.weighs_unthinking and effort == "none")),
    )


_STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "content_filter": "blocked"}


def compose_completion(request: Request, settings: _Settings, templates: BodyTemplates) -> Outgoing:
    """Write a request; whatever is random in it depends on its sample."""
    if not settings.weighs:
        refuse_weighing(request, f"{settings.model}, which thinks before it answers,")
    limit = settings.limit(request)
    return templates.outgoing(
        request, limit, lambda text: _completion_body(request, settings, text), bool(request.weighed)
    )


def _completion_body(request: Request, settings: _Settings, data: str) -> dict[str, Any]:
    """Write the body around what comes from outside: text alone, or text and the slots of its images."""
    wanted: dict[str, Any] = {"logprobs": True, "top_logprobs": MOST_LISTED}
    if not request.weighed:
        wanted = {"response_format": settings.format(request)}
    detail = {"detail": settings.options.detail} if settings.options.detail else {}
    slots = [{"type": "image_url", "image_url": {"url": slot_of(image), **detail}} for image in request.images]
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": request.instructions},
            {"role": "user", "content": [{"type": "text", "text": data}, *slots] if slots else data},
        ],
        **wanted,
        settings.limit_field: settings.limit(request),
        **settings.sampling(request.sample),
    }
    return body | {"reasoning_effort": settings.effort} if settings.effort else body


def read_completion(raw: bytes) -> Reply:
    """Read a reply of which nothing is certain."""
    body = record(decoded(raw))
    choices = records(body.get("choices"))
    message = record(choices[0].get("message")) if choices else {}
    if not message:
        return Reply("", stop="unreadable", detail="no message in the reply" if body else why_no_object(raw))
    version = " ".join(part for part in (text(body.get("model")), text(body.get("system_fingerprint"))) if part)
    content, refusal = message.get("content"), text(message.get("refusal"))
    reply_text = text(content) or "".join(text(part.get("text")) for part in records(content))  # some send parts
    reason = text(choices[0].get("finish_reason"))
    stop = "refusal" if refusal else _STOPS.get(reason, "end")
    detail = {"refusal": "the model declined", "length": how_cut(reply_text)}.get(stop, reason)
    if stop == "end" and reason == "stop":
        detail = ""
    counts = stated_usage(body.get("usage"), reply_text or refusal, sent="prompt_tokens", came="completion_tokens")
    return Reply(reply_text or refusal, counts, stop, detail, version, listed_tokens(choices[0].get("logprobs")))


_LEAST_TOKENS = 16


def compose_response(request: Request, settings: _Settings, templates: BodyTemplates) -> Outgoing:
    """Write a request; nothing of it is to be stored by the provider."""
    refuse_weighing(request, "the responses API")
    limit = max(settings.limit(request), _LEAST_TOKENS)
    return templates.outgoing(request, limit, lambda text: _response_body(request, settings, text, limit))


def _response_body(request: Request, settings: _Settings, data: str, limit: int) -> dict[str, Any]:
    detail = settings.options.detail or "auto"
    slots = [{"type": "input_image", "image_url": slot_of(image), "detail": detail} for image in request.images]
    body: dict[str, Any] = {
        "model": settings.model,
        "instructions": request.instructions,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": data}, *slots]}],
        "text": {"format": {"type": "json_schema", **settings.format(request)["json_schema"]}},
        "max_output_tokens": limit,
        "store": False,
        **settings.sampling(request.sample),
    }
    return body | {"reasoning": {"effort": settings.effort}} if settings.effort else body


def read_response(raw: bytes) -> Reply:
    """Read a reply."""
    body = record(decoded(raw))
    status = text(body.get("status"))
    if status not in ("completed", "incomplete"):
        found = why_no_object(raw) if raw and not body else "not a response"
        nothing = f"status {shortened(status)}" if status else found
        return Reply("", stop="unreadable", detail=nothing)
    messages = [item for item in records(body.get("output")) if item.get("type") == "message"]
    parts = [part for item in messages for part in records(item.get("content"))]
    reply_text = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
    refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
    reason = text(record(body.get("incomplete_details")).get("reason"))
    stop: Stop = "blocked" if reason == "content_filter" else "length"
    detail = reason if stop == "blocked" else how_cut(reply_text)
    if refusal or status == "completed":
        stop, detail = ("refusal", "the model declined") if refusal else ("end", "")
    usage = stated_usage(body.get("usage"), reply_text or refusal, sent="input_tokens", came="output_tokens")
    return Reply(reply_text or refusal, usage, stop, detail, text(body.get("model")))


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
        # The httpx that the SDK uses, which is another one from version 3 on.
        kinds = (kind for kind in sdk.DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
        httpx = importlib.import_module(next(kinds).__module__.partition(".")[0])
        self.sdk: Any = sdk.AsyncOpenAI(
            api_key=secret.reveal() if secret else NO_KEY,
            base_url=base_url,
            max_retries=0,
            timeout=seconds,
            http_client=http_client(httpx, seconds=seconds),
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


def make(spec: Spec) -> OpenAIClient:
    """Make the client; nothing is imported or sent yet."""
    options = spec.read(OpenAIOptions)
    base_url = OPENAI.base_url(options.base_url)
    model, endpoint = model_of(spec, model_for("text-small")), _ENDPOINTS[options.api]
    chat = options.api == "chat"
    settings = settings_of(model, base_url, options)
    compose = partial(compose_completion if chat else compose_response, settings=settings, templates=BodyTemplates())
    client = OpenAIClient(
        Identity("openai", base_url, endpoint, model),
        options,
        key=partial(OPENAI.key, options.key_variable, base_url),
        connect=lambda secret: OpenAIConnection(base_url, endpoint, secret, options.timeout),
        written=WireFormat(compose, partial(filled, write=data_url), read_completion if chat else read_response),
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


def result_of(line: bytes) -> BatchResult | None:
    """Read a line of results; None where it cannot be read."""
    row: _ResultLine | None = decoded(line, _ResultLine)
    if row is None:
        return None
    status, body = (row.response.status_code, bytes(row.response.body)) if row.response else (0, b"")
    if status == 200:
        return BatchResult(row.custom_id, "reply", 200, body)
    if status:
        failure = failure_of(status, {}, body)
        return BatchResult(row.custom_id, failure.kind, status, body, failure.detail)
    trouble = row.error or _Trouble()
    code = trouble.code or "no response and no error"
    detail = f"{code}: {trouble.message or ''}"
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

    def line(self, name: str, outgoing: Outgoing) -> bytes:
        """Write the line of one row."""
        head = msgspec.json.encode({"custom_id": name, "method": "POST", "url": self.url})
        return head[:-1] + b',"body":' + self.client.written.wire(outgoing) + b"}\n"

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring up the file."""
        lines.seek(0)
        file = (f"{tag}.jsonl", lines, "application/jsonl")
        stored = await self.ask(lambda sdk, more: sdk.files.create(file=file, purpose="batch", **more), _FILE_SECONDS)
        name = getattr(stored, "id", None)
        if not name:
            raise Failure("server", "an answer that names no file", status=200)
        return str(name)

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        """Create the batch of an uploaded file."""
        del lines
        wanted = {"endpoint": self.url, "completion_window": "24h", "metadata": {TAG: tag}}
        return _read_job(await self.ask(lambda sdk, more: sdk.batches.create(input_file_id=upload, **wanted, **more)))

    async def find(self, tag: str) -> list[Job]:
        """Go through the pages of all batches there are for those with a tag."""
        found = []
        page = await self.ask(lambda sdk, more: sdk.batches.list(limit=100, **more))
        while True:
            found += [job for job in map(_job_of, page.data or ()) if job.tag == tag]
            if not page.has_next_page():
                return sorted(found, key=lambda job: (job.created, job.number))
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
        """Ask the SDK, without a key where there is none, and give what it made of the answer."""

        def asked(opened: Connection) -> Awaitable[Any]:
            absent = {} if self.client.secret else {"extra_headers": {"Authorization": openai_sdk().Omit()}}
            return ask(opened.sdk, absent)

        _, answer = await self.client.through(asked, seconds=seconds, largest=None)
        if answer is None:
            raise Failure("server", "an answer that cannot be read", status=200)
        return answer


def _read_job(batch: Any) -> Job:  # noqa: ANN401 - a batch of the SDK
    """Read what came for a batch, which may be anything."""
    with suppress(AttributeError, TypeError, ValueError):
        if batch.id:
            return _job_of(batch)
    raise Failure("server", "an answer that names no batch", status=200)


def _job_of(batch: Any) -> Job:  # noqa: ANN401 - a batch of the SDK
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
    reasons = [f"{error.code}: {error.message}" for error in errors]
    detail = "; ".join(reasons[:3])
    if any(error.code == _CROWDED for error in errors):
        return "busy", detail, ()
    bodies = (msgspec.json.encode({"error": {"code": error.code, "message": error.message}}) for error in errors)
    if any(failure_of(400, {}, body).kind == "fatal" for body in bodies):
        return "fatal", detail, ()
    return "server", detail, tuple((error.line, why) for error, why in zip(errors, reasons, strict=True) if error.line)
