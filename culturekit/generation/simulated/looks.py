"""Looks: what belongs to a name for ever, what lies between two looks, and many looks side by side."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from culturekit.generation.simulated.canvas import Field, Numbers, as_scalars

__all__ = ["blend", "colours", "numbers_of", "side_by_side"]

Look = TypeVar("Look", bound=Any)
"""A frozen dataclass whose fields are float32 (k,), or (k, n, 1, 1) for n looks side by side."""

PAINTERS_WHEEL = np.array([0.0, 0.08, 0.16, 0.36, 0.6, 0.78, 1.0])
"""Hues of red, orange, yellow, green, blue, purple and red again, as a colour circle for painters
spaces them: even steps look even, and green does not take a third of it."""


def numbers_of(name: str, count: int) -> Numbers:
    """Draw numbers that belong to a name."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")
    return np.random.default_rng(key).random(count)


def colours(hue: Numbers, saturation: Numbers, value: Numbers) -> Field:
    """Give RGB (..., 3) for hues in turns of the painter's wheel; channels are 0 to 1."""
    turns = np.interp(hue % 1, np.linspace(0, 1, len(PAINTERS_WHEEL)), PAINTERS_WHEEL)
    offsets = (turns[..., np.newaxis] * 6 + (0, 4, 2)) % 6
    ramp = np.clip(np.abs(offsets - 3) - 1, 0, 1)
    pale = (1 - saturation)[..., np.newaxis]
    return np.asarray(value[..., np.newaxis] * (pale + (1 - pale) * ramp), np.float32)


def blend(own: Look, shared: Look, *, share: float) -> Look:
    """Mix two looks field by field; `share` is how much is left of the first."""
    if share == 1:
        return own
    mixed = {}
    for field in dataclasses.fields(own):
        start, end = getattr(shared, field.name), getattr(own, field.name)
        mixed[field.name] = start + np.float32(share) * (end - start)
    return dataclasses.replace(own, **mixed)


def side_by_side(looks: Sequence[Look]) -> Look:
    """Put n looks side by side, each field (k, n, 1, 1), to be drawn at once."""
    joined = {
        field.name: as_scalars(np.stack([getattr(look, field.name) for look in looks]))
        for field in dataclasses.fields(looks[0])
    }
    return dataclasses.replace(looks[0], **joined)
