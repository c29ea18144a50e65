"""An encoder of texts without weights: what a phrase shares with another in words and in runs of letters."""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from culturekit.core.registry import Spec
from culturekit.index.encoder import EncoderIdentity, TextEncoder, TooLong, Vectors

_DIMENSIONS = 1024
_RUN = 4  # letters of a run
_WORD_WEIGHT = 3.0  # how much a word counts, beside the runs in it
_SMALL = frozenset({"a", "an", "the", "of", "in", "on", "at", "with", "and", "or", "to", "for"})
_SMALL_WEIGHT = 0.2


class LettersEncoder:
    """Compares letters; knows nothing of what words mean."""

    identity = EncoderIdentity(
        name="letters",
        weights="none",
        revision="1",
        preprocessing=f"casefolded; words and runs of {_RUN} letters hashed by CRC-32",
        dtype="float32",
        dim=_DIMENSIONS,
    )
    caveat = (
        "The letters encoder compares how phrases are written: it knows no synonym, and takes words for alike that "
        "are written alike. It is for simulated worlds, whose phrases are."
    )

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts, each by itself."""
        vectors = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for feature, weight in _features(_folded(text)):
                bucket = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
                vector[bucket % _DIMENSIONS] += weight if bucket & 0x8000_0000 else -weight
            length = np.sqrt((vector * vector).sum())
            if length:
                vector /= length
            else:
                vector[0] = 1.0
        return vectors

    def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode the words of texts."""
        return [self.encode_texts(re.findall(r"\w+", _folded(text)) or [text]) for text in texts]

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """Read every text whole."""
        return []


def _folded(text: str) -> str:
    """Write a text as equal phrases share it."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Give the words of a text and the runs of letters in them, with what each counts."""
    for word in re.findall(r"\w+", text) or [text]:
        weight = _SMALL_WEIGHT if word in _SMALL else 1.0
        yield word, _WORD_WEIGHT * weight
        framed = f"<{word}>"
        for start in range(max(len(framed) - _RUN, 0) + 1):
            yield f"#{framed[start : start + _RUN]}", weight


def make(spec: Spec) -> TextEncoder:
    """Make the encoder; it takes no options."""
    spec.refuse_options()
    return LettersEncoder()
