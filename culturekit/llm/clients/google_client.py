"""Google's Gemini models, through generateContent of the Gemini API, one by one and in batches."""

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

import msgspec

from culturekit.core.digests import canonical_json
from culturekit.core.registry import Spec, needing
from culturekit.llm.batches import BatchClient, BatchLimits, BatchResult, Job, JobState, Status
from culturekit.llm.client import Failure, FailureKind, Identity, Outgoing, Reply, Request, Stop, Usage, how_cut
from culturekit.llm.clients.client_options import GoogleOptions
from culturekit.llm.clients.image_slots import BodyTemplates, encoded, filled, slot_of
from culturekit.llm.clients.remote_client import RemoteClient, Sending, WireFormat, http_client, model_of
from culturekit.llm.endpoints import GOOGLE, NO_KEY
from culturekit.llm.failures import failure_of
from culturekit.llm.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.models import habits_of, model_for
from culturekit.llm.redaction import Secret
from culturekit.llm.reply_schema import schema_of
from culturekit.llm.rows import refuse_weighing
from culturekit.llm.usage import Counts, too_few, usage_of_text

_ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class _GeminiSettings:
    """How the requests of one client look.

    `room` is how many tokens may be spent on thinking, on top of those of the answer; `thinking` is what the model is
    told about it.
    """

    options: GoogleOptions
    temperature: float | None
    thinking: Mapping[str, int | str]
    room: int

    def limit(self, request: Request) -> int:
        return (self.options.max_tokens or request.max_tokens) + self.room

    def generation(self, sample: int) -> dict[str, Any]:
        """Return how tokens are drawn; samples of one question are drawn from different seeds."""
        options = self.options
        chosen: dict[str, Any] = {
            "temperature": self.temperature,
            "topP": options.top_p,
            "seed": None if options.seed is None else options.seed + sample,
            "thinkingConfig": dict(self.thinking) or None,
            "mediaResolution": options.media_resolution and f"MEDIA_RESOLUTION_{options.media_resolution.upper()}",
        }
        return {name: value for name, value in chosen.items() if value is not None}


def settings_of(model: str, options: GoogleOptions) -> _GeminiSettings:
    """Choose what the SPEC leaves open.

    Thoughts count as output and would eat the tokens of the answer: models that can do without them are asked not to
    think, the others get room for it. From Gemini 3.6 on the provider takes no sampling of its own accord: nothing is
    sent of it that the SPEC does not state.
    """
    habits = habits_of(model, "google")
    budget, level = options.thinking_budget, options.thinking_level
    if budget is None and level is None and habits.stops_thinking:
        budget = 0
    thinking: dict[str, int | str] = {} if level is None else {"thinkingLevel": level}
    if budget is not None and level is None:
        thinking = {"thinkingBudget": budget}
    room = _ROOM_TO_THINK if level is not None or habits.thinks else 0
    temperature = 0.0 if options.temperature is None and habits.samples else options.temperature
    return _GeminiSettings(options, temperature, thinking, room if budget is None else budget)


_GARBLED = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"}


def compose(request: Request, settings: _GeminiSettings, templates: BodyTemplates) -> Outgoing:
    """Write a request."""
    refuse_weighing(request, "Google")
    return templates.outgoing(request, settings.limit(request), lambda text: _body_of(request, settings, text))


def _body_of(request: Request, settings: _GeminiSettings, data: str) -> dict[str, Any]:
    slots = [{"inlineData": {"mimeType": image.media_type, "data": slot_of(image)}} for image in request.images]
    return {
        "systemInstruction": {"parts": [{"text": request.instructions}]},
        "contents": [{"role": "user", "parts": [{"text": data}, *slots]}],
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": schema_of(request.schema_type, "google-json"),
            "maxOutputTokens": settings.limit(request),
            **settings.generation(request.sample),
        },
    }


