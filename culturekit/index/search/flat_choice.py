"""Which engine is the fastest here: decided by what is installed, the device and how much there is to search."""

import importlib
import sys

from culturekit.core.registry import Spec
from culturekit.index.encoder import Vectors
from culturekit.index.search.flat_numpy import NumpySearcher
from culturekit.index.search.search import Order, Searcher

WORTH_TORCH = 2**25
"""Numbers, rows times dimensions, from which on it pays to load torch and bring the vectors to bytes."""

WORTH_LOADED_TORCH = 2**24
"""The same where torch is loaded anyway."""


def torch_pays(vectors: Vectors) -> bool:
    """Tell whether torch is installed and faster than NumPy: it has a GPU, or a CPU with products of bytes."""
    if vectors.size < (WORTH_LOADED_TORCH if "torch" in sys.modules else WORTH_TORCH):
        return False
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError):  # absent, or its libraries do not load: NumPy finds the same
        return False
    if torch.cuda.is_available():
        return True
    fast: bool = importlib.import_module("culturekit.index.search.flat_torch").fast_bytes()
    return fast


def make(spec: Spec, *, vectors: Vectors, order: Order | None) -> Searcher:
    """Make the fastest searcher; FAISS never is, as measured in docs/index.md."""
    spec.refuse_options()
    if torch_pays(vectors):
        flat_torch = importlib.import_module("culturekit.index.search.flat_torch")
        made: Searcher = flat_torch.make(Spec("torch", "", {}), vectors=vectors, order=order)
        return made
    return NumpySearcher(vectors, order=order)
