"""Answers of a web service on disk, one small file each, so that no question is asked twice."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest

__all__ = ["KeptAnswers"]

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class KeptAnswers(Generic[Answer]):
    """A folder of answers of one kind; each file says what was asked, and is believed only for that."""

    folder: Path
    kind: type[Answer]

    def find(self, question: list[str]) -> Answer | None:
        """Give the answer to a question; a damaged one is asked for again."""
        path = self.place(question)
        try:
            asked, answer = msgspec.json.decode(path.read_bytes(), type=tuple[list[str], self.kind])  # type: ignore[name-defined]
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("%s: a kept answer is damaged and is asked for again (%s)", path, error)
            return None
        return answer if asked == question else None

    def keep(self, question: list[str], answer: Answer) -> None:
        """Keep an answer, whole or not at all."""
        path = self.place(question)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode([question, answer]))

    def place(self, question: list[str]) -> Path:
        """Name the file of a question."""
        name = digest(question)
        return self.folder / name[:2] / f"{name}.json"
