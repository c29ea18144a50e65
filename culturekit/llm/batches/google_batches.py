"""Batches of Gemini: small ones go inline, larger ones as a file; a key beside each request comes back with it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

import msgspec

from culturekit.llm.batches.batch_client import BatchLimits, BatchResult, BatchRow, Job, JobState
from culturekit.llm.batches.google_lines import error_of, inline_requests, request_line, result_of
from culturekit.llm.client import Failure, Outgoing, Request
from culturekit.llm.clients.google_client import GoogleClient
from culturekit.llm.clients.sending import Sending
from culturekit.llm.reading.json_values import decoded, record, records
from culturekit.llm.reading.schemas import schema_of
from culturekit.storage.digests import canonical_json

__all__ = ["GoogleBatches", "batch_form", "job_of"]

FILE_SECONDS = 3600.0
INLINE_BYTES = 6_000_000
"""Up to here a job goes inline: the provider takes 20 MB, and the SDK's escapes make three of one."""

STATES: Mapping[str, JobState] = {
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
        return batch_form(request, self.client.compose(request))

    def line(self, row: BatchRow) -> bytes:
        """Write the line of one row."""
        return request_line(row.name, self.client.written.wire(row.outgoing))

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring up the file, if the lines are too large to go inline."""
        if size <= INLINE_BYTES:
            return ""
        lines.seek(0)
        config = {"display_name": tag, "mime_type": "application/jsonl"}
        _, stored = await self.through(lambda sdk: sdk.files.upload(file=lines, config=config), FILE_SECONDS)
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
            inline = {"requests": {"requests": inline_requests(lines.read())}}
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
            found += [job_of(operation) for operation in listed.get("operations") or []]
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
            current, _ = await self.through(lambda sdk, name=name: sdk.files.download(file=name), FILE_SECONDS)
            for line in current.received.splitlines():
                if line.strip():
                    yield result_of(line)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def job_from(self, ask: Callable[..., Awaitable[object]]) -> Job:
        """Ask for a job, and read it."""
        job = job_of(await self.raw(ask))
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


def batch_form(request: Request, outgoing: Outgoing) -> Outgoing:
    """Write a request for a batch: the field of the JSON schema is ignored there, so the schema goes into the other."""
    body = msgspec.json.decode(outgoing.body)
    body["generationConfig"].pop("responseJsonSchema", None)
    body["generationConfig"]["responseSchema"] = schema_of(request.schema_type, "google-schema")
    return replace(outgoing, body=canonical_json(body))


def job_of(operation: Mapping[str, Any]) -> Job:
    """Read what the provider says of a batch."""
    told = record(operation.get("metadata"))
    output = record(told.get("output")) or record(operation.get("response"))
    inline = records(record(output.get("inlinedResponses")).get("inlinedResponses"))
    trouble = record(operation.get("error")) or record(told.get("error"))
    state = STATES.get(str(told.get("state", "")).rpartition("_STATE_")[2], "waiting")
    failure = error_of("", msgspec.json.encode(trouble))
    return Job(
        str(operation.get("name") or ""),
        "failed" if trouble and state in {"waiting", "running"} else state,
        tag=str(told.get("displayName") or ""),
        created=seconds_of(told.get("createTime")),
        counted=counted(record(told.get("batchStats"))),
        outputs=(str(output["responsesFile"]),) if output.get("responsesFile") else (),
        inline=tuple(msgspec.json.encode(element) for element in inline),
        kind=failure.kind if failure.kind in {"busy", "fatal"} else "server",
        detail=str(trouble.get("message") or ""),
    )


def counted(stats: Mapping[str, Any]) -> int | None:
    """Count the rows that have a result; the provider writes its numbers as texts."""
    done = [stats.get("successfulRequestCount"), stats.get("failedRequestCount")]
    try:
        return None if done == [None, None] else sum(int(number or 0) for number in done)
    except (TypeError, ValueError, OverflowError):
        return None


def seconds_of(text: object) -> float:
    """Read a time as seconds since 1970; 0 where there is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
