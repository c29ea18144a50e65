"""Where the numbers come from: the stages of a run, and what its parts say must be known about them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from culturekit.families.corrected import NOT_CORRECTED, counted_kernels
from culturekit.records.work import NOT_COMPARABLE
from culturekit.report.run_folders import RunFolders

__all__ = ["Party", "StageLine", "caveats", "parties", "stage_line", "withheld"]


@dataclass(frozen=True, slots=True)
class Party:
    """Something that made, mapped or judged: what for, its name, and what tells it from others of that name."""

    role: str
    name: str
    facts: Mapping[str, str]


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


def parties(run: RunFolders) -> Iterator[Party]:
    """List who made, mapped and judged, as the manifests name them, each once."""
    found = [party(run, "cultural space", "filter", "judge"), party(run, "mapping", "index", "encoder")]
    for model in run.models:
        options = run.manifest(f"images-{model}").options
        told = {key: str(value) for key, value in options.items() if key in MADE_WITH and value is not None}
        found.append(Party(f"images of {model}", str(options["backend"]), told))
    found += [party(run, "quality", f"quality-{model}", "scorer") for model in run.models]
    seen: list[Party] = []
    for each in found:
        if each is not None and each not in seen:
            seen.append(each)
    yield from seen


MADE_WITH = ("kinds", "repeats", "slots", "size", "format")


def party(run: RunFolders, role: str, stage: str, key: str) -> Party | None:
    """Read from the manifest of a stage who worked there; None where it does not say."""
    notes = run.manifest(stage).notes if stage in run.stages else {}
    if key not in notes:
        return None
    identity = notes.get("identity") or notes.get("parameters") or {}
    return Party(role, str(notes[key]), {name: str(value) for name, value in identity.items() if name != "name"})


def withheld(run: RunFolders) -> Iterator[str]:
    """Say why kernels of models and concepts were not corrected."""
    for reason, count in run.manifest("scores").drops.items():
        if reason.startswith(NOT_CORRECTED):
            yield f"{reason.removeprefix(NOT_CORRECTED)} ({counted_kernels(count)})"


def caveats(run: RunFolders) -> tuple[str, ...]:
    """Collect what the parts of the run say must be known about them."""
    stages = [name for name in run.stages if name in {"filter", "cspace", "index", "scores"}]
    stages += [f"quality-{model}" for model in run.models]
    stages += [name for model in run.models if (name := f"audit-{model}") in run.stages]
    notes = [str(run.manifest(stage).notes.get("caveat", "")) for stage in stages]
    notes += [str(each) for each in run.manifest("scores").notes.get(NOT_COMPARABLE, ())]
    return tuple(dict.fromkeys(filter(None, notes)))
