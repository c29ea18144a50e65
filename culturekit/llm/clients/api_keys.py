"""Which key goes to which server, and which servers do without."""

import os

from culturekit.errors import MissingDependency
from culturekit.llm.clients.client_options import ServiceOptions
from culturekit.llm.clients.endpoints import is_encrypted, is_loopback, is_official
from culturekit.llm.untrusted.secrets import Secret, key_from_environment

__all__ = ["NO_KEY", "api_key"]

NO_KEY = "no-key"
"""What is sent to a server that needs none: some want to see a key all the same."""


def api_key(options: ServiceOptions, *, base_url: str, official: str, variables: tuple[str, ...]) -> Secret | None:
    """Find the key for a server; None where the server is somebody's own and none is set.

    A key that only lies in the environment goes to the service it belongs to, to this machine, or over an encrypted
    connection; to another machine in plain text it goes only if the SPEC names its variable.

    Raises:
        MissingDependency: the service needs a key and there is none.
        UsageError: what the variable holds cannot be a key.
    """
    named = options.key_variable
    names = (named,) if named else variables
    if any(os.environ.get(name, "").strip() for name in names):
        private = is_encrypted(base_url) or is_loopback(base_url)
        return key_from_environment(*names) if named or private else None
    if named:
        raise MissingDependency(f"the variable {named} is not set", hint="The SPEC names it with api_key=${NAME}.")
    if is_official(base_url, official):
        raise MissingDependency(f"there is no key for {official}", hint=f"Set {' or '.join(variables)}.")
    return None
