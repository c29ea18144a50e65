"""Where pictures may be fetched from: an address that a reply names is somebody else's word, and may point inwards."""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from culturekit.llm.clients.endpoints import is_loopback

__all__ = ["Place", "Refused", "place_of"]

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
