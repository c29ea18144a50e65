"""From a finished run to its report, a page and thumbnails beside it; scores are looked up, never computed."""

import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from culturekit.core import roles
from culturekit.core.atomic import write_atomically
from culturekit.core.digests import source_hash
from culturekit.core.errors import MissingDependency, counted
from culturekit.core.schemas import DISAGREEMENTS, HUBS, RECOGNITION, SCORES
from culturekit.core.stage import Outcome, Work
from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.report.charts import TINTS, ModelLine, diversity_chart, in_order, map_of, model_lines, tint, world
from culturekit.report.countries import CountryShares, Extremes, Share, country_names, extremes_in, shares_in
from culturekit.report.differences import (
    Breakdown,
    DifferenceLine,
    KernelTable,
    Languages,
    MetricTable,
    breakdown_of,
    difference_lines,
    gap_chart,
    gaps_in,
    kernel_tables,
    languages_in,
    metric_tables,
)
from culturekit.report.faithfulness import Faithfulness, Instrument, faithfulness_in
from culturekit.report.headline import Verdict, question_about, verdict_in
from culturekit.report.people import People, correlation_chart, people_in
from culturekit.report.plots import Chart, plot
from culturekit.report.provenance import (
    Making,
    MissingLine,
    Paid,
    Party,
    StageLine,
    caveats,
    making_in,
    missing_lines,
    paid_lines,
    parties,
    stage_line,
    withheld,
)
from culturekit.report.realism import RealismTables, Variety, WithinCountries, realism_in, variety_in, within_in
from culturekit.report.run_folders import (
    FEW,
    Figure,
    Rows,
    RunFolders,
    figure,
    inert,
    inert_value,
    limits_of,
    ordinal_span,
    plain,
    rows_of,
    with_params,
)
from culturekit.report.thumbnails import (
    PROMPTS_SHOWN,
    MosaicModel,
    PromptImages,
    PromptLine,
    Shot,
    collect_shots,
    copies,
    looks_of,
    mosaic_of,
    prompt_images,
    prompt_lines,
    reference_pictures,
    write_copies,
)
from culturekit.scores.family import parsed
from culturekit.version import VERSION

# What a report says, as data: built first, tested as such, then poured into a template.


# Nearest artifacts and a vision model's tags side by side: scores, agreement, and where they part.

LEVELS = ("continent", "country", "artifact")
SIDES = ("mapped", "tagged")
PARTINGS_SHOWN = 12
TITLES = {"vs": "Diversity VS/8", "qvs": "Quality times diversity, qVS"}


@dataclass(frozen=True, slots=True)
class RouteTable:
    """One metric of one concept, None for all: models down, kernels across, for each kernel both routes."""

    concept: str | None
    title: str
    kernels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Figure | None, Figure | None], ...]], ...]


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """How far the routes agree on the images of a model and concept."""

    model: str
    concept: str | None
    # for continent, country and artifact the share of equal labels, and kappa
    levels: tuple[tuple[Figure | None, Figure | None], ...]
    # `common` images, those of each route, and what each says of the common ones, such as `no_answer_b`
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TwoRoutes:
    """What the page says of the two routes."""

    judge: str  # who tagged
    sample: int | None  # how many images of each model and concept were drawn for it, at most; None for all
    tables: tuple[RouteTable, ...]  # scores side by side
    agreement: tuple[AgreementLine, ...]  # image by image
    partings: Rows  # countries most often disagreed on: model, mapped, tagged, images, and their share
    ranking: Rows  # of the models, route against route: metric, concept, kernel, n, value (tau), stable
    left_out: Mapping[str, int]  # what did not enter, counted by reason
    caveats: tuple[str, ...]  # what the tagging says must be known

    @property
    def stable(self) -> bool | None:
        """Tell whether both routes rank the models alike everywhere; None where there are too few models."""
        return all(line.stable for line in self.ranking) if self.ranking else None


