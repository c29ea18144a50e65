"""Ask web services politely: as somebody who names a contact, not too fast, three questions at once.

A URL may lead to public addresses, and to this machine only where the user names it. A name is resolved once and the
answer is the address that is connected to, so a name server cannot say one thing for the check and another for the
connection.

All services of Wikimedia share one pace, whichever of them is asked: since April 2026 it takes 200 requests a minute
from who names a contact, and three at a time. All processes of an account share it, by files in its cache folder.
"""

import fcntl
import http.client
import logging
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from types import MappingProxyType
from typing import Generic, NamedTuple, Self, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from culturekit.core.addresses import NotPublic, check_sending, resolve
from culturekit.core.atomic import write_atomically
from culturekit.core.digests import digest
from culturekit.core.errors import UpstreamUnavailable, UsageError
from culturekit.llm.failures import wait_of
from culturekit.llm.timed_socket import PinnedConnection, TooLarge, read_to_end
from culturekit.version import VERSION

logger = logging.getLogger(__name__)

# A public address that is checked, and a connection to it for a limited time.

# Seconds from a question to the end of its answer; a public endpoint works on a query for one minute at most.
LONGEST_ANSWER = 600.0
_PORTS = {"http": 80, "https": 443}


def check_contact(contact: str) -> str:
    """Accept an address by which the people behind an endpoint can reach whoever asks it."""
    plain = contact.isascii() and contact.isprintable() and " " not in contact
    if not plain or not ("@" in contact.strip("@") or contact.startswith(("http://", "https://"))):
        raise UsageError(
            "an endpoint is told whom to write to when something goes wrong", expected="a mail address or a URL",
            found=repr(contact), hint="Give it with --contact.",
        )  # fmt: skip
    return contact


def check_url(url: str) -> SplitResult:
    """Accept an http or https URL with a host, without a password and without what only a browser needs."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError("not a URL", where=url, found=str(error)) from error
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise UsageError("not a URL that can be asked", where=url, expected="http:// or https:// and a host")
    if parts.username or parts.password:
        raise UsageError("a URL with a password in it would be written down", where=parts.hostname)
    if parts.fragment or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise UsageError("not a URL that can be asked", where=repr(url), expected="no spaces and no #")
    return parts


def address_of(parts: SplitResult, *, may_be_here: bool) -> tuple[str, int]:
    """Resolve the host of a URL to one address and port; `may_be_here` allows a host that names this machine."""
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    try:
        return resolve(host, port, here=may_be_here), port
    except NotPublic as error:
        raise UsageError(
            "this address is not on the public internet, and is not asked", where=host, found=str(error),
            hint="A server on this machine is asked when its URL says localhost, 127.0.0.1 or [::1].",
        ) from error  # fmt: skip
    except (OSError, UnicodeError) as error:
        raise UpstreamUnavailable(
            "no such host", where=host, found=str(error), hint="Check the URL and the network."
        ) from error


def connect_to(parts: SplitResult, timeout: float, *, until: float, may_be_here: bool) -> PinnedConnection:
    """Prepare a connection to the address that a URL's host has now, after a look at that address."""
    address, secure = address_of(parts, may_be_here=may_be_here), parts.scheme == "https"
    return PinnedConnection(parts.hostname or "", address, secure=secure, until=until, timeout=timeout)


# How fast services are asked.

_POLL = 0.05  # seconds between two looks for a free place
_AT_ONCE = 3  # questions at once, to any service; Wikimedia takes no more
WIKIMEDIA_A_MINUTE = 200  # with a User-Agent that names a contact; 10 without one, which no client of ours is
_WIKIMEDIA = (
    "wikimedia.org", "wikipedia.org", "wikidata.org", "mediawiki.org", "wiktionary.org", "wikisource.org",
    "wikivoyage.org", "wikibooks.org", "wikiquote.org", "wikinews.org", "wikiversity.org", "wikifunctions.org",
)  # fmt: skip


