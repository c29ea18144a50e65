"""What the report of a `cultivate` run says: every table of the paper as a section; scores are looked up."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from culturekit.kg.countries import countries
from culturekit.records.schemas import DESCRIPTOR_MATCHES, EXAGGERATIONS, SCORES
from culturekit.report.provenance import StageLine, stage_line
from culturekit.report.render import environment, policy_of, template_text
from culturekit.report.run_folders import RunFolders
from culturekit.report.scene_matrix import matrix_picture
from culturekit.stages import roles, scene_roles
from culturekit.storage.tables import read_table
from culturekit.version import VERSION

__all__ = ["Cell", "Grid", "ScenePage", "Section", "render_scenes", "scene_page"]

METRICS = {"align": "ALIGN", "hal": "HAL", "exag": "EXAG", "faith": "FAITH", "ddiv": "DDIV", "sdiv": "SDIV"}
LABELS = {"judged": "judged", "corrected": "corrected by people", "truth": "true"}
DIMENSIONS = ("background", "objects", "attire", "interaction", "spatial")
ALL, TOP, ENDS = "all", 8, 3


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, what stands below in small, and its shade from 0 to 1."""

    text: str
    sub: str = ""
    shade: float | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """One table; the first cell of each row is its head."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its anchor, heading and first sentence, its tables, and a picture where there is one."""

    anchor: str
    title: str
    lead: str
    grids: tuple[Grid, ...]
    picture: str = ""


@dataclass(frozen=True, slots=True)
class ScenePage:
    """Everything the page shows."""

    models: tuple[str, ...]
    images: int
    countries: tuple[str, ...]
    verdict: tuple[str, ...]
    caveats: tuple[str, ...]
    sections: tuple[Section, ...]
    stages: tuple[StageLine, ...]
    versions: Mapping[str, str]


def scene_page(run: RunFolders) -> ScenePage:
    """Collect everything the page shows."""
    ahead = parameters(run.needed(scene_roles.AHEAD, SCORES))
    corrected = corrected_scores(run)
    truth = None
    if run.has(scene_roles.AHEAD_TRUTH):
        truth = parameters(run.needed(scene_roles.AHEAD_TRUTH, SCORES)).with_columns(labels=pl.lit("truth"))
    places = ahead.drop_nulls("country")["country"].unique().sort().to_list()
    sections = [
        headline(run, ahead, corrected, truth), gaps(run), by_group(run, ahead), followed(run),
        by_dimension(run, places), categories(run), matrix(run), descriptors(run), accuracy(run), ablations(),
    ]  # fmt: skip
    images = sum(run.manifest(roles.IMAGES, model).counts.get("images", 0) for model in run.models)
    manifests = [run.manifest(role, model) for role in (scene_roles.EXTRACTED, scene_roles.STEREOTYPED)
                 for model in run.models] + [run.manifest(scene_roles.PHRASES)]  # fmt: skip
    caveats = dict.fromkeys(str(one.notes.get("caveat", "")) for one in manifests)
    return ScenePage(
        tuple(run.models), images, tuple(map(name_of, places)), tuple(verdict(corrected, truth)),
        tuple(filter(None, caveats)), tuple(section for section in sections if section is not None),
        tuple(stage_line(run, name) for name in run.stages), {"culturekit": VERSION},
    )  # fmt: skip


def render_scenes(data: ScenePage) -> str:
    """Render the page: it has no script at all."""
    style = template_text("report.css")
    pictures = {section.anchor: Markup(section.picture) for section in data.sections}
    page = environment().get_template("scenes.html")
    return page.render(data=data, pictures=pictures, style=Markup(style), policy=policy_of(style)) + "\n"


def parameters(scores: pl.DataFrame) -> pl.DataFrame:
    """Add what the parameters say of a score as columns."""
    said = {name: pl.col("params").str.json_path_match(f"$.{name}") for name in ("labels", "dimension", "method")}
    return scores.with_row_index("row").with_columns(**said)


def corrected_scores(run: RunFolders) -> pl.DataFrame | None:
    """Read what people put right, of all metrics."""
    variants = run.variants(scene_roles.JUDGED_BY)
    tables = [read_table(run.table(scene_roles.JUDGED_BY, variant=name), SCORES) for name in variants]
    return parameters(pl.concat(tables)) if tables else None


def name_of(code: str) -> str:
    """Name a country."""
    return countries()[code].name if code in countries() else code


def number(value: float | None, low: float | None = None, high: float | None = None, *, shaded: bool = False) -> Cell:
    """Write a score with its interval."""
    if value is None or math.isnan(value):
        return Cell("–")
    sub = "" if low is None or high is None or math.isnan(low) else f"{low:.2f} to {high:.2f}"
    return Cell(minus(f"{value:.3f}"), minus(sub), min(max(value, 0.0), 1.0) if shaded else None)