def routes_in(run: RunFolders, models: Sequence[str]) -> TwoRoutes | None:
    """Collect what a run says of its two routes; None for a run without tags."""
    scores, apart = run.numbered(roles.ROUTES), run.read(roles.ROUTES, DISAGREEMENTS)
    if scores is None or apart is None:
        return None
    rows = with_params(scores, "kernel", "labels", "level", "scorer")
    notes = [run.manifest(roles.TAGS, model).notes for model in models]
    sample = notes[0].get("sample") if notes else None
    return TwoRoutes(
        judge=", ".join(dict.fromkeys(str(note["judge"]) for note in notes)),
        sample=None if sample is None else int(sample["images"]), tables=tuple(route_tables(rows, models)),
        agreement=tuple(agreement_lines(rows, models)), partings=partings(apart, models, country_names(run)),
        ranking=rankings(scores.filter(metric="ranking_stability"), "metric", "concept", "kernel"),
        left_out=run.manifest(roles.ROUTES).drops, caveats=tuple(dict.fromkeys(str(note["caveat"]) for note in notes)),
    )  # fmt: skip


def concepts_in(rows: pl.DataFrame) -> list[str | None]:
    """List the concepts, all of them together first."""
    return rows["concept"].unique().sort(nulls_last=False).to_list()


def route_tables(rows: pl.DataFrame, models: Sequence[str]) -> Iterator[RouteTable]:
    """Give the tables of both routes' scores: qVS where quality was scored, and VS."""
    kernels = tuple(kernel for kernel in STANDARD_KERNELS if kernel in set(rows["kernel"].drop_nulls()))
    for metric in ("vs", "qvs"):
        scores = rows.filter(pl.col("metric") == metric)
        for concept in concepts_in(scores):
            about = scores.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))
            lines = []
            for model in models:
                part = about.filter(pl.col("model") == model)
                cells = tuple(
                    (figure(part, kernel=kernel, labels=SIDES[0]), figure(part, kernel=kernel, labels=SIDES[1]))
                    for kernel in kernels
                )
                if any(cell != (None, None) for cell in cells):
                    lines.append((model, cells))
            if lines:
                yield RouteTable(concept, TITLES[metric], kernels, tuple(lines))


def agreement_lines(rows: pl.DataFrame, models: Sequence[str]) -> Iterator[AgreementLine]:
    """Give the agreement of each model, over all its concepts first."""
    for model in models:
        part = rows.filter(pl.col("model") == model)
        shares = part.filter(pl.col("metric") == "route_agreement")
        kappas = part.filter(pl.col("metric") == "route_kappa")
        for concept in concepts_in(shares):
            here = pl.col("concept").eq_missing(pl.lit(concept, pl.String))
            levels = tuple(
                (figure(shares.filter(here), level=level), figure(kappas.filter(here), level=level)) for level in LEVELS
            )
            yield AgreementLine(model, concept, levels, parsed(shares.filter(here)["params"][0]))


def partings(apart: pl.DataFrame, models: Sequence[str], names: Mapping[str, str]) -> Rows:
    """Give the pairs of countries most often disagreed on, over all concepts."""
    about = apart.filter(pl.col("level") == "country", pl.col("model").is_in(list(models)))
    whole = about.filter(pl.col("concept").is_null())
    chosen = whole if whole.height else about
    first = chosen.sort(-pl.col("images").cast(pl.Int64), "model", "label_a", "label_b").head(PARTINGS_SHOWN)
    return rows_of(first.with_columns(mapped=pl.col("label_a").replace(names), tagged=pl.col("label_b").replace(names)))


def rankings(scores: pl.DataFrame, *order: str) -> Rows:
    """Read how far two ways of scoring agree on the order of the models, the worst first."""
    named = with_params(scores, "metric", "kernel", "between", "stable").with_columns(
        pl.col("kernel").fill_null(""), pl.col("stable") == "true",
        pl.col("between").str.json_decode(pl.List(pl.String)),
    )  # fmt: skip
    return rows_of(named.sort("value", *order, nulls_last=True))


