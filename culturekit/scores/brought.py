"""A family of scores that another package brings: its scores are what it declares, and depend on its state."""

import math
from collections.abc import Callable
from dataclasses import MISSING, replace
from functools import wraps
from typing import Any

from culturekit.core.declared import declared, is_group
from culturekit.core.plugins import Broken, Plugin, broken_by, hold, shown
from culturekit.core.schemas import SCORES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table
from culturekit.core.work import Outcome, Work
from culturekit.scores.catalog import Metric
from culturekit.scores.family import Family

ROUNDING = 1e-9  # By so much arithmetic may pass a bound


def held_family(family: Family, plugin: Plugin) -> Family:
    """Hold a family to what families are; its errors are those of its package."""
    with broken_by(plugin, "what it reads"), plugin.blamed(passing=(Broken,)):
        taken = [(family.stage.__name__, each) for each in declared(family.stage)]
        within = [(one.kind.__name__, each) for _, one in taken if is_group(one) for each in declared(one.kind)]
        for where, each in [*within, *taken]:
            said = each.help or each.default is not MISSING or is_group(each)
            hold(bool(said), "Annotated[..., Field(description=...)] of each", f"{where}.{each.name} without")

    @wraps(family.stage)
    def stage(*given: Any, **named: Any) -> Stage:  # noqa: ANN401 - what it reads, and its options
        with broken_by(plugin, "a stage"), plugin.blamed(passing=(Broken,)):
            made = family.stage(*given, **named)
            hold(isinstance(made, Stage), "a Stage", shown(made))
            hold(made.kind.startswith("score-"), "a kind score-NAME", repr(made.kind))
        options = {**made.options, "metric_plugin": plugin.made_of()}
        return replace(made, run=held_run(made.run, family, plugin), options=options)

    return replace(family, stage=stage)


def held_run(run: Callable[[Work], Outcome], family: Family, plugin: Plugin) -> Callable[[Work], Outcome]:
    """Run it, and look at the scores that it wrote."""
    metrics = {metric.name: metric for metric in family.metrics}

    def scored(work: Work) -> Outcome:
        with broken_by(plugin, "its stage"), plugin.blamed(passing=(Broken,)):
            outcome = run(work)
            hold(isinstance(outcome, Outcome), "an Outcome", shown(outcome))
            for row in read_table(work.out / f"{SCORES.name}.parquet", SCORES).iter_rows(named=True):
                hold_row(row, metrics)
            return outcome

    return scored


def hold_row(row: dict[str, Any], metrics: dict[str, Metric]) -> None:
    """Make sure that a score is one that was declared, in the range that was declared."""
    name, value = row["metric"], row["value"]
    hold(name in metrics, f"scores of {' or '.join(metrics)}", repr(name))
    low, high = metrics[name].low, metrics[name].high
    fits = math.isnan(value) or low - ROUNDING <= value <= high + ROUNDING
    hold(fits, f"{name} from {low:g} to {high:g}", f"{value!r}")
    limits = (row["ci_low"], row["ci_high"])
    if None not in limits:
        hold(limits[0] <= limits[1], f"an interval of {name} whose lower limit is below the upper", f"{limits}")