def read(raw: bytes) -> Reply:
    """Read a reply; what a filter stopped looks like any other until one asks why it ended."""
    body = record(decoded(raw))
    version = text(body.get("modelVersion"))
    feedback = record(body.get("promptFeedback"))
    blocked = text(feedback.get("blockReason"))
    if blocked and blocked != "BLOCK_REASON_UNSPECIFIED":
        return Reply("", usage(body.get("usageMetadata"), ""), "blocked", f"prompt: {blocked}", version)
    candidates = records(body.get("candidates"))
    if not candidates:
        nothing = "no candidates in the reply" if body else why_no_object(raw)
        return Reply("", usage(body.get("usageMetadata"), ""), "unreadable", nothing, version)
    parts = records(record(candidates[0].get("content")).get("parts"))
    reply_text = "".join(text(part.get("text")) for part in parts if part.get("thought") is not True)
    stop, detail = _ending(text(candidates[0].get("finishReason")), reply_text)
    return Reply(reply_text, usage(body.get("usageMetadata"), reply_text), stop, detail, version)


def _ending(reason: str, reply_text: str) -> tuple[Stop, str]:
    """Return why a reply ended; reasons that are not known are taken for a filter's."""
    if reason in ("", "FINISH_REASON_UNSPECIFIED"):
        return ("end", "") if reply_text else ("unreadable", "nothing was said, and no reason given")
    if reason == "STOP":
        return "end", ""
    if reason == "MAX_TOKENS":
        return "length", how_cut(reply_text)
    return "unreadable" if reason in _GARBLED else "blocked", reason


def usage(value: object, reply_text: str) -> Usage:
    """Read what the provider counted, thoughts as output; count here where it did not. It leaves out counts of none."""
    counts = Counts(value)
    if not {"promptTokenCount", "candidatesTokenCount", "totalTokenCount"} & counts.stated.keys():
        return usage_of_text(reply_text)
    prompt, tools = counts.take("promptTokenCount"), counts.take("toolUsePromptTokenCount") or 0
    thought = counts.take("thoughtsTokenCount") or 0
    answer = counts.take("candidatesTokenCount") if counts.stated.get("candidatesTokenCount") is not None else 0
    return counts.usage(
        reply_text,
        sent=None if prompt is None else prompt + tools,
        came=None if answer is None or too_few(answer, reply_text) else answer + thought,
        thought=thought,
        cached=counts.take("cachedContentTokenCount") or 0,
        total=counts.take("totalTokenCount"),
    )


# What tells the SDK to leave replies as they are; none of it is sent.
_AS_IT_COMES: Mapping[str, object] = {"shouldReturnHttpResponse": True, "automaticFunctionCalling": {"disable": True}}


class GoogleClient(RemoteClient):
    """Asks one model to generate content."""

    def batches(self) -> BatchClient:
        """Return the batches of this client."""
        return GoogleBatches(self)


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
        config |= body.get("generationConfig", {}) | _AS_IT_COMES
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
    model = model_of(spec, model_for("text-google")).removeprefix("models/")
    written = partial(compose, settings=settings_of(model, options), templates=BodyTemplates())
    return GoogleClient(
        Identity("google", base_url, f"/{options.api_version}/models/{model}:generateContent", model),
        options,
        key=partial(GOOGLE.key, options.key_variable, base_url),
        connect=lambda secret: GoogleConnection(
            base_url, model, secret, api_version=options.api_version, seconds=options.timeout
        ),
        written=WireFormat(written, partial(filled, write=encoded), read),
    )


KEY = "key"

# Codes of google.rpc that may pass: cancelled, deadline, exhausted, aborted, internal, unavailable.
_NOT_DONE: Mapping[int, FailureKind] = {1: "timeout", 4: "timeout", 8: "busy", 10: "server", 13: "server", 14: "server"}
_STATUS_OF = {3: 400, 5: 404, 7: 403, 9: 400, 11: 400, 16: 401}  # the others, as the status that they have over HTTP


class _Trouble(msgspec.Struct):
    """The status of a request that failed."""

    code: Status = 0
    message: str = ""


