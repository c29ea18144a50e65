"""Several runs on one page or as a site; differences on what they have in common are computed first."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.core.atomic import write_atomically
from culturekit.core.errors import UsageError, argument_error
from culturekit.core.schemas import SCORES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS
from culturekit.recipes.run_recipe import page_of_kind
from culturekit.report.report_stage import CUBE, folders_of, recorded
from culturekit.report.run_folders import RunFolders, plain, with_comparison
from culturekit.report.several import SeveralData, collect_several, ground_of, render_several, same_ground
from culturekit.report.site.pages import (
    STYLE,
    ScoredRun,
    SiteRun,
    every_eval_ever,
    exported,
    filed_under,
    hub_results,
    samples_of,
    scored_when,
    write_artifact_pages,
    write_model_pages,
    write_scored_runs,
)
from culturekit.report.thumbnails import copies, write_copies
from culturekit.report.write import template_text
from culturekit.scores.compare import ComparisonOptions, score_comparisons

COMPARED = ("vs", "qvs")

EEE = "every-eval-ever"

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

Named = tuple[str, RunFolders]


def several_runs_stage(roots: Sequence[Path]) -> Stage:
    """Write one page about several runs."""
    if others := {recorded(root).recipe for root in roots} - {CUBE}:
        raise UsageError(
            "runs of these recipes share no scale to compare them on", where=", ".join(map(str, roots)),
            expected=f"runs of `{CUBE}`", found=", ".join(sorted(others)),
            hint="`culturekit site RUN...` puts them side by side.",
        )  # fmt: skip
    return stage_of("report-runs", 6, list(named(roots)), write_page, {}, "report")


def site_stage(roots: Sequence[Path], dataset: str | None = None) -> Stage:
    """Write a folder of pages about runs, and their scores as leaderboards read them.

    Args:
        roots: folders of finished runs.
        dataset: on the Hub, as OWNER/NAME: the results for repositories of models name it; without it there are none.
    """
    if dataset is not None and not HUB_NAME.fullmatch(dataset):
        raise argument_error("dataset", "OWNER/NAME, as the Hub writes it", dataset)
    kinds = {recorded(root).recipe for root in roots}
    if len(kinds) > 1 and CUBE in kinds:
        raise UsageError(
            "these runs are of recipes whose pages have nothing in common", where=", ".join(map(str, roots)),
            expected=f"runs of `{CUBE}` alone, or of other recipes", found=", ".join(sorted(kinds)),
            hint="Write a site of each.",
        )  # fmt: skip
    runs, options = list(named(roots)), {"dataset": dataset}
    if kinds == {CUBE}:
        return stage_of("site", 6, runs, lambda work, runs: write_site(work, runs, dataset), options, "site")
    if dataset is not None:
        raise argument_error("dataset", f"for runs of `{CUBE}`, which have one headline score", dataset)
    return stage_of("scored-site", 7, runs, write_scored_site, options, "site")


def stage_of(
    kind: str, version: int, runs: Sequence[Named], write: Callable[[Work, Sequence[Named]], Outcome],
    options: Mapping[str, object], name: str,
) -> Stage:  # fmt: skip
    """Read everything of some runs."""
    return Stage(
        name, kind, version, lambda work: write(work, runs),
        {f"{run_name}/{stage}": run.root / stage for run_name, run in runs for stage in run.stages},
        {"runs": [{"run": run_name, "models": list(run.models)} for run_name, run in runs], **options},
        packages=("jinja2", "numpy", "pillow", "polars", "scipy"),
    )  # fmt: skip


def named(roots: Sequence[Path]) -> Iterator[Named]:
    """Name each run after its folder; folders of the same name are numbered."""
    seen: dict[str, int] = {}
    places: set[Path] = set()
    for root in roots:
        path = root.resolve()
        if path in places:
            raise UsageError("the same run is named twice", where=str(root), hint="Name each run once.")
        places.add(path)
        name = path.name
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name}-{seen[name]}"), folders_of(root)


def write_page(work: Work, runs: Sequence[Named]) -> Outcome:
    """Compare models across runs where they stand on the same ground, and write the page."""
    data = compared_runs(work, runs)
    page = render_several(data).encode("utf-8")
    write_atomically(work.out / "report.html", page)
    return Outcome({**counted(data), "bytes": len(page)})


def write_site(work: Work, runs: Sequence[Named], dataset: str | None) -> Outcome:
    """Write the pages, the small copies of pictures that they show, and the results."""
    data = compared_runs(work, runs)
    sites = [SiteRun(number, run, part) for number, ((_, run), part) in enumerate(zip(runs, data.runs, strict=True), 1)]
    pages = {(site.part.name, line.model): site.page_of(line.model) for site in sites for line in site.part.models}
    write_atomically(work.out / "index.html", render_several(data, pages).encode("utf-8"))
    write_style(work.out)
    count = write_model_pages(work.out, sites) + write_artifact_pages(work.out, sites) + 1
    wanted = []
    for site in sites:
        wanted += copies(site.run.root, site.thumbnails, work.out / site.folder)
    drops = Counter(write_copies(work, wanted))
    drops.update(write_results(work, sites, dataset))
    counts = {**counted(data), "pages": count, "thumbnails": len(wanted)}
    return Outcome(counts, +drops)


def write_scored_site(work: Work, runs: Sequence[Named]) -> Outcome:
    """Write the pages of runs whose reports are pages of sections, and the scores of their models."""
    work.progress.begin(len(runs), "runs")
    drops: Counter[str] = Counter()
    parts = []
    for number, (name, run) in enumerate(runs, 1):
        record = recorded(run.root)
        backends = {model.name: model.backend for model in record.models}
        report = page_of_kind(record.recipe)
        part = ScoredRun(number, name, run, backends, report.page_of(run), report.truths)
        for model, backend in backends.items():
            subset = part.exported(model)
            if subset.is_empty():
                drops["models without a score"] += 1
                continue
            when = max(scored_when(run, folder) for folder in subset["folder"].unique().to_list())
            result, without = every_eval_ever(run, name, model, backend, subset, when)
            drops.update(without)
            write_record(work.out / EEE, run, model, result, f"culturekit-{name}")
        parts.append(part)
    write_style(work.out)
    pages = write_scored_runs(work.out, parts, partial(work.progress.advance, 1))
    wanted = [copy for one in parts for copy in copies(one.run.root, one.page.thumbnails, work.out / one.thumbnails)]
    drops.update(write_copies(work, wanted))
    return Outcome(
        {"runs": len(parts), "models": sum(len(part.backends) for part in parts), "pages": pages}, dict(drops)
    )


def write_style(out: Path) -> None:
    """Write the style of all pages of a site."""
    style = "\n".join(template_text(name) for name in ("report.css", STYLE))
    write_atomically(out / STYLE, style.encode("utf-8"))


def write_results(work: Work, sites: Sequence[SiteRun], dataset: str | None) -> Counter[str]:
    """Write the scores of each model as others collect them; count those that have no place there."""
    drops: Counter[str] = Counter()
    for site in sites:
        for line in site.part.models:
            folder_name = f"{site.number}-{plain(line.model)}"
            part = exported(site.run, line.model)
            record, without = every_eval_ever(
                site.run, site.part.name, line.model, line.backend, part, scored_when(site.run)
            )
            drops.update(without)
            write_record(work.out / EEE, site.run, line.model, record, f"culturekit-{site.part.name}")
            if dataset is not None and (entries := hub_results(site.run, line, dataset)) is not None:
                write_below(work.out / "hub" / folder_name / ".eval_results" / "culturekit.yaml", entries)
    return drops


def write_record(folder: Path, run: RunFolders, model: str, record: dict[str, Any], collection: str) -> None:
    """Write a record of Every Eval Ever, and the samples of its scores beside it."""
    path = filed_under(record, collection)
    samples = samples_of(run, model, record, path)
    if samples:
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in samples)
        record["detailed_evaluation_results"]["checksum"] = sha256(lines).hexdigest()
        write_below(folder / record["detailed_evaluation_results"]["file_path"], lines)
    write_below(folder / path, json_text(record))


def write_below(path: Path, content: bytes) -> None:
    """Write a file, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def json_text(record: object) -> bytes:
    """Write JSON for people and machines."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def compared_runs(work: Work, runs: Sequence[Named]) -> SeveralData:
    """Compare models across runs where they stand on the same ground; differences are written as scores."""
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
    return collect_several(runs, None if scores is None else with_comparison(scores), compared)


def counted(data: SeveralData) -> dict[str, int]:
    """Count what the pages are about."""
    models = sum(len(run.models) for run in data.runs)
    return {"runs": len(data.runs), "models": models, "differences": len(data.differences)}


def differences(runs: Sequence[Named]) -> Iterator[pl.DataFrame]:
    """Compare every two models of different runs on the prompts that both answered."""
    run_of = {f"{model} ({name})": name for name, run in runs for model in run.models}
    parts = []
    for name, run in runs:  # the values behind the headline of each model: over all concepts, or of the only one
        part = run.values().filter(
            pl.col("metric").is_in(COMPARED), pl.col("model").is_in(run.models), pl.col("country").is_null(),
            kernel=run.kernel, labels="mapped",
        )  # fmt: skip
        together = part.filter(pl.col("concept").is_null())
        headline = (together if together.height else part).drop("kernel", "labels")
        parts.append(headline.with_columns(pl.col("model") + f" ({name})"))
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
