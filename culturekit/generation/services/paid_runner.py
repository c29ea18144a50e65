"""Images that cost money: journalled first, no slot bought twice, every image asked for a row.

```
prompts -> calls -> the engine (journal, limits, budget, batches) -> pictures on disk -> parts of the table -> the table
```
A part of the table that is written is not looked at again, so that a run that was cut goes on after it.
"""

import http.client
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec
import polars as pl

from culturekit.core.addresses import NotPublic, check_sending, resolve
from culturekit.core.atomic import write_atomically
from culturekit.core.choices import PictureFormat
from culturekit.core.digests import JOURNAL, canonical_json, digest_bytes
from culturekit.core.errors import counted
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import picture_from
from culturekit.core.registry import parse_spec
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Asking, Left, Outcome, Stage, Work, is_sealed, seal_pictures
from culturekit.core.tables import merge_parts, prompts_table, save_parquet, write_table
from culturekit.generation.backend import ImageRequest
from culturekit.generation.comparability import traits_of
from culturekit.generation.picture_store import (
    AS_IT_CAME,
    KEPT,
    PASSING,
    PictureStore,
    asked_row,
    brought_in,
    folder_of_prompt,
    image_id_of,
    linked,
    statuses_of,
    trying_again,
)
from culturekit.generation.runner import ImagePlan, wanted
from culturekit.generation.services.image_client import (
    IMAGE_SERVICES,
    URL,
    Call,
    Candidate,
    ImageClient,
    Made,
    calls_of,
    check_image_price,
    question_of,
)
from culturekit.llm.answers import DEFAULTS, LlmOptions, bought_answers
from culturekit.llm.cost_plan import amount
from culturekit.llm.endpoints import is_loopback
from culturekit.llm.failures import read_error
from culturekit.llm.journal import Journal, key_of, run_tag
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.prices import check_alive
from culturekit.llm.purse import check_asking
from culturekit.llm.rows import Answered
from culturekit.llm.timed_socket import PinnedConnection, TooLarge, read_to_end
from culturekit.llm.usage import ADDED_BY_SERVERS, estimate

# Pictures that a reply names by address, fetched: bounded in size and time, checked in type, and never led inwards.

_MOVED = {301, 302, 303, 307, 308}
_TYPES = ("image/", "application/octet-stream", "binary/octet-stream")
_LONGEST_SILENCE = 10.0  # seconds without a byte after which a host is given up
_FOUND = ".address"  # how the name of a file ends that says what an address brought
_PORTS = {"http": 80, "https": 443}


class Refused(Exception):
    """An address that is not fetched, and why."""


