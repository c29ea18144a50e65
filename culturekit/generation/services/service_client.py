"""Any service that makes images over HTTP, described by a file of YAML: submit, poll until it is done, fetch.

```
submit -> the reply on disk (journal/jobs) -> poll -> pictures on disk -> the reply to the engine, which journals it
```
A job is bought with its submission. Whoever asks the same again, after a kill or a timeout, polls that job again: it is
let go only when the journal has how it ended.
"""

import asyncio
import binascii
import http.client
import os
import re
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from pydantic import AfterValidator, Field, model_validator

from culturekit.core.atomic import sync_folder, write_atomically
from culturekit.core.digests import canonical_json, digest
from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.literal_keys import key_problem
from culturekit.core.registry import Spec
from culturekit.core.yaml_source import StrictModel, load_model, not_empty
from culturekit.generation.image_options import Rewriter, ServiceImageOptions
from culturekit.generation.picture_store import KEPT, PictureStore
from culturekit.generation.services.image_client import (
    URL,
    Candidate,
    ImageClient,
    ImagePrice,
    reply_with,
    reply_without,
)
from culturekit.generation.services.paid_runner import Refused, address_at, fetched, name_of_break
from culturekit.llm.batches import BatchClient
from culturekit.llm.client import Failure, Identity, Outgoing, Rate, Reply, Request, Usage
from culturekit.llm.clients.remote_client import WireFormat
from culturekit.llm.endpoints import Service, check_base_url, normal_base_url
from culturekit.llm.failures import error_of, failure_of, shortened
from culturekit.llm.journal import key_of
from culturekit.llm.json_values import decoded, record, text, why_no_object
from culturekit.llm.redaction import Secret
from culturekit.llm.rows import Answered
from culturekit.llm.timed_socket import TooLarge, read_to_end

# the folder beside a journal that holds what was bought and is not in the journal yet, a file for each call
_JOBS = "jobs"
_SEEDS = frozenset({"seed", "seed31"})
# what a body can name; a seed has 32 bits, of which not every service takes the first
_GIVEN = frozenset({"prompt", "negative", *_SEEDS, "width", "height", "size"})
_CALL = "call"  # what a header can name: it is the same for each try of one call, and another for any other
_PIXELS = frozenset({"width", "height", "size"})
_THREADS = 64
_SECONDS_OF_A_POLL = 30.0
_UNKNOWN_FOR = 30.0  # seconds after its submission in which a service may say that it does not know a job
_LARGEST = 64 * 2**20
_SIGN = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_STEP = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<place>\d+|\*)\]")


def _checked_path(path: str) -> str:
    """Accept a path into JSON, such as `result.sample` or `data[*].url`."""
    if path and not re.fullmatch(r"[^.\[\]]+(\[(\d+|\*)\]|\.[^.\[\]]+)*", path):
        raise ValueError(f"{path!r} is no path such as result.sample or data[*].url")
    return path


