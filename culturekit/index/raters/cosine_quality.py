"""Scorers that compare a picture with the text it was asked for by: the cosine of two vectors, times a number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import ImageEncoder, Prepared, TextEncoder, TooLong

__all__ = ["CosineQuality", "PairEncoder", "Values"]

Values: TypeAlias = NDArray[np.float64]


class PairEncoder(ImageEncoder, TextEncoder, Protocol):
    """Puts pictures and texts into one space."""


@dataclass(frozen=True, slots=True)
class CosineQuality:
    """Scores by `factor` times the cosine, negative ones as 0 where `floor` says so.

    Attributes:
        name: as it stands in the `quality` table.
        encoder: of pictures and texts.
        factor: what the cosine is multiplied with.
        floor: whether a negative cosine counts as 0.
        caveat: what a reader must know.
    """

    name: str
    encoder: PairEncoder
    factor: float
    floor: bool
    caveat: str

    @property
    def needs_prompts(self) -> bool:
        """A text is half of the score."""
        return True

    @property
    def batch_size(self) -> int:
        """As many as the encoder encodes at once."""
        return self.encoder.batch_size

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The encoder, and what is done to the cosine."""
        identity = self.encoder.identity.as_options()
        return {**identity, "encoder": identity["name"], "name": self.name, "factor": self.factor, "floor": self.floor}

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Prepare a picture as the encoder does."""
        return self.encoder.prepare(picture)

    def score_prepared(self, pictures: Sequence[Prepared], prompts: Sequence[str] = ()) -> Values:
        """Score each prepared picture beside its prompt; a prompt that several share is encoded once."""
        if len(pictures) != len(prompts):
            raise ValueError(f"a prompt per picture: {len(pictures)} pictures, {len(prompts)} prompts")
        if not pictures:
            return np.empty(0, np.float64)
        different = list(dict.fromkeys(prompts))
        place = {text: row for row, text in enumerate(different)}
        texts = self.encoder.encode_texts(different)[[place[text] for text in prompts]]
        seen = self.encoder.encode_prepared(pictures)
        cosines: Values = np.einsum("nd,nd->n", seen.astype(np.float64), texts.astype(np.float64))
        return (cosines.clip(min=0) if self.floor else cosines) * self.factor

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> Values:
        """Prepare and score pictures beside their prompts."""
        return self.score_prepared([self.prepare(picture) for picture in pictures], prompts)

    def too_long(self, prompts: Sequence[str]) -> list[TooLong]:
        """List the prompts that the encoder reads only in part."""
        return self.encoder.too_long(prompts)