def minus(text: str) -> str:
    """Write minus signs as such."""
    return text.replace("-", "\N{MINUS SIGN}")


def looked_up(table: pl.DataFrame | None, *, shaded: bool = False, **where: str | None) -> Cell:
    """Look one score up; a dash where there is none."""
    row = row_of(table, **where)
    return Cell("–") if row is None else number(row["value"], row["ci_low"], row["ci_high"], shaded=shaded)


def row_of(table: pl.DataFrame | None, **where: str | None) -> dict[str, Any] | None:
    """Look up the row that meets all conditions."""
    if table is None:
        return None
    for column, value in where.items():
        table = table.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)))
    return table.row(0, named=True) if table.height == 1 else None


def first_by(table: pl.DataFrame | None, labels: str, models: Sequence[str] | None = None) -> str | None:
    """Name the model that ALIGN ranks first."""
    if table is None:
        return None
    own = table.filter(pl.col("country").is_null(), pl.col("group").is_null(), metric="align", labels=labels)
    own = own if models is None else own.filter(pl.col("model").is_in(list(models)))
    return None if own.is_empty() else str(own.sort("value", descending=True)["model"][0])


def verdict(corrected: pl.DataFrame | None, truth: pl.DataFrame | None) -> Iterator[str]:
    """Say in sentences what the judge alone gets wrong."""
    naive, right = first_by(corrected, "judged"), first_by(corrected, "corrected")
    if corrected is None or naive is None or right is None:
        yield "Nobody put the judge right: its scores stand as they are."
        return
    true = first_by(truth, "truth", corrected["model"].unique().to_list())
    as_true = "" if true is None else f", and {'so it is' if true == right else f'the truth says {true}'}"
    if naive == right:
        yield f"{naive} shows activities best, by the judge and by people{as_true}."
    else:
        yield f"The judge alone ranks {naive} first; put right by people, {right} comes first{as_true}."


def headline(
    run: RunFolders, ahead: pl.DataFrame, corrected: pl.DataFrame | None, truth: pl.DataFrame | None
) -> Section:
    """Put judged, corrected and true scores side by side."""
    kinds = [("judged", ahead.with_columns(labels=pl.lit("judged"))), ("corrected", corrected), ("truth", truth)]
    there = [(label, table) for label, table in kinds if table is not None]
    rows = tuple(
        (Cell(model), Cell(METRICS[metric]), *(
            looked_up(table, model=model, metric=metric, labels=label, country=None, group=None, concept=None)
            for label, table in there
        ))
        for model in run.models
        for metric in ("align", "hal", "exag", "faith")
    )  # fmt: skip
    columns = ("model", "metric", *(LABELS[label] for label, _ in there))
    return Section(
        "headline", "What is shown, as judged, as corrected, as true",
        "ALIGN is the share of what should be shown that is shown, HAL the share of what is shown that nothing asks "
        "for (less is better), EXAG how much more stereotypical images are than real ones (less is better).",
        (Grid("Scores over all countries, each country alike, with 95 % intervals", columns, rows),),
    )  # fmt: skip


def gaps(run: RunFolders) -> Section | None:
    """Show gaps between groups of countries."""
    if not run.has(scene_roles.CORRECTED_GAPS):
        return None
    table = run.needed(scene_roles.CORRECTED_GAPS, SCORES)
    said = {name: pl.col("params").str.json_path_match(f"$.{name}") for name in ("metric", "labels")}
    table = table.with_columns(of_metric=said["metric"], labels=said["labels"])
    pair = str(table["group"][0])
    kinds = [label for label in LABELS if label in table["labels"].to_list()]
    rows = tuple(
        (Cell(model), Cell(METRICS[metric]),
         *(looked_up(table, model=model, of_metric=metric, labels=label) for label in kinds))
        for model in run.models
        for metric in ("align", "hal", "exag")
    )  # fmt: skip
    lead = f"{pair.replace('GN', 'Global North').replace('GS', 'Global South')}: above 0 the first scores more."
    columns = ("model", "metric", *(LABELS[label] for label in kinds))
    return Section("gaps", "Do some parts of the world get less?", lead, (Grid(f"Gaps, {pair}", columns, rows),))


def by_group(run: RunFolders, ahead: pl.DataFrame) -> Section:
    """Show each model on each group of countries, as the paper's first table does."""
    groups = ahead.drop_nulls("group")["group"].unique().sort().to_list()
    rows = tuple(
        (Cell(model), Cell(group or "all"),
         *(looked_up(ahead, model=model, metric=metric, group=group, country=None) for metric in METRICS))
        for model in run.models
        for group in (*groups, None)
    )  # fmt: skip
    return Section(
        "models", "Models and groups of countries", "As judged. DDIV and SDIV: how evenly, and how much more, several "
        "images of a prompt show than one.",
        (Grid("Scores by model and group", ("model", "countries", *METRICS.values()), rows),),
    )  # fmt: skip