def _typed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Read the scalars of a template as JSON where they are: numbers, `true`, `null`, and texts in quotes."""
    if isinstance(value, dict):
        return {key: _typed(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_typed(below) for below in value]
    try:
        read = msgspec.json.decode(value.encode()) if isinstance(value, str) else value
    except msgspec.DecodeError:
        return value
    return value if isinstance(read, dict | list) else read


def _checked_base_url(url: str) -> str:
    """Accept an address without credentials."""
    check_base_url(url)
    return normal_base_url(url)


_Thing = TypeVar("_Thing")
_JsonPath = Annotated[str, AfterValidator(_checked_path)]
_Words = Annotated[tuple[str, ...], AfterValidator(not_empty)]


class Key(StrictModel):
    """Which variable of the environment holds the key, and the header that it goes in."""

    variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    header: str = "Authorization"
    prefix: str = "Bearer "


class Submission(StrictModel):
    """What is posted, and what of its reply later addresses name.

    In the body a number, `true`, `false` and `null` are what they are in JSON, and so is a text in quotes of its own.
    """

    url: str
    body: Annotated[dict[str, Any], AfterValidator(_typed)]
    encoding: Literal["json", "multipart"] = "json"
    headers: dict[str, str] = Field(default_factory=dict)
    keep: dict[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")], _JsonPath] = Field(default_factory=dict)


class Polling(StrictModel):
    """How a job is asked after: seconds between two looks grow from `every` to `longest`.

    A status that stands in none of the lists means that the job goes on.
    """

    url: str
    status: _JsonPath
    done: _Words
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    every: Annotated[float, Field(gt=0)] = 1.0
    longest: Annotated[float, Field(gt=0)] = 15.0


class Result(StrictModel):
    """Where the pictures are, as addresses or base64; `url` is fetched for them where the last reply has none."""

    images: _JsonPath
    url: str = ""
    revised: _JsonPath = ""
    reason: _JsonPath = ""
    safe: _JsonPath = ""
    version: _JsonPath = ""


class ImageServiceFile(StrictModel):
    """A service: whom it asks, what is sent, and where the answer stands.

    `hosts` may see the key too; one that begins with a dot stands for all below it.
    """

    model: Annotated[str, Field(min_length=1)]
    base_url: Annotated[str, AfterValidator(_checked_base_url)]
    hosts: tuple[str, ...] = ()
    key: Key | None = None
    submit: Submission
    poll: Polling | None = None
    result: Result
    size: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$")] | None = None
    price: Annotated[float, Field(ge=0, le=1000)] | None = None
    price_source: str = ""
    rewriter: Rewriter = "unknown"
    rpm: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def names_are_known(self) -> "ImageServiceFile":
        """Refuse a name in braces that nothing stands for."""
        kept = frozenset(self.submit.keep)
        parts: tuple[tuple[str, object, frozenset[str]], ...] = (
            ("submit.body", self.submit.body, _GIVEN),
            ("submit.headers", self.submit.headers, frozenset({_CALL})),
            ("submit.url", self.submit.url, frozenset()),
            ("poll.url", self.poll.url if self.poll else "", kept),
            ("result.url", self.result.url, kept),
        )
        for where, value, known in parts:
            if unknown := sorted(_names_in(value) - known):
                raise ValueError(
                    f"{where} names {{{unknown[0]}}}, which is none of {', '.join(sorted(known)) or 'submit.keep'}"
                )
        if "prompt" not in _names_in(self.submit.body):
            raise ValueError("submit.body has no {prompt}")
        if self.poll and not _names_in(self.poll.url):
            raise ValueError("poll.url names nothing of submit.keep, so that every job would be the same")
        return self

    @model_validator(mode="after")
    def no_key_stands_here(self) -> "ImageServiceFile":
        """Refuse a key that is written out, without repeating it."""
        for name, value in [*_texts_in(self.submit.body), *_texts_in(self.submit.headers), ("", self.submit.url)]:
            if problem := key_problem(value, name="" if _names_in(value) else name):
                raise ValueError(f"{problem}; key: names the variable that holds it, and the header that it goes in")
        return self

    @property
    def decides(self) -> str:
        """Hash what decides the images and how they are read, prices and speed left out."""
        way = {"price", "price_source", "rpm", "key", "hosts"}
        return digest(self.model_dump(mode="json", exclude=way))


def _names_in(value: object) -> set[str]:
    if isinstance(value, dict | list):
        below = value.values() if isinstance(value, dict) else value
        return {name for part in below for name in _names_in(part)}
    return set(_SIGN.findall(value)) if isinstance(value, str) else set()


def _texts_in(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """List the texts of a template, each with its nearest key."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else ((name, item) for item in value):
            yield from _texts_in(below, str(key))
    elif isinstance(value, str):
        yield name, value


def _filled(template: Any, known: Mapping[str, object]) -> Any:  # noqa: ANN401 - any JSON value
    """Fill a template; a text that is nothing but a name becomes what it stands for, a number too."""
    if isinstance(template, dict):
        return {key: _filled(value, known) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, known) for value in template]
    if not isinstance(template, str):
        return template
    whole = _SIGN.fullmatch(template)
    return known[whole[1]] if whole else _SIGN.sub(lambda sign: str(known[sign[1]]), template)


