"""Texts as a model's own tokenizer writes them, in groups of one length each."""

import string
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.index.encoder import TooLong

__all__ = ["LengthGroup", "Rewrite", "Tokens", "canonical"]

Rewrite: TypeAlias = Callable[[str], str]

STEP = 16
PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class LengthGroup:
    """Texts of one padded length: their places among those given, and per text one row of tokens and maybe a mask."""

    places: tuple[int, ...]
    rows: list[NDArray[np.int64]]


class Tokens:
    """A tokenizer and the length its model reads.

    A text is filled up to a length that it alone decides: all of the context where the model was taught so, else the
    next multiple of 16. So its vector does not depend on the texts beside it.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401 - a tokenizer
        *,
        most: int,
        fill: bool,
        rewrite: Rewrite = str,
    ) -> None:
        """Take a tokenizer, the most tokens that are read, and whether every text is filled up to that.

        `rewrite` is done to every text first.
        """
        self.tokenizer = tokenizer
        self.rewrite = rewrite
        self.most = most
        self.fill = fill
        self.turn = threading.Lock()
        self.names = [name for name in ("input_ids", "attention_mask") if name in tokenizer.model_input_names]
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token

    def __str__(self) -> str:
        """Say how long texts may be, as it stands in an identity."""
        return f"texts of at most {self.most} tokens"

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts, those that mark beginning and end included."""
        if not texts:
            return []
        with self.turn:
            written = self.tokenizer(list(map(self.rewrite, texts)), truncation=False, padding=False, verbose=False)
        return [len(tokens) for tokens in written["input_ids"]]

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than what is read."""
        counted = enumerate(self.counts(texts))
        return [TooLong(place, tokens, self.most) for place, tokens in counted if tokens > self.most]

    def groups(self, texts: Sequence[str]) -> Iterator[LengthGroup]:
        """Write texts as tokens, shortest first."""
        lengths = [self.filled(count) for count in self.counts(texts)]
        for length in sorted(set(lengths)):
            places = tuple(place for place, filled in enumerate(lengths) if filled == length)
            with self.turn:
                written = self.tokenizer(
                    [self.rewrite(texts[place]) for place in places],
                    padding="max_length",
                    truncation=True,
                    max_length=length,
                    return_tensors="np",
                )
            columns = [np.asarray(written[name], np.int64) for name in self.names]
            yield LengthGroup(places, list(np.stack(columns, axis=1)))

    def keeps_capitals(self) -> bool:
        """Find out whether capitals and small letters are told apart."""
        large, small = self.tokenizer(list(map(self.rewrite, ["KYIV", "kyiv"])), padding=False)["input_ids"]
        return bool(large != small)

    def filled(self, count: int) -> int:
        """Give the length that a text of so many tokens is filled up to, or cut to."""
        return self.most if self.fill else min(self.most, -(-count // STEP) * STEP)


def canonical(text: str) -> str:
    """Write a text as SigLIP's tokenizer does before it splits it: small letters, no punctuation, single spaces."""
    return " ".join(text.lower().translate(PUNCTUATION).split())
