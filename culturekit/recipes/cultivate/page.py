"""The page of a `cultivate` run: tables of the paper as sections, as far as the run has them; scores are looked up."""

from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import ANNOTATIONS, DESCRIPTOR_MATCHES, EXAGGERATIONS, PROMPTS, SCORES, VALUES
from culturekit.core.tables import read_table
from culturekit.metrics.ahead.matching import DIMENSIONS, PUBLISHED_TAUS
from culturekit.recipes.cultivate import roles as folders
from culturekit.report.gallery import Gallery, Strip, values_of
from culturekit.report.headline import judge_stands, sentences_on, standing
from culturekit.report.provenance import not_put_right
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import RunFolders, values_in, with_params
from culturekit.report.sections import (
    Cell,
    Grid,
    Section,
    SectionPage,
    Where,
    drawn,
    grid,
    looked_up,
    matrix_picture,
    name_of,
    number,
    score_grid,
    section_page,
)
from culturekit.scores.meta import ALL

METRICS = {"align": "ALIGN", "align_hal": "ALIGN + HAL", "hal": "HAL", "exag": "EXAG", "faith": "FAITH",
           "ddiv": "DDIV", "sdiv": "SDIV"}  # fmt: skip
OVERALL: Where = {"country": None, "group": None}
MAIN = ("align", "hal", "exag", "faith")
LABELS = {"judged": "judged", "corrected": "corrected by people", "truth": "true"}
TOP, ENDS = 8, 3


def headline(
    run: RunFolders, ahead: pl.DataFrame, corrected: pl.DataFrame | None, truth: pl.DataFrame | None
) -> Section:
    """Put judged, corrected and true scores side by side."""
    kinds = {"judged": ahead.with_columns(labels=pl.lit("judged")), "corrected": corrected, "truth": truth}
    tables = {label: table.filter(labels=label) for label, table in kinds.items() if table is not None}
    every = pl.concat(tables.values(), how="diagonal_relaxed")
    rows = [((model, METRICS[metric]), {"model": model, "metric": metric, **OVERALL, "concept": None}, every)
            for model in run.models for metric in MAIN]  # fmt: skip
    caption = f"Scores over all countries, each country alike, with {run.confidence(folders.AHEAD)} intervals"
    columns = [(LABELS[label], {"labels": label}) for label in tables]
    shown = score_grid(caption, ("model", "metric"), columns, rows, "dots")
    return Section(
        "headline", "What is shown, as judged, as corrected, as true",
        "ALIGN is the share of what should be shown that is shown, HAL the share of what is shown that nothing asks "
        "for (less is better), EXAG how much more stereotypical images are than real ones (less is better).",
        (shown,), strips=_examples(run),
    )  # fmt: skip


def _examples(run: RunFolders) -> tuple[Strip, ...]:
    """Show images beside photographs, and where the judge and people differ most."""
    shown, judged = Gallery(run), values_of(run, folders.AHEAD, {"metric": "align"})
    pairs = shown.beside_real(values_of(run, folders.AHEAD, {"metric": "faith"}), run.models)
    strips = shown.strip("Highest and lowest FAITH of each model, beside a photograph of the same activity", pairs)
    marks = run.read(folders.MARKS, ANNOTATIONS)
    if marks is None:
        return strips
    people = marks.filter(criterion="align_marked").select("value", item="item_id")
    of_model = people.join(judged.select("item", "model").unique(), on="item")
    far = shown.apart(("judge", judged), ("people", of_model), run.models)
    return (*strips, *shown.strip("ALIGN on which the judge and people differ most", far))


def gaps(run: RunFolders) -> Section | None:
    """Show gaps between groups of countries."""
    table = run.scored(folders.CORRECTED_GAPS, of_metric="metric", labels="labels")
    if table is None or table.is_empty():
        return None
    columns = [(name, {"labels": label}) for label, name in LABELS.items() if label in table["labels"].to_list()]
    grids = tuple(
        score_grid(f"Gaps, {pair}", ("model", "metric"), columns, [
            ((model, METRICS[metric]), {"group": pair, "model": model, "of_metric": metric}, table)
            for model in run.models for metric in MAIN
        ], "dots", "difference of scores")
        for pair in values_in(table, "group")
    )  # fmt: skip
    lead = "Above 0 the first group of countries scores more; GN is the Global North, GS the South."
    return Section("gaps", "Do some parts of the world get less?", lead, grids)


