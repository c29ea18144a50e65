"""Weights of LPIPS with an AlexNet of the real widths, drawn at random, in a file that `lpips:FILE` takes."""

from pathlib import Path
from typing import Any

__all__ = ["save_alexnet"]

SHAPES = {0: (64, 3, 11, 11), 3: (192, 64, 5, 5), 6: (384, 192, 3, 3), 8: (256, 384, 3, 3), 10: (256, 256, 3, 3)}


def save_alexnet(path: Path, *, seed: int = 0) -> Path:
    """Draw five convolutions and the weight of each of their channels."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    state: dict[str, Any] = {}
    for place, (number, shape) in enumerate(SHAPES.items()):
        scale = (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        state[f"net.slice{place + 1}.{number}.weight"] = torch.randn(shape, generator=generator) * scale
        state[f"net.slice{place + 1}.{number}.bias"] = torch.randn(shape[0], generator=generator) * 0.01
        state[f"lin{place}.model.1.weight"] = torch.rand((1, shape[0], 1, 1), generator=generator)
    save_file(state, path)
    return path
