"""The page of an `inclusion` run: every table of the study as a section; scores are looked up."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.roles import REAL_IMAGES
from culturekit.core.schemas import PROMPTS, SCORES, YES_BY_SCORE
from culturekit.core.tables import read_table
from culturekit.recipes.inclusion import roles as folders
from culturekit.report.headline import sentences_on, standing
from culturekit.report.provenance import not_put_right
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import RunFolders
from culturekit.report.sections import (
    Grid,
    Section,
    SectionPage,
    Sources,
    Where,
    grid,
    looked_up,
    row_of,
    score_grid,
    section_page,
    with_params,
)
from culturekit.scores.image_collections import parsed

TITLE = "Do objects look as they do in each region, and to whom?"
STATED = ("judged-…", "truth", "realism-by-…", "regions-…", "objects-…", "scores-…")
PRDC = {"prdc_precision": "precision", "prdc_coverage": "coverage", "prdc_density": "density", "prdc_recall": "recall"}
REGION, OBJECT = "region_recognised", "object_presence"
HOME, ELSEWHERE = "in-region", "out-of-region"
SIDES = {"in": "people who live there", "out": "people from elsewhere"}
NOT_KNOWN: Any = {"country": None, "concept": None, "group": None}


def inclusion_page(run: RunFolders) -> SectionPage:
    """Collect everything the page shows."""
    regions = tuple(dict.fromkeys(run.needed(roles.PROMPTS, PROMPTS)["group"]))
    sections = [_corrected(run), *_realism(run, regions), _extractors(run), _names(run, regions), *_seen(run),
                *_agreement(run), *_compared(run)]  # fmt: skip
    pictures = (roles.IMAGES, folders.PLAIN)
    return section_page(run, TITLE, regions, _verdict(run), _caveats(run), sections, STATED, pictures=pictures)


def _caveats(run: RunFolders) -> Iterator[str]:
    """Say what people's answers do not carry."""
    yield from not_put_right(run, folders.MARKS, {"": "People's answers"})
    names = {variant: f"Corrections ({variant})" for variant in run.variants(folders.JUDGED)}
    yield from not_put_right(run, folders.JUDGED, names)


def _scores_of(run: RunFolders, role: roles.Role, model: str = "", variant: str = "", **params: str) -> pl.DataFrame:
    """Read the scores of a stage, with some parameters as columns; none for a run without it."""
    found = run.read(role, SCORES, model, variant)
    return with_params(pl.DataFrame(schema=SCORES.schema) if found is None else found, **params)


def _verdict(run: RunFolders) -> Iterator[str]:
    """Say who comes first as recognised, as corrected by both sides and in truth, and where extractors disagree."""
    table = _scores_of(run, folders.JUDGED, variant="regions", labels="labels", pool="pool")
    true = _scores_of(run, folders.TRUTH, labels="labels")
    alone = pl.concat([_scores_of(run, folders.REGIONS, model) for model in run.models])
    sources: list[tuple[str, pl.DataFrame, dict[str, str]]] = [
        ("people who live there", table, {"labels": "corrected", "pool": HOME}),
        ("people from elsewhere", table, {"labels": "corrected", "pool": ELSEWHERE}), ("the encoder alone", alone, {}),
        ("the truth", true, {"labels": "truth"}),
    ]  # fmt: skip
    words = ("looks most often as its region does", "more often than")
    yield from sentences_on([
        standing(scores, run.models, by, words, {"metric": REGION, **NOT_KNOWN, **where})
        for by, scores, where in sources
    ])  # fmt: skip
    if reversals := list(_reversals(run)):
        more = f", and {len(reversals) - 1} pairs more" if len(reversals) > 1 else ""
        yield f"Extractors put models in opposite orders: {reversals[0]}{more}."


