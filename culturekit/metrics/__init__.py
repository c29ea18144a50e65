"""Every score of the field, as pure functions of arrays and labels.

Names are loaded when they are first used: importing this package loads neither scipy nor polars.
The way from tables to scores is in the modules named `score_*`.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culturekit.metrics.batch_diversity import vendi_batches
    from culturekit.metrics.catalog import CATALOG, Metric
    from culturekit.metrics.diversity import QVS, qvs, vendi
    from culturekit.metrics.intervals import Interval, interval
    from culturekit.metrics.kernel_diversity import vendi_features, vendi_kernel
    from culturekit.metrics.kernels import STANDARD_KERNELS

__all__ = [
    "CATALOG",
    "QVS",
    "STANDARD_KERNELS",
    "Interval",
    "Metric",
    "interval",
    "qvs",
    "vendi",
    "vendi_batches",
    "vendi_features",
    "vendi_kernel",
]

# No module is called like a public name: its import would put the module in the name's place.
MODULES = {
    "CATALOG": "catalog",
    "Interval": "intervals",
    "Metric": "catalog",
    "QVS": "diversity",
    "STANDARD_KERNELS": "kernels",
    "interval": "intervals",
    "qvs": "diversity",
    "vendi": "diversity",
    "vendi_batches": "batch_diversity",
    "vendi_features": "kernel_diversity",
    "vendi_kernel": "kernel_diversity",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, whether loaded or not."""
    return sorted({*globals(), *__all__})
