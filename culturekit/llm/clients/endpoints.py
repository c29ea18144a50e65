"""Base URLs of services: what may stand in them, and who listens there."""

import ipaddress
from urllib.parse import urlsplit

__all__ = ["check_base_url", "is_encrypted", "is_loopback", "is_official", "normal_base_url"]


def check_base_url(url: str) -> None:
    """Refuse a base URL that carries credentials or cannot be one; nothing of it is repeated.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("base_url is not a URL") from None
    if "@" in parts.netloc:
        raise ValueError("base_url carries credentials; name the variable that holds the key with api_key=${NAME}")
    if parts.query or parts.fragment:
        raise ValueError("base_url ends with its path; nothing may follow a ? or a #")
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("base_url begins with http:// or https:// and a host")
    if any(char.isspace() or not char.isprintable() for char in url):
        raise ValueError("base_url holds white space")


def normal_base_url(url: str) -> str:
    """Write a base URL in one form: scheme and host in small letters, no slash at its end."""
    parts = urlsplit(url)
    return parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower()).geturl().rstrip("/")


def is_official(url: str, official: str) -> bool:
    """Tell whether a base URL is a provider's own, over an encrypted connection; its regions count."""
    host, own = urlsplit(url).hostname or "", urlsplit(official).hostname or ""
    return is_encrypted(url) and (host == own or host.endswith("." + own))


def is_encrypted(url: str) -> bool:
    """Tell whether nobody on the way can read along."""
    return urlsplit(url).scheme.lower() == "https"


def is_loopback(url: str) -> bool:
    """Tell whether a base URL leads back to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
