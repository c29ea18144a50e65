"""culturekit measures how well text-to-image models know the world's cultures.

The names below are the library's front door; each is imported when it is first used, so that
`import culturekit as ck` stays light. What the command line can do, these can do.
"""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from culturekit.core.errors import CultureKitError
from culturekit.version import VERSION as __version__  # noqa: N811 - the name that everybody looks for

if TYPE_CHECKING:
    from culturekit.core.engines import LocalEngine
    from culturekit.core.run import Run, run_stage
    from culturekit.core.schemas import TABLES
    from culturekit.core.stage import Stage
    from culturekit.core.tables import read_table
    from culturekit.index.search.search import searcher
    from culturekit.metrics import (
        frechet_distance,
        interval,
        kernel_distance,
        prdc,
        qvs,
        vendi,
        vendi_batches,
        vendi_corrected,
    )
    from culturekit.recipes.cube.keys import load_recipe
    from culturekit.recipes.run_recipe import run_recipe
    from culturekit.report import chart_pictures as plot
    from culturekit.scores.compare import compare_runs
    from culturekit.trail.walk_back import find_score, walk_back

__all__ = [
    "TABLES",
    "CultureKitError",
    "LocalEngine",
    "Run",
    "Stage",
    "__version__",
    "compare_runs",
    "find_score",
    "frechet_distance",
    "interval",
    "kernel_distance",
    "load_recipe",
    "plot",
    "prdc",
    "qvs",
    "read_table",
    "run_recipe",
    "run_stage",
    "searcher",
    "vendi",
    "vendi_batches",
    "vendi_corrected",
    "walk_back",
]

HOMES = {
    "TABLES": "culturekit.core.schemas",
    "compare_runs": "culturekit.scores.compare",
    "plot": "culturekit.report.chart_pictures",
    "LocalEngine": "culturekit.core.engines",
    "find_score": "culturekit.trail.walk_back",
    "Run": "culturekit.core.run",
    "Stage": "culturekit.core.stage",
    "frechet_distance": "culturekit.metrics",
    "interval": "culturekit.metrics",
    "kernel_distance": "culturekit.metrics",
    "load_recipe": "culturekit.recipes.cube.keys",
    "prdc": "culturekit.metrics",
    "qvs": "culturekit.metrics",
    "read_table": "culturekit.core.tables",
    "run_recipe": "culturekit.recipes.run_recipe",
    "run_stage": "culturekit.core.run",
    "searcher": "culturekit.index.search.search",
    "vendi": "culturekit.metrics",
    "vendi_batches": "culturekit.metrics",
    "vendi_corrected": "culturekit.metrics",
    "walk_back": "culturekit.trail.walk_back",
}
"""Where each name that is not imported at once lives."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has its own type, stated above
    """Import a public name when it is first asked for."""
    if name not in HOMES:
        raise AttributeError(f"module 'culturekit' has no attribute {name!r}")
    home = import_module(HOMES[name])
    if name == "plot":
        return home
    value = getattr(home, name)
    if isinstance(value, FunctionType) and home.__name__ != "culturekit.metrics":
        from culturekit.metrics.arguments import front

        value = front(value, __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
