"""From a finished run to its report, a page and thumbnails beside it; scores are looked up, never computed."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from culturekit.core import roles
from culturekit.core.atomic import write_atomically
from culturekit.core.counting import counted
from culturekit.core.digests import source_hash
from culturekit.core.work import Outcome, Work
from culturekit.report.charts import TINTS, ModelLine, diversity_chart, in_order, map_of, model_lines, tint, world
from culturekit.report.countries import CountryShares, Extremes, Share, extremes_in, shares_in
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
    inert,
    inert_value,
    limits_of,
    ordinal_span,
    plain,
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
from culturekit.report.trust import Trust, TwoRoutes, routes_in, trust_in
from culturekit.version import VERSION

# What a report says, as data: built first, tested as such, then poured into a template.


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

    @property
    def audited(self) -> bool:
        """Tell whether people looked at some images of a model."""
        return any(line.corrected is not None for line in self.models)

    @property
    def ranked(self) -> bool:
        """Tell whether models were compared on corrected diversity."""
        return any(line.rank is not None for line in self.models)

    @property
    def seen(self) -> bool:
        """Tell whether it is known what people saw on some images."""
        return any(line.seen is not None for line in self.models)

    @property
    def rated(self) -> bool:
        """Tell whether the quality of images was scored."""
        return any(line.quality is not None for line in self.models)

    @property
    def truthful(self) -> bool:
        """Tell whether the truth of a model is known."""
        return any(line.truth is not None for line in self.models)

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts that have tables, in order."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.concepts if name is not None))


# Report data to one HTML page that asks for nothing and runs nothing but its own few lines.

SHADES = 10


def render(data: ReportData) -> str:
    """Render the page of a run of the kind `cube`."""
    return page_of(
        "report.html",
        script="report.js",
        data=data,
        world=Markup(world()) if data.shares else "",
        map_of=lambda model: Markup(map_of(data.shares, model)) if data.shares else "",
        tints=TINTS,
        prompts_shown=PROMPTS_SHOWN,
        drilled={each.prompt_id: number for number, each in enumerate(data.prompt_images)},
        gap_chart=Markup(gap_chart(data.gaps)) if data.gaps else "",
        instrument_chart=chart_of_instrument,
        chart=Markup(diversity_chart(data.models, named=data.verdict.named)),
        people_charts=charts_of(data.people),
    )


def page_of(template: str, *, script: str = "", **told: object) -> str:
    """Render a page; the policy in its head allows exactly the style and, if any, the script that it carries."""
    style, runs = template_text("report.css"), template_text(script) if script else None
    page, policy = environment().get_template(template), policy_of(style, runs)
    return page.render(**told, style=Markup(style), script=Markup(runs or ""), policy=policy) + "\n"


@cache
def environment() -> Environment:
    """Make the environment of templates, each compiled once: all text of theirs is escaped, and made inert before."""
    made = Environment(
        loader=FunctionLoader(template_text),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=inert_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "interval": interval, "shade": shade, "count": count, "share": share}
    made.filters |= {"tint": tint, "limits": limits, "chance": chance, "estimate": estimate}
    made.filters |= {
        "breakable": breakable,
        "ordinal": ordinal_span,
        "signed": signed,
        "decimal": decimal,
        "place": plain,
    }
    return made


def policy_of(style: str, script: str | None) -> str:
    """Write the policy that allows one style and, where there is one, one script."""
    scripts = "'none'" if script is None else f"'{source_hash(script)}'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src '{source_hash(style)}'; "
        "img-src 'self' data: file:; base-uri 'none'; form-action 'none'"
    )


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
        title="How diverse are the cultures these models show?",
        question=question_about(models),
        verdict=verdict_in(run, models, scores),
        models=models,
        kernel=kernel,
        size=run.size,
        confidence=run.confidence(),
        tables=tuple(kernel_tables(scores, names, size=run.size)),
        shots=tuple(collect_shots(run, thumbnails)),
        caveats=caveats(run),
        stages=tuple(stage_line(run, name) for name in run.stages),
        versions={"culturekit": VERSION, **run.manifest(roles.SCORES).packages},
        withheld=tuple(withheld(run)),
        trust=trust_in(run, scores),
        shares=shares_in(run, names),
        prompts=prompts,
        differences=tuple(difference_lines(run, kernel=kernel)),
        gaps=gaps_in(run),
        languages=languages_in(run),
        breakdown=breakdown_of(scores, names, kernel=kernel),
        mosaics=tuple(mosaic_of(run, looks, reference_pictures(run), thumbnails)),
        extremes=extremes_in(run, names),
        prompt_images=tuple(prompt_images(prompts, looks, thumbnails)),
        thumbnails=thumbnails,
        parties=tuple(parties(run)),
        paid=tuple(paid_lines(run)),
        faithfulness=faithfulness_in(run, names),
        realism=realism_in(run, names),
        variety=variety_in(run, scores, names),
        within=within_in(run, names),
        missing=tuple(missing_lines(run, scores)),
        routes=routes_in(run, names),
        making=making_in(run, names),
        people=people_in(run),
        metrics=tuple(metric_tables(run)),
    )
    return replace(data, thumbnails=dict(sorted(thumbnails.items())))
