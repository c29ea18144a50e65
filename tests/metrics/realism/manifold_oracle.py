"""PRDC pair by pair: whole numbers in exact integers, everything else as float64 differences."""

from typing import Any

import numpy as np

from culturekit.metrics import PRDC
from tests.oracles.set_distances import shares


def squares(a: Any, b: Any) -> Any:
    """Give squared distances of all pairs, int64 for integers."""
    kind = np.int64 if np.asarray(a).dtype.kind == "i" else np.float64
    left, right = np.asarray(a, kind), np.asarray(b, kind)
    return np.array([np.square(row - right).sum(axis=1) for row in left])


def oracle_prdc(real: Any, fake: Any, *, k: int) -> PRDC:
    """Take the shares that the verification counts from all distances."""
    return PRDC(*shares(np.asarray(real), np.asarray(fake), k))