class Pace:
    """How fast a service is asked, by all threads together: so many questions a second, three at a time."""

    def __init__(
        self,
        per_second: float,
        *,
        pause: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let the first question go at once."""
        self.per_second, self.pause, self.clock = per_second, pause, clock
        self._last = self._held_until = float("-inf")
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_AT_ONCE)

    @contextmanager
    def turn(self, abandoned: threading.Event) -> Iterator[None]:
        """Wait for a turn, and hold it; nobody waits on for what is abandoned."""
        with self._room:
            while (wait := self._book()) > 0:
                if abandoned.is_set():
                    raise CancelledError
                abandoned.wait(wait) if self.pause is None else self.pause(wait)
            yield

    def _book(self) -> float:
        """Take the next turn if it is there, else say how long it is until it may be."""
        with self._alone():
            now = self.clock()
            if (ahead := max(self._last + 1 / self.per_second, self._held_until) - now) > 1e-9:
                return ahead
            self._last = now
            return 0.0

    def hold(self, seconds: float) -> None:
        """Let nobody ask for so many seconds."""
        with self._alone():
            self._held_until = max(self._held_until, self.clock() + seconds)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let nobody else book or hold meanwhile."""
        with self._lock:
            yield


class SharedPace(Pace):
    """A pace that all processes keep together that see a folder; each keeps it alone where that cannot be written."""

    def __init__(self, per_second: float, folder: Callable[[], Path]) -> None:
        """Write nothing before it is asked for a turn."""
        super().__init__(per_second, clock=time.time)
        self._folder = folder

    @contextmanager
    def turn(self, abandoned: threading.Event) -> Iterator[None]:
        """Wait for one of the `_AT_ONCE` places of all processes first."""
        with ExitStack() as held:
            while not self._placed(held):
                if abandoned.wait(_POLL):
                    raise CancelledError
            with super().turn(abandoned):
                yield

    def _placed(self, held: ExitStack) -> bool:
        """Lock a free place until the end of the turn; tell whether there was one."""
        for number in range(_AT_ONCE):
            if (file := self._open(f"place-{number}")) is None:
                return True
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
            else:
                held.callback(os.close, file)
                return True
        return False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Read what the others booked, and write down what is booked here."""
        with self._lock, ExitStack() as held:
            if (file := self._open("booked")) is None:
                yield
                return
            held.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX)
            kept, now = os.pread(file, 16, 0), self.clock()
            if len(kept) == 16:
                last, until = struct.unpack("dd", kept)
                # A clock that was set back is nothing to wait for.
                self._last, self._held_until = min(last, now), min(until, now + _LONGEST_WAIT)
            yield
            os.pwrite(file, struct.pack("dd", self._last, self._held_until), 0)

    def _open(self, name: str) -> int | None:
        """Open a file of the folder; None where there can be none."""
        try:
            folder = self._folder()
            folder.mkdir(parents=True, exist_ok=True)
            return os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o644)
        except (OSError, RuntimeError):
            return None


# The folder is one whose files all processes of this account see.
_OF_WIKIMEDIA = SharedPace(
    WIKIMEDIA_A_MINUTE / 60,
    lambda: Path(os.environ.get("XDG_CACHE_HOME", "").strip() or Path.home() / ".cache") / "culturekit" / "wikimedia",
)

# One service.

KEPT = "What was answered is kept: run the same command again and it goes on from there."
_MAX_BYTES = 2_000_000
_MAX_REDIRECTS = 3
_TRIES = 5
_FIRST_WAIT = 1.0  # seconds after a failure that may pass; each later pause is twice as long
_LONGEST_WAIT = 600.0  # seconds; a server that asks for more than this is not available now
_PASSING = {429, 500, 502, 503, 504}
_MOVED = {301, 302, 307, 308}

_Answer = TypeVar("_Answer")
_Asked = TypeVar("_Asked")
_Origin = tuple[str, str, int | None]


class _Passing(Exception):
    """A failure that may pass: try again after `wait` seconds, or, where it is None, after ever longer pauses."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


class Reply(NamedTuple):
    """A reply: its status, its kind as the server names it, and its body."""

    status: int
    kind: str
    body: bytes

    @property
    def charset(self) -> str:
        """The letters that the server says the body is written in; empty where it says nothing."""
        message = Message()
        message["Content-Type"] = self.kind
        return message.get_content_charset("")


class _Request(NamedTuple):
    """What is asked for: kinds of replies, a check of where it may have moved, a body and its headers for a POST."""

    kinds: tuple[str, ...]
    check: Callable[[str], object] = check_url
    post: tuple[bytes, Mapping[str, str]] | None = None


@dataclass(slots=True)
class PoliteSource:
    """Asks one service. `secrets` are headers that never follow a redirect and never stand in a message.

    A server that sends a byte now and then is cut off after `longest` seconds, a reply after `largest` bytes. Within a
    `with` block connections stay open from one question to the next.
    """

    base: str
    contact: str
    pace: Pace = field(default_factory=lambda: Pace(WIKIMEDIA_A_MINUTE / 60))
    secrets: Mapping[str, Callable[[], str]] = field(default_factory=dict, repr=False)
    timeout: float = 30.0
    longest: float = 120.0
    largest: int = _MAX_BYTES
    hint: str = KEPT
    _idle: dict[_Origin, list[PinnedConnection]] | None = field(default=None, repr=False)
    _abandoned: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        """Refuse what could never be asked before anything is sent."""
        check_url(self.base)

    def __enter__(self) -> Self:
        self._idle = {}
        return self

    def __exit__(self, *error: object) -> None:
        idle, self._idle = self._idle or {}, None
        for connection in (each for several in idle.values() for each in several):
            connection.close()

    def each(self, ask: Callable[[_Asked], _Answer], questions: Iterable[_Asked]) -> Iterator[_Answer]:
        """Give the answers in the order of the questions, three of which are asked at a time.

        What goes wrong with one ends the asking: those under way are finished, no other is begun.
        """
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="polite")
        try:
            yield from pool.map(ask, questions)
        except BaseException:
            self._abandoned.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            self._abandoned.clear()

    def ask(
        self,
        path: str,
        answer: type[_Answer],
        *,
        missing: _Answer | None = None,
        post: tuple[bytes, Mapping[str, str]] | None = None,
    ) -> _Answer:
        """Answer a GET below the base URL; `missing` stands for what the service does not know (404).

        With `post`, a body and its headers, it is a POST.
        """
        url = f"{self.base.rstrip('/')}/{path}" if path and not path.startswith("?") else f"{self.base}{path}"

        def read(reply: Reply) -> _Answer:
            if reply.status == 404 and missing is not None:
                return missing
            self._check_status(reply)
            try:
                return msgspec.json.decode(reply.body, type=answer)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise _Passing(f"the reply is not what the service documents ({error})") from error

        return self._tried(url, read, _Request(("json",), post=post))

    def page(
        self,
        url: str,
        *,
        kinds: tuple[str, ...],
        instead: Mapping[int, bytes] = MappingProxyType({}),
        check: Callable[[str], object] = check_url,
    ) -> Reply:
        """Give a page of one of some kinds; `instead` stands for answers of a status.

        Wherever the page has moved, `check` is asked first whether that may be read too.
        """

        def read(reply: Reply) -> Reply:
            if reply.status in instead:
                return reply._replace(body=instead[reply.status])
            self._check_status(reply)
            return reply

        return self._tried(url, read, _Request(kinds, check))

    def _tried(self, url: str, read: Callable[[Reply], _Answer], request: _Request) -> _Answer:
        """Ask until an answer comes that can be read, or it has been tried often enough; meanwhile nobody else asks."""
        for attempt in range(1, _TRIES + 1):
            try:
                return read(self._follow(url, request))
            except _Passing as failure:
                wait = _FIRST_WAIT * 2 ** (attempt - 1) if failure.wait is None else failure.wait
                if attempt == _TRIES or wait > _LONGEST_WAIT:
                    raise UpstreamUnavailable(
                        f"the service did not answer in {attempt} {'try' if attempt == 1 else 'tries'}: {failure}",
                        where=self.base,
                        found=f"a request to wait {wait:,.0f} s" if wait > _LONGEST_WAIT else "",
                        hint=self.hint,
                    ) from failure
                logger.warning("%s: %s; trying again in %.0f s", self.base, failure, wait)
                for pace in self._paces(check_url(url)):
                    pace.hold(wait)
        raise AssertionError("unreachable")

    def _check_status(self, reply: Reply) -> None:
        """Say of a reply that is not good that it was refused."""
        if reply.status != 200:
            raise UpstreamUnavailable(
                f"the service refused (HTTP {reply.status})", where=self.base, found=_begin_of(reply.body),
                hint=self.hint,
            )  # fmt: skip

    def _follow(self, url: str, request: _Request) -> Reply:
        """Ask, wherever the page has moved: elsewhere only at a public address, and without secrets."""
        at, home = url, _origin(check_url(url))
        for _ in range(_MAX_REDIRECTS + 1):
            parts = check_url(at)
            status, headers, body = self._send(parts, request, home=_origin(parts) == home)
            if status in _PASSING:
                problem = f"HTTP {status}: {_begin_of(body)}" if body.strip() else f"HTTP {status}"
                raise _Passing(problem, wait_of({"retry-after": headers.get("Retry-After", "")}, now=time.time()))
            if status not in _MOVED and (status != 303 or request.post is not None):
                kind = headers.get("Content-Type", "")
                # A page of a proxy or a login may stand in place of data.
                if status == 200 and kind and not any(word in kind.lower() for word in request.kinds):
                    wanted = " or ".join(word.upper() for word in request.kinds)
                    raise _Passing(f"the reply is {kind.partition(';')[0].strip()}, not {wanted}")
                return Reply(status, kind, body)
            target = _moved_to(at, headers.get("Location", ""))
            if _origin(moved := check_url(target)) != home:
                address_of(moved, may_be_here=False)
            request.check(target)
            at = target
        raise UpstreamUnavailable("the service redirects again and again", where=self.base)

    def _send(self, parts: SplitResult, request: _Request, *, home: bool) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request when it is its turn."""
        check_sending(self.base)
        body, extra = request.post or (None, {})
        headers = {"Accept": "application/json" if "json" in request.kinds else "text/html, text/plain", **extra}
        headers["User-Agent"] = f"culturekit/{VERSION}" + (f" ({self.contact})" if self.contact else "")
        if home:
            headers |= {name: reveal() for name, reveal in self.secrets.items()}
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with ExitStack() as turns:
            for pace in self._paces(parts):
                turns.enter_context(pace.turn(self._abandoned))
            idle = None if self._idle is None else self._idle.setdefault(_origin(parts), [])
            until = time.monotonic() + self.longest
            connection = idle.pop() if idle else connect_to(parts, self.timeout, until=until, may_be_here=home)
            connection.end_at(until)
            try:
                connection.request("GET" if body is None else "POST", target, body, headers)
                response = connection.getresponse()
                content = read_to_end(response, self.largest)
            except TooLarge:
                connection.close()
                raise UpstreamUnavailable(
                    "the reply is too large", where=self.base, expected=f"{self.largest:,} bytes"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                raise _Passing(f"the connection failed ({str(error) or type(error).__name__})") from error
            except BaseException:
                connection.close()
                raise
            response.close()
            if idle is None:
                connection.close()
            else:
                idle.append(connection)
        return response.status, {name.title(): value for name, value in response.getheaders()}, content

    def _paces(self, parts: SplitResult) -> tuple[Pace, ...]:
        """Give the paces that a host is asked at: the service's, and at Wikimedia that of all its services."""
        host = (parts.hostname or "").lower().rstrip(".")
        shared = any(host == domain or host.endswith(f".{domain}") for domain in _WIKIMEDIA)
        return (self.pace, _OF_WIKIMEDIA) if shared else (self.pace,)