@dataclass(frozen=True, slots=True)
class _Address:
    """An address taken apart, and the number of the machine behind it, which was looked up once and checked."""

    scheme: str
    host: str
    port: int
    path: str
    number: str

    def connection(self, until: float, *, silence: float = _LONGEST_SILENCE) -> PinnedConnection:
        """Connect to the very number that was checked; `silence` is how many seconds may pass without a byte."""
        left, address = min(until - time.monotonic(), _LONGEST_SILENCE), (self.number, self.port)
        secure = self.scheme == "https"
        connection = PinnedConnection(self.host, address, secure=secure, until=until, timeout=left, silence=silence)
        connection.connect()
        return connection


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much is fetched, how long that may take in all, how often it is tried, and how often it may be sent on."""

    bytes: int = 64 * 2**20
    seconds: float = 60.0
    tries: int = 3
    pause: float = 1.0
    moves: int = 3


@dataclass(frozen=True, slots=True)
class Fetched:
    """The SHA-256 of what is kept now, or why there is nothing."""

    sha256: str = ""
    reason: str = ""


_LIMITS = FetchLimits()


def fetched(url: str, store: PictureStore, *, base_url: str, limits: FetchLimits = _LIMITS) -> Fetched:
    """Fetch a picture into a store, unless it is there; an address never appears in a reason: it may hold a secret."""
    pointer = store.folder / f"{digest_bytes(url.encode('utf-8', 'replace'))}{_FOUND}"
    if pointer.is_file():
        known = pointer.read_text(encoding="ascii")
        if store.path(known).is_file():
            return Fetched(known)
    reason = ""
    for attempt in range(limits.tries):
        if store.leaving.wait(limits.pause * 2 ** (attempt - 1) if attempt else 0.0):
            break
        try:
            sha256 = store.put(_content_of(url, base_url=base_url, limits=limits))
        except Refused as error:
            return Fetched(reason=f"its address was not fetched: {error}")
        except (OSError, http.client.HTTPException) as error:
            reason = f"its address could not be reached: {name_of_break(error)}"
        else:
            write_atomically(pointer, sha256.encode("ascii"))
            return Fetched(sha256)
    return Fetched(reason=f"{reason}; run again with --fresh to try once more, nothing is bought for that")


def name_of_break(error: BaseException) -> str:
    """Name what broke, without an address."""
    return str(error) if type(error) is ConnectionError else type(error).__name__


def _content_of(url: str, *, base_url: str, limits: FetchLimits) -> bytes:
    """Follow an address to its picture.

    Raises:
        Refused: it does not lead to one.
        OSError: it might, at another time.
    """
    check_sending("the address of a picture")
    until = time.monotonic() + limits.seconds
    for _ in range(limits.moves + 1):
        address = address_at(url, base_url=base_url)
        answer = _answer_of(address, until=until, limits=limits)
        if isinstance(answer, bytes):
            return answer
        url = urljoin(url, answer)
    raise Refused(f"it was sent on more than {limits.moves} times")


def _answer_of(address: _Address, *, until: float, limits: FetchLimits) -> bytes | str:
    """Ask one machine: the picture, or the address it sends on to."""
    connection = address.connection(until)
    try:
        connection.request("GET", address.path, headers={"Accept": "image/*", "User-Agent": "culturekit"})
        response = connection.getresponse()
        if response.status in _MOVED:
            return response.getheader("Location") or ""
        if response.status >= 500 or response.status in {408, 425, 429}:
            raise ConnectionError(f"status {response.status}")
        if response.status != 200:
            raise Refused(f"status {response.status}")
        kind = (response.getheader("Content-Type") or "").strip().lower()
        if not kind.startswith(_TYPES) or kind.startswith("image/svg"):
            raise Refused(f"it is no picture but {kind.partition(';')[0][:60] or 'of no stated type'}")
        return read_to_end(response, limits.bytes)
    except TooLarge:
        raise Refused(f"it has more than {limits.bytes:,} bytes") from None
    finally:
        connection.close()


def address_at(url: str, *, base_url: str) -> _Address:
    """Look an address up, and make sure that it does not lead into a private network.

    A service on this machine may name addresses on this machine, and any service those of its own host and port; of
    others only public ones are asked, over an encrypted connection.
    """
    try:
        parts, base = urlsplit(url), urlsplit(base_url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        same_host = (host, port) == (base.hostname, base.port or _PORTS.get(base.scheme, 0))
    except ValueError:
        raise Refused("an address that cannot be read") from None
    if parts.scheme not in _PORTS or not host or parts.username or parts.password:
        raise Refused("an address that is not https:// and a host")
    if not url.isascii() or any(char.isspace() or not char.isprintable() for char in url):
        raise Refused("an address with signs that belong in none")
    if parts.scheme == "http" and not same_host and not is_loopback(base_url):
        raise Refused("an address without encryption")
    path = parts.path or "/"
    try:
        number = resolve(host, port, here=is_loopback(base_url), anywhere=same_host)
    except NotPublic:
        raise Refused("an address in a private network") from None
    except (OSError, UnicodeError):
        raise ConnectionError("its host is not known") from None
    return _Address(parts.scheme, host, port, f"{path}?{parts.query}" if parts.query else path, number)


# the columns of an images table that was bought; `source_sha256` is the picture as it came
_PAID_SCHEMA: Mapping[str, pl.DataType] = {
    **IMAGES.schema,
    **{name: IMAGES.optional[name].dtype for name in ("concept", "country", "source_sha256")},
}

_STAYS = {form: AS_IT_CAME[form] for form in ("PNG", "JPEG", "WEBP")}
# how a call that brought no image stands in the table; every other end is `failed`
_ENDED = {"refused": "refused", "blocked": "filtered"}
CALLS_PER_PART = 100
_THREADS = 4  # threads that read, fetch and place pictures while the next calls are under way


@dataclass(frozen=True, slots=True)
class _RowMaker:
    """Makes the rows of calls; it may do so in several threads at once."""

    out: Path
    client: ImageClient
    store: PictureStore
    model: str
    format: PictureFormat

    def rows(self, call: Call, answered: Answered, at: float | None) -> list[dict[str, Any]]:
        """Give one row for each image that a call asked for."""
        closed = ""
        if answered.outcome in {"blocked", "invalid"} and answered.raw:
            error = read_error(answered.raw.encode("utf-8", "replace"))
            closed = ": ".join(filter(None, [_error_code(answered), error.message]))
        detail = "; ".join(filter(None, [answered.detail, closed]))
        if not isinstance(answered.value, Made):
            status = _ENDED.get(answered.outcome, "failed")
            reason = detail or answered.outcome
            safety = (_error_code(answered) or answered.detail) if status == "filtered" else None
            ended = {"status": status, "reason": reason, "safety": safety or None}
            facts = {**self.client.sent_options, PASSING: True} if answered.outcome == "exhausted" else {}
            return [{**self.row(request, at, facts), **ended} for request in call]
        found = answered.value
        facts = {**self.client.sent_options, "n": len(call), **msgspec.json.decode(found.facts.encode())}
        if len(found.candidates) > len(call):
            facts["candidates"] = len(found.candidates)
        return [
            {
                **self.row(request, at, facts),
                "model_version": found.version or self.client.model,
                **(
                    self.bring_in(request, found.candidates[index])
                    if index < len(found.candidates)
                    else _missing(found)
                ),
            }
            for index, request in enumerate(call)
        ]

    def row(self, request: ImageRequest, at: float | None, facts: Mapping[str, object]) -> dict[str, Any]:
        """Describe an image before it is known what came."""
        params = {**(facts or self.client.sent_options)}
        if request.negative_text:
            sent = self.client.negatives
            params["negative_text"] = request.negative_text if sent else "not sent: the API takes none"
        return {
            **asked_row(request, self.model, self.client.model),
            "seed_honoured": self.client.seeds,
            "rewriter": self.client.rewriter,
            "requested_at": None if at is None else datetime.fromtimestamp(at, UTC),
            "provider_params": canonical_json(params).decode(),
        }

    def bring_in(self, request: ImageRequest, candidate: Candidate) -> dict[str, Any]:
        """Bring one image of a reply into the folder."""
        cells: dict[str, Any] = {"prompt_revised": candidate.revised or None, "safety": candidate.safety or None}
        if candidate.revised:
            cells["rewriter"] = "on"
        if not candidate.picture:
            return {**cells, "status": "filtered" if candidate.safety else "failed", "reason": candidate.reason}
        if self.client.filters and not candidate.safety:
            cells["safety"] = "passed"
        sha256 = candidate.picture.removeprefix(KEPT)
        if candidate.picture.startswith(URL):
            came = fetched(candidate.picture.removeprefix(URL), self.store, base_url=self.client.identity.base_url)
            if came.reason:
                return {**cells, "status": "failed", "reason": came.reason}
            sha256 = came.sha256
        return {**cells, "source_sha256": sha256, **self.taken(request, sha256)}

    def taken(self, request: ImageRequest, sha256: str) -> dict[str, Any]:
        """Read a picture, and put it where its row says; one that needs no change stays as it came."""
        content = self.store.get(sha256)
        picture = picture_from(content)
        if isinstance(picture, NoPicture):
            return {"status": "failed", "reason": f"paid for, but not read: {picture}"}
        stem = f"files/{folder_of_prompt(request.prompt_id)}/{request.repeat:04d}-{request.slot:02d}"
        link = partial(linked, self.store.path(sha256))
        cells = brought_in(content, picture, stem, self.out, self.format, link=link, stays=_STAYS)
        return {"image_id": image_id_of(self.model, request, picture.pixels), **cells}


def _missing(reply: Made) -> dict[str, Any]:
    """Describe an image that a call asked for and did not bring."""
    reasons: Sequence[str] = sorted({candidate.reason for candidate in reply.candidates if candidate.reason})
    count = len(reply.candidates)
    reason = f"the reply has {counted(count, 'images')} in place of those asked for"
    return {"status": "filtered", "reason": "; ".join([reason, *reasons]), "safety": "left out of the reply"}


def _error_code(answered: Answered) -> str:
    if not answered.raw:
        return ""
    return " ".join(sorted(read_error(answered.raw.encode("utf-8", "replace")).codes))


def planned_calls(prompts_path: Path, plan: ImagePlan, client: ImageClient, *, seed: int) -> list[Call]:
    """List the calls of a run, in the order of the prompts' ids."""
    return list(calls_of(wanted(prompts_path, plan, seed), client.per_call))


