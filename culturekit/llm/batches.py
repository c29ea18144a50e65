"""Batches of any provider: what a client of them does, and what a job and its results are."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from culturekit.llm.client import FailureKind, Outgoing, Request

JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "expired", "cancelled"]
Status: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=999)]  # of HTTP, or of google.rpc; any other number is none
ENDED: frozenset[JobState] = frozenset({"done", "failed", "expired", "cancelled"})


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that one job can hold."""

    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the provider describes it.

    `counted` is how many rows the provider says it has results for, None where it does not say. Results are in the
    files named by `outputs`, or in `inline`. `kind` says what the failure of a whole job means.
    """

    number: str
    state: JobState
    tag: str = ""
    created: float = 0.0
    counted: int | None = None
    outputs: tuple[str, ...] = ()
    inline: tuple[bytes, ...] = ()
    kind: FailureKind = "server"
    detail: str = ""
    rejected: tuple[tuple[int, str], ...] = ()  # lines of the job, counted from 1, that made it fail, and why


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came back for one row: the raw bytes that a reply would have had online, or of an error.

    `paid` is the raw reply whose usage is to be paid, where `raw` is none.
    """

    name: str
    kind: Literal["reply"] | FailureKind
    status: int
    raw: bytes
    detail: str = ""
    paid: bytes = b""

    @property
    def billed(self) -> bytes:
        """Return the reply whose usage is to be paid; empty when nothing is."""
        return self.raw if self.kind == "reply" else self.paid


class BatchClient(Protocol):
    """The batches of one provider, for one model."""

    @property
    def limits(self) -> BatchLimits:
        """The most that one job can hold."""

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it will leave in a batch; nothing is sent."""

    def line(self, name: str, outgoing: Outgoing) -> bytes:
        """Write the line of one request, named by its key in hexadecimal digits: its images in it, with a line feed."""

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring the lines to the provider and give the name they have there; empty when they go with the job."""

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        """Create the job: from here on it is bought.

        Raises:
            Failure: the job was not created, or nobody knows: `find` it before creating it again.
        """

    async def find(self, tag: str) -> list[Job]:
        """List the jobs that carry exactly this tag, the oldest first."""

    async def withdraw(self, upload: str) -> None:
        """Delete uploaded lines, so that no job can be created from them any more."""

    async def poll(self, number: str) -> Job:
        """Ask how a job is doing."""

    def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the results that there are, in any order; None for a line that cannot be read."""

    async def close(self) -> None:
        """Close the connections."""


@runtime_checkable
class Batched(Protocol):
    """A client that can also be asked in batches."""

    def batches(self) -> BatchClient:
        """Return its batches; nothing is connected yet."""