def followed(run: RunFolders) -> Section | None:
    """Show how metrics, raters and people follow people's ratings."""
    if not run.has(roles.META):
        return None
    table = run.needed(roles.META, SCORES).filter(metric="human_correlation", model=ALL)
    path = {"of_metric": "$.metric", "by": "$.params.by", "of": "$.params.of", "criterion": "$.with.criterion",
            "other": "$.with.params.of", "method": "$.method"}  # fmt: skip
    table = table.with_columns(**{name: pl.col("params").str.json_path_match(place) for name, place in path.items()})
    grids = []
    for rating, own in (("faith", "alignment"), ("hal", "hallucination"), ("exag", "exaggeration")):
        told = table.filter(pl.col("criterion") == rating)
        raters = told.filter(of=own)["by"].unique().sort().to_list()
        lines = [(METRICS[metric], told.filter(of_metric=metric)) for metric in ("align", "hal", "exag", "faith")]
        lines += [(f"{rater}, {own} 1–5", told.filter(by=rater, of=own)) for rater in raters]
        others = table.filter(by="one person", of=rating, other=rating)
        lines.append(("human – human", others))
        rows = tuple((Cell(name), *correlations(part)) for name, part in lines)
        columns = ("metric", "GS", "GN", "overall", "Kendall, overall")
        grids.append(Grid(f"Spearman correlation with people's rating {rating}", columns, rows))
    return Section(
        "people", "Do scores follow people?", "Over the images that people rated; human – human is one person against "
        "the others of the same image.", tuple(grids),
    )  # fmt: skip


def correlations(part: pl.DataFrame) -> Iterator[Cell]:
    """Give the correlation in each group and overall."""
    for group in ("GS", "GN", None):
        yield looked_up(part, group=group, method="spearman")
    yield looked_up(part, group=None, method="kendall")


def by_dimension(run: RunFolders, places: Sequence[str]) -> Section:
    """Show ALIGN by country and dimension."""
    table = parameters(run.needed(scene_roles.BREAKDOWN, SCORES)).filter(metric="align")
    grids = tuple(
        Grid(
            "All models" if model == ALL else model, ("country", *DIMENSIONS),
            tuple(
                (Cell(name_of(place)), *(looked_up(table, model=model, country=place, dimension=dimension, shaded=True)
                                         for dimension in DIMENSIONS))
                for place in places
            ),
        )
        for model in (ALL, *run.models)
    )  # fmt: skip
    return Section("dimensions", "Countries and dimensions", "ALIGN by dimension, as judged, each prompt alike.", grids)


def categories(run: RunFolders) -> Section:
    """Show which categories are among the best and the worst of countries, and FAITH of each by model."""
    table = run.needed(scene_roles.BREAKDOWN, SCORES).filter(metric="faith")
    best, worst = Counter[str](), Counter[str]()
    by_country = table.filter(pl.col("country").is_not_null(), model=ALL).sort("value", "concept", descending=True)
    for own in by_country.partition_by("country", maintain_order=True):
        names = own["concept"].to_list()
        best.update(names[:ENDS])
        worst.update(names[-ENDS:])
    known = table.filter(pl.col("country").is_null())
    names = known.filter(model=ALL).sort("value", descending=True)["concept"].to_list()
    rows = tuple(
        (Cell(name), Cell(str(best[name])), Cell(str(worst[name])),
         *(looked_up(known, model=model, concept=name, shaded=True) for model in (ALL, *run.models)))
        for name in names
    )  # fmt: skip
    columns = ("category", f"among the best {ENDS}", f"among the worst {ENDS}", "all models", *run.models)
    return Section(
        "categories", "Categories", "In how many countries a category is among the best and the worst, and its FAITH.",
        (Grid("Categories by FAITH, as judged", columns, rows),),
    )  # fmt: skip


