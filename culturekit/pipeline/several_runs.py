"""The report of several runs: their differences on common ground computed, then one page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.compare import ComparisonOptions, score_comparisons
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS
from culturekit.pipeline.steps.report_stage import folders_of
from culturekit.records.schemas import SCORES
from culturekit.records.work import Outcome, Work
from culturekit.report.run_folders import RunFolders, with_comparison
from culturekit.report.several.ground import ground_of, same_ground
from culturekit.report.several.page import collect_several, render_several
from culturekit.stages.stage import Stage
from culturekit.storage.atomic import write_atomically
from culturekit.storage.tables import write_table

__all__ = ["several_runs_stage"]

COMPARED = ("vs", "qvs")

Named = tuple[str, RunFolders]


def several_runs_stage(roots: Sequence[Path], *, name: str = "report") -> Stage:
    """Write one page about several runs."""
    runs = list(named(roots))
    return Stage(
        name,
        "report-runs",
        1,
        lambda work: write_page(work, runs),
        {f"{run_name}/{stage}": run.root / stage for run_name, run in runs for stage in run.stages},
        {"runs": [{"run": run_name, "models": list(run.models)} for run_name, run in runs]},
        packages=("jinja2", "numpy", "polars", "scipy"),
    )


def named(roots: Sequence[Path]) -> Iterator[Named]:
    """Name each run after its folder; folders of the same name are numbered."""
    seen: dict[str, int] = {}
    places: set[Path] = set()
    for root in roots:
        place = root.resolve()
        if place in places:
            raise UsageError("the same run is named twice", where=str(root), hint="Name each run once.")
        places.add(place)
        name = place.name
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name}-{seen[name]}"), folders_of(root)


def write_page(work: Work, runs: Sequence[Named]) -> Outcome:
    """Compare models across runs where they stand on the same ground, and write the page."""
    grounds = [ground_of(run, name) for name, run in runs]
    groups = same_ground(grounds)
    work.progress.begin(len(groups), "groups of runs")
    found = []
    for group in groups:
        found += list(differences([runs[number] for number in group]))
        work.progress.advance(1)
    scores = pl.concat(found).sort(SCORES.key, maintain_order=True) if found else None
    if scores is not None:
        write_table(work.out, SCORES, scores)
    compared = [tuple(runs[number][0] for number in group) for group in groups]
    data = collect_several(runs, None if scores is None else with_comparison(scores), compared)
    page = render_several(data).encode("utf-8")
    write_atomically(work.out / "report.html", page)
    models = sum(len(run.models) for _, run in runs)
    return Outcome({"runs": len(runs), "models": models, "differences": len(data.differences), "bytes": len(page)})


def differences(runs: Sequence[Named]) -> Iterator[pl.DataFrame]:
    """Compare every two models of different runs on the prompts that both answered."""
    run_of: dict[str, str] = {}
    parts = []
    for name, run in runs:
        for model in run.models:
            run_of[f"{model} ({name})"] = name
        parts.append(headline_values(run).with_columns(pl.col("model") + f" ({name})"))
    values = pl.concat(parts)
    common = values.group_by("prompt_id").agg(pl.col("model").n_unique()).filter(pl.col("model") > 1).height
    if not common:
        return
    options = ComparisonOptions(target="population" if common >= FEWEST_PROMPTS else "these")
    try:
        found = score_comparisons(values, options=options).scores
    except UsageError:  # no two models share a prompt
        return
    sides = pl.Struct({"a": pl.String, "b": pl.String})
    across = found.with_columns(s=pl.col("params").str.json_decode(sides)).filter(
        pl.col("s").struct.field("a").replace_strict(run_of) != pl.col("s").struct.field("b").replace_strict(run_of)
    )
    if across.height:
        yield across.drop("s")


def headline_values(run: RunFolders) -> pl.DataFrame:
    """Take the values behind the headline of each model: over all concepts, or of the only one."""
    own = run.values().filter(
        pl.col("metric").is_in(COMPARED),
        pl.col("model").is_in(run.models),
        pl.col("country").is_null(),
        kernel=run.kernel,
        labels="mapped",
    )
    together = own.filter(pl.col("concept").is_null())
    return (together if together.height else own).drop("kernel", "labels")