class _ResultLine(msgspec.Struct):
    """A line of a file of results, or an element of inline results, its response untouched."""

    key: str | None = None
    metadata: Mapping[str, str] | None = None
    response: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _RequestLine(msgspec.Struct):
    """A line of an input file, its request untouched."""

    key: str
    request: msgspec.Raw


def result_of(line: bytes) -> BatchResult | None:
    """Read a line or an element of results; None where it cannot be read or has no key."""
    row: _ResultLine | None = decoded(line, _ResultLine)
    name = None if row is None else row.key or (row.metadata or {}).get(KEY)
    if row is None or name is None:
        return None
    if bytes(row.response) != b"null":
        return BatchResult(name, "reply", 200, bytes(row.response))
    return _error_of(name, bytes(row.error))


def _error_of(name: str, raw: bytes) -> BatchResult:
    """Read why a request has no response; its code is one of google.rpc, or one of HTTP."""
    try:
        trouble = msgspec.json.decode(raw, type=_Trouble)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return BatchResult(name, "server", 0, raw, "neither a response nor an error")
    status = _STATUS_OF.get(trouble.code, trouble.code)
    if trouble.code in _NOT_DONE or status < 400:
        return BatchResult(name, _NOT_DONE.get(trouble.code, "server"), status, raw, trouble.message)
    failure = failure_of(status, {}, msgspec.json.encode({"error": {"code": status, "message": trouble.message}}))
    return BatchResult(name, failure.kind, status, raw, failure.detail)


_FILE_SECONDS = 3600.0
# Up to here a job goes inline: the provider takes 20 MB, and the SDK's escapes make three of one.
INLINE_BYTES = 6_000_000
_STATES: Mapping[str, JobState] = {
    "SUCCEEDED": "done",
    "PARTIALLY_SUCCEEDED": "done",
    "FAILED": "failed",
    "EXPIRED": "expired",
    "CANCELLED": "cancelled",
    "RUNNING": "running",
}