def _by_group(run: RunFolders, ahead: pl.DataFrame) -> Section:
    """Show each model on each group of countries, as the paper's first table does."""
    rows = [((model, group or "all"), {"model": model, "group": group, "country": None}, ahead)
            for model in run.models for group in (*values_in(ahead, "group"), None)]  # fmt: skip
    columns = [(METRICS[metric], {"metric": metric}) for metric in METRICS if metric != "align_hal"]
    return Section(
        "models", "Models and groups of countries", "As judged. DDIV and SDIV: how evenly, and how much more, several "
        "images of a prompt show than one.",
        (score_grid("Scores by model and group", ("model", "countries"), columns, rows, "dots"),),
    )  # fmt: skip


def followed(run: RunFolders) -> Section | None:
    """Show how metrics, raters and people follow people's ratings."""
    if not run.has(roles.META):
        return None
    groups = values_in(_together(run, "human_correlation"), "group")[::-1]
    tables = [run.needed(roles.META, SCORES), run.read(folders.BASELINES, SCORES)]
    every = pl.concat([table for table in tables if table is not None]).filter(metric="human_correlation")
    table = with_params(every, of_metric="metric", by="params.by", of="params.of", variant="params.variant",
                        judge="params.judge", scorer="params.scorer", criterion="with.criterion",
                        other="with.params.of", method="method")  # fmt: skip
    several = run.models if len(run.models) > 1 else ()
    whole = {"model": ALL if several else run.models[0]}
    columns: list[tuple[str, Where]] = [
        *((group or "overall", {"group": group, "method": "spearman"}) for group in (*groups, None)),
        ("Kendall, overall", {"group": None, "method": "kendall"}),
    ]
    lines = {rating: list(_lines(table, rating)) for rating in SCALES}
    grids = [
        score_grid(f"Spearman correlation with people's rating {rating}", "metric", columns,
                   [(name, whole, part) for name, part in found], "dots", "correlation")
        for rating, found in lines.items()
    ]  # fmt: skip
    grids += [
        grid(f"The same by model, rating {rating}", ("metric", *several, "mean of models"),
             ((name, _by_model(part, several)) for name, part in found))
        for rating, found in (lines.items() if several else ())
    ]  # fmt: skip
    return Section(
        "people", "Do scores follow people?", "Over the images that people rated: scores of others first, vision "
        "models that rate from 1 to 5, then ours; human – human is one person against the others of the same image.",
        (*grids, *_varied(table, run.models)),
    )  # fmt: skip


SCALES = {"faith": "alignment", "hal": "hallucination", "exag": "exaggeration"}