def _reversals(run: RunFolders) -> Iterator[str]:
    """Say of precision and coverage which two models two extractors order otherwise, where intervals do not overlap."""
    for metric in ("prdc_precision", "prdc_coverage"):
        tables = {name: _scores_of(run, folders.REALISM, variant=name) for name in run.variants(folders.REALISM)}
        rows = {(name, model): row_of(table, metric=metric, model=model, **NOT_KNOWN)
                for name, table in tables.items() for model in run.models}  # fmt: skip
        for one, other in combinations(tables, 2):
            for first, second in combinations(run.models, 2):
                sides = [_apart(rows[name, first], rows[name, second]) for name in (one, other)]
                if sides[0] * sides[1] < 0:
                    above, below = (first, second) if sides[0] > 0 else (second, first)
                    yield f"in {PRDC[metric]}, {above} is above {below} by {one} and below it by {other}"


def _apart(one: Mapping[str, float] | None, other: Mapping[str, float] | None) -> int:
    """Say which of two scores is higher, 1 or -1, where their intervals do not overlap; else 0."""
    if one is None or other is None or None in (one["ci_low"], other["ci_low"]):
        return 0
    return int(one["ci_low"] > other["ci_high"]) - int(other["ci_low"] > one["ci_high"])


def _corrected(run: RunFolders) -> Section | None:
    """Put what the encoder says, what people make of it, and the truth side by side."""
    truth, grids = _scores_of(run, folders.TRUTH, labels="labels"), []
    for variant, role, metric, caption in (
        ("regions", folders.REGIONS, REGION, "Images that look as their region does"),
        ("objects", folders.OBJECTS, OBJECT, "Images that show their object"),
    ):
        put_right = _scores_of(run, folders.JUDGED, variant=variant, labels="labels", pool="pool")
        rows = []
        for model in run.models:
            place = {"metric": metric, "model": model, **NOT_KNOWN}
            people = (looked_up(put_right, labels="corrected", pool=pool, **place) for pool in (HOME, ELSEWHERE))
            rows.append((model, [looked_up(_scores_of(run, role, model), **place), *people, looked_up(truth, **place)]))
        columns = ("model", "as the encoder has it", "corrected by people who live there",
                   "corrected by people from elsewhere", "true")  # fmt: skip
        grids.append(grid(f"{caption}: shares with 95 % intervals", columns, rows))
    return Section(
        "corrected", "What is recognised, as judged, as corrected, as true",
        "An image's region is recognised where its name is nearest of all regions' names; people say whether the "
        "object or the background could be from there. True is how often people who live there would say so. A dash: "
        "people's answers could not put it right, and the notes above say why.", tuple(grids),
    )  # fmt: skip


def _in_regions(regions: Sequence[str]) -> list[tuple[str, Where]]:
    """Name a column for each region."""
    return [(region, {"group": region}) for region in regions]


def _realism(run: RunFolders, regions: Sequence[str]) -> Iterator[Section]:
    """Show how near images lie to photographs, by extractor and by region."""
    grids = []
    for name in run.variants(folders.REALISM):
        table = _scores_of(run, folders.REALISM, variant=name).filter(pl.col("concept").is_null())
        rows: Sources = [(model, {"model": model}, table) for model in run.models]
        together = [(title, {"metric": metric, "group": None}) for metric, title in PRDC.items()]
        grids.append(score_grid(f"By {name}, all regions together", "model", together, rows))
        for metric in ("prdc_precision", "prdc_coverage"):
            only: Sources = [(model, {"model": model, "metric": metric}, table) for model in run.models]
            caption = f"{PRDC[metric].capitalize()} by {name}, by region"
            grids.append(score_grid(caption, "model", _in_regions(regions), only))
    lead = ("Precision is the share of images that lie among photographs, coverage that of photographs with an image "
            "near them. Of each object and region as many photographs are drawn as the fewest has.")  # fmt: skip
    yield Section("realism", "How near images lie to photographs", lead, tuple(grids))


def _extractors(run: RunFolders) -> Section | None:
    """Show how far extractors agree on the order of models."""
    table = _scores_of(run, folders.EXTRACTORS, metric_of="metric", between="between")
    if table.is_empty():
        return None
    whole = table.filter(pl.col("group").is_null(), pl.col("concept").is_null())
    pairs = {" and ".join(parsed(f'{{"of": {pair}}}')["of"]): pair for pair in whole["between"]}
    rows: Sources = [(title, {"metric_of": metric}, whole) for metric, title in PRDC.items()]
    columns = [(title, {"between": pair}) for title, pair in pairs.items()]
    lead = "Kendall's tau: 1 where two extractors order all models alike, below 0.8 the ranking is not stable."
    shown = score_grid("Agreement on the order of models", "ranked by", columns, rows)
    return Section("extractors", "Does the extractor decide the ranking?", lead, (shown,))


