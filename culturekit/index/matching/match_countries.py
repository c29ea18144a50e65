"""Which artifacts share a country: sets of countries as bits, so that many are compared at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["CountrySets", "country_sets"]


@dataclass(frozen=True, slots=True)
class CountrySets:
    """The countries of each artifact: `kinds[sets[a]]` has one bit per country of artifact a.

    Attributes:
        sets: int64 (artifacts,), artifacts with equal sets of countries have equal numbers.
        kinds: uint64 (distinct sets, words).
    """

    sets: NDArray[np.int64]
    kinds: NDArray[np.uint64]

    def foreign(self, artifacts: NDArray[np.int64], to: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell, pair by pair, whether an artifact shares no country with another and is not that other itself."""
        shared = (self.kinds[self.sets[artifacts]] & self.kinds[self.sets[to]]).any(axis=-1)
        foreign: NDArray[np.bool_] = ~shared & (artifacts != to)
        return foreign


def country_sets(countries: pl.Series | Sequence[Sequence[str]]) -> CountrySets:
    """Number the sets of countries that artifacts have."""
    rows = pl.Series("countries", countries, dtype=pl.List(pl.String)).list.sort().list.join(",")
    names = rows.unique().sort()
    sets = rows.replace_strict(names, pl.Series(range(len(names)), dtype=pl.Int64)).to_numpy().astype(np.int64)
    members = [set(filter(None, name.split(","))) for name in names]
    codes = sorted({code for codes in members for code in codes})
    bits = np.array([[code in own for code in codes] for own in members], np.bool_).reshape(len(members), len(codes))
    width = max(1, -(-len(codes) // 64)) * 64
    packed = np.packbits(np.pad(bits, ((0, 0), (0, width - len(codes)))), axis=1)
    return CountrySets(sets, packed.view(np.uint64))
