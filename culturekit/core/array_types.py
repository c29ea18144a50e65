"""Arrays of numbers, by what they hold."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
