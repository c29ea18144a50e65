"""Captions that are kept, and which of them a new one is most like: by its words, then by an encoder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from culturekit.builders.folded_names import folded
from culturekit.index.encoder import Vectors

__all__ = ["ALIKE", "KEPT", "SAME", "TOO_MANY", "Earlier", "Fate"]

KEPT, SAME, ALIKE, TOO_MANY = "kept", "same as an earlier caption", "like an earlier caption", "more than were wanted"

TIE = 1e-5
"""Cosines as near as this are one, in whatever order their numbers were added: the first of such captions is named."""

DIGITS = 6

Encode: TypeAlias = Callable[[Sequence[str]], Vectors]


class Fate(NamedTuple):
    """What became of a caption; `nearest` is the place of the earlier one that it is most like."""

    outcome: str
    nearest: int | None = None
    similarity: float | None = None


@dataclass
class Earlier:
    """Keeps captions, each of which says something new.

    Attributes:
        encode: makes unit vectors of texts; without it only the same words are found again.
        similarity: the cosine from which two captions say the same.
        most: how many are kept.
    """

    encode: Encode | None
    similarity: float
    most: int
    places: dict[str, int] = field(default_factory=dict)
    vectors: Vectors | None = None

    def sort_out(self, texts: Sequence[str]) -> list[Fate]:
        """Keep of some texts what is new, in their order, and say what became of each."""
        found = self.encode(texts) if self.encode and texts else np.zeros((len(texts), 0), np.float32)
        if self.vectors is None:
            self.vectors = np.zeros((self.most, found.shape[1]), np.float32)
        start, fates = len(self.places), []
        before = found @ self.vectors[:start].T
        for vector, known, text in zip(found, before, texts, strict=True):
            here = self.vectors[start : len(self.places)] @ vector
            fate = self.fate(folded(text), vector, np.concatenate([known, here]))
            if fate.outcome == KEPT:
                self.vectors[len(self.places)] = vector
                self.places[folded(text)] = len(self.places)
            fates.append(fate)
        return fates

    def fate(self, words: str, vector: Vectors, cosines: Vectors) -> Fate:
        """Decide about one caption, by its cosines with all that are kept."""
        if words in self.places:
            return Fate(SAME, self.places[words], 1.0)
        nearest, cosine = None, None
        if vector.size and cosines.size and self.vectors is not None:
            nearest = int(np.flatnonzero(cosines >= cosines.max() - TIE)[0])
            cosine = round(float((vector.astype(np.float64) * self.vectors[nearest]).sum()), DIGITS)
            if cosine >= self.similarity:
                return Fate(ALIKE, nearest, cosine)
        return Fate(TOO_MANY if len(self.places) == self.most else KEPT, nearest, cosine)
