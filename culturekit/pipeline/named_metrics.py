"""The families of scores that a recipe names under `metrics`, each a stage of its own."""

from collections.abc import Mapping
from typing import Any, Protocol

from culturekit.families.named_in_recipe import bound_stage
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["wire_metrics"]


class NamesMetrics(Protocol):
    """A recipe with the key `metrics`."""

    @property
    def seed(self) -> int:
        """What every draw derives its seed from."""

    @property
    def metrics(self) -> Mapping[str, Mapping[str, Any]]:
        """The families, each with its options."""


def wire_metrics(recipe: NamesMetrics, run: Run) -> None:
    """Add a stage for every family; what it reads are tables of the run, by the names of its fields."""
    tables = {
        "images": run.tables(roles.IMAGES),
        "matches": run.tables(roles.MATCHES),
        "prompts": {"prompts": run.table(roles.PROMPTS)},
        "quality": run.tables(roles.QUALITY),
        "values": {"values-0": run.table(roles.SCORES, file="values.parquet")},
    }
    for name, stated in recipe.metrics.items():
        run.add(bound_stage(name, stated, tables, seed=recipe.seed), roles.METRIC, variant=name)
