"""Pictures that a reply names by address, fetched: bounded in size and time, checked in type, and never led inwards."""

import http.client
import ipaddress
import socket
import ssl
import time
from dataclasses import dataclass
from functools import cache
from urllib.parse import urljoin, urlsplit

from culturekit.generation.picture_store import PictureStore
from culturekit.llm.clients.timed_socket import TimedSocket
from culturekit.llm.endpoints import is_loopback
from culturekit.stages.offline import check_sending
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest_bytes

__all__ = ["FetchLimits", "Fetched", "Refused", "connected", "fetched", "name_of_break", "place_of", "read_to_end"]

MOVED = {301, 302, 303, 307, 308}
TYPES = ("image/", "application/octet-stream", "binary/octet-stream")
PIECE = 64 * 1024
LONGEST_SILENCE = 10.0
"""Seconds without a byte after which a host is given up."""

FOUND = ".address"
"""How the name of a file ends that says what an address brought."""

PORTS = {"http": 80, "https": 443}


class Refused(Exception):
    """An address that is not fetched, and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """An address taken apart, and the number of the machine behind it, which was looked up once and checked."""

    scheme: str
    host: str
    port: int
    path: str
    number: str


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


LIMITS = FetchLimits()


def fetched(url: str, store: PictureStore, *, base_url: str, limits: FetchLimits = LIMITS) -> Fetched:
    """Fetch a picture into a store, unless it is there; an address never appears in a reason: it may hold a secret."""
    pointer = store.folder / f"{digest_bytes(url.encode('utf-8', 'replace'))}{FOUND}"
    if pointer.is_file():
        known = pointer.read_text(encoding="ascii")
        if store.path(known).is_file():
            return Fetched(known)
    reason = ""
    for attempt in range(limits.tries):
        if store.leaving.wait(limits.pause * 2 ** (attempt - 1) if attempt else 0.0):
            break
        try:
            sha256 = store.put(content_of(url, base_url=base_url, limits=limits))
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


def content_of(url: str, *, base_url: str, limits: FetchLimits) -> bytes:
    """Follow an address to its picture.

    Raises:
        Refused: it does not lead to one.
        OSError: it might, at another time.
    """
    check_sending("the address of a picture")
    until = time.monotonic() + limits.seconds
    for _ in range(limits.moves + 1):
        place = place_of(url, base_url=base_url)
        answer = answer_of(place, until=until, limits=limits)
        if isinstance(answer, bytes):
            return answer
        url = urljoin(url, answer)
    raise Refused(f"it was sent on more than {limits.moves} times")


def answer_of(place: Place, *, until: float, limits: FetchLimits) -> bytes | str:
    """Ask one machine: the picture, or the address it sends on to."""
    connection = connected(place, until)
    try:
        connection.request("GET", place.path, headers={"Accept": "image/*", "User-Agent": "culturekit"})
        response = connection.getresponse()
        if response.status in MOVED:
            return response.getheader("Location") or ""
        if response.status >= 500 or response.status in {408, 425, 429}:
            raise ConnectionError(f"status {response.status}")
        if response.status != 200:
            raise Refused(f"status {response.status}")
        kind = (response.getheader("Content-Type") or "").strip().lower()
        if not kind.startswith(TYPES) or kind.startswith("image/svg"):
            raise Refused(f"it is no picture but {kind.partition(';')[0][:60] or 'of no stated type'}")
        return read_to_end(response, limits=limits)
    finally:
        connection.close()


def read_to_end(response: http.client.HTTPResponse, *, limits: FetchLimits) -> bytes:
    """Read a picture to its end, within the limits."""
    parts, size = [], 0
    while part := response.read1(PIECE):
        parts.append(part)
        size += len(part)
        if size > limits.bytes:
            raise Refused(f"it has more than {limits.bytes:,} bytes")
    stated = response.getheader("Content-Length")
    if response.length or (stated is not None and stated.isdigit() and size < int(stated)):
        raise ConnectionError("it was cut off")
    return b"".join(parts)


def connected(place: Place, until: float, *, silence: float = LONGEST_SILENCE) -> http.client.HTTPConnection:
    """Connect to the very number that was checked, whatever the name says by now.

    `silence` is how many seconds may pass without a byte; connecting takes no longer than `LONGEST_SILENCE`.
    """
    left = min(max(until - time.monotonic(), 0.001), LONGEST_SILENCE)
    connection = http.client.HTTPConnection(place.host, place.port, timeout=left)
    raw = socket.create_connection((place.number, place.port), timeout=left)
    try:
        sock = trusted().wrap_socket(raw, server_hostname=place.host) if place.scheme == "https" else raw
    except BaseException:
        raw.close()
        raise
    connection.sock = TimedSocket(sock, until=until, silence=silence)
    return connection


@cache
def trusted() -> ssl.SSLContext:
    """Trust whom the system trusts."""
    return ssl.create_default_context()


def place_of(url: str, *, base_url: str) -> Place:
    """Look an address up, and make sure that it does not lead into a private network.

    A service on this machine may name addresses on this machine, and any service those of its own host and port; of
    others only public ones are asked, over an encrypted connection.

    Raises:
        Refused: it is none that is fetched.
    """
    try:
        parts, base = urlsplit(url), urlsplit(base_url)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
        own = (host, port) == (base.hostname, base.port or PORTS.get(base.scheme, 0))
    except ValueError:
        raise Refused("an address that cannot be read") from None
    if parts.scheme not in PORTS or not host or parts.username or parts.password:
        raise Refused("an address that is not https:// and a host")
    if not url.isascii() or any(char.isspace() or not char.isprintable() for char in url):
        raise Refused("an address with signs that belong in none")
    if parts.scheme == "http" and not own and not is_loopback(base_url):
        raise Refused("an address without encryption")
    path = parts.path or "/"
    number = number_of(host, port, open_to_all=own or is_loopback(base_url))
    return Place(parts.scheme, host, port, f"{path}?{parts.query}" if parts.query else path, number)


def number_of(host: str, port: int, *, open_to_all: bool) -> str:
    """Find the number of a host; every number it has must be a public one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConnectionError("its host is not known") from None
    numbers = [str(entry[4][0]) for entry in found]
    for number in numbers:
        if not open_to_all and not is_public(number):
            raise Refused("an address in a private network")
    return numbers[0]


def is_public(number: str) -> bool:
    """Tell whether a number is one of the open internet."""
    try:
        address = ipaddress.ip_address(number.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    checked = mapped or address
    return bool(checked.is_global and not checked.is_multicast and not checked.is_reserved)