HUBS_SHOWN = 5  # of each model; the table has more


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the mapping can be trusted; `why` no reference could be held out."""

    countries: Rows  # on held-out references: country (None: over all), shown, recall, mapped, precision
    hubs: Rows  # artifacts near to many images of a model: model, artifact, artifact_id, country, share, nearest
    skew: Mapping[str, float]  # of how often each artifact is a neighbour
    bounds: Rows  # how far unknown images could move a score: model, concept, worst, best, unknown, images
    stability: Rows  # of the order of the models: between, metric, concept, kernel, value (tau), stable
    why: str = ""

    @property
    def stable(self) -> bool | None:
        """Tell whether all rankings compared are stable; None where none was compared."""
        return all(line.stable for line in self.stability) if self.stability else None


def trust_in(run: RunFolders, scores: pl.DataFrame) -> Trust | None:
    """Collect what is known of the mapping; None for a run without a diagnosis."""
    recognition, hubs = run.read(roles.DIAGNOSIS, RECOGNITION), run.read(roles.DIAGNOSIS, HUBS)
    if recognition is None or hubs is None:
        return None
    stability, country = run.read(roles.STABILITY, SCORES), pl.col("country").replace(country_names(run))
    worst_first = recognition.sort("recall", "country", nulls_last=True).sort(pl.col("country").is_not_null())
    of_models = pl.DataFrame({"model": run.models}).join(hubs, on="model", maintain_order="left_right")
    return Trust(
        countries=rows_of(worst_first.with_columns(country)),
        hubs=rows_of(of_models.filter(pl.col("rank") <= HUBS_SHOWN).with_columns(country)),
        skew=run.manifest(roles.DIAGNOSIS).notes["neighbour_skew"],
        bounds=bounds(scores.filter(pl.col("model").is_in(run.models))),
        stability=() if stability is None else rankings(stability),
        why=str(run.manifest(roles.DIAGNOSIS).notes.get("no_recognition", "")),
    )


def bounds(scores: pl.DataFrame) -> Rows:
    """Pair the worst and the best case of each model and concept, at the kernel that is furthest apart."""
    worst = with_params(scores.filter(metric="vs_worst"), "unknown", "images")
    keys = ("model", "concept")
    pairs = worst.with_columns(pl.col("unknown", "images").cast(pl.Int64)).join(
        scores.filter(metric="vs_best"), on=[*keys, "kernel", "country"], nulls_equal=True, suffix="_best",
        maintain_order="left",
    )  # fmt: skip
    apart = pl.col("value_best") - pl.col("value")
    widest = pairs.filter(apart == apart.max().over(keys)).unique(keys, keep="first", maintain_order=True)
    return rows_of(widest, worst="", best="_best")


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything the page shows."""

    title: str
    question: str
    verdict: Verdict
    models: tuple[ModelLine, ...]
    kernel: str
    size: int
    confidence: str
    tables: tuple[KernelTable, ...]
    shots: tuple[Shot, ...]
    caveats: tuple[str, ...]
    stages: tuple[StageLine, ...]
    versions: Mapping[str, str]
    thumbnails: Mapping[str, str]  # name of a thumbnail to the path of the picture it is a copy of
    withheld: tuple[str, ...] = ()
    """Why kernels of models and concepts stand uncorrected although some of their images were audited."""
    trust: Trust | None = None
    shares: CountryShares | None = None
    differences: tuple[DifferenceLine, ...] = ()
    prompts: tuple[PromptLine, ...] = ()
    gaps: Rows | None = None  # none for a run that was not asked for gaps
    languages: Languages | None = None  # none where prompts are in one language
    breakdown: Breakdown | None = None
    mosaics: tuple[MosaicModel, ...] = ()
    extremes: Extremes | None = None
    prompt_images: tuple[PromptImages, ...] = ()
    parties: tuple[Party, ...] = ()
    paid: tuple[Paid, ...] = ()
    missing: tuple[MissingLine, ...] = ()  # what is missing of each model; empty where nothing is
    routes: TwoRoutes | None = None
    making: Making | None = None
    faithfulness: Faithfulness | None = None
    realism: RealismTables | None = None
    variety: Variety | None = None
    within: WithinCountries | None = None
    people: People | None = None
    metrics: tuple[MetricTable, ...] = ()  # of the families that the recipe names besides

    def knows(self, what: str) -> bool:
        """Tell whether something of a model's line, such as its truth, is known of any model."""
        return any(getattr(line, what) is not None for line in self.models)

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts that have tables, in order."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.concepts if name is not None))


# Report data to one HTML page that asks for nothing and runs nothing but its own few lines.

SHADES = 10


def render(data: ReportData) -> str:
    """Render the page of a run of the kind `cube`."""
    return page_of(
        "report.html", script="report.js", data=data, world=Markup(world()) if data.shares else "",
        map_of=lambda model: Markup(map_of(data.shares, model)) if data.shares else "", tints=TINTS,
        prompts_shown=PROMPTS_SHOWN,
        drilled={each.prompt_id: number for number, each in enumerate(data.prompt_images)},
        gap_chart=Markup(gap_chart(data.gaps)) if data.gaps else "", instrument_chart=chart_of_instrument,
        chart=Markup(diversity_chart(data.models, named=data.verdict.named)), people_charts=charts_of(data.people),
    )  # fmt: skip


