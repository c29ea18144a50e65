"""Pages of sections, such as that of a `cultivate` run: what they say in short, the stages behind them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl
from markupsafe import Markup

from culturekit.records.schemas import SCORES
from culturekit.report.figures import listed
from culturekit.report.provenance import StageLine, every_caveat, not_put_right, stage_line
from culturekit.report.recipes.scene_sections import (
    ablations,
    accuracy,
    by_dimension,
    by_group,
    categories,
    descriptors,
    followed,
    gaps,
    headline,
    matrix,
)  # fmt: skip
from culturekit.report.recipes.scene_tables import Section, name_of, with_params
from culturekit.report.render import page_of
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles, scene_roles
from culturekit.stages.roles import Role
from culturekit.version import VERSION

__all__ = ["SectionPage", "leaders", "ranked", "render_sections", "scene_page", "section_page"]

TITLE = "How well do these models know social activities?"
STATED = ("ahead", "judged-…", "corrected-gaps", "breakdown", "meta")


@dataclass(frozen=True, slots=True)
class SectionPage:
    """Everything the page shows; `about` are countries, or a culture, and `stated` the folders with its scores."""

    title: str
    models: tuple[str, ...]
    images: int
    about: tuple[str, ...]
    verdict: tuple[str, ...]
    caveats: tuple[str, ...]
    sections: tuple[Section, ...]
    stages: tuple[StageLine, ...]
    stated: tuple[str, ...]
    versions: Mapping[str, str]


def section_page(
    run: RunFolders, title: str, about: Iterable[str], verdict: Iterable[str], caveats: Iterable[str],
    sections: Iterable[Section | None], stated: tuple[str, ...], *, pictures: Sequence[Role] = (roles.IMAGES,),
) -> SectionPage:  # fmt: skip
    """Put together what a kind of run says, its own `caveats` after those of the stages, and what is said of each."""
    images = sum(run.manifest(role, model).counts.get("images", 0) for role in pictures for model in run.models)
    there, stages = tuple(filter(None, sections)), tuple(stage_line(run, name) for name in run.stages)
    return SectionPage(
        title, tuple(run.models), images, tuple(about), tuple(verdict), (*every_caveat(run), *caveats), there, stages,
        stated, {"culturekit": VERSION},
    )  # fmt: skip


def scene_page(run: RunFolders) -> SectionPage:
    """Collect everything the page shows."""
    ahead = run.needed(scene_roles.AHEAD, SCORES)
    corrected, true = corrected_scores(run), run.read(scene_roles.AHEAD_TRUTH, SCORES)
    truth = None if true is None else true.with_columns(labels=pl.lit("truth"))
    places = ahead.drop_nulls("country")["country"].unique().sort().to_list()
    sections = [
        headline(run, ahead, corrected, truth), gaps(run), by_group(run, ahead), followed(run),
        by_dimension(run, places), categories(run), matrix(run), descriptors(run), accuracy(run), ablations(),
    ]  # fmt: skip
    said = verdict(corrected, truth, tuple(run.models))
    return section_page(run, TITLE, map(name_of, places), said, not_corrected(run), sections, STATED)


def render_sections(data: SectionPage, links: Mapping[str, str] = MappingProxyType({})) -> str:
    """Render the page: it has no script at all; `links` are the pages that models have in a site."""
    pictures = {section.anchor: Markup(section.picture) for section in data.sections}
    return page_of("sections.html", data=data, links=links, pictures=pictures)


def corrected_scores(run: RunFolders) -> pl.DataFrame | None:
    """Read what people put right, of all metrics."""
    variants = run.variants(scene_roles.JUDGED_BY)
    tables = [run.needed(scene_roles.JUDGED_BY, SCORES, variant=name) for name in variants]
    return with_params(pl.concat(tables), "labels") if tables else None


def leaders(
    table: pl.DataFrame | None, labels: str, models: Sequence[str], metric: str = "align"
) -> tuple[list[str], int]:
    """Name the models that a metric ranks first, with those whose intervals reach the best one's, and count all."""
    if table is None:
        return [], 0
    own = table.filter(pl.col("country").is_null(), pl.col("group").is_null(), metric=metric, labels=labels)
    own = own.filter(pl.col("model").is_in(list(models)))
    best = own.sort("value", descending=True)
    near = best.filter(pl.col("ci_high").fill_null(pl.col("value")) >= best["ci_low"].fill_null(best["value"])[:1])
    return near["model"].to_list(), own.height


def verdict(corrected: pl.DataFrame | None, truth: pl.DataFrame | None, models: Sequence[str]) -> Iterator[str]:
    """Say in sentences what the judge alone gets wrong; first is who is told apart from the others."""
    naive, of_judged = leaders(corrected, "judged", models)
    right, of_corrected = leaders(corrected, "corrected", models)
    if not of_corrected or min(of_judged, of_corrected) < len(models):
        left = f"People did not put right {len(models) - of_corrected} of {len(models)} models"
        yield f"{left if of_corrected else 'Nobody put the judge right'}: what the judge says of them stands as it is."
        return
    true, of_true = leaders(truth, "truth", models)
    yield f"{ranked('The judge alone ranks', naive)}; {ranked('put right by people, ALIGN ranks', right)}."
    if of_true == len(models):
        yield f"{ranked('In truth ALIGN ranks', true)}."


def ranked(who: str, first: Sequence[str]) -> str:
    """Say who comes first, or between whom nothing is decided."""
    return f"{who} {listed(first)} first{', whose intervals overlap' if len(first) > 1 else ''}"


def not_corrected(run: RunFolders) -> Iterator[str]:
    """Say why there are no gaps, what of people's answers did not count, and which scores they did not put right."""
    if not run.has(roles.GAPS):
        yield "Gaps are left out: all countries are of one group of the scheme, or of none."
    yield from not_put_right(run, scene_roles.MARKS, {"": "People's marks"})
    variants = run.variants(scene_roles.JUDGED_BY)
    yield from not_put_right(run, scene_roles.JUDGED_BY, {name: name.upper() for name in variants})
    if variants:
        yield "EXAG, and with it FAITH, is put right by people's rating of it, of which 1 to 5 stand for 0 to 1."
