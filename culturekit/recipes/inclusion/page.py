"""The page of an `inclusion` run: every table of the study as a section; scores are looked up."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.roles import REAL_IMAGES
from culturekit.core.schemas import PROMPTS, SCORES, TASK1, YES_BY_SCORE
from culturekit.core.tables import read_table
from culturekit.recipes.inclusion import roles as folders
from culturekit.report.gallery import Chosen, Gallery, Strip, values_of
from culturekit.report.headline import sentences_on, standing
from culturekit.report.provenance import not_put_right
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import RunFolders, values_in, with_params
from culturekit.report.sections import (
    Grid,
    Section,
    SectionPage,
    Sources,
    Where,
    drawn,
    grid,
    looked_up,
    row_of,
    score_grid,
    section_page,
)
from culturekit.scores.family import parsed

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
    shown = Gallery(run)
    sections = [_corrected(run, shown), *_realism(run, regions), _extractors(run), _names(run, regions),
                *_seen(run, shown), *_agreement(run), *_compared(run, shown)]  # fmt: skip
    pictures = (roles.IMAGES, folders.PLAIN)
    corrected = {variant: f"Corrections ({variant})" for variant in run.variants(folders.JUDGED)}
    caveats = (*not_put_right(run, folders.MARKS, {"": "People's answers"}),
               *not_put_right(run, folders.JUDGED, corrected))  # fmt: skip
    return section_page(run, TITLE, regions, _verdict(run), caveats, sections, STATED, pictures=pictures)


def _scores_of(run: RunFolders, role: roles.Role, model: str = "", variant: str = "", **params: str) -> pl.DataFrame:
    """Read the scores of a stage, with some parameters as columns; none for a run without it."""
    found = run.scored(role, model, variant, **params)
    return with_params(pl.DataFrame(schema=SCORES.schema), **params) if found is None else found


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


def _corrected(run: RunFolders, shown: Gallery) -> Section | None:
    """Put what the encoder says, what people make of it, and the truth side by side."""
    truth, grids = _scores_of(run, folders.TRUTH, labels="labels"), []
    for variant, role, metric, caption in (
        ("regions", folders.REGIONS, REGION, "Images that look as their region does"),
        ("objects", folders.OBJECTS, OBJECT, "Images that show their object"),
    ):
        put_right = _scores_of(run, folders.JUDGED, variant=variant, labels="labels", pool="pool")
        rows = []
        for model in run.models:
            where = {"metric": metric, "model": model, **NOT_KNOWN}
            people = (looked_up(put_right, labels="corrected", pool=pool, **where) for pool in (HOME, ELSEWHERE))
            rows.append((model, [looked_up(_scores_of(run, role, model), **where), *people, looked_up(truth, **where)]))
        columns = ("model", "as the encoder has it", "corrected by people who live there",
                   "corrected by people from elsewhere", "true")  # fmt: skip
        grids.append(drawn(grid(f"{caption}: shares with 95 % intervals", columns, rows), "dots", "share of images"))
    judged = values_of(run, folders.REGIONS, {"metric": REGION}, models=run.models)
    home = _seen_by(run, "in", folders.TASKS)
    strips = shown.strip("Images on which the encoder and people who live there differ most: 1 sees the region, 0 does "
                         "not", shown.apart(("encoder", judged), ("people", home), run.models))  # fmt: skip
    return Section(
        "corrected", "What is recognised, as judged, as corrected, as true",
        "An image's region is recognised where its name is nearest of all regions' names; people say whether the "
        "object or the background could be from there. True is how often people who live there would say so. A dash: "
        "people's answers could not put it right, and the notes above say why.", tuple(grids), strips=strips,
    )  # fmt: skip


def _seen_by(run: RunFolders, side: str, role: roles.Role) -> pl.DataFrame:
    """Read whether people in or out of a region see it in the object, answer by answer."""
    return values_of(run, role, {"metric": "in_region_rate", "by": "[]", "side": side, "target": "object"},
                     variant="task2")  # fmt: skip


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
        grids.append(score_grid(f"By {name}, all regions together", "model", together, rows, "dots", "score"))
        for metric in ("prdc_precision", "prdc_coverage"):
            only: Sources = [(model, {"model": model, "metric": metric}, table) for model in run.models]
            caption = f"{PRDC[metric].capitalize()} by {name}, by region"
            grids.append(score_grid(caption, "model", _in_regions(regions), only, "dots", PRDC[metric]))
    k = {run.manifest(folders.REALISM, variant=name).options["k"] for name in run.variants(folders.REALISM)}
    lead = ("Precision is the share of images that lie among photographs, coverage that of photographs with an image "
            "near them. Of each object and region as many photographs are drawn as the fewest has. Near is within "
            f"k = {', '.join(map(str, sorted(k)))} neighbours: PRDC's own is 5, the authors' code takes 3. Of vectors "
            "of length one only directions count; that code takes them as they are (?give=features).")  # fmt: skip
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
        grids.append(score_grid(caption, "model", columns, rows, "dots", caption.partition(" of ")[0]))
    for role, caption in ((folders.REGIONS, "region"), (folders.OBJECTS, "object")):
        grids += _said_yes(run, role, f"annotations that see the {caption}, by its CLIPScore, in steps from")
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
    buckets = [(low, {"bucket": low}) for low in every.sort("low")["bucket"].unique(maintain_order=True)]
    for model in tables:
        rows: Sources = [(f"people in {pool}", {"model": model, "pool": pool}, scores)
                         for pool in every["pool"].unique().sort()]  # fmt: skip
        yield score_grid(f"{model}: {caption}", "images", buckets, rows, "curves", "share that sees it")


def _seen(run: RunFolders, shown: Gallery) -> Iterator[Section]:
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
            strips = _disputed(run, shown, role, _sources_of(table, run))
            yield Section(anchor, title, lead, (*_seen_grids(table, run), *agreeing), strips=strips)


def _disputed(run: RunFolders, shown: Gallery, role: roles.Role, models: Sequence[str]) -> tuple[Strip, ...]:
    """Show the items that people agree on and those that divide people of a region from people elsewhere."""
    home, away = (_seen_by(run, side, role) for side in SIDES)
    agreed = shown.ends(pl.concat([home, away]), models, most=3)
    far = shown.apart(("live there", home), ("elsewhere", away), models)
    return (
        *shown.strip("Most agreed: the share of all people who see the region in the object", agreed),
        *shown.strip("Most disputed: the shares of people who live there, and elsewhere, who see it", far),
    )


def _seen_grids(table: pl.DataFrame, run: RunFolders) -> Iterator[Grid]:
    """Show rates by region and by object, and who sees the object."""
    sources = _sources_of(table, run)
    for level, column, other in (("region", "group", "concept"), ("object", "concept", "group")):
        alone = table.filter(pl.col(other).is_null())
        places: list[tuple[str, Where]] = [
            ("all", {column: None}),
            *((name, {column: name}) for name in values_in(alone, column)),
        ]
        for target in ("object", "background"):
            rates = alone.filter(metric="in_region_rate", target=target)
            rows: Sources = [(f"{source}, {people}", {"model": source, "side": side}, rates)
                             for source in sources for side, people in SIDES.items()]  # fmt: skip
            yield score_grid(f"Annotations that see the region in the {target}, by {level}", "images", places, rows,
                             "dots" if level == "region" else "heat", "share of annotations")  # fmt: skip
    shown = table.filter(pl.col("concept").is_null(), metric="object_seen")
    rows = [(f"{source}, people in {pool}", {"model": source, "pool": pool}, shown)
            for source in sources for pool in values_in(table, "pool")]  # fmt: skip
    regions = _in_regions(values_in(table, "group"))
    yield score_grid("Annotations that see the object", "images", regions, rows, "heat")


def _sources_of(table: pl.DataFrame, run: RunFolders) -> list[str]:
    """Name who made images, photographs first, and who is no model of the run last."""
    known = (REAL_IMAGES, *run.models)
    there = set(table["model"])
    return [*(name for name in known if name in there), *sorted(there - set(known))]


def _agreement(run: RunFolders) -> Iterator[Section]:
    """Show how far people agree on what they see, on likeness and on appeal."""
    grids: list[Grid] = []
    for task, metrics in (("task2", ("location_agreement", "location_kappa")), ("task1", ("location_agreement",))):
        every = _scores_of(run, folders.TASKS, variant=task, criterion="criterion", pairs="pairs", pool="pool",
                           reference="reference_source")  # fmt: skip
        table = every.filter(pl.col("reference").is_null())
        grids += _by_reference(every.drop_nulls("reference"), run)
        grids += _agreement_grids(table, run, metrics, f", {task}")
    if grids:
        lead = "One person of each region looks at each item: this is how places differ, not how reliable each is."
        yield Section("agreement", "Do people agree?", lead, tuple(grids))


def _by_reference(table: pl.DataFrame, run: RunFolders) -> Iterator[Grid]:
    """Show how far people agree on which image is more alike, by who made the images and the reference."""
    alike = table.filter(metric="location_agreement", pairs="all", criterion="similarity")
    if not alike.is_empty():
        rows: Sources = [(f"{source}, compared with {reference}", {"model": source, "reference": reference}, alike)
                         for source in _sources_of(alike, run) for reference in values_in(alike, "reference")
                         if not alike.filter(model=source, reference=reference).is_empty()]  # fmt: skip
        columns = _in_regions(values_in(alike, "group"))
        yield score_grid("Pairs that agree on likeness, by reference", "images", columns, rows, "dots", "share")


def _agreement_grids(table: pl.DataFrame, run: RunFolders, metrics: Sequence[str], task: str = "") -> Iterator[Grid]:
    """Show how far people agree, by region and by question."""
    for metric in metrics:
        about = table.filter(pl.col("pool").is_null(), pl.col("group").is_not_null(), metric=metric, pairs="all")
        rows: Sources = [(f"{source}, {region}", {"model": source, "group": region}, about)
                         for source in _sources_of(about, run) for region in values_in(about, "group")]  # fmt: skip
        questions = [
            (question.replace("_", " "), {"criterion": question}) for question in values_in(about, "criterion")
        ]
        if rows:
            title = "Fleiss' kappa" if metric == "location_kappa" else "Pairs that agree"
            yield score_grid(f"{title}{task}", "images", questions, rows, "heat")


def _compared(run: RunFolders, shown: Gallery) -> Iterator[Section]:
    """Show whether people choose the closer image, by distance and extractor, and what appeals to them."""
    table = _scores_of(run, folders.TASKS, variant="task1", pool="pool", extractor="extractor", low="low", bin="bin",
                       chosen="chosen")  # fmt: skip
    if table.is_empty():
        return
    chosen, inside = (table.filter(metric=name) for name in ("closer_choice_rate", "appeal_in_manifold"))
    bins = chosen.select("bin", pl.col("low").cast(pl.Float64)).unique().sort("low").rows()
    further, grids = [(f"{low:.1f}", {"bin": name}) for name, low in bins], list[Grid]()
    for name, region in product(run.variants(folders.REALISM), (None, *values_in(chosen, "group"))):
        rows: Sources = [(f"people in {pool}", {"extractor": name, "pool": pool, "group": region}, chosen)
                         for pool in values_in(chosen, "pool")]  # fmt: skip
        title = f"By {name}, {region or 'all regions'}: how often the closer image is chosen, by distance from"
        grids.append(score_grid(title, "people", further, rows, "curves", "share that chooses the closer"))
    for name in run.variants(folders.REALISM):
        rows = [(f"people in {pool}, the {side} one more alike", {"extractor": name, "pool": pool, "chosen": side},
                 table.filter(metric="appeal_by_distance"))
                for side in ("closer", "further") for pool in values_in(chosen, "pool")]  # fmt: skip
        title = f"By {name}, how often the more alike image appeals more, too, by distance from"
        grids.append(score_grid(title, "people", further, rows, "curves", "share to whom it appeals more"))
    alike, among = table.filter(metric="appeal_with_similarity"), "Appealing images that lie among photographs"
    for about, caption, column in ((alike, "The more alike image is the more appealing one, too", "group"),
                                   (inside, among, "group"), (inside, f"{among}, by object", "concept")):  # fmt: skip
        rows = [(f"{source}, people in {pool}", {"model": source, "pool": pool}, about)
                for source in _sources_of(about, run) for pool in values_in(about, "pool")]  # fmt: skip
        columns = [(one, {column: one}) for one in values_in(about, column)]
        grids.append(score_grid(caption, "images", columns, rows, "dots", "share of answers"))
    lead = "Distances are divided by each extractor's largest; only bins that every extractor reaches are shown."
    strips = shown.strip("Triplets on which all people choose alike, and on which they are split", _triplets(run))
    yield Section("compared", "Which image is closer, and which more appealing?", lead,
                  tuple(one for one in grids if one.rows), strips=strips)  # fmt: skip


def _triplets(run: RunFolders) -> Iterator[tuple[str, Chosen]]:
    """Choose of each model the triplets whose closer image people agree on most, and least."""
    table = read_table(run.table(folders.PEOPLE, variant="task1", file=f"{TASK1.name}.parquet"), TASK1)
    chosen = table.group_by("triplet_id", "source", "reference_id", "first_id", "second_id").agg(
        pl.col("similar_id").is_not_null().sum().alias("people"),
        (pl.col("similar_id") == pl.col("first_id")).sum().alias("first"),
        (pl.col("appealing_id") == pl.col("first_id")).sum().alias("appealing"),
    )  # fmt: skip
    split = (pl.col("first") / pl.col("people") - 0.5).abs()
    for model in run.models:
        ordered = chosen.filter(pl.col("people") > 0, source=model).sort(split, "triplet_id", descending=[True, False])
        for head, row in zip(("agreed", "split"), (*ordered[:1].to_dicts(), *ordered[-1:].to_dicts()), strict=False):
            many = row["people"]
            yield (
                f"{model}, {head}",
                [
                    (row["reference_id"], ["reference"]),
                    (row["first_id"], [f"closer to {row['first']} of {many}", f"more appealing to {row['appealing']}"]),
                    (row["second_id"], [f"closer to {many - row['first']}"]),
                ],
            )


INCLUSION_PAGE = SectionReport("inclusion-report", 10, inclusion_page, (folders.TRUTH,))