def page_of(template: str, *, script: str = "", **stated: object) -> str:
    """Render a page; the policy in its head allows exactly the style and, if any, the script that it carries."""
    style, runs = template_text("report.css"), template_text(script) if script else None
    scripts = "'none'" if runs is None else f"'{source_hash(runs)}'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src '{source_hash(style)}'; "
        "img-src 'self' data: file:; base-uri 'none'; form-action 'none'"
    )
    page = environment().get_template(template)
    return page.render(**stated, style=Markup(style), script=Markup(runs or ""), policy=policy) + "\n"


@cache
def environment() -> Environment:
    """Make the environment of templates, each compiled once: all text of theirs is escaped, and made inert before."""
    templates = Environment(
        loader=FunctionLoader(template_text), autoescape=True, undefined=StrictUndefined, finalize=inert_value,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.filters |= {"number": number, "interval": interval, "shade": shade, "count": count, "share": share}
    templates.filters |= {"tint": tint, "limits": limits, "chance": chance, "estimate": estimate}
    templates.filters |= {
        "breakable": breakable, "ordinal": ordinal_span, "signed": signed, "decimal": decimal, "place": plain,
    }  # fmt: skip
    return templates


def chart_of_instrument(instrument: Instrument, number: int) -> Markup:
    """Draw the scores of one instrument."""
    rows = [
        (model, [None if one is None else (one.value, one.low, one.high)]) for model, one in instrument.models.items()
    ]
    title = f"{instrument.title} of each model"
    return Markup(plot(Chart("dots", instrument.title), f"instrument-{number}", title, ("score",), rows))


def template_text(name: str) -> str:
    """Read a file of the page's template."""
    return files("culturekit").joinpath(f"report/templates/{name}").read_text(encoding="utf-8").strip()


def number(figure: Figure | None) -> str:
    """Write a score; a dash where there is none, words where too little stands behind it."""
    if figure is None:
        return "–"
    return FEW if math.isnan(figure.value) else f"{figure.value:.3f}"


def interval(figure: Figure | None) -> str:
    """Write the interval of a score; nothing where there is none."""
    between = " to " if figure is not None and figure.low is not None and figure.low < 0 else "–"
    return limits_of(figure, between=between).replace("-", "\N{MINUS SIGN}")


def shade(figure: Figure | None, top: float = 1.0) -> str:
    """Name the class that colours a score from 0 to the end of its scale."""
    if figure is None or math.isnan(figure.value):
        return "none"
    return f"s{min(int(max(figure.value, 0.0) / top * SHADES), SHADES - 1)}"


def share(value: float | None) -> str:
    """Write a share of 0 to 1 in per cent; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.1%}".replace("%", "\N{NO-BREAK SPACE}%")


def limits(share: Share) -> str:
    """Write the limits of a share; nothing where there are none."""
    return "" if share.low is None or share.high is None else f"{share.low * 100:.1f}–{share.high * 100:.1f}"


def chance(p: float | None) -> str:
    """Write a p value; a dash where nothing says how much values scatter."""
    if p is None or math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def signed(figure: Figure) -> str:
    """Write a gap with its sign; a dash where there is none."""
    return "–" if math.isnan(figure.value) else f"{figure.value:+.3f}".replace("-", "\N{MINUS SIGN}")


def decimal(value: float | None) -> str:
    """Write a similarity; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.3f}".replace("-", "\N{MINUS SIGN}")


def estimate(found: Mapping[str, float | None] | Sequence[float | None] | None) -> Markup:
    """Write a value with its limits below it; a dash where there is none."""
    value, low, high = (found.values() if isinstance(found, Mapping) else found) or (None, None, None)
    if value is None or math.isnan(value):
        return Markup("–")
    text = f"{value:.2f}"
    if low is not None and high is not None:
        text += f'<span class="sub">{low:.2f} to {high:.2f}</span>'
    return Markup(text.replace("-", "\N{MINUS SIGN}"))


