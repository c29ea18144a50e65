"""Where the numbers come from: the stages of a run, what they cost, and what its parts say must be known about them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.core import roles
from culturekit.core.digests import JOURNAL, Manifest
from culturekit.core.errors import counted, counted_reason
from culturekit.core.inputs import manifest_of
from culturekit.core.roles import Role
from culturekit.core.schemas import JUDGMENTS, QUALITY
from culturekit.core.stage import NOT_COMPARABLE
from culturekit.generation.comparability import Traits, traits_of
from culturekit.llm.journal import FILE
from culturekit.llm.ledger import JournalPlace, read_ledger
from culturekit.metrics.corrected.audit_gates import MARKS
from culturekit.report.run_folders import RunFolders, with_params
from culturekit.scores.corrected import KERNELS, NOT_CORRECTED, UNRATED

# How the images of each model were made, side by side: what differs besides the model.

ROWS = (
    ("rewriter", "prompts rewritten"),
    ("seeds", "seeds honoured"),
    ("sizes", "sizes in pixels"),
    ("negatives", "negative prompts without effect"),
    ("cut", "prompts longer than an encoder reads"),
    ("left_out", "images that were not made"),
    ("asked", "asked"),
)
"""What is told of each model, in the order in which it stands."""

NOT_KNOWN = "not known"

MADE_ALIKE = ("rewriter", "seeds", "sizes", "negatives", "cut")
"""Of these a difference is marked: a score may rest on it."""


@dataclass(frozen=True, slots=True)
class MakingLine:
    """One thing that is told of every model; `apart` where it is not the same for all and scores may rest on it."""

    what: str
    cells: tuple[str, ...]
    apart: bool


@dataclass(frozen=True, slots=True)
class Making:
    """How images were made: a column for each model, with what answered, and a line for each thing told."""

    models: tuple[str, ...]
    backends: tuple[str, ...]
    versions: tuple[tuple[str, ...], ...]
    lines: tuple[MakingLine, ...]
    unknown: tuple[str, ...] = ()  # what nothing is known of for any model

    @property
    def apart(self) -> bool:
        """Tell whether anything is not the same for all."""
        return any(line.apart for line in self.lines)


def making_in(run: RunFolders, models: Sequence[str]) -> Making | None:
    """Read how the images of each model were made; None where all are simulated."""
    if set(models) <= set(run.truthful):
        return None
    making, versions = [], []
    for model in models:
        images = run.images(model)
        traits = traits_of(images)
        making.append(facts(images, traits))
        versions.append(tuple(traits.versions))
    every = tuple(lines_of(making))
    lines = tuple(line for line in every if set(line.cells) != {NOT_KNOWN})
    unknown = tuple(line.what for line in every if line not in lines)
    backends = tuple(str(run.manifest(roles.IMAGES, model).options["backend"]) for model in models)
    return Making(tuple(models), backends, tuple(versions), lines, unknown)


def lines_of(making: Sequence[Mapping[str, str]]) -> Iterator[MakingLine]:
    """Turn what is told of each model into lines; one that says nothing of any model is left away."""
    for key, what in ROWS:
        cells = tuple(facts[key] for facts in making)
        if any(cells):
            yield MakingLine(what, cells, key in MADE_ALIKE and len(set(cells)) > 1)


def facts(images: pl.DataFrame, traits: Traits) -> dict[str, str]:
    """Say in words how the images of one model were made."""
    failed = images.filter(pl.col("status") != "ok")["status"].value_counts(sort=False).sort("status")
    days = images["requested_at"].drop_nulls().dt.date()
    first, last = (str(days.min()), str(days.max())) if days.len() else ("", "")
    return {
        "rewriter": shown(traits.rewriter, {"on": "yes", "off": "no", "unknown": NOT_KNOWN}),
        "seeds": shown(traits.seeds, {"yes": "yes", "no": "no", "unknown": NOT_KNOWN}),
        "sizes": shown(traits.sizes, {}),
        "negatives": f"{traits.unsent_negatives:,}" if traits.unsent_negatives else "",
        "cut": f"{traits.cut_prompts:,}" if traits.cut_prompts else "",
        "left_out": ", ".join(f"{count:,} {status}" for status, count in failed.iter_rows()),
        "asked": first if first == last else f"{first} to {last}",
    }


def shown(counts: Mapping[str, int], words: Mapping[str, str]) -> str:
    """Write the values of a trait, the most frequent first, with their counts where there are several."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) == 1:
        return words.get(ordered[0][0], ordered[0][0])
    first = [f"{words.get(value, value)} ({count:,})" for value, count in ordered[:4]]
    return ", ".join(first) + (f" and {len(ordered) - 4} more" if len(ordered) > 4 else "")


# What is missing from the numbers of a run: images, prompts, labels, ratings and answers, counted for each model.

READ = ("ok", "repaired")


@dataclass(frozen=True, slots=True)
class MissingLine:
    """What of one model is missing."""

    model: str  # its name
    asked: int  # images asked for
    not_made: Mapping[str, int]  # those of them that are not there, by status
    prompts: int  # that enter its diversity over all prompts: there is a full batch of each
    prompts_asked: int  # of which any model has an image
    unmapped: int  # images made that were mapped to nothing
    abstained: int  # images of which the mapping is not sure
    unrated: int  # images made without a quality
    batchless: int  # images mapped that enter no diversity, since their batch is incomplete
    # images about which the tagger gave no answer that could be read; None where nothing was tagged
    unanswered: int | None

    @property
    def whole(self) -> bool:
        """Tell whether nothing is missing."""
        counts = (self.unmapped, self.abstained, self.unrated, self.batchless, self.unanswered or 0)
        return not self.not_made and not any(counts) and self.prompts == self.prompts_asked


