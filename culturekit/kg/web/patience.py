"""How a server that fails is asked again, and replies that were kept so that it need not be."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from culturekit.errors import IntegrityError, UpstreamUnavailable

__all__ = ["KEPT", "Passing", "Patience", "kept_reply"]

logger = logging.getLogger(__name__)

KEPT = "What was answered is kept: run the same command again and it goes on from there."
TRIES = 5
LONGEST_WAIT = 600.0
"""Seconds; a server that asks for more than this is not available now."""

Answer = TypeVar("Answer")


class Passing(Exception):
    """A failure that may pass: try again after `wait` seconds, or, where it is None, after ever longer pauses."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        """Keep the reason for the last message."""
        super().__init__(problem)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Patience:
    """Who is asked, what to do when nobody answers, and the first pause in seconds; each later one is twice as long."""

    who: str
    where: str
    hint: str
    first: float
    pause: Callable[[float], None]

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Ask until an answer comes, or it has been tried often enough."""
        for attempt in range(1, TRIES + 1):
            try:
                return question()
            except Passing as failure:
                wait = self.first * 2 ** (attempt - 1) if failure.wait is None else failure.wait
                if attempt == TRIES or wait > LONGEST_WAIT:
                    raise UpstreamUnavailable(
                        f"{self.who} did not answer in {attempt} {'try' if attempt == 1 else 'tries'}: {failure}",
                        where=self.where,
                        found=f"a request to wait {wait:,.0f} s" if wait > LONGEST_WAIT else "",
                        hint=self.hint,
                    ) from failure
                logger.warning("%s: %s; trying again in %.0f s", self.where, failure, wait)
                self.pause(wait)
        raise AssertionError("unreachable")


def kept_reply(path: Path, kind: type[Answer]) -> Answer | None:
    """Read a reply from disk; one that cannot be read is asked for again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        logger.warning("%s", IntegrityError("a kept reply is damaged and is asked for again", where=str(path)))
        logger.debug("%s", error)
        return None
