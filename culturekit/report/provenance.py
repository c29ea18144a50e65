"""Where the numbers come from: the stages of a run, what they cost, and what its parts say must be known about them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from culturekit.counting import counted, counted_reason
from culturekit.families.corrected import KERNELS, NOT_CORRECTED, UNRATED
from culturekit.llm.journal_file import FILE
from culturekit.llm.ledger import JournalPlace, read_ledger
from culturekit.metrics.corrected.audit_marks import MARKS
from culturekit.records.work import NOT_COMPARABLE
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.storage.manifest import JOURNAL, Manifest
from culturekit.trail.upstream import manifest_of

__all__ = [
    "Paid", "Party", "StageLine", "caveats", "every_caveat", "not_put_right", "paid_lines", "parties", "stage_line",
    "withheld",
]  # fmt: skip


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
    manifest = manifest_of(run.root / name)
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
    found = [
        party(run.found(roles.FILTER), "cultural space", "judge"),
        party(run.found(roles.INDEX), "mapping", "encoder"),
    ]
    for model in run.models:
        options = run.manifest(roles.IMAGES, model).options
        told = {key: in_words(value) for key, value in options.items() if key in MADE_WITH and value is not None}
        found.append(Party(f"images of {model}", str(options["backend"]), told))
    found += [party(run.found(roles.QUALITY, model), "quality", "scorer") for model in run.models]
    seen: list[Party] = []
    for each in found:
        if each is not None and each not in seen:
            seen.append(each)
    yield from seen


MADE_WITH = ("kinds", "repeats", "slots", "size", "format")


def in_words(value: object) -> str:
    """Write an option; several values one after the other."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def party(manifest: Manifest | None, role: str, key: str) -> Party | None:
    """Read from the manifest of a stage who worked there; None where it does not say."""
    notes = {} if manifest is None else manifest.notes
    if key not in notes:
        return None
    identity = notes.get("identity") or notes.get("parameters") or {}
    return Party(role, str(notes[key]), {name: str(value) for name, value in identity.items() if name != "name"})


@dataclass(frozen=True, slots=True)
class Paid:
    """US dollars that a stage paid for the answers of a model."""

    stage: str
    model: str
    usd: float


def paid_lines(run: RunFolders) -> Iterator[Paid]:
    """Give what each finished stage paid to each model; what was free is left out."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for stage in run.stages:
        path = run.root / stage / JOURNAL / FILE
        if path.is_file():
            for line in read_ledger([JournalPlace(stage, path, finished=True)]).lines:
                sums[stage, line.model] += line.usd
    for (stage, model), usd in sums.items():
        if usd:
            yield Paid(stage, model, usd)


def withheld(run: RunFolders) -> Iterator[str]:
    """Say why kernels of models and concepts were not corrected."""
    for reason, count in run.manifest(roles.SCORES).drops.items():
        if reason.startswith(NOT_CORRECTED):
            yield f"{reason.removeprefix(NOT_CORRECTED)}: {counted(count, KERNELS)}"
        elif reason == UNRATED:
            yield f"{reason}: {counted(count, KERNELS)}"


def every_caveat(run: RunFolders) -> tuple[str, ...]:
    """Collect what any stage of the run says must be known about it; what several say stands once."""
    noted = dict.fromkeys(str(manifest_of(run.root / name).notes.get("caveat") or "") for name in run.stages)
    told: dict[str, None] = {}
    for caveat in noted:
        left = caveat
        for other in sorted(filter(None, noted), key=len):
            left = left if other == caveat else left.replace(other, "").strip()
        told[left] = None
    return tuple(filter(None, told))


def not_put_right(run: RunFolders, role: Role, variants: Mapping[str, str]) -> Iterator[str]:
    """Say by the names of variants which scores people did not put right, and what of their answers did not count."""
    found: dict[str, list[str]] = defaultdict(list)
    for variant, name in variants.items():
        if run.has(role, variant=variant):
            for why, count in run.manifest(role, variant=variant).drops.items():
                found[counted_reason(count, why)].append(name)
    yield from (f"{', '.join(names)}: {left_out}." for left_out, names in found.items())


def parts_of(caveat: str) -> Iterator[str]:
    """Divide a caveat where it begins to say what a mark of corrected scores means: each part is read by itself."""
    left, said = caveat, []
    for meaning in MARKS.values():
        if meaning in left:
            left = left.replace(meaning, "").strip()
            said.append(meaning)
    yield from (left, *said)


def caveats(run: RunFolders) -> tuple[str, ...]:
    """Collect what the parts of the run say must be known about them."""
    manifests = [run.found(role) for role in (roles.FILTER, roles.CSPACE, roles.INDEX, roles.SCORES)]
    manifests += [run.found(role, model) for role in (roles.QUALITY, roles.AUDIT) for model in run.models]
    notes = [part for each in manifests if each is not None for part in parts_of(str(each.notes.get("caveat", "")))]
    notes += [str(each) for each in run.manifest(roles.SCORES).notes.get(NOT_COMPARABLE, ())]
    return tuple(dict.fromkeys(filter(None, notes)))
