"""Arrays on disk: `.npy`, never pickled, there whole or not at all."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.storage.atomic import whole_file

__all__ = ["save_array"]


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array durably and in one piece."""
    with whole_file(path) as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)
