"""Arrays on disk: `.npy`, never pickled, there whole or not at all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from culturekit.core.atomic import decoding, whole_file
from culturekit.core.errors import IntegrityError

Array: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array durably and in one piece."""
    ready = np.ascontiguousarray(array)
    save_rows(path, [ready], shape=ready.shape, dtype=ready.dtype)


def load_array(path: Path, problem: str = "not an array of vectors", *, hint: str = "") -> NDArray[Any]:
    """Open an array, memory-mapped."""
    if not path.is_file():
        raise IntegrityError(problem, where=str(path), found="no such file", hint=hint)
    with decoding(path, problem, hint=hint, error=IntegrityError):
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def save_rows(path: Path, parts: Iterable[NDArray[Any]], *, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Write an array that arrives in parts, without holding it in memory: the bytes are those of `numpy.save`.

    NumPy's own writing forgets why the system refused.
    """
    if np.dtype(dtype).hasobject:
        raise TypeError("objects are not written")
    description = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    written = 0
    with whole_file(path) as file:
        np.lib.format.write_array_header_1_0(file, description)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype).reshape(-1).view(np.uint8).data)
            written += len(part)
        if written != shape[0]:
            raise ValueError(f"{shape[0]} rows were announced and {written} came")
