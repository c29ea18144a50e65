"""Keys, wrapped so that nothing shows them by accident."""

import os
from typing import NoReturn

__all__ = ["Secret", "key_from_environment"]


class Secret:
    """A key and the name of the variable it came from; only `value` gives the key."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: str) -> None:
        """Take the key."""
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


def key_from_environment(*names: str) -> Secret | None:
    """Take the key from the first variable that holds one."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return Secret(name, value)
    return None
