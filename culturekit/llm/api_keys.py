"""Which key goes to which server, and which servers do without."""

from culturekit.errors import MissingDependency, UsageError
from culturekit.llm.client_options import RemoteOptions
from culturekit.llm.endpoints import is_encrypted, is_loopback, is_official
from culturekit.llm.secrets import Secret, key_from_environment

__all__ = ["NO_KEY", "api_key"]

NO_KEY = "no-key"
"""What is sent to a server that needs none: some want to see a key all the same."""


def api_key(options: RemoteOptions, *, base_url: str, official: str, variables: tuple[str, ...]) -> Secret | None:
    """Find the key for a server; None where the server is somebody's own and none is set.

    A key that only lies in the environment goes to the service it belongs to, to this machine, or over an encrypted
    connection; to another machine in plain text it goes only if the SPEC names its variable.

    Raises:
        MissingDependency: the service needs a key and there is none.
    """
    named = options.key_variable
    if named or is_encrypted(base_url) or is_loopback(base_url):
        found = key_from_environment(*((named,) if named else variables))
        if found is not None:
            return usable(found)
    if named:
        raise MissingDependency(
            f"the environment variable {named} is not set", hint="It is named by api_key in the SPEC."
        )
    if is_official(base_url, official):
        raise MissingDependency(f"there is no key for {official}", hint=f"Set {' or '.join(variables)}.")
    return None


def usable(key: Secret) -> Secret:
    """Make sure that a key can stand in a header; nothing of it is repeated."""
    if not key.value.isascii() or not key.value.isprintable() or " " in key.value:
        raise UsageError(
            f"{key.name} holds something that is not a key", expected="letters, digits and signs, no white space"
        )
    return key
