"""Batches of OpenAI: a file of lines goes up, a batch is created of it, files of results come down."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any, BinaryIO, TypeVar

import msgspec

from culturekit.llm.batches.batch_client import BatchLimits, BatchResult, BatchRow, Job, JobState, Status
from culturekit.llm.client import Failure, FailureKind, Outgoing, Request
from culturekit.llm.clients.endpoints import NO_KEY
from culturekit.llm.clients.openai_client import OpenAIClient, openai_sdk
from culturekit.llm.failures import failure_of
from culturekit.llm.reading.json_values import decoded

__all__ = ["OpenAIBatches"]

NOT_DONE: Mapping[str, FailureKind] = {"batch_expired": "timeout", "batch_cancelled": "timeout"}
"""Errors of rows that were never looked at."""


class Response(msgspec.Struct):
    """The reply to one line, its body untouched."""

    status_code: Status = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class Trouble(msgspec.Struct):
    """Why there is no reply to a line."""

    code: str | None = None
    message: str | None = None


class ResultLine(msgspec.Struct):
    """A line of an output or error file."""

    custom_id: str
    response: Response | None = None
    error: Trouble | None = None


def request_line(name: str, url: str, body: bytes) -> bytes:
    """Write the line of one request around its body."""
    head = msgspec.json.encode({"custom_id": name, "method": "POST", "url": url})
    return head[:-1] + b',"body":' + body + b"}\n"


def result_of(line: bytes) -> BatchResult | None:
    """Read a line of results; None where it cannot be read."""
    row: ResultLine | None = decoded(line, ResultLine)
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
    return BatchResult(row.custom_id, NOT_DONE.get(code, "server"), 0, line.strip(), detail)


Thing = TypeVar("Thing")

TAG = "culturekit_job"
FILE_SECONDS = 3600.0
"""How long a file may take to go up or come down."""

STATES: Mapping[str, JobState] = {
    "completed": "done",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    "validating": "waiting",
}
CROWDED = "token_limit_exceeded"
"""So much of ours is waiting there already that no more is taken."""


class OpenAIBatches:
    """The batches of one model, through the SDK, told to try once."""

    limits = BatchLimits(rows=50_000, size=200_000_000)

    def __init__(self, client: OpenAIClient) -> None:
        """Take the client whose requests are to be batched; nothing is connected yet."""
        self.client = client
        self.url = "/v1" + client.identity.endpoint
        self.connected: Any = None
        self.extra: Mapping[str, Any] = {}

    @property
    def sdk(self) -> Any:  # noqa: ANN401 - the SDK's client
        """Connect on first use; the connections belong to the event loop that runs then."""
        if self.connected is None:
            self.client.secret = secret = self.client.key()
            openai = openai_sdk()
            self.connected = openai.AsyncOpenAI(
                api_key=secret.reveal() if secret else NO_KEY,
                base_url=self.client.identity.base_url,
                max_retries=0,
                timeout=self.client.settings.timeout,
            )
            self.extra = {} if secret else {"extra_headers": {"Authorization": openai.Omit()}}
        return self.connected

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it leaves in a batch: just as it would alone."""
        return self.client.compose(request)

    def line(self, row: BatchRow) -> bytes:
        """Write the line of one row."""
        return request_line(row.name, self.url, self.client.written.wire(row.outgoing))

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring up the file."""
        lines.seek(0)
        asked = self.sdk.files.create(file=(f"{tag}.jsonl", lines, "application/jsonl"), purpose="batch", **self.extra)
        return str((await self.within(asked, FILE_SECONDS)).id)

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        """Create the batch of an uploaded file."""
        del lines
        asked = self.sdk.batches.create(
            input_file_id=upload, endpoint=self.url, completion_window="24h", metadata={TAG: tag}, **self.extra
        )
        return read_job(await self.within(asked))

    async def find(self, tag: str) -> list[Job]:
        """Go through all batches there are for those with a tag."""
        found = [job_of(batch) async for batch in self.listed()]
        return sorted((job for job in found if job.tag == tag), key=lambda job: (job.created, job.number))

    async def listed(self) -> AsyncIterator[Any]:
        """Go through the pages of the list."""
        page = await self.within(self.sdk.batches.list(limit=100, **self.extra))
        while True:
            for batch in page.data or ():
                yield batch
            if not page.has_next_page():
                return
            page = await self.within(page.get_next_page())

    async def withdraw(self, upload: str) -> None:
        """Delete an uploaded file; one that is gone, or that a server will not delete, is left."""
        try:
            await self.within(self.sdk.files.delete(upload, **self.extra))
        except Failure as failure:
            if failure.status not in {400, 404, 405, 409, 501}:
                raise

    async def poll(self, number: str) -> Job:
        """Ask how a batch is doing."""
        return read_job(await self.within(self.sdk.batches.retrieve(number, **self.extra)))

    async def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the file of outputs, then that of errors."""
        for name in job.outputs:
            content = await self.within(self.sdk.files.content(name, **self.extra), FILE_SECONDS)
            for line in content.content.splitlines():
                if line.strip():
                    yield result_of(self.client.without_key(line))

    async def close(self) -> None:
        """Close the connections."""
        connected, self.connected = self.connected, None
        if connected is not None:
            await connected.close()

    async def within(self, asked: Awaitable[Thing], seconds: float | None = None) -> Thing:
        """Wait for an answer of the SDK, not for ever, and say its errors in our words."""
        import openai

        try:
            async with asyncio.timeout(seconds or self.client.settings.timeout):
                return await asked
        except (TimeoutError, openai.APITimeoutError):
            raise Failure("timeout", "the provider did not answer in time") from None
        except openai.APIStatusError as error:
            raw = self.client.without_key(error.response.content)
            raise failure_of(error.status_code, error.response.headers, raw) from None
        except openai.APIConnectionError as error:
            raise Failure("connection", f"the connection failed ({type(error.__cause__).__name__})") from None
        except (openai.OpenAIError, ValueError, LookupError) as error:
            raise Failure("server", f"an answer that cannot be read ({type(error).__name__})", status=200) from None