def charts_of(people: People | None) -> list[tuple[str, Markup, list[int]]]:
    """Draw how metrics follow people, a chart for each thing that was rated; say how few and how many images it has."""
    lines = () if people is None else people.metrics
    return [
        (
            rating,
            Markup(correlation_chart(lines, rating=rating, number=number)),
            sorted({line.images for line in lines if line.rating == rating}),
        )
        for number, rating in enumerate(dict.fromkeys(line.rating for line in lines), start=1)
    ]


def count(value: int, of: str = "") -> str:
    """Write a count with separators, and what is counted, such as `1 image` and `2 images`."""
    return counted(value, of).rstrip()


def breakable(spec: str) -> Markup:
    """Let a long SPEC break before its options and within their lists, rather than within a word."""
    return Markup("<wbr>").join(re.split(r"(?<=[?,:/])|(?=&)", inert(spec)))


def write_report(work: Work, run: RunFolders) -> Outcome:
    """Write the report of a run."""
    data = collect(run)
    wanted = copies(run.root, data.thumbnails, work.out / "thumbnails")
    unread = write_copies(work, wanted)
    page = render(data).encode("utf-8")
    write_atomically(work.out / "report.html", page)
    counts = {"models": len(data.models), "shots": len(data.shots), "thumbnails": len(wanted), "bytes": len(page)}
    return Outcome(counts, unread)


def collect(run: RunFolders) -> ReportData:
    """Collect everything the page shows."""
    scores = run.headline_scores()
    models = in_order(model_lines(run, scores))
    thumbnails: dict[str, str] = {}
    names = [line.model for line in models]
    looks = {model: looks_of(run, model) for model in names}
    kernel = run.kernel
    prompts = tuple(prompt_lines(run, names, kernel=kernel))
    data = ReportData(
        title="How diverse are the cultures these models show?", question=question_about(models),
        verdict=verdict_in(run, models, scores), models=models, kernel=kernel, size=run.size,
        confidence=run.confidence(), tables=tuple(kernel_tables(scores, names, size=run.size)),
        shots=tuple(collect_shots(run, thumbnails)), caveats=caveats(run),
        stages=tuple(stage_line(run, name) for name in run.stages),
        versions={"culturekit": VERSION, **run.manifest(roles.SCORES).packages}, withheld=tuple(withheld(run)),
        trust=trust_in(run, scores), shares=shares_in(run, names), prompts=prompts,
        differences=tuple(difference_lines(run, kernel=kernel)), gaps=gaps_in(run), languages=languages_in(run),
        breakdown=breakdown_of(scores, names, kernel=kernel),
        mosaics=tuple(mosaic_of(run, looks, reference_pictures(run), thumbnails)), extremes=extremes_in(run, names),
        prompt_images=tuple(prompt_images(prompts, looks, thumbnails)), thumbnails=thumbnails,
        parties=tuple(parties(run)), paid=tuple(paid_lines(run)), faithfulness=faithfulness_in(run, names),
        realism=realism_in(run, names), variety=variety_in(run, scores, names), within=within_in(run, names),
        missing=tuple(missing_lines(run, scores)), routes=routes_in(run, names), making=making_in(run, names),
        people=people_in(run), metrics=tuple(metric_tables(run)),
    )  # fmt: skip
    return replace(data, thumbnails=dict(sorted(thumbnails.items())))


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
LONGEST = 300  # seconds until a page of thousands of pictures is given up


def browser() -> str:
    """Find Chromium.

    Raises:
        MissingDependency: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise MissingDependency(
            "a PDF is printed by Chromium, and there is none here", expected=f"one of {', '.join(BROWSERS)}",
            hint="Install it (Debian: apt-get install chromium), or print the page from any browser.",
        )  # fmt: skip
    return found


def print_page(page: Path, pdf: Path) -> None:
    """Print a page to a PDF file."""
    with tempfile.TemporaryDirectory(prefix="culturekit-print-") as scratch:
        opened = page.with_name(f".{page.stem}-printed.html")
        opened.write_text(re.sub(r"<details\b", "<details open", page.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}",
                       "--no-pdf-header-footer", f"--print-to-pdf={pdf.resolve()}",
                       opened.resolve().as_uri()]  # fmt: skip
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
        finally:
            opened.unlink()
    if not pdf.is_file():
        raise MissingDependency(
            "Chromium printed no page", where=str(pdf), expected="a PDF file",
            found=(ended.stderr.strip().splitlines() or ["no message"])[-1], hint="Print the page from any browser.",
        )  # fmt: skip
