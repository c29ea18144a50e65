"""Making a stage again without the network: whoever would send asks here first."""

from collections.abc import Iterator
from contextlib import contextmanager

from culturekit.core.errors import UsageError


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