class GoogleBatches:
    """The batches of one model, through the SDK; what came is read from its bytes, of which the SDK keeps a part."""

    limits = BatchLimits(rows=50_000, size=2_000_000_000)

    def __init__(self, client: GoogleClient) -> None:
        """Take the client whose requests are to be batched; nothing is connected yet."""
        self.client = client
        self.model = client.identity.model

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it leaves in a batch, where the schema stands in the other field."""
        outgoing = self.client.compose(request)
        body = msgspec.json.decode(outgoing.body)
        body["generationConfig"].pop("responseJsonSchema", None)  # ignored in a batch
        body["generationConfig"]["responseSchema"] = schema_of(request.schema_type, "google-schema")
        return replace(outgoing, body=canonical_json(body))

    def line(self, name: str, outgoing: Outgoing) -> bytes:
        """Write the line of one row."""
        body = self.client.written.wire(outgoing)
        return b'{"key":' + msgspec.json.encode(name) + b',"request":' + body + b"}\n"

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring up the file, if the lines are too large to go inline."""
        if size <= INLINE_BYTES:
            return ""
        lines.seek(0)
        config = {"display_name": tag, "mime_type": "application/jsonl"}
        _, stored = await self.through(lambda sdk: sdk.files.upload(file=lines, config=config), _FILE_SECONDS)
        name = getattr(stored, "name", None)
        if not name:
            raise Failure("server", "an answer that names no file", status=200)
        return str(name)

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        """Create the batch, of an uploaded file or with its lines inline."""
        source: Any = {"file_name": upload}
        config: dict[str, Any] = {"display_name": tag}
        if not upload:
            lines.seek(0)
            rows = msgspec.json.Decoder(_RequestLine).decode_lines(lines.read())
            requests = [{"request": msgspec.json.decode(row.request), "metadata": {KEY: row.key}} for row in rows]
            inline = {"requests": {"requests": requests}}
            source = {"inlined_requests": []}
            config["http_options"] = {"extra_body": {"batch": {"inputConfig": inline}}}
        return await self.job_from(lambda sdk: sdk.batches.create(model=self.model, src=source, config=config))

    async def find(self, tag: str) -> list[Job]:
        """Go through all batches there are for those with a tag."""
        found: list[Job] = []
        page: str | None = None
        while True:
            listed = await self.raw(
                lambda sdk, page=page: sdk.batches.list(config={"page_size": 100, "page_token": page})
            )
            found += [_job_of(operation) for operation in listed.get("operations") or []]
            page = listed.get("nextPageToken")
            if not page:
                return sorted((job for job in found if job.tag == tag), key=lambda job: (job.created, job.number))

    async def withdraw(self, upload: str) -> None:
        """Delete an uploaded file; one that is gone, or that a server will not delete, is left."""
        try:
            await self.through(lambda sdk: sdk.files.delete(name=upload))
        except Failure as failure:
            if failure.status not in {400, 403, 404, 405, 409, 501}:
                raise

    async def poll(self, number: str) -> Job:
        """Ask how a batch is doing; small ones bring their results along."""
        return await self.job_from(lambda sdk: sdk.batches.get(name=number))

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the results that came with the job, or its file of results."""
        for element in job.inline:
            yield result_of(element)
        for name in job.outputs:
            current, _ = await self.through(lambda sdk, name=name: sdk.files.download(file=name), _FILE_SECONDS)
            for line in current.received.splitlines():
                if line.strip():
                    yield result_of(line)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def job_from(self, ask: Callable[..., Awaitable[object]]) -> Job:
        """Ask for a job, and read it."""
        job = _job_of(await self.raw(ask))
        if not job.number:
            raise Failure("server", "an answer that names no job", status=200)
        return job

    async def raw(self, ask: Callable[..., Awaitable[object]]) -> dict[str, Any]:
        """Ask through the SDK, and read the bytes that came, of which the SDK keeps a part."""
        current, _ = await self.through(ask)
        value = decoded(current.received)
        if not isinstance(value, dict):
            raise Failure("server", "an answer that cannot be read", status=200)
        return value

    async def through(self, ask: Callable[..., Awaitable[Any]], seconds: float | None = None) -> tuple[Sending, Any]:
        """Ask the asynchronous half of the SDK."""
        return await self.client.through(lambda opened: ask(opened.sdk.aio), seconds=seconds, largest=None)


def _job_of(operation: Mapping[str, Any]) -> Job:
    metadata = record(operation.get("metadata"))
    output = record(metadata.get("output")) or record(operation.get("response"))
    inline = records(record(output.get("inlinedResponses")).get("inlinedResponses"))
    trouble = record(operation.get("error")) or record(metadata.get("error"))
    state = _STATES.get(str(metadata.get("state", "")).rpartition("_STATE_")[2], "waiting")
    failure = _error_of("", msgspec.json.encode(trouble))
    return Job(
        str(operation.get("name") or ""),
        "failed" if trouble and state in {"waiting", "running"} else state,
        tag=str(metadata.get("displayName") or ""),
        created=_seconds_of(metadata.get("createTime")),
        counted=_counted(record(metadata.get("batchStats"))),
        outputs=(str(output["responsesFile"]),) if output.get("responsesFile") else (),
        inline=tuple(msgspec.json.encode(element) for element in inline),
        kind=failure.kind if failure.kind in {"busy", "fatal"} else "server",
        detail=str(trouble.get("message") or ""),
    )


def _counted(stats: Mapping[str, Any]) -> int | None:
    """Count the rows that have a result; the provider writes its numbers as texts."""
    done = [stats.get("successfulRequestCount"), stats.get("failedRequestCount")]
    try:
        return None if done == [None, None] else sum(int(number or 0) for number in done)
    except (TypeError, ValueError, OverflowError):
        return None


def _seconds_of(text: object) -> float:
    """Read a time as seconds since 1970; 0 where there is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