def _names(run: RunFolders, regions: Sequence[str]) -> Section:
    """Show how near images lie to the names of their regions and objects, by region, photographs first."""
    grids, columns = [], [("all", {"group": None}), *_in_regions(regions)]
    for role, metric, caption in (
        (folders.REGIONS, "region_clip_score", "Region-CLIPScore"),
        (folders.OBJECTS, "object_clip_score", "Object-CLIPScore"),
        (folders.OBJECTS, OBJECT, "Share of images whose object counts as shown"),
    ):
        alone = {model: _scores_of(run, role, model).filter(metric=metric) for model in (REAL_IMAGES, *run.models)}
        rows: Sources = [(model, {"concept": None}, table) for model, table in alone.items()]
        grids.append(score_grid(caption, "model", columns, rows))
    for role, caption in ((folders.REGIONS, "region"), (folders.OBJECTS, "object")):
        grids += _said_yes(run, role, f"Annotations that see the {caption}, by its CLIPScore from")
    lead = "Region-CLIPScore favours clichés over photographs: more of it is not better."
    return Section("names", "How near images lie to names", lead, tuple(grids))


def _said_yes(run: RunFolders, role: roles.Role, caption: str) -> Iterator[Grid]:
    """Show how often people of each location say yes, by the score of the image."""
    tables = {
        model: run.table(role, model, file=f"{YES_BY_SCORE.name}.parquet") for model in (REAL_IMAGES, *run.models)
    }
    found = [read_table(path, YES_BY_SCORE) for path in tables.values() if path.is_file()]
    if not found:
        return
    every = pl.concat(found).with_columns(bucket=pl.col("low").round(2).cast(pl.String))
    scores = every.select("bucket", "model", "pool", "ci_low", "ci_high", value="rate", params=pl.lit("{}"))
    rows: Sources = [(f"{model}, people in {pool}", {"model": model, "pool": pool}, scores)
                     for model in tables for pool in every["pool"].unique().sort()]  # fmt: skip
    buckets = [(low, {"bucket": low}) for low in every.sort("low")["bucket"].unique(maintain_order=True)]
    yield score_grid(caption, "images", buckets, rows)


def _seen(run: RunFolders) -> Iterator[Section]:
    """Show how often people in and out of a region see it, and the object, in its images; then what is published."""
    lead = "Shares of all annotations, with intervals by image and annotator; locations are never merged."
    for role, anchor, title in ((folders.TASKS, "seen", "What people see in images"),
                                (folders.PUBLISHED, "published", "Annotations in the public layout")):  # fmt: skip
        table = _scores_of(run, role, variant="task2", side="side", target="target", pool="pool",
                          criterion="criterion", pairs="pairs")  # fmt: skip
        if not table.is_empty():
            agreeing = (
                () if role is folders.TASKS else _agreement_grids(table, run, ("location_agreement", "location_kappa"))
            )
            yield Section(anchor, title, lead, (*_seen_grids(table, run), *agreeing))


def _seen_grids(table: pl.DataFrame, run: RunFolders) -> Iterator[Grid]:
    """Show rates by region and by object, and who sees the object."""
    sources = _sources_of(table, run)
    for level, column, other in (("region", "group", "concept"), ("object", "concept", "group")):
        alone = table.filter(pl.col(other).is_null())
        places: list[tuple[str, Where]] = [
            ("all", {column: None}),
            *((name, {column: name}) for name in _values_in(alone, column)),
        ]
        for target in ("object", "background"):
            rates = alone.filter(metric="in_region_rate", target=target)
            rows: Sources = [(f"{source}, {people}", {"model": source, "side": side}, rates)
                             for source in sources for side, people in SIDES.items()]  # fmt: skip
            yield score_grid(f"Annotations that see the region in the {target}, by {level}", "images", places, rows)
    shown = table.filter(pl.col("concept").is_null(), metric="object_seen")
    rows = [(f"{source}, people in {pool}", {"model": source, "pool": pool}, shown)
            for source in sources for pool in _values_in(table, "pool")]  # fmt: skip
    yield score_grid("Annotations that see the object", "images", _in_regions(_values_in(table, "group")), rows)


