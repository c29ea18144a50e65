"""Keys, wrapped so that nothing shows them by accident."""

import os
from collections.abc import Callable

from culturekit.errors import MissingDependency, UsageError

__all__ = ["Secret", "key_from_environment"]


class Secret:
    """A key that shows only its name; `reveal` gives the value."""

    __slots__ = ("name", "reveal")

    name: str
    reveal: Callable[[], str]

    def __init__(self, name: str, value: str) -> None:
        """Take the key."""
        self.name = name
        self.reveal = lambda: value

    def __repr__(self) -> str:
        return f"Secret({self.name})"


def key_from_environment(*names: str) -> Secret:
    """Take the key from the first variable that holds one.

    Raises:
        MissingDependency: none does.
    """
    for name in names:
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        if not value.isascii() or not value.isprintable() or " " in value:
            raise UsageError("this is not a key", where=name, expected="one line of printable ASCII without spaces")
        return Secret(name, value)
    raise MissingDependency("there is no key for this provider", expected=f"the variable {' or '.join(names)}")
