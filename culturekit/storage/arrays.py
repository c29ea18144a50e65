"""Arrays on disk: `.npy`, never pickled, there whole or not at all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.storage.atomic import whole_file

__all__ = ["save_array", "save_rows"]


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array durably and in one piece."""
    with whole_file(path) as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)


def save_rows(path: Path, parts: Iterable[NDArray[Any]], *, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    """Write an array that arrives in parts, without holding it in memory: the bytes are those of `save_array`."""
    description = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    written = 0
    with whole_file(path) as file:
        np.lib.format.write_array_header_1_0(file, description)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype).data)
            written += len(part)
        if written != shape[0]:
            raise ValueError(f"{shape[0]} rows were announced and {written} came")
