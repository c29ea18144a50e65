"""Report data to one HTML page that asks for nothing and runs nothing but its own few lines."""

import math
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from culturekit.counting import counted
from culturekit.report.by_prompt import PROMPTS_SHOWN
from culturekit.report.charts import TINTS, diversity_chart, instrument_chart, map_of, tint, world
from culturekit.report.countries import Share
from culturekit.report.data import ReportData
from culturekit.report.faithfulness import Instrument
from culturekit.report.figures import FEW, Figure, limits_of, ordinal_span
from culturekit.report.gaps import gap_chart
from culturekit.report.inert import inert, inert_value, plain
from culturekit.report.people import People
from culturekit.report.people_metrics import correlation_chart
from culturekit.storage.digests import source_hash

__all__ = ["environment", "page_of", "render", "template_text"]

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
    return Markup(instrument_chart(instrument.models, title=instrument.title, number=number, whole=instrument.whole))


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


def estimate(found: tuple[float | None, float | None, float | None] | None) -> Markup:
    """Write a value with its limits below it; a dash where there is none."""
    if found is None or found[0] is None or math.isnan(found[0]):
        return Markup("–")
    value, low, high = found
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
