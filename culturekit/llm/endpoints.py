"""Services and their base URLs: what may stand in these, who listens there, and which key goes to which server."""

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from culturekit.core.addresses import is_this_machine
from culturekit.core.errors import MissingDependency
from culturekit.llm.client import Identity
from culturekit.llm.redaction import Secret, key_from_environment

NO_KEY = "no-key"  # what is sent to a server that needs none: some want to see a key all the same


def check_base_url(url: str) -> None:
    """Reject a base URL that carries credentials or cannot be one; nothing of it is repeated."""
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


def _is_encrypted(url: str) -> bool:
    return urlsplit(url).scheme.lower() == "https"


def is_loopback(url: str) -> bool:
    """Check whether a base URL leads back to this machine."""
    return is_this_machine(urlsplit(url).hostname or "")


@dataclass(frozen=True, slots=True)
class Service:
    """A provider: its own address, and the variables that its SDK reads a key and another address from."""

    official: str
    keys: tuple[str, ...]
    address: str

    def base_url(self, stated: str) -> str:
        """Choose the address that is asked: the one that a SPEC states, that of the variable, or the provider's own."""
        url = stated or os.environ.get(self.address, "").strip()
        if url and not stated:
            check_base_url(url)
        return normal_base_url(url or self.official)

    def owns(self, base_url: str) -> bool:
        """Check whether an address is the provider's own, over an encrypted connection; its regions count."""
        host, ours = urlsplit(base_url).hostname or "", urlsplit(self.official).hostname or ""
        return _is_encrypted(base_url) and (host == ours or host.endswith("." + ours))

    def key(self, named: str, base_url: str) -> Secret | None:
        """Find the key for a server; None where the server is somebody's own and none is set.

        A key that only lies in the environment goes to the service it belongs to, to this machine, or over an
        encrypted connection; to another machine in plain text it goes only if the SPEC names its variable.

        Raises:
            MissingDependency: the service needs a key and there is none.
            UsageError: what the variable holds cannot be a key.
        """
        names = (named,) if named else self.keys
        if any(os.environ.get(name, "").strip() for name in names):
            private = _is_encrypted(base_url) or is_loopback(base_url)
            return key_from_environment(*names) if named or private else None
        if named:
            raise MissingDependency(f"the variable {named} is not set", hint="The SPEC names it with api_key=${NAME}.")
        if self.owns(base_url):
            raise MissingDependency(f"there is no key for {self.official}", hint=f"Set {' or '.join(self.keys)}.")
        return None


OPENAI = Service("https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL")
GOOGLE = Service(
    "https://generativelanguage.googleapis.com", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "GOOGLE_GEMINI_BASE_URL"
)

SERVICES = {"openai": OPENAI, "google": GOOGLE}


def is_elsewhere(identity: Identity) -> bool:
    """Check whether a provider's protocol is spoken at an address that is not the provider's own."""
    service = SERVICES.get(identity.provider.removesuffix("-images"))
    return service is not None and not service.owns(identity.base_url)