def matrix(run: RunFolders) -> Section | None:
    """Draw how metrics follow each other."""
    if not run.has(roles.META):
        return None
    table = run.needed(roles.META, SCORES).filter(metric="metric_correlation", model=ALL)
    path = {"a": "$.metric", "a_by": "$.params.by", "a_of": "$.params.of", "b": "$.with.metric",
            "b_by": "$.with.params.by", "b_of": "$.with.params.of", "method": "$.method"}  # fmt: skip
    table = table.with_columns(**{name: pl.col("params").str.json_path_match(place) for name, place in path.items()})
    table = table.filter(pl.col("group").is_null(), method="spearman")
    found: dict[tuple[str, str], float] = {}
    for row in table.iter_rows(named=True):
        pair = tuple(series_name(row, side) for side in ("a", "b"))
        found[pair[0], pair[1]] = found[pair[1], pair[0]] = row["value"]
    names = [name for name in dict.fromkeys(name for pair in found for name in pair) if "one person" not in name]
    rows = tuple((Cell(a), *(Cell("1") if a == b else number(found.get((a, b))) for b in names)) for a in names)
    grid = Grid("Spearman correlations over images", ("", *names), rows)
    lead = "How metrics follow each other, over all models: what raises one may raise or lower another."
    return Section("matrix", "How the metrics relate", lead, (grid,), matrix_picture(names, found))


def series_name(row: Mapping[str, Any], side: str) -> str:
    """Name one of two series."""
    metric = str(row[side])
    return METRICS.get(metric, metric) if row[f"{side}_by"] is None else f"{row[f'{side}_of']} by {row[f'{side}_by']}"


def descriptors(run: RunFolders) -> Section:
    """Show what is hallucinated and exaggerated most and least."""
    met = read_table(run.table(scene_roles.AHEAD, file="descriptor_matches.parquet"), DESCRIPTOR_MATCHES)
    wrong = met.filter(pl.col("model").is_in(list(run.models)), pl.col("side") == "predicted", pl.col("covered") == 0)
    often = (
        wrong.group_by("token", "dimension")
        .agg(pl.col("images").sum())
        .sort("images", "token", descending=[True, False])
    )
    missed = met.filter(pl.col("model").is_in(list(run.models)), pl.col("side") == "reference")
    shown = missed.group_by("token", "dimension").agg(pl.col("covered").sort().mean()).sort("covered", "token")
    grids = [
        Grid(f"Shown though nothing asks for it: the {TOP} most frequent", ("phrase", "dimension", "images"),
             tuple((Cell(t), Cell(d), Cell(f"{n:,}")) for t, d, n in often.head(TOP).iter_rows())),
        Grid(f"Asked for: the {TOP} shown least", ("phrase", "dimension", "share of images"),
             tuple((Cell(t), Cell(d), number(v)) for t, d, v in shown.head(TOP).iter_rows())),
        Grid(f"Asked for: the {TOP} shown most", ("phrase", "dimension", "share of images"),
             tuple((Cell(t), Cell(d), number(v)) for t, d, v in shown.tail(TOP).reverse().iter_rows())),
    ]  # fmt: skip
    path = run.table(scene_roles.AHEAD, file="exaggerations.parquet")
    if path.is_file():
        over = read_table(path, EXAGGERATIONS).group_by("country", "token").agg(pl.col("excess").sort().mean())
        ordered = over.sort("excess", "country", "token", descending=[True, False, False])
        for title, part in ((f"Exaggerated most: {TOP}", ordered.head(TOP)), (f"Least: {TOP}", ordered.tail(TOP))):
            rows = tuple((Cell(t), Cell(name_of(c)), number(v)) for c, t, v in part.iter_rows())
            grids.append(Grid(title, ("stereotype", "country", "above real images"), rows))
    return Section("descriptors", "Descriptors at the ends", "Over all models, as judged.", tuple(grids))


def accuracy(run: RunFolders) -> Section | None:
    """Show which share of descriptors people find relevant."""
    path = run.table(scene_roles.MARKS, file="scores.parquet")
    if not run.has(scene_roles.MARKS) or not path.is_file():
        return None
    table = read_table(path, SCORES).sort("country", nulls_last=True)
    rows = tuple(
        (Cell(name_of(row["country"]) if row["country"] else "all"), Cell(f"{row['value']:.1%}"), Cell(f"{row['n']:,}"))
        for row in table.iter_rows(named=True)
    )
    grid = Grid("Relevant descriptors", ("country", "relevant", "marks"), rows)
    return Section("accuracy", "Are the descriptors right?", "The share of references that people mark as relevant.",
                   (grid,))  # fmt: skip


def ablations() -> Section:
    """Name the runs that the paper compares."""
    named = (
        ("one proposer", "--set 'ground.proposers=[SPEC]' --set ground.refiner=rules"),
        ("thresholds at the quartiles", "--set scores.tau=0.29, 0.39, 0.52; or --set scores.quantile=0.75"),
        ("one share over all descriptors", "--set scores.aggregate=pooled"),
        ("the worst stereotype instead of the mean", "--set scores.reduce=max"),
    )
    rows = tuple((Cell(what), Cell(how)) for what, how in named)
    return Section("ablations", "Ablations", "Each is the same run with a value set, in a folder of its own.",
                   (Grid("What to set", ("ablation", "of culturekit run"), rows),))  # fmt: skip
