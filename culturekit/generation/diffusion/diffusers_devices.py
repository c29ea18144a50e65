"""Where lanes work: every GPU with weights of its own, or the CPU with one thread for each lane's arithmetic."""

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from culturekit.errors import UsageError
from culturekit.generation.diffusion.diffusers_options import Options
from culturekit.torch_places import chosen_device, chosen_dtype

__all__ = ["Place", "free_memory", "kept_threads", "places_of"]

BATCH_ON_GPU = 4


@dataclass(frozen=True, slots=True)
class Place:
    """A device, what it is called in tables, and in which numbers it computes.

    On a CPU `threads` is 1: with another number torch adds up in another order, and the same seed gives other bits.
    """

    device: Any
    dtype: Any
    name: str
    threads: int

    @property
    def usual_batch(self) -> int:
        """How many images are made at once unless told."""
        return 1 if self.threads else BATCH_ON_GPU


def places_of(options: Options) -> list[Place]:
    """List the devices that a SPEC asks for."""
    torch = importlib.import_module("torch")
    names = options.device.split(",")
    if len(names) > 1 and not {"auto", "cuda"}.isdisjoint(names):
        raise UsageError("a list of devices names each", expected="such as cuda:0,cuda:1", found=options.device)
    devices = [chosen_device(name) for name in names]
    if options.device in {"auto", "cuda"} and devices[0].type == "cuda":
        devices = [torch.device("cuda", n) for n in range(torch.cuda.device_count())]
    return [
        Place(
            device,
            chosen_dtype(options.dtype, device),
            torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            1 if device.type == "cpu" else 0,
        )
        for device in devices
    ]


def free_memory() -> None:
    """Give back what nobody holds any more; pipelines hold themselves in circles."""
    torch = importlib.import_module("torch")
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def kept_threads() -> Iterator[None]:
    """Give torch back as many threads as it had."""
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
