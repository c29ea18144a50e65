"""Which addresses are fetched: public ones, this machine where its name says so, and none while offline."""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from culturekit.core.errors import UsageError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

# Not public, whatever the `ipaddress` of this Python says: protocol assignments, relays of 6to4, local translation.
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "fec0::/10")))
# IPv6 addresses whose last 32 bits are the IPv4 address that is reached.
_TRANSLATED = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "::/96")))


class NotPublic(ValueError):
    """A host has an address that is not asked."""


def is_public(text: str) -> bool:
    """Tell whether an address is one of the open internet; one that wraps an IPv4 address counts as that one."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    address = _wrapped(address) or address
    special = any(address.version == block.version and address in block for block in _SPECIAL)
    return address.is_global and not (special or address.is_multicast or address.is_reserved)


def _wrapped(address: Address) -> Address | None:
    """Give the IPv4 address that packets to an IPv6 address reach in the end, if there is one."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    last = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (last if any(address in one for one in _TRANSLATED) else None)


def is_this_machine(host: str) -> bool:
    """Tell whether a host, as written, names this machine."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def resolve(host: str, port: int, *, here: bool = False, anywhere: bool = False) -> str:
    """Find the address of a host, all of whose addresses may be asked; connect to that, not to the name again.

    Args:
        host: a name or an address.
        port: which is asked.
        here: whether a host that names this machine may be asked, at its loopback addresses alone.
        anywhere: whether the user named this very host, wherever it is.

    Raises:
        OSError: no such host is known.
        NotPublic: one of the addresses may not be asked.
    """
    found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in found:
        near = here and is_this_machine(host) and is_this_machine(address)
        if not (anywhere or near or is_public(address)):
            raise NotPublic(address)
    return found[0]


class SendingRefused(UsageError):
    """Something would be asked or fetched while nothing may be."""


class _State:
    refused = False


@contextmanager
def offline() -> Iterator[None]:
    """Refuse every request of this process, whichever thread sends it, until the block ends."""
    before, _State.refused = _State.refused, True
    try:
        yield
    finally:
        _State.refused = before


def check_sending(who: str) -> None:
    """Make sure that requests may be sent."""
    if _State.refused:
        raise SendingRefused(
            "nothing is sent while a finished stage is made again", where=who, expected="every reply in its journal",
            found="a request that no stored reply answers",
        )  # fmt: skip