def _values_in(table: pl.DataFrame, column: str) -> list[str]:
    """List what stands in a column, in order."""
    return list(table[column].drop_nulls().unique().sort())


def _sources_of(table: pl.DataFrame, run: RunFolders) -> list[str]:
    """Name who made images, photographs first, and who is no model of the run last."""
    known = (REAL_IMAGES, *run.models)
    there = set(table["model"])
    return [*(name for name in known if name in there), *sorted(there - set(known))]


def _agreement(run: RunFolders) -> Iterator[Section]:
    """Show how far people agree on what they see, on likeness and on appeal."""
    grids: list[Grid] = []
    for task, metrics in (("task2", ("location_agreement", "location_kappa")), ("task1", ("location_agreement",))):
        table = _scores_of(run, folders.TASKS, variant=task, criterion="criterion", pairs="pairs", pool="pool")
        grids += _agreement_grids(table, run, metrics, f", {task}")
    if grids:
        lead = "One person of each region looks at each item: this is how places differ, not how reliable each is."
        yield Section("agreement", "Do people agree?", lead, tuple(grids))


def _agreement_grids(table: pl.DataFrame, run: RunFolders, metrics: Sequence[str], task: str = "") -> Iterator[Grid]:
    """Show how far people agree, by region and by question."""
    for metric in metrics:
        about = table.filter(pl.col("pool").is_null(), pl.col("group").is_not_null(), metric=metric, pairs="all")
        rows: Sources = [(f"{source}, {place}", {"model": source, "group": place}, about)
                         for source in _sources_of(about, run) for place in _values_in(about, "group")]  # fmt: skip
        questions = [
            (question.replace("_", " "), {"criterion": question}) for question in _values_in(about, "criterion")
        ]
        if rows:
            title = "Fleiss' kappa" if metric == "location_kappa" else "Pairs that agree"
            yield score_grid(f"{title}{task}", "images", questions, rows)


def _compared(run: RunFolders) -> Iterator[Section]:
    """Show whether people choose the closer image, by distance and extractor, and what appeals to them."""
    table = _scores_of(run, folders.TASKS, variant="task1", pool="pool", extractor="extractor", low="low", bin="bin")
    if table.is_empty():
        return
    chosen = table.filter(metric="closer_choice_rate")
    bins = chosen.select("bin", pl.col("low").cast(pl.Float64)).unique().sort("low").rows()
    rows: Sources = [(f"{name}, people in {pool}", {"extractor": name, "pool": pool}, chosen)
                     for name in run.variants(folders.REALISM) for pool in _values_in(chosen, "pool")]  # fmt: skip
    further = [(f"from {low:.1f}", {"bin": place}) for place, low in bins]
    grids = [score_grid("How often the closer image is chosen, by distance", "extractor", further, rows)]
    for metric, caption in (("appeal_with_similarity", "The more alike image is the more appealing one, too"),
                            ("appeal_in_manifold", "Appealing images that lie among photographs")):  # fmt: skip
        about = table.filter(metric=metric)
        rows = [(f"{source}, people in {pool}", {"model": source, "pool": pool}, about)
                for source in _sources_of(about, run) for pool in _values_in(about, "pool")]  # fmt: skip
        grids.append(score_grid(caption, "images", _in_regions(_values_in(about, "group")), rows))
    lead = "Distances are divided by each extractor's largest; only bins that every extractor reaches are shown."
    yield Section("compared", "Which image is closer, and which more appealing?", lead,
                  tuple(one for one in grids if one.rows))  # fmt: skip


INCLUSION_PAGE = SectionReport("inclusion-report", 8, inclusion_page, (folders.TRUTH,))
