"""A key of a provider: it comes from the environment, by name, and shows that name wherever it is looked at."""

import os
from collections.abc import Callable

from culturekit.errors import MissingDependency, UsageError
from culturekit.llm.untrusted.redaction import know
from culturekit.records.literal_keys import NAMED_KEY

__all__ = ["Secret", "key_from_environment", "resolve_key"]


class Secret:
    """A key that shows only its name; `reveal` gives the value, as late and as briefly as can be.

    Pickled, it is its name, and is looked up again where it is unpickled; a copy is itself; as JSON it is an error.
    """

    __slots__ = ("name", "reveal")

    name: str
    reveal: Callable[[], str]

    def __init__(self, name: str, value: str) -> None:
        """Keep the value where nothing prints it, and have it blanked everywhere."""
        know(name, value)
        self.name = name
        self.reveal = lambda: value

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def __reduce__(self) -> tuple[Callable[[str], "Secret"], tuple[str]]:
        return key_from_environment, (self.name,)

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _: object) -> "Secret":
        return self


def resolve_key(option: str | None, *names: str) -> Secret:
    """Find the key of a client: by the option `api_key=${NAME}` of its SPEC, or else in the usual variables.

    Raises:
        UsageError: the option is a key itself; it is not repeated.
        MissingDependency: there is no key.
    """
    if not option:
        return key_from_environment(*names)
    named = NAMED_KEY.fullmatch(option)
    if named is None:
        raise UsageError(
            "api_key is written out",
            expected="the name of an environment variable, such as api_key=${MY_KEY}",
            hint="Put the key into that variable, and write the SPEC in single quotes.",
        )
    return key_from_environment(named[1])


def key_from_environment(*names: str) -> Secret:
    """Take the key from the first of some environment variables that is set.

    Raises:
        MissingDependency: none is set.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        if not value.isascii() or not value.isprintable() or " " in value:
            raise UsageError("this is not a key", where=name, expected="one line of printable ASCII without spaces")
        return Secret(name, value)
    raise MissingDependency(
        "there is no key for this provider",
        expected=f"the environment variable {' or '.join(names)}",
        hint="Set it, or name another in the SPEC: '?api_key=${MY_KEY}', in single quotes.",
    )
