"""Which addresses a URL may lead to: public ones, and this machine only where the user names it.

A name is resolved once and the answer is the address that is connected to, so a name server cannot say one thing for
the check and another for the connection.
"""

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from culturekit.errors import UpstreamUnavailable, UsageError

__all__ = ["PORTS", "address_of", "check_url"]

PORTS = {"http": 80, "https": 443}


def check_url(url: str) -> SplitResult:
    """Accept an http or https URL with a host, without a password and without what only a browser needs."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError("not a URL", where=url, found=str(error)) from error
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise UsageError("not a URL that can be asked", where=url, expected="http:// or https:// and a host")
    if parts.username or parts.password:
        raise UsageError("a URL with a password in it would be written down", where=parts.hostname)
    if parts.fragment or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise UsageError("not a URL that can be asked", where=repr(url), expected="no spaces and no #")
    return parts


def address_of(parts: SplitResult, *, may_be_here: bool) -> tuple[str, int]:
    """Resolve the host of a URL to one address and port; `may_be_here` allows a host that names this machine."""
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UpstreamUnavailable(
            "no such host", where=host, found=str(error), hint="Check the URL and the network."
        ) from error
    addresses = [str(answer[4][0]) for answer in found]
    for address in addresses:
        if not (is_public(address) or (may_be_here and names_this_machine(host) and is_here(address))):
            raise UsageError(
                "this address is not on the public internet, and is not asked",
                where=host,
                found=address,
                hint="A server on this machine is asked when its URL says localhost, 127.0.0.1 or [::1].",
            )
    return addresses[0], port


def names_this_machine(host: str) -> bool:
    """Tell whether a host, as written, means this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_public(address: str) -> bool:
    """Tell whether an address is one that anybody can reach; one wrapped in IPv6 counts as what it wraps."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    return (inner or parsed).is_global and not (inner or parsed).is_multicast


def is_here(address: str) -> bool:
    """Tell whether an address is this machine."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