def _lines(table: pl.DataFrame, rating: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Give the lines of a table of correlations with a rating: others, vision models, ours, people."""
    against = table.filter(criterion=rating)
    if rating == "faith":
        quality = against.filter(of_metric="quality")
        yield from ((_short(name), quality.filter(scorer=name)) for name in values_in(quality, "scorer"))
        for metric, title, by in (
            ("vqascore", "VQAScore", "judge"),
            ("dsg", "DSG", "judge"),
            ("cure", "CuRe", "variant"),
        ):
            part = against.filter(of_metric=metric)
            yield from ((f"{title}, {_short(name)}", part.filter(pl.col(by) == name)) for name in values_in(part, by))
    for scale in SCALES.values() if rating == "faith" else (SCALES[rating],):
        part = against.filter(of=scale)
        yield from ((f"{name}, {scale} 1–5", part.filter(by=name)) for name in values_in(part, "by"))
    ours = against.filter(pl.col("variant").is_null())
    for metric in ("align", "align_hal", "hal", "exag", "faith") if rating == "faith" else (rating,):
        yield METRICS[metric], ours.filter(of_metric=metric)
    yield "human – human", table.filter(by="one person", of=rating, other=rating)


def _short(name: str) -> str:
    """Leave out of a name what only tells two settings of it apart."""
    return name.removeprefix("vqascore:").partition("?")[0].removesuffix("@none")


def _varied(table: pl.DataFrame, models: Sequence[str]) -> Iterator[Grid]:
    """Show what the ablations change: ALIGN by threshold and by proposer, and EXAG by other candidates."""
    whole = ALL if len(models) > 1 else models[0]
    for metric, rating in (("align", "faith"), ("exag", "exag"), ("exag", "faith")):
        part = table.filter(of_metric=metric, criterion=rating)
        if names := values_in(part, "variant"):
            yield grid(
                f"{METRICS[metric]}, ablated, against people's rating {rating}",
                ("variant", "Spearman", "Kendall", *models, "mean of models"),
                ((name or "as scored here",
                  [*(looked_up(one, model=whole, group=None, method=how) for how in ("spearman", "kendall")),
                   *_by_model(one, models)])
                 for name in (*names, None) for one in [part.filter(pl.col("variant").eq_missing(name))]),
            )  # fmt: skip


def _by_model(part: pl.DataFrame, models: Sequence[str]) -> Iterator[Cell]:
    """Give the correlation of each model, and their mean."""
    alone = part.filter(pl.col("group").is_null(), pl.col("model").is_in(list(models)), method="spearman")
    yield from (looked_up(alone, model=model) for model in models)
    if models:
        found = alone["value"].drop_nulls().to_list()
        yield number(sum(found) / len(found) if len(found) == len(models) else None)


def _together(run: RunFolders, metric: str) -> pl.DataFrame:
    """Read correlations over all models together, last, or of the one model that there is."""
    models = [ALL, *(run.models if len(run.models) == 1 else ())]
    table = run.needed(roles.META, SCORES).filter(pl.col("model").is_in(models), metric=metric)
    return table.sort(pl.col("model") == ALL, maintain_order=True)


def _by_dimension(run: RunFolders, countries: Sequence[str]) -> Section:
    """Show ALIGN by country and dimension."""
    table = with_params(run.needed(folders.BREAKDOWN, SCORES), "dimension").filter(metric="align")
    columns = [(dimension, {"dimension": dimension}) for dimension in DIMENSIONS]
    grids = tuple(
        score_grid("All models" if model == ALL else model, "country", columns,
                   [(name_of(iso), {"model": model, "country": iso}, table) for iso in countries], "heat")
        for model in (ALL, *run.models)
    )  # fmt: skip
    return Section("dimensions", "Countries and dimensions", "ALIGN by dimension, as judged, each prompt alike.", grids)


def _categories(run: RunFolders) -> Section:
    """Show which categories are among the best and the worst of countries, and FAITH of each by model."""
    known = run.needed(folders.BREAKDOWN, SCORES).filter(pl.col("country").is_null(), metric="faith")
    values, prompts = read_table(run.values_of(folders.AHEAD), VALUES), read_table(run.table(roles.PROMPTS), PROMPTS)
    ends = ends_of_activities(values.filter(pl.col("model").is_in(list(run.models))), prompts)
    names = known.filter(model=ALL).sort("value", descending=True)["concept"].to_list()
    counted = ((name, (Cell(f"{end[name]}", point=(end[name], None, None)) for end in ends)) for name in names)
    columns = [("all models" if model == ALL else model, {"model": model}) for model in (ALL, *run.models)]
    rows = [(name, {"concept": name}, known) for name in names]
    return Section(
        "categories", "Categories", f"How many of each country's {ENDS} best and {ENDS} worst activities are of a "
        "category, and its FAITH.",
        (drawn(grid("Activities at the ends, over all countries", ("category", f"of the best {ENDS}",
                    f"of the worst {ENDS}"), counted), "dots", "activities"),
         score_grid("Categories by FAITH, as judged", "category", columns, rows, shaded=True)),
    )  # fmt: skip


def ends_of_activities(values: pl.DataFrame, prompts: pl.DataFrame) -> tuple[Counter[str], Counter[str]]:
    """Count the categories among the activities of each country that have the highest FAITH, and the lowest."""
    means = values.filter(metric="faith").group_by("prompt_id", "model").agg(pl.col("value").sort().mean())
    each = means.group_by("prompt_id").agg(pl.col("value").sort().mean())
    about = each.join(prompts.select("prompt_id", "concept", "country").drop_nulls(), on="prompt_id")
    ordered = about.sort("country", "value", "prompt_id", descending=[False, True, False])
    best, worst = Counter[str](), Counter[str]()
    for part in ordered.partition_by("country", maintain_order=True):
        names = part["concept"].to_list()
        best.update(names[:ENDS])
        worst.update(names[-ENDS:])
    return best, worst


def _matrix(run: RunFolders) -> Section | None:
    """Draw how metrics follow each other."""
    if not run.has(roles.META):
        return None
    table = _together(run, "metric_correlation")
    table = with_params(table, a="metric", a_by="params.by", a_of="params.of", b="with.metric", b_by="with.params.by",
                        b_of="with.params.of", method="method")  # fmt: skip
    table = table.filter(pl.col("group").is_null(), method="spearman")
    found: dict[tuple[str, str], float] = {}
    a, b = (
        pl.coalesce(pl.format("{} by {}", f"{side}_of", f"{side}_by"), pl.col(side).replace(METRICS)) for side in "ab"
    )
    named = table.filter(pl.col("a") != "empty", pl.col("b") != "empty").select("value", a=a, b=b)
    for value, one, other in named.iter_rows():
        found[one, other] = found[other, one] = value
    names = [name for name in dict.fromkeys(name for pair in found for name in pair) if "one person" not in name]
    shown = grid("Spearman correlations over images", ("metric", *names), (
        (a, (Cell("1") if a == b else number(found.get((a, b))) for b in names)) for a in names
    ))  # fmt: skip
    lead = "How metrics follow each other, over all models: what raises one may raise or lower another."
    return Section("matrix", "How the metrics relate", lead, (shown,), matrix_picture(names, found))


def descriptors(run: RunFolders) -> Section:
    """Show what is hallucinated and exaggerated most and least."""
    every = read_table(run.table(folders.AHEAD, file="descriptor_matches.parquet"), DESCRIPTOR_MATCHES)
    met = every.filter(pl.col("model").is_in(list(run.models)))
    often = (
        met.filter(pl.col("covered") == 0, side="predicted").group_by("token", "dimension")
        .agg(pl.col("images").sum()).sort("images", "token", descending=[True, False])
    )  # fmt: skip
    asked = met.filter(side="reference").group_by("token", "dimension").agg(pl.col("covered").sort().mean())
    shown = asked.sort("covered", "token")
    grids = [grid(f"Shown though nothing asks for it: the {TOP} most frequent", ("phrase", "dimension", "images"),
                  ((t, (Cell(d), Cell(f"{n:,}"))) for t, d, n in often.head(TOP).iter_rows()))]  # fmt: skip
    grids += [grid(f"Asked for: the {TOP} shown {which}", ("phrase", "dimension", "share of images"),
                   ((t, (Cell(d), number(v))) for t, d, v in part.iter_rows()))
              for which, part in (("least", shown.head(TOP)), ("most", shown.tail(TOP).reverse()))]  # fmt: skip
    path = run.table(folders.AHEAD, file="exaggerations.parquet")
    over = read_table(path, EXAGGERATIONS) if path.is_file() else None
    if over is not None:
        means = over.group_by("country", "token").agg(pl.col("excess").sort().mean())
        ordered = means.sort("excess", "country", "token", descending=[True, False, False])
        grids += [grid(title, ("stereotype", "country", "above real images"),
                       ((t, (Cell(name_of(c)), number(v))) for c, t, v in part.iter_rows()))
                  for title, part in ((f"Exaggerated most: {TOP}", ordered.head(TOP)),
                                      (f"Least: {TOP}", ordered.tail(TOP)))]  # fmt: skip
    about = read_table(run.table(roles.PROMPTS), PROMPTS).select("prompt_id", "country", "concept").drop_nulls()
    grids += _ends_by(met.join(about, on="prompt_id"), over)
    return Section("descriptors", "Descriptors at the ends", "Over all models, as judged.", tuple(grids))


def _ends_by(met: pl.DataFrame, over: pl.DataFrame | None) -> Iterator[Grid]:
    """Show the ends of each country and of each category: what is shown most and least, and what is overdone."""
    asked, wrong = met.filter(side="reference"), met.filter(pl.col("covered") == 0, side="predicted")
    for by, name in (("country", "country"), ("concept", "category")):
        shown = asked.group_by(by, "token").agg(pl.col("covered").sort().mean()).sort("covered", "token")
        often = wrong.group_by(by, "token").agg(pl.col("images").sum())
        parts = {
            "asked for, shown most": shown.reverse(),
            "shown least": shown,
            "shown though nothing asks for it": often.sort("images", "token", descending=[True, False]),
        }
        if by == "country" and over is not None and over.height:
            excess = over.group_by(by, "token").agg(pl.col("excess").sort().mean())
            parts["exaggerated most"] = excess.sort("excess", "token", descending=[True, False])
        yield grid(f"By {name}: {ENDS} descriptors at each end", (name, *parts), (
            (name_of(one) if by == "country" else one,
             (Cell(", ".join(part.filter(pl.col(by) == one)["token"].head(ENDS))) for part in parts.values()))
            for one in values_in(met, by)
        ))  # fmt: skip


def _accuracy(run: RunFolders) -> Section | None:
    """Show which share of descriptors people find relevant."""
    path = run.table(folders.MARKS, file="scores.parquet")
    if not run.has(folders.MARKS) or not path.is_file():
        return None
    rows = ((name_of(row["country"]) if row["country"] else "all", (Cell(f"{row['value']:.1%}"), Cell(f"{row['n']:,}")))
            for row in read_table(path, SCORES).sort("country", nulls_last=True).iter_rows(named=True))  # fmt: skip
    return Section("accuracy", "Are the descriptors right?", "The share of references that people mark as relevant.",
                   (grid("Relevant descriptors", ("country", "relevant", "marks"), rows),))  # fmt: skip


def ablations() -> Section:
    """Name the runs that the paper compares."""
    named = {
        "one proposer": "--set 'ground.proposers=[SPEC]' --set ground.refiner=rules",
        **{f"the threshold at a quartile of the paper, {tau:g}": f"--set scores.tau={tau:g}"
           for tau in PUBLISHED_TAUS.values()},
        "the threshold from the real images": "--set scores.tau=null --set scores.quantile=0.75",
        "one share over all descriptors": "--set scores.aggregate=pooled",
        "the worst stereotype instead of the mean": "--set scores.reduce=max",
    }  # fmt: skip
    rows = ((what, [Cell(how)]) for what, how in named.items())
    return Section("ablations", "Ablations", "Each is the same run with a value set, in a folder of its own.",
                   (grid("What to set", ("ablation", "of culturekit run"), rows),))  # fmt: skip


TITLE = "How well do these models know social activities?"
STATED = ("ahead", "judged-…", "corrected-gaps", "breakdown", "meta")
ONE_GROUP = "Gaps are left out: all countries are of one group of the scheme, or of none."
OF_RATINGS = "EXAG, and with it FAITH, is put right by people's rating of it, of which 1 to 5 stand for 0 to 1."


def _cultivate_page(run: RunFolders) -> SectionPage:
    """Collect everything the page shows."""
    ahead = run.needed(folders.AHEAD, SCORES)
    tables = [run.needed(folders.JUDGED_BY, SCORES, variant=name) for name in run.variants(folders.JUDGED_BY)]
    corrected = with_params(pl.concat(tables), "labels") if tables else None
    true = run.read(folders.AHEAD_TRUTH, SCORES)
    truth = None if true is None else true.with_columns(labels=pl.lit("truth"))
    countries = ahead.drop_nulls("country")["country"].unique().sort().to_list()
    sections = [
        headline(run, ahead, corrected, truth), gaps(run), _by_group(run, ahead), followed(run),
        _by_dimension(run, countries), _categories(run), _matrix(run), descriptors(run), _accuracy(run), ablations(),
    ]  # fmt: skip
    variants = run.variants(folders.JUDGED_BY)
    caveats = [] if run.has(roles.GAPS) else [ONE_GROUP]
    caveats += not_put_right(run, folders.MARKS, {"": "People's marks"})
    caveats += not_put_right(run, folders.JUDGED_BY, {name: name.upper() for name in variants})
    caveats += [OF_RATINGS] * bool(variants)
    sentences = verdict(ahead, corrected, truth, tuple(run.models))
    return section_page(run, TITLE, map(name_of, countries), sentences, caveats, sections, STATED)


def verdict(
    ahead: pl.DataFrame, corrected: pl.DataFrame | None, truth: pl.DataFrame | None, models: Sequence[str]
) -> Iterator[str]:  # fmt: skip
    """Say in sentences who comes first, and what the judge alone gets wrong."""
    words = ("comes first in ALIGN", "ahead of")
    people, *others = (
        standing(scores, models, who, words, {"metric": "align", **OVERALL, **where})
        for who, scores, where in (("the corrected scores", corrected, {"labels": "corrected"}),
                                   ("the judge alone", ahead, {}), ("the truth", truth, {"labels": "truth"}))
    )  # fmt: skip
    yield from sentences_on([people, *others])
    if not people.order:
        yield judge_stands(asked=corrected is not None)


CULTIVATE_PAGE = SectionReport("scene-report", 12, _cultivate_page, (folders.AHEAD_TRUTH,))
