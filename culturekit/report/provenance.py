"""Where the numbers come from: the stages of a run, and what its parts say must be known about them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from culturekit.metrics.scoring.score_corrected import NOT_CORRECTED
from culturekit.records.work import NOT_COMPARABLE
from culturekit.report.run_folders import RunFolders

__all__ = ["StageLine", "caveats", "stage_line", "withheld"]


@dataclass(frozen=True, slots=True)
class StageLine:
    """A finished stage as its manifest describes it."""

    folder: str
    stage: str
    sha256: str
    inputs: Mapping[str, str]
    counts: Mapping[str, int]
    drops: Mapping[str, int]
    seeds: Mapping[str, int]


def stage_line(run: RunFolders, name: str) -> StageLine:
    """Describe a stage by its manifest."""
    manifest = run.manifest(name)
    return StageLine(
        folder=name,
        stage=manifest.stage,
        sha256=manifest.sha256,
        inputs={role: record.sha256 for role, record in manifest.inputs.items()},
        counts=manifest.counts,
        drops=manifest.drops,
        seeds=manifest.seeds,
    )


def withheld(run: RunFolders) -> Iterator[str]:
    """Say why kernels of models and concepts were not corrected."""
    for reason, count in run.manifest("scores").drops.items():
        if reason.startswith(NOT_CORRECTED):
            yield f"{reason.removeprefix(NOT_CORRECTED)} ({count} of the models by concepts by kernels)"


def caveats(run: RunFolders) -> tuple[str, ...]:
    """Collect what the parts of the run say must be known about them."""
    stages = [name for name in run.stages if name in {"filter", "cspace", "index"}]
    stages += [f"quality-{model}" for model in run.models]
    stages += [name for model in run.models if (name := f"audit-{model}") in run.stages]
    notes = [str(run.manifest(stage).notes.get("caveat", "")) for stage in stages]
    notes += [str(each) for each in run.manifest("scores").notes.get(NOT_COMPARABLE, ())]
    return tuple(dict.fromkeys(filter(None, notes)))