def buy_images(
    work: Work,
    prompts_path: Path,
    plan: ImagePlan,
    client: ImageClient,
    *,
    model: str,
    seed: int,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Buy all images of a model, and write the table that lists them."""
    calls = planned_calls(prompts_path, plan, client, seed=seed)
    parts = {
        work.scratch / f"images-{start:09d}.parquet": calls[start : start + CALLS_PER_PART]
        for start in range(0, len(calls), CALLS_PER_PART)
    }
    work.progress.begin(sum(map(len, calls)), "images")
    left = {path: some for path, some in parts.items() if not is_sealed(path)}
    work.progress.advance(sum(len(call) for path, some in parts.items() if path not in left for call in some))
    if left:
        check_image_price(client)
        store = client.keep_in(work.out / JOURNAL)
        maker = _RowMaker(work.out, client, store, model, plan.format)
        with Journal(work.out / JOURNAL) as journal:
            _buy_parts(work, left, maker, journal, llm)
    images = merge_parts(list(parts), _PAID_SCHEMA)
    write_table(work.out, IMAGES, images)
    ok, drops = statuses_of(images)
    notes = {"traits": traits_of(images).noted(), **trying_again(images)}
    return Outcome({"images": images.height, "ok": ok}, drops, notes)


def _buy_parts(work: Work, left: dict[Path, list[Call]], maker: _RowMaker, journal: Journal, llm: LlmOptions) -> None:
    """Buy the parts that are not there yet, one after the other; the engine runs ahead of them."""
    tag = run_tag(work)
    requests = [question_of(call) for some in left.values() for call in some]
    with (
        closing(bought_answers(maker.client, requests, journal, work=work, llm=llm)) as answered,
        _threads_for(maker.store) as threads,
    ):
        for path, some in left.items():
            waiting: list[Future[list[dict[str, Any]]]] = []
            for call, answer in zip(some, islice(answered, len(some)), strict=True):
                key = key_of(maker.client.identity, maker.client.compose(question_of(call)))
                entries = journal.found([key], run=tag).get(key, [])
                replies = [entry for entry in entries if entry.kind == "reply"] if answer.value is not None else entries
                at = replies[-1].at if replies else None
                maker.client.settled(question_of(call), answer)
                waiting.append(threads.submit(maker.rows, call, answer, at))
                work.progress.advance(len(call))
            rows = [row for future in waiting for row in future.result()]
            save_parquet(pl.DataFrame(rows, schema=_PAID_SCHEMA), path)
            seal_pictures(path, work.out, rows)


@contextmanager
def _threads_for(store: PictureStore) -> Iterator[ThreadPoolExecutor]:
    """Give threads that place pictures; when the run ends early, what they have not begun is left."""
    with ThreadPoolExecutor(_THREADS, "pictures") as threads:
        try:
            yield threads
        except BaseException:
            store.leaving.set()
            threads.shutdown(cancel_futures=True)
            raise


# options that decide no image, so that a run goes on when they are changed
OF_THE_WAY = ("rpm", "tpm", "price", "image_price", "image_tokens", "timeout", "api_key")


@dataclass(frozen=True, slots=True)
class ImagesPlan:
    """What is to be bought, and what it costs in US dollars."""

    model: str
    mode: str
    images: int  # all of the plan
    calls: int  # that ask for them
    bought: int  # calls that the journal answers already: they cost nothing more
    tokens: int  # of the rest, in and out; 0 where each image has its price
    usd: float  # what the rest costs: the listed tokens of each image, and the prompts as estimated
    most: float  # what surely suffices when nothing has to be asked twice
    each: float  # what one image costs, its prompt left out
    source: str  # where the price is from, and of which day

    @property
    def units(self) -> int:
        """What is asked for."""
        return self.images

    @property
    def left(self) -> Left:
        """What is left to ask."""
        return Left(self.calls - self.bought, self.tokens, self.usd)

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        left = self.calls - self.bought
        yield (
            f"{self.images:,} images by {self.model}: {self.calls:,} calls, {self.bought:,} bought already, "
            f"{left:,} left"
        )
        yield f"about {amount(self.usd)} USD ({self.mode}), {amount(self.each)} an image; price: {self.source}"
        yield f"a budget of {amount(self.most, up=True)} USD surely suffices, calls that have to be made twice apart"

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)


def plan_images(
    prompts: Path, plan: ImagePlan, *, backend: str, seed: int, out: Path, batch: bool = False
) -> ImagesPlan:
    """Plan, offline: nothing is sent, and no key is needed.

    Raises:
        UsageError: nobody knows what the images cost.
    """
    client = IMAGE_SERVICES.make(backend, size=plan.size)
    price = check_image_price(client)
    journal = journal_for(out)
    answered = {one.key for one in read_spending(journal) if one.answered} if journal else set()
    answered |= client.under_way(journal.parent) if journal else set()
    with TemporaryDirectory(prefix="culturekit-plan-") as folder:
        calls = planned_calls(prompts_table(prompts, Path(folder)), plan, client, seed=seed)
    left, sent, bound = [], 0, 0
    for call in calls:
        outgoing = client.compose(question_of(call))
        if key_of(client.identity, outgoing) not in answered:
            left.append(len(call))
            sent += estimate(outgoing)
            bound += len(outgoing.body) + ADDED_BY_SERVERS
    share = price.rate.batch if batch else 1.0
    came = sum(left) * price.tokens

    def dollars(sent: int, came: int) -> float:
        return share * ((sent * price.rate.input + came * price.rate.output) / 1e6)

    return ImagesPlan(
        model=client.model, mode="batch" if batch else "online", images=sum(map(len, calls)), calls=len(calls),
        bought=len(calls) - len(left), tokens=0 if price.by_image else sent + came, usd=dollars(sent, came),
        most=dollars(bound, came + price.room * len(left)), each=share * price.usd, source=price.rate.source,
    )  # fmt: skip


def paid_images_stage(
    prompts: Path, plan: ImagePlan, *, backend: str, model: str, seed: int, llm: LlmOptions = DEFAULTS
) -> Stage:
    """Buy the images of a model; what `llm` says of money and speed decides none of them."""
    client = IMAGE_SERVICES.make(backend, size=plan.size)
    if llm.batch:
        client.batches()
    spec = parse_spec(backend)
    spec = replace(spec, options={key: value for key, value in spec.options.items() if key not in OF_THE_WAY})

    def planned(out: Path, _: object) -> ImagesPlan:
        check_alive(client.identity, go_on=llm.go_on)
        return plan_images(prompts, plan, backend=backend, seed=seed, out=out, batch=llm.batch)

    def run(work: Work) -> Outcome:
        return buy_images(work, prompts_table(prompts, work.scratch), plan, client, model=model, seed=seed, llm=llm)

    def each() -> float:
        price = check_image_price(client)
        return price.usd * (price.rate.batch if llm.batch else 1.0)

    def before() -> None:
        check_alive(client.identity, go_on=llm.go_on)
        check_image_price(client)
        check_asking(client, go_on=llm.go_on)

    return Stage(
        "images", "generate", 2, run, {"prompts": prompts},
        {**plan.options, "backend": str(spec), "model": model, "service": asdict(client.identity), **client.decides},
        {"images": seed}, packages=("msgspec", "numpy", "pillow", "polars"),
        before=before,
        asking=Asking(backend, "images", free=False, each=each, plan=planned),
    )  # fmt: skip
