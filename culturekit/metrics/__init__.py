"""Every score of the field, as pure functions of arrays and labels.

Names are loaded when they are first used: importing this package loads neither scipy nor polars.
The way from tables to scores is in `culturekit.metrics.scoring`.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culturekit.metrics.catalog import CATALOG, Metric
    from culturekit.metrics.diversity.batch_diversity import vendi_batches
    from culturekit.metrics.diversity.kernel_diversity import vendi_features, vendi_kernel
    from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
    from culturekit.metrics.diversity.label_diversity import QVS, qvs, vendi
    from culturekit.metrics.statistics.intervals import Interval, interval

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
    "Interval": "statistics.intervals",
    "Metric": "catalog",
    "QVS": "diversity.label_diversity",
    "STANDARD_KERNELS": "diversity.kernels",
    "interval": "statistics.intervals",
    "qvs": "diversity.label_diversity",
    "vendi": "diversity.label_diversity",
    "vendi_batches": "diversity.batch_diversity",
    "vendi_features": "diversity.kernel_diversity",
    "vendi_kernel": "diversity.kernel_diversity",
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