def missing_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[MissingLine]:
    """Count what is missing of each model; nothing where nothing is missing of any."""
    images = {model: run.images(model) for model in run.models}
    asked = {prompt for table in images.values() for prompt in table["prompt_id"].drop_nulls()}
    known = run.values().filter(metric="vs", labels="mapped").drop_nulls(["prompt_id", "value"])
    scored = dict(known.group_by("model").agg(pl.col("prompt_id").n_unique()).iter_rows())
    lines = [line_of(run, model, table, (scored.get(model, 0), len(asked)), scores) for model, table in images.items()]
    if not all(line.whole for line in lines):
        yield from lines


def line_of(
    run: RunFolders, model: str, images: pl.DataFrame, prompts: tuple[int, int], scores: pl.DataFrame
) -> MissingLine:
    """Count what is missing of one model; `prompts` are those that are scored, and all."""
    ok = images.filter(pl.col("status") == "ok")
    lost = images.filter(pl.col("status") != "ok").group_by("status").len().sort("status")
    nearest = run.matches(model).filter(pl.col("rank") == 1)
    rated = run.read(roles.QUALITY, QUALITY, model)
    tags = run.read(roles.TAGS, JUDGMENTS, model)
    return MissingLine(
        model, images.height, dict(lost.iter_rows()), *prompts, ok.join(nearest, on="image_id", how="anti").height,
        nearest.filter("abstained").height, 0 if rated is None else ok.join(rated, on="image_id", how="anti").height,
        left_out_of_batches(scores.filter(pl.col("model") == model)),
        None if tags is None else tags.filter(~pl.col("outcome").is_in(READ)).height,
    )  # fmt: skip


def left_out_of_batches(scores: pl.DataFrame) -> int:
    """Add up over concepts the mapped images that entered no diversity."""
    about = scores.filter(pl.col("metric") == "vs", pl.col("labels") == "mapped", pl.col("country").is_null())
    counted = with_params(about, left="images_left_out").with_columns(pl.col("left").cast(pl.Int64))
    parts = counted.filter(pl.col("concept").is_not_null())
    chosen = parts if parts.height else counted
    return int(chosen.group_by("concept").agg(pl.col("left").max())["left"].sum())


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
        folder=name, stage=manifest.stage, sha256=manifest.sha256,
        inputs={role: record.sha256 for role, record in manifest.inputs.items()}, counts=manifest.counts,
        drops=manifest.drops, seeds=manifest.seeds,
    )  # fmt: skip


def parties(run: RunFolders) -> Iterator[Party]:
    """List who made, mapped and judged, as the manifests name them, each once."""
    found = [
        party(run.found(roles.FILTER), "cultural space", "judge"),
        party(run.found(roles.INDEX), "mapping", "encoder"),
    ]
    for model in run.models:
        options = run.manifest(roles.IMAGES, model).options
        stated = {key: in_words(value) for key, value in options.items() if key in MADE_WITH and value is not None}
        found.append(Party(f"images of {model}", str(options["backend"]), stated))
    found += [party(run.found(roles.QUALITY, model), "quality", "scorer") for model in run.models]
    for number, each in enumerate(found):
        if each is not None and each not in found[:number]:
            yield each


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


def people_counted(run: RunFolders) -> tuple[str, ...]:
    """Say whose answers count and whose do not, where somebody's do not or one person is left.

    What was put together last knows which flags do no harm.
    """
    manifests = [manifest_of(run.root / name) for name in run.stages]
    last = [each for each in manifests if each.stage == "annotate-aggregate"] or [
        each for each in manifests if each.stage == "annotate-import"
    ]
    return tuple(dict.fromkeys(str(each.notes["people"]) for each in last if "people" in each.notes))


def every_caveat(run: RunFolders) -> tuple[str, ...]:
    """Collect what any stage of the run says must be known about it; what several say stands once."""
    noted = dict.fromkeys(str(manifest_of(run.root / name).notes.get("caveat") or "") for name in run.stages)
    found: dict[str, None] = {}
    for caveat in noted:
        left = caveat
        for other in sorted(filter(None, noted), key=len):
            left = left if other == caveat else left.replace(other, "").strip()
        found[left] = None
    return tuple(filter(None, found))


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
    left, parts = caveat, []
    for meaning in MARKS.values():
        if meaning in left:
            left = left.replace(meaning, "").strip()
            parts.append(meaning)
    yield from (left, *parts)


def caveats(run: RunFolders) -> tuple[str, ...]:
    """Collect what the parts of the run say must be known about them."""
    manifests = [run.found(role) for role in (roles.FILTER, roles.CSPACE, roles.INDEX, roles.SCORES)]
    manifests += [run.found(role, model) for role in (roles.QUALITY, roles.AUDIT) for model in run.models]
    notes = [part for each in manifests if each is not None for part in parts_of(str(each.notes.get("caveat", "")))]
    notes += [str(each) for each in run.manifest(roles.SCORES).notes.get(NOT_COMPARABLE, ())]
    return tuple(dict.fromkeys(filter(None, notes)))
