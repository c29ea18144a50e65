"""Arrays on disk: `.npy`, never pickled, there whole or not at all."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.storage.atomic import STRAY

__all__ = ["save_array"]


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array durably and in one piece."""
    temporary = path.with_name(f"{STRAY}{os.getpid()}-{path.name}")
    try:
        with temporary.open("wb") as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
