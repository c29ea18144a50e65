"""The weights of the label kernel, and the five triples that CUBE reports (Table 4 of the paper)."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from culturekit.metrics.arguments import argument_error, check_choice

__all__ = [
    "STANDARD_KERNELS", "Kernel", "Weights", "check_weights", "counting_levels", "is_single", "kernel_name",
    "several_weights",
]  # fmt: skip

Weights: TypeAlias = tuple[float, float, float]
"""How much the same continent, the same country and the same artifact count."""

STANDARD_KERNELS: Mapping[str, Weights] = MappingProxyType(
    {
        "continent": (1.0, 0.0, 0.0),
        "country": (0.0, 1.0, 0.0),
        "artifact": (0.0, 0.0, 1.0),
        "hierarchical": (0.5, 0.5, 0.0),
        "uniform": (1 / 3, 1 / 3, 1 / 3),
    }
)

Kernel: TypeAlias = str | Sequence[float]
"""A standard kernel by its name, or weights."""

ROUNDING = 1e-9
"""How far typed weights may be from their exact values, such as 0.3333333333 from 1/3."""


def check_weights(weights: Kernel) -> Weights:
    """Give the weights as three floats, by name or as they stand, or say why they are no kernel: k(i, i) must be 1."""
    rule = "three numbers of at least 0 that sum to 1, for (continent, country, artifact)"
    if isinstance(weights, str):
        check_choice("weights", weights, tuple(STANDARD_KERNELS))
        return STANDARD_KERNELS[weights]
    try:
        continent, country, artifact = (float(weight) for weight in weights)
    except (TypeError, ValueError) as error:
        raise argument_error("weights", rule, weights) from error
    if not min(continent, country, artifact) >= 0 or not abs(continent + country + artifact - 1) <= ROUNDING:
        raise argument_error("weights", rule, weights)
    return continent, country, artifact


def several_weights(weights: Kernel | Sequence[Kernel]) -> list[Weights]:
    """Read one kernel, or several."""
    if not hasattr(weights, "__len__"):
        raise argument_error("weights", "a triple of numbers, or triples", weights)
    return [check_weights(kernel) for kernel in ([weights] if is_single(weights) else weights)]  # type: ignore[arg-type]


def is_single(weights: Kernel | Sequence[Kernel]) -> bool:
    """Tell one kernel from several."""
    return isinstance(weights, str) or len(weights) == 0 or not all(hasattr(kernel, "__len__") for kernel in weights)


def counting_levels(weights: Weights) -> list[int]:
    """List the levels whose labels matter: 0 for the continent, 1 for the country, 2 for the artifact."""
    return [level for level, weight in enumerate(weights) if weight > 0]


def kernel_name(weights: Weights) -> str | None:
    """Name a triple of weights, when it is one of the standard ones."""
    for name, standard in STANDARD_KERNELS.items():
        if all(math.isclose(mine, theirs, abs_tol=ROUNDING) for mine, theirs in zip(weights, standard, strict=True)):
            return name
    return None
