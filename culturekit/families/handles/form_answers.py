"""Which answers a form offered: what is said of people's answers is held against it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from culturekit.errors import UsageError
from culturekit.storage.manifest import read_manifest

__all__ = ["FormAnswers"]


@dataclass(frozen=True, slots=True)
class FormAnswers:
    """The answers to a question that its form offered, in order; none where that is not known."""

    offered: Sequence[str]

    @classmethod
    def beside(cls, annotations: Path, criterion: str) -> Self:
        """Read what the import of answers wrote of their form."""
        manifest = read_manifest(annotations.parent)
        return cls(() if manifest is None else manifest.notes.get("answers", {}).get(criterion, ()))

    def check(self, choice: str | None, lowest: float | None, highest: float | None) -> None:
        """Refuse another scale than that of the form, and a choice that it did not offer: these would shift means."""
        if not self.offered:
            return
        if choice is not None and choice not in self.offered:
            raise UsageError(
                "the form did not offer the choice that is to count 1",
                expected=" or ".join(self.offered),
                found=repr(choice),
            )
        if lowest is not None and [lowest, highest] != [float(self.offered[0]), float(self.offered[-1])]:
            raise UsageError(
                "the scale that is stated is not the form's",
                expected=f"lowest {self.offered[0]} and highest {self.offered[-1]}",
                found=f"from {lowest:g} to {highest:g}",
            )