def _origin(parts: SplitResult) -> _Origin:
    """Tell one server from another."""
    return parts.scheme, (parts.hostname or "").lower(), parts.port


def _moved_to(url: str, location: str) -> str:
    """Follow a redirect, never from https to http."""
    target = urljoin(url, location)
    if not location or (url.startswith("https:") and not target.startswith("https:")):
        raise UpstreamUnavailable("the service redirects to nowhere safe", where=url, found=repr(location))
    return target


def _begin_of(body: bytes) -> str:
    """Give the beginning of what a server says, on one line."""
    return " ".join(body[:2000].decode("utf-8", "replace").split())[:300]


@dataclass(frozen=True, slots=True)
class KeptAnswers(Generic[_Answer]):
    """A folder of answers of one kind; each file says what was asked, and is believed only for that."""

    folder: Path
    kind: type[_Answer]

    def find(self, question: list[str]) -> _Answer | None:
        """Give the answer to a question; a damaged one is asked for again."""
        path = self._path(question)
        try:
            asked, answer = msgspec.json.decode(path.read_bytes(), type=tuple[list[str], self.kind])  # type: ignore[name-defined]
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("%s: a kept answer is damaged and is asked for again (%s)", path, error)
            return None
        return answer if asked == question else None

    def keep(self, question: list[str], answer: _Answer) -> None:
        """Keep an answer, whole or not at all."""
        path = self._path(question)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode([question, answer]))

    def _path(self, question: list[str]) -> Path:
        """Name the file of a question."""
        name = digest(question)
        return self.folder / name[:2] / f"{name}.json"
