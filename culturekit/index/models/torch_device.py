"""Where a model runs and in which numbers: the device, its precision, the same bits each time, batches that fit."""

import importlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.core.torch_places import Precision, same_bits
from culturekit.index.encoder import Vectors

BATCH_ON_CPU, BATCH_ON_GPU = 16, 256
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """How a model is run.

    Attributes:
        device: `auto`, `cpu`, `mps`, `cuda` or `cuda:N`.
        dtype: The numbers it is computed in; `auto` is float32 on a CPU, and bfloat16 or float16 on a GPU.
        batch: Items computed at once; 0 chooses by device.
        revision: Branch, tag or commit, of a hub id.
    """

    device: str = "auto"
    dtype: Precision = "auto"
    batch: Annotated[int, msgspec.Meta(ge=0, le=65536)] = 0
    revision: str = ""


def usual_batch(options: TorchOptions, device: Any) -> int:  # noqa: ANN401 - a torch.device
    """Give how many are encoded at once: as told, or as many as a device is usually quickest with."""
    return options.batch or (BATCH_ON_CPU if device.type == "cpu" else BATCH_ON_GPU)


class Batches:
    """Runs a model over batches that are all of one size, and of half of it when the device's memory is full.

    The last batch is filled up: how the numbers of a row are summed depends on how many rows there are, so that only
    batches of one size give a picture the same bits whatever it is encoded with.
    """

    def __init__(self, size: int) -> None:
        """Take how many to encode at once."""
        self.size = size

    def run(self, encode: Callable[[Sequence[_Item]], Any], items: Sequence[_Item], *, dim: int) -> Vectors:
        """Encode items of one shape, in their order: (n, dim).

        `encode` gives an array, or a tensor: then a GPU still computes it while the next batch is laid ready.
        """
        vectors = np.empty((len(items), dim), np.float32)
        start, computing = 0, None
        while start < len(items):
            batch = items[start : start + self.size]
            encoded = self.unless_full(encode, [*batch, *([batch[-1]] * (self.size - len(batch)))])
            if computing is not None:
                _keep(vectors, *computing)
            computing = None if encoded is None else (start, start + len(batch), encoded)
            start += 0 if encoded is None else len(batch)
        if computing is not None:
            _keep(vectors, *computing)
        return vectors

    def unless_full(self, encode: Callable[[Sequence[_Item]], Any], batch: Sequence[_Item]) -> Any:  # noqa: ANN401
        """Encode one batch; None when it did not fit, and batches are half as large from now on."""
        torch = importlib.import_module("torch")
        try:
            with same_bits():
                return encode(batch)
        except torch.OutOfMemoryError as error:
            if self.size == 1:
                raise UsageError(
                    "one picture or text at a time is too much for the memory of the device",
                    found=str(error).partition("\n")[0],
                    hint="Choose a smaller model, dtype=bfloat16, or device=cpu.",
                ) from None
        self.size = max(1, self.size // 2)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None


def token_vectors(
    groups: Iterable[tuple[Sequence[int], Sequence[NDArray[np.int64]]]],
    batches: Batches,
    encode: Callable[[Sequence[NDArray[np.int64]]], Any],
    special: Collection[int],
) -> list[Vectors]:
    """Give the vectors of each text's tokens, in the order of the texts, but for those that mark beginning and end.

    Args:
        groups: places of texts, and their tokens: the first row are ids, the second, where there is one, the mask.
        batches: how many texts are encoded at once.
        encode: gives a vector for each token of a batch.
        special: ids of tokens that are left out, unless a text has no other.
    """
    found: dict[int, Vectors] = {}
    for places, rows in groups:
        start = 0
        while start < len(rows):
            batch = rows[start : start + batches.size]
            states = batches.unless_full(encode, [*batch, *([batch[-1]] * (batches.size - len(batch)))])
            if states is None:
                continue
            for number, row, state in zip(places[start:], batch, states.float().cpu().numpy(), strict=False):
                there = row[1].astype(bool) if len(row) > 1 else np.ones(len(row[0]), bool)
                is_word = there & ~np.isin(row[0], list(special))
                found[number] = np.asarray(state[is_word if is_word.any() else there], np.float32)
            start += len(batch)
    return [found[number] for number in sorted(found)]


def _keep(vectors: Vectors, start: int, stop: int, encoded: Any) -> None:  # noqa: ANN401 - an array or a tensor
    """Put what a batch gave into its rows; what filled the batch up is left out."""
    array = encoded if isinstance(encoded, np.ndarray) else encoded.float().cpu().numpy()
    vectors[start:stop] = array[: stop - start]


def on_device(arrays: Sequence[NDArray[Any]], device: Any) -> Any:  # noqa: ANN401 - torch types
    """Stack arrays of one shape into one tensor on a device.

    On its way to a GPU a batch lies in memory that the GPU reads on its own, so that nobody waits for the copy.
    """
    torch = importlib.import_module("torch")
    if device.type != "cuda":
        return torch.as_tensor(np.stack(arrays), device=device)
    kind = torch.from_numpy(np.empty(0, arrays[0].dtype)).dtype
    staged = torch.empty((len(arrays), *arrays[0].shape), dtype=kind, pin_memory=True)
    np.stack(arrays, out=staged.numpy())
    return staged.to(device, non_blocking=True)
