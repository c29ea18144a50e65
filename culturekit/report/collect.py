"""From a finished run to the data of its report; scores are looked up, never computed."""

from collections.abc import Iterator, Sequence

import polars as pl

from culturekit.metrics.diversity.kernels import STANDARD_KERNELS
from culturekit.metrics.scoring.score_corrected import NOT_CORRECTED
from culturekit.report.by_prompt import prompt_lines
from culturekit.report.countries import shares_in
from culturekit.report.data import KernelTable, ModelLine, ReportData, StageLine
from culturekit.report.differences import difference_lines
from culturekit.report.figures import figure
from culturekit.report.run_folders import RunFolders
from culturekit.report.shots import collect_shots
from culturekit.report.trust import limits_of, trust_in
from culturekit.report.verdict import verdict_on
from culturekit.version import VERSION

__all__ = ["HEADLINE_KERNEL", "collect"]

HEADLINE_KERNEL = "country"
LABELS = ("mapped", "corrected", "truth")
"""The kinds of labels, in the order in which their scores stand."""

TITLES = {"vs": "Diversity VS/8", "qvs": "Quality times diversity, qVS"}


def collect(run: RunFolders) -> ReportData:
    """Collect everything the page shows."""
    scores = run.scores()
    models = tuple(sorted(model_lines(run, scores), key=lambda line: -line.mapped.value))
    thumbnails: dict[str, str] = {}
    shots = tuple(collect_shots(run, thumbnails))
    return ReportData(
        title="How diverse are the cultures these models show?",
        question=f"Which of these {in_words(len(models))} models is lying?",
        verdict=verdict_on(models, floor=run.floor()),
        models=models,
        kernel=HEADLINE_KERNEL,
        tables=tuple(kernel_tables(scores, [line.model for line in models])),
        shots=shots,
        caveats=caveats(run),
        stages=tuple(stage_line(run, name) for name in run.stage_names()),
        versions={"culturekit": VERSION, **run.manifest("scores").packages},
        thumbnails=dict(sorted(thumbnails.items())),
        withheld=tuple(withheld(run)),
        trust=trust_in(run, scores),
        shares=shares_in(run, [line.model for line in models]),
        prompts=tuple(prompt_lines(run, [line.model for line in models], kernel=HEADLINE_KERNEL)),
        differences=tuple(difference_lines(run, kernel=HEADLINE_KERNEL)),
    )


def in_words(number: int) -> str:
    """Write a small number as a word."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if number < len(words) else str(number)


def model_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[ModelLine]:
    """Give the headline of each model, over all its prompts."""
    for model in run.models:
        about = scores.filter(pl.col("model") == model)
        concept = None if about["concept"].null_count() else about["concept"][0]
        overall = about.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))
        vs = overall.filter(pl.col("metric") == "vs", pl.col("kernel") == HEADLINE_KERNEL)
        mapped = figure(vs, labels="mapped")
        if mapped is None:
            continue
        truth = run.manifest(f"truth-{model}").counts if model in run.truthful else {}
        yield ModelLine(
            model=model,
            backend=str(run.manifest(f"images-{model}").options["backend"]),
            images=run.manifest(f"images-{model}").counts["ok"],
            mapped=mapped,
            corrected=figure(vs, labels="corrected"),
            truth=figure(vs, labels="truth") if model in run.truthful else None,
            quality=figure(overall.filter(pl.col("metric") == "quality"), labels="mapped"),
            culture_free=truth.get("culture_free"),
            similarity=run.manifest(f"matches-{model}").notes["similarity"],
        )


def kernel_tables(scores: pl.DataFrame, models: Sequence[str]) -> Iterator[KernelTable]:
    """Give the tables of models by kernels, for each concept and metric."""
    kernels = [kernel for kernel in STANDARD_KERNELS if kernel in set(scores["kernel"].drop_nulls())]
    labels = [label for label in LABELS if label in set(scores["labels"].drop_nulls())]
    for concept in scores["concept"].drop_nulls().unique().sort():
        for metric in ("qvs", "vs"):
            about = scores.filter(pl.col("concept") == concept, pl.col("metric") == metric)
            rows = []
            for model in models:
                own = about.filter(pl.col("model") == model)
                cells = [tuple(figure(own, kernel=kernel, labels=label) for label in labels) for kernel in kernels]
                if all(cell[0] is not None for cell in cells):
                    rows.append((model, tuple(cells)))
            if rows:
                limits = tuple(limits_of(about, kernels))
                yield KernelTable(concept, metric, TITLES[metric], tuple(kernels), tuple(labels), tuple(rows), limits)


def withheld(run: RunFolders) -> Iterator[str]:
    """Say why kernels of models and concepts were not corrected."""
    for reason, count in run.manifest("scores").drops.items():
        if reason.startswith(NOT_CORRECTED):
            yield f"{reason.removeprefix(NOT_CORRECTED)} ({count} of the models by concepts by kernels)"


def caveats(run: RunFolders) -> tuple[str, ...]:
    """Collect what the parts of the run say must be known about them."""
    stages = ["filter", "index", *(f"quality-{model}" for model in run.models)]
    stages += [f"audit-{model}" for model in run.models if run.audited]
    notes = [str(run.manifest(stage).notes.get("caveat", "")) for stage in stages]
    notes += [str(each) for each in run.manifest("scores").notes.get("not_comparable", ())]
    return tuple(dict.fromkeys(filter(None, notes)))


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