def _changed(value: Any, path: str, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Change what stands under a path, wherever it leads."""
    step = _STEP.match(path)
    if step is None:
        return change(value)
    rest, name, slot = path[step.end() :].removeprefix("."), step["name"], step["place"]
    if name is not None and isinstance(value, dict) and name in value:
        return {**value, name: _changed(value[name], rest, change)}
    if name is None and isinstance(value, list):
        return [_changed(item, rest, change) if slot in ("*", str(n)) else item for n, item in enumerate(value)]
    return value


def _found(value: object, path: str) -> list[Any]:
    """List what stands under a path; nothing under an empty one."""
    found: list[Any] = []

    def take(item: object) -> object:
        found.append(item)
        return item

    if path:
        _changed(value, path, take)
    return found


def _first(value: object, path: str) -> str:
    """Give the first text or number under a path, as text."""
    return next((str(item) for item in _found(value, path) if isinstance(item, str | int | float)), "")


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that was bought: when, and the bytes that came back, as far as they hold no key."""

    at: float
    reply: bytes


@dataclass(frozen=True, slots=True)
class _Came:
    status: int
    headers: Mapping[str, str]
    raw: bytes


class _ServiceClient(ImageClient):
    """Asks one service for images, as its file says."""

    price_hint = "or as price: in the file"

    def __init__(
        self, file: ImageServiceFile, options: ServiceImageOptions, size: str, *, price: ImagePrice | None
    ) -> None:
        """Take the file; no key is read before `ready` or the first request."""
        base_url = normal_base_url(options.base_url) if options.base_url else file.base_url
        super().__init__(
            Identity("service", base_url, file.submit.url, file.model), options, key=self._key, connect=_no_connection,
            written=WireFormat(self._composed, lambda outgoing: outgoing.body, self._reply),
        )  # fmt: skip
        self.file, self.size = file, size
        self.image_price, self.rewriter = price, file.rewriter
        names = _names_in(file.submit.body)
        self.seeds, self.negatives = (None if names & _SEEDS else False), "negative" in names
        sent = {name: value for name, value in file.submit.body.items() if not _names_in(value)}
        self.sent_options = {**sent, "size": size} if size else sent
        self.decides = {"service_file": file.decides}
        self.jobs: Path | None = None
        self.pool = ThreadPoolExecutor(_THREADS, "service")

    def ready(self) -> None:
        """Make sure that the key is there."""
        self.secret = self.key()

    def _key(self) -> Secret | None:
        """Find the key that the file names, or the SPEC in its place."""
        if self.file.key is None:
            return None
        base_url, named = self.identity.base_url, self.settings.key_variable
        secret = Service(base_url, (self.file.key.variable,), "").key(named, base_url)
        if secret is None and not os.environ.get(self.file.key.variable, "").strip():
            raise MissingDependency(
                f"there is no key for {base_url}", hint=f"Set {self.file.key.variable}, which the file names under key."
            )
        if secret is None:
            raise UsageError(
                "a key is not sent over a connection that anybody on the way can read", where=base_url,
                expected="https://", hint="Where you mean it, name the variable in the SPEC: ?api_key=${NAME}.",
            )  # fmt: skip
        return secret

    def keep_in(self, journal: Path) -> PictureStore:
        """Keep pictures and jobs beside a journal from now on."""
        self.jobs = journal / _JOBS
        return super().keep_in(journal)

    def under_way(self, journal: Path) -> set[bytes]:
        """List the keys of calls that are bought and not answered."""
        return {bytes.fromhex(path.stem) for path in (journal / _JOBS).glob("*.json")}

    def batches(self) -> BatchClient:
        """Refuse them."""
        raise UsageError(
            f"{self.model} cannot be asked in batches", where=self.identity.base_url, hint="Leave --batch away."
        )

    async def close(self) -> None:
        """Let what is under way end; it keeps what it brings by itself."""
        self.pool.shutdown(wait=False)
        self.pool = ThreadPoolExecutor(_THREADS, "service")

    async def send(self, outgoing: Outgoing) -> bytes:
        """Buy a call, unless it is bought, and give the raw reply that says how it ended; its pictures are on disk."""
        self.secret = self.secret or self.key()
        until = time.monotonic() + self.settings.timeout
        key = key_of(self.identity, outgoing).hex()
        job = self._job(key)
        if job is None:
            job = await self._apart(partial(self._submitted, outgoing, key, until))
        raw = await self._ended(job, key, until)
        return await self._apart(partial(self._kept, raw))

    async def _apart(self, do: Callable[[], _Thing]) -> _Thing:
        """Do something in a thread, which ends what it began also when nobody waits any more."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, do)

    def settled(self, request: Request, answered: Answered) -> None:
        """Let go of a job that the journal says the end of; one that could not be read may be read better later."""
        if self.jobs is not None and (answered.value is not None or answered.outcome in {"refused", "blocked"}):
            self._forget(key_of(self.identity, self.compose(request)).hex())

    def _job(self, key: str) -> Job | None:
        """Find the job of a call that an earlier try bought."""
        path = self._path(key)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Job)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise UsageError(
                "a job that was bought cannot be read", where=str(path),
                hint="Put the folder journal back from a backup, or delete the file to buy the image again.",
            ) from error  # fmt: skip

    def _path(self, key: str) -> Path:
        """Give the path of the file that records the job of a call."""
        if self.jobs is None:
            raise UsageError("a service is asked beside a journal only", found=self.model)
        return self.jobs / f"{key}.json"

    def _forget(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _submitted(self, outgoing: Outgoing, key: str, until: float) -> Job:
        """Buy a call; its reply is on disk before anybody looks into it."""
        stated = {name: str(_filled(value, {_CALL: key})) for name, value in self.file.submit.headers.items()}
        kind, content = "application/json", outgoing.body
        if self.file.submit.encoding == "multipart":
            parts = [
                f'--{key}\r\nContent-Disposition: form-data; name="{quote(name)}"\r\n\r\n'.encode()
                + (value.encode() if isinstance(value, str) else canonical_json(value))
                for name, value in record(decoded(outgoing.body)).items()
            ]
            kind, content = f"multipart/form-data; boundary={key}", b"\r\n".join([*parts, f"--{key}--\r\n".encode()])
        headers = {"Content-Type": kind, **stated}
        url = self._address(self.file.submit.url, {})
        came = self._exchanged("POST", url, content, headers, until=until)
        if came.status not in {200, 201, 202}:
            raise failure_of(came.status, came.headers, came.raw)
        job, path = Job(time.time(), came.raw), self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(job))
        sync_folder(path.parent)
        error = error_of(decoded(came.raw))
        if error and not _found(decoded(came.raw), self.file.result.images):
            self._forget(key)
            raise failure_of(200, came.headers, came.raw, within=error)
        return job

    async def _ended(self, job: Job, key: str, until: float) -> bytes:
        """Poll a job until it has ended.

        Raises:
            Failure: it ended without anything, or has not ended in time; in that case it is polled again later.
        """
        polling, result = self.file.poll, self.file.result
        raw, names = job.reply, self._names(job, key)
        if polling is not None:
            raw = await self._polled(polling, self._address(polling.url, names), job, key, until)
            if _first(decoded(raw), polling.status) in polling.refused:
                return raw
        if result.url:
            came = await self._apart(partial(self._asked, self._address(result.url, names), until))
            if came.status != 200:
                raise failure_of(came.status, came.headers, came.raw)
            raw = came.raw
        return raw

    def _names(self, job: Job, key: str) -> dict[str, object]:
        """Read what the addresses name from the reply to a submission."""
        body = decoded(job.reply)
        names: dict[str, object] = {name: _first(body, path) for name, path in self.file.submit.keep.items()}
        lacking = [path for name, path in self.file.submit.keep.items() if not names[name]]
        if lacking:
            raise Failure(
                "server",
                f"the reply to the submission has no {lacking[0]}: correct submit.keep, and nothing is bought again; "
                f"or delete {self._path(key).name} in journal/{_JOBS} to buy the image once more",
                status=200,
                raw=job.reply,
            )
        return names

    async def _polled(self, polling: Polling, url: str, job: Job, key: str, until: float) -> bytes:
        """Look at a job until its status says that it has ended."""
        pause, last, hint = polling.every, "nothing", 0.0
        while True:
            came = await self._looked(url, until)
            if isinstance(came, Failure):
                if came.kind not in {"busy", "server", "timeout", "connection"} and came.status != 404:
                    raise came
                if came.status == 404 and time.time() - job.at > _UNKNOWN_FOR:
                    self._forget(key)
                    raise Failure("server", f"the service no longer knows the job: {came.detail}", raw=came.raw)
                last, hint = came.detail, came.wait or 0.0
            else:
                body, hint = decoded(came.raw), 0.0
                last = _first(body, polling.status)
                if last in polling.done or last in polling.refused:
                    return came.raw
                if last in polling.failed:
                    self._forget(key)
                    why = _first(body, self.file.result.reason)
                    raise Failure(
                        "server", f"the job ended as {last}. {shortened(why)}".strip(), status=200, raw=came.raw
                    )
            wait = max(hint, pause)
            if time.monotonic() + wait > until:
                raise Failure(
                    "timeout",
                    f"a job has not ended in {self.settings.timeout:g} s, its status is {shortened(last)}; it is asked "
                    "after again, and not bought again",
                    wait=hint or None,
                )
            await asyncio.sleep(wait)
            pause = min(1.5 * pause, max(polling.longest, polling.every))

    async def _looked(self, url: str, until: float) -> _Came | Failure:
        try:
            soon = min(until, time.monotonic() + _SECONDS_OF_A_POLL)
            came = await self._apart(partial(self._asked, url, soon))
        except Failure as failure:
            return failure
        return came if came.status in {200, 202} else failure_of(came.status, came.headers, came.raw)

    def _asked(self, url: str, until: float) -> _Came:
        return self._exchanged("GET", url, None, {}, until=until)

    def _address(self, template: str, names: Mapping[str, object]) -> str:
        """Write an address; it is one of the service, or of a host that its file lists, since it is sent the key."""
        whole = _SIGN.fullmatch(template)
        url = str(names[whole[1]]) if whole else _SIGN.sub(lambda sign: quote(str(names[sign[1]]), safe=""), template)
        if not url.startswith(("http://", "https://")):
            url = f"{self.identity.base_url}/{url.lstrip('/')}"
        try:
            asked, base = urlsplit(url), urlsplit(self.identity.base_url)
            is_base = (asked.scheme, asked.netloc) == (base.scheme, base.netloc)
        except ValueError:
            is_base, asked = False, urlsplit("")
        host = asked.hostname or ""
        listed = any(host == one or (one.startswith(".") and host.endswith(one)) for one in self.file.hosts)
        if not is_base and not (asked.scheme == "https" and listed and not asked.username):
            raise Failure(
                "fatal",
                f"the service sends on to {shortened(host or 'no host')}, which is not its own; if you trust "
                "that host with your key, list it under hosts: in the file",
            )
        return url

    def _exchanged(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], *, until: float
    ) -> _Came:
        """Send one request and read its reply to the end, the key taken out of it."""
        key, sent = self.file.key, False
        all_headers = {"Accept": "application/json", "User-Agent": "culturekit", **headers}
        if key is not None and self.secret is not None:
            all_headers[key.header] = key.prefix + self.secret.reveal()
        try:
            host = address_at(url, base_url=self.identity.base_url)
            connection = host.connection(until, silence=max(until - time.monotonic(), 0.001))
            try:
                sent = True
                connection.request(method, host.path, body=body, headers=all_headers)
                response = connection.getresponse()
                raw = read_to_end(response, _LARGEST)
            finally:
                connection.close()
        except Refused as error:
            raise Failure("fatal" if not sent else "server", f"{urlsplit(url).hostname}: {error}", sent=sent) from None
        except TooLarge:
            raise Failure("server", f"{host.host}: it has more than {_LARGEST:,} bytes", sent=True) from None
        except TimeoutError:
            raise Failure("timeout", "a request timed out; raise timeout= in the SPEC", sent=sent) from None
        except (OSError, http.client.HTTPException) as error:
            raise Failure("connection", f"the connection broke ({name_of_break(error)})", sent=sent) from None
        names = {name.lower(): value for name, value in response.getheaders()}
        return _Came(response.status, names, self.without_key(raw))

    def _composed(self, request: Request) -> Outgoing:
        width, _, height = self.size.partition("x")
        seed31 = int(str(request.data["seed"])) % 2**31
        pixels = {"size": self.size, "width": int(width or 0), "height": int(height or 0)}
        known = {**request.data, **pixels, "seed31": seed31}
        return Outgoing(canonical_json(_filled(self.file.submit.body, known)), (), request.sample, 1)

    def _kept(self, raw: bytes) -> bytes:
        """Keep the pictures of a reply, those that it names by address too: that may not be good for long."""
        if self.store is None or not (body := decoded(raw)):
            return raw
        for address in _found(body, self.file.result.images):
            if isinstance(address, str) and address.startswith(("http://", "https://")):
                fetched(address, self.store, base_url=self.identity.base_url)
        apart = _changed(body, self.file.result.images, partial(_set_apart, store=self.store))
        return raw if apart == body else msgspec.json.encode(apart)

    def _reply(self, raw: bytes) -> Reply:
        """Read the reply that says how a call ended."""
        body, result, polling = decoded(raw), self.file.result, self.file.poll
        why = shortened(_first(body, result.reason))
        status = _first(body, polling.status) if polling else ""
        if polling and status in polling.refused:
            return reply_without("blocked", ": ".join(filter(None, [status, why])))
        if False in _found(body, result.safe):
            return reply_without("blocked", why or f"{result.safe} is false")
        pictures = [text(item) for item in _found(body, result.images)]
        revised = [text(item) for item in _found(body, result.revised)]
        candidates = [
            Candidate(picture if picture.startswith(KEPT) else URL + picture, prompt, "", "")
            for picture, prompt in zip(pictures, [*revised, *[""] * len(pictures)], strict=False)
            if picture.startswith((KEPT, "http://", "https://"))
        ]
        if not candidates:
            no_object = "" if record(body) else why_no_object(raw)
            return reply_without("unreadable", no_object or why or f"there is no picture under {result.images}")
        return reply_with(candidates, _first(body, result.version), {}, Usage(0, len(candidates)))


def _set_apart(held: object, store: PictureStore) -> object:
    """Keep a picture that a reply holds as base64; a name of kept bytes that came from outside is taken away."""
    if not isinstance(held, str) or held.startswith(("http://", "https://")):
        return held
    if held.startswith(KEPT):
        return ""
    try:
        content = b64decode(held.split(";base64,", 1)[-1], validate=True)
    except (binascii.Error, ValueError):
        return held
    return KEPT + store.put(content) if content else ""


def _no_connection(_: Secret | None) -> NoReturn:
    """Stand for an SDK, which there is none of."""
    raise AssertionError("a service is asked without an SDK")


def make(spec: Spec, size: str | None = None) -> _ServiceClient:
    """Make the client of a file; nothing is sent yet. `size` is that of the plan, as width x height."""
    options = spec.read(ServiceImageOptions)
    if not spec.target:
        raise UsageError("service needs the file that describes it", expected="service:FILE.yaml")
    file = load_model(Path(spec.target).expanduser(), ImageServiceFile)
    wanted = _names_in(file.submit.body) & _PIXELS
    if size is not None and not wanted:
        raise UsageError("the size of these images is not for us to choose", where=spec.target, found=f"--size {size}",
                         hint="Its submit.body names none of {width}, {height} and {size}.")  # fmt: skip
    chosen = (size or file.size or "") if wanted else ""
    if wanted and not chosen:
        raise UsageError("the service has to be told a size", where=spec.target,
                         hint="State --size, or size: in the file, such as 1024x1024.")  # fmt: skip
    stated = options.image_price if options.image_price is not None else file.price
    source = "stated in the SPEC" if options.image_price is not None else file.price_source or spec.target
    price = None if stated is None else ImagePrice(Rate(0.0, stated * 1e6, source=source), 1, by_image=True)
    return _ServiceClient(file, replace(options, rpm=options.rpm or file.rpm), chosen, price=price)
