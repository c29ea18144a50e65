"""PRDC and KID as their papers write them, in plain torch on a device: what culturekit's own are held against."""

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["kid_by_torch", "prdc_by_torch"]

ROWS = 2048


def prdc_by_torch(real: NDArray[np.float32], fake: NDArray[np.float32], *, k: int, device: str) -> dict[str, float]:
    """Compute precision, recall, density and coverage in float32, a block of rows at a time; and how long it took."""
    reals, fakes = (torch.from_numpy(points).to(device) for points in (real, fake))
    started = time.perf_counter()
    real_radii, fake_radii = radii(reals, k), radii(fakes, k)
    inside_real = torch.zeros(len(fakes), device=device)
    inside_fake = torch.zeros(len(reals), dtype=torch.bool, device=device)
    nearest = torch.full((len(reals),), torch.inf, device=device)
    for start in range(0, len(fakes), ROWS):
        distances = torch.cdist(fakes[start : start + ROWS], reals)
        inside_real[start : start + ROWS] = (distances < real_radii).sum(dim=1)
        inside_fake |= (distances < fake_radii[start : start + ROWS, None]).any(dim=0)
        nearest = torch.minimum(nearest, distances.amin(dim=0))
    found = {
        "precision": (inside_real > 0).double().mean().item(),
        "recall": inside_fake.double().mean().item(),
        "density": inside_real.sum().item() / (k * len(fakes)),
        "coverage": (nearest < real_radii).double().mean().item(),
    }
    return found | {"seconds": time.perf_counter() - started}


def radii(points: Any, k: int) -> Any:  # noqa: ANN401 - tensors
    """Give the distance of each point to its k-th neighbour, itself not counted."""
    parts = [
        torch.cdist(points[start : start + ROWS], points).kthvalue(k + 1, dim=1).values
        for start in range(0, len(points), ROWS)
    ]
    return torch.cat(parts)


def kid_by_torch(real: NDArray[np.float32], fake: NDArray[np.float32], *, device: str) -> tuple[float, float]:
    """Compute the unbiased squared MMD of the cubic kernel over all rows, in float64; and how long it took."""
    reals, fakes = (torch.from_numpy(points).to(device).double() for points in (real, fake))
    started = time.perf_counter()
    m, n = len(reals), len(fakes)
    within = (total(reals, reals) - own(reals)) / (m * (m - 1)) + (total(fakes, fakes) - own(fakes)) / (n * (n - 1))
    value = float(within - 2 * total(reals, fakes) / (m * n))
    return value, time.perf_counter() - started


def total(left: Any, right: Any) -> Any:  # noqa: ANN401 - tensors
    """Sum the kernel over all pairs."""
    return sum(
        ((left[start : start + ROWS] @ right.T / left.shape[1] + 1) ** 3).sum() for start in range(0, len(left), ROWS)
    )


def own(points: Any) -> Any:  # noqa: ANN401 - tensors
    """Sum the kernel of each point with itself."""
    return ((points.square().sum(dim=1) / points.shape[1] + 1) ** 3).sum()