def read_job(batch: Any) -> Job:  # noqa: ANN401 - a batch of the SDK
    """Read what came for a batch, which may be anything.

    Raises:
        Failure: it is no batch.
    """
    try:
        if batch.id:
            return job_of(batch)
    except (AttributeError, TypeError, ValueError):
        pass
    raise Failure("server", "an answer that names no batch", status=200)


def job_of(batch: Any) -> Job:  # noqa: ANN401 - a batch of the SDK
    """Read what the SDK says of a batch."""
    counts = batch.request_counts
    kind, detail, rejected = trouble_of(getattr(batch.errors, "data", None) or [])
    return Job(
        str(batch.id),
        STATES.get(batch.status, "running"),
        tag=str((batch.metadata or {}).get(TAG, "")),
        created=float(batch.created_at or 0),
        counted=None if counts is None else (counts.completed or 0) + (counts.failed or 0),
        outputs=tuple(name for name in (batch.output_file_id, batch.error_file_id) if name),
        kind=kind,
        detail=detail,
        rejected=rejected,
    )


def trouble_of(errors: list[Any]) -> tuple[Any, str, tuple[tuple[int, str], ...]]:
    """Read why a batch failed as a whole: what kind of failure that is, what was said, and which lines are to blame."""
    failures = [
        failure_of(400, {}, msgspec.json.encode({"error": {"code": error.code, "message": error.message}}))
        for error in errors
    ]
    detail = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
    if any(error.code == CROWDED for error in errors):
        return "busy", detail, ()
    if any(failure.kind == "fatal" for failure in failures):
        return "fatal", detail, ()
    return "server", detail, tuple((error.line, f"{error.code}: {error.message}") for error in errors if error.line)
