"""The page of a `c3` run: every table of the paper as a section; scores are looked up."""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.schemas import (
    ANNOTATIONS,
    CAPTION_PROPOSALS,
    CAPTION_STATS,
    CAPTIONS,
    EXPORTED,
    RATED_ITEMS,
    SCORES,
    SELECTED,
)
from culturekit.core.tables import read_table
from culturekit.recipes.c3 import roles as folders
from culturekit.report.headline import sentences_on, standing
from culturekit.report.provenance import not_put_right
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import RunFolders
from culturekit.report.sections import (
    Cell,
    Grid,
    Section,
    SectionPage,
    looked_up,
    number,
    row_of,
    section_page,
    with_params,
)
from culturekit.scores.answers import careful_answers

TITLE = "How well do these models draw what is hard about a culture?"
STATED = ("judged-vqascore", "truth", "aligned-…", "ratings", "worth", "pearson")
IMAGE_CRITERIA = ("object_presence", "object_localization", "cultural_appropriateness", "visual_aesthetics",
                  "semantic_consistency", "cohesion")  # fmt: skip
PAIR_CRITERIA = ("adequacy", "fluency", "consistency", "relevance", "context", "cultural_appropriateness")
"""In the order of the paper's tables."""

NAMES = {
    "labse": "LaBSE (A_ST)",
    "clip": "CLIP (A_IT)",
    "objects": "only A_OT",
    "no-objects": "without A_OT",
    "c3": "C³",
}
ALIGNMENTS = {"c3": "A", "c3_image": "A_IT", "c3_object": "A_OT"}
METRIC, RATING, RELEVANCE, ABOVE = "vqascore", "rating_mean", "relevance", 3
EXAMPLES, STEPS = 8, (1, 2, 3, 4, 5)


def _c3_page(run: RunFolders) -> SectionPage:
    """Collect everything the page shows."""
    culture = run.needed(folders.CAPTIONS, CAPTIONS)["culture"][0]
    found = [models(run), learnt(run), _benchmark(run), strategies(run), _followed(run), criteria(run), _histogram(run),
             _expansion(run), _exported(run)]  # fmt: skip
    caveats = not_put_right(run, folders.JUDGED, {"": "Corrections"})
    return section_page(run, TITLE, (f"{culture} captions",), verdict(run), caveats, found, STATED)


def _scores_of(run: RunFolders, role: roles.Role, *names: str) -> pl.DataFrame | None:
    """Read the scores of a stage, with some parameters as columns; None for a run without it."""
    table = run.read(role, SCORES)
    return None if table is None else with_params(table, *names)


def _truth_of(run: RunFolders) -> pl.DataFrame | None:
    """Read what models truly deserve."""
    return _scores_of(run, folders.TRUTH, "criterion", "labels")


def verdict(run: RunFolders) -> Iterator[str]:
    """Say who comes first as judged, as corrected and in truth, and which strategy keeps the best pairs."""
    corrected, alone = _scores_of(run, folders.JUDGED, "labels"), _scores_of(run, roles.FAITHFULNESS)
    everywhere = dict.fromkeys(("country", "concept", "group")) | {"metric": METRIC}
    sources: list[tuple[str, pl.DataFrame | None, dict[str, str]]] = [
        ("the corrected scores", corrected, {"labels": "corrected"}), ("the judge alone", alone, {}),
        ("the truth", _truth_of(run), {"labels": "truth"}),
    ]  # fmt: skip
    words = ("comes first in VQAScore", "ahead of")
    found = [standing(table, run.models, by, words, {**everywhere, **where}) for by, table, where in sources]
    yield from sentences_on(found)
    if not found[0].order:
        yield "Nobody has put the judge right: what it says of the models stands as it is."
    worth = _scores_of(run, folders.WORTH, "criterion", "labels")
    if worth is None:
        return
    named = worth.with_columns(pl.col("model").replace(NAMES))
    strategies = named["model"].unique(maintain_order=True).to_list()
    fit = ("keeps the pairs that fit best", "better than")
    place = {"metric": RATING, "criterion": RELEVANCE, "country": None, "group": None}
    yield from sentences_on([
        standing(named, strategies, by, fit, {**place, "labels": labels})
        for labels, by in (("people", "people's ratings"), ("truth", "the truth"))
    ])  # fmt: skip


def models(run: RunFolders) -> Section:
    """Put judged, corrected and true scores side by side, and the alignments of images with their captions."""
    corrected, truth = _scores_of(run, folders.JUDGED, "labels"), _truth_of(run)
    alone = _scores_of(run, roles.FAITHFULNESS)
    rows = []
    for model in run.models:
        aligned = run.needed(folders.ALIGNED, SCORES, model)
        everywhere: dict[str, Any] = dict.fromkeys(("country", "concept", "group")) | {"model": model, "metric": METRIC}
        rows.append((
            Cell(model), looked_up(alone, **everywhere), looked_up(corrected, labels="corrected", **everywhere),
            looked_up(truth, labels="truth", **everywhere),
            *(looked_up(aligned, metric=metric) for metric in ALIGNMENTS),
        ))  # fmt: skip
    columns = ("model", "VQAScore as judged", "corrected by people", "true", *ALIGNMENTS.values())
    return Section(
        "models", "What is shown, as judged, as corrected, as true",
        "VQAScore is how probable a judge finds it that an image shows its caption; people say how many of the things "
        "it names are there. A is the sum of A_IT (image and caption) and A_OT (objects in the image and caption).",
        (Grid("Scores over all captions, with 95 % intervals", columns, tuple(rows)),),
    )  # fmt: skip


def learnt(run: RunFolders) -> Section | None:
    """Show what a model draws of the same captions before and after it was trained on pairs, and what it learnt."""
    for before in run.models_with(folders.FINETUNED):
        after, training = run.models[-1], run.manifest(folders.FINETUNED, before)
        alone, corrected = _scores_of(run, roles.FAITHFULNESS), _scores_of(run, folders.JUDGED, "labels")
        aligned = pl.concat([run.needed(folders.ALIGNED, SCORES, model) for model in (before, after)])
        nowhere: dict[str, Any] = dict.fromkeys(("country", "concept", "group"))
        kinds: list[tuple[str, pl.DataFrame | None, dict[str, Any]]] = [
            ("VQAScore as judged", alone, {"metric": METRIC}),
            ("VQAScore corrected by people", corrected, {"metric": METRIC, "labels": "corrected"}),
            *((name, aligned, {"metric": metric}) for metric, name in ALIGNMENTS.items()),
        ]
        scored = tuple(
            (Cell(name), *(looked_up(table, model=model, **which, **nowhere) for model in (before, after)))
            for name, table, which in kinds
        )
        compared = _scores_of(run, folders.COMPARED, "p_corrected")
        pair, sign = (f"{before} - {after}", -1) if before < after else (f"{after} - {before}", 1)
        row = row_of(compared, model=pair, **nowhere)
        ends = [] if row is None else sorted(sign * row[name] for name in ("ci_low", "ci_high"))
        change = Cell("–") if row is None else number(sign * row["value"], *ends)
        probes = training.notes["loss"]
        training_grid = (
            (Cell("VQAScore, after less before, caption by caption"), change),
            (Cell("loss on pairs of the training, with the same noise, before"), number(probes["before"])),
            (Cell("the same, after"), number(probes["after"])),
            (Cell("steps"), Cell(f"{training.counts['steps']:,}")),
            (Cell("pairs"), Cell(f"{training.counts['pairs']:,}")),
        )
        return Section(
            "finetune", f"{before} before, {after} after the fine-tune", "The same captions, with the same seeds.",
            (Grid("Scores", ("score", before, after), scored), Grid("What was learnt", ("", "value"), training_grid)),
        )  # fmt: skip
    return None


def _benchmark(run: RunFolders) -> Section:
    """Count captions, words and objects of each set, and of each category of the sample."""
    tables = {
        name: read_table(run.table(folders.STATS, variant=name), CAPTION_STATS) for name in run.variants(folders.STATS)
    }
    rows = [(name, row) for name, table in tables.items() for row in table.filter(category="all").to_dicts()]
    parts = [(row["category"], row) for row in tables["sample"].filter(pl.col("category") != "all").to_dicts()]
    columns = ("captions", "words each", "objects each")
    grids = tuple(
        Grid(caption, (head, *columns), tuple(
            (Cell(name), Cell(f"{row['captions']:,}"), Cell(f"{row['words']:.2f}"),
             Cell("–" if row["objects"] is None else f"{row['objects']:.2f}"))
            for name, row in counted
        ))
        for caption, head, counted in (("Sets of captions", "set", rows), ("The sample", "category of error", parts))
    )  # fmt: skip
    return Section("captions", "The captions", "The more words and objects, the harder to draw.", grids)


def strategies(run: RunFolders) -> Section | None:
    """Show what the pairs that each strategy keeps are worth: as people rate them, and in truth."""
    worth = _scores_of(run, folders.WORTH, "criterion", "labels")
    if worth is None:
        return None
    names = list(dict.fromkeys(run.needed(folders.SELECTED, SELECTED)["strategy"]))
    grids = tuple(
        Grid(caption, ("strategy", *map(_spaced, PAIR_CRITERIA)), tuple(
            (Cell(NAMES.get(name, name)), *(looked_up(worth, model=name, criterion=criterion, labels=labels)
                                            for criterion in PAIR_CRITERIA))
            for name in names
        ))
        for labels, caption in (("people", "Mean ratings by people of the pairs that are kept, with 95 % intervals"),
                                ("truth", "What all pairs that are kept truly deserve"))
        if labels in worth["labels"].to_list()
    )  # fmt: skip
    lead = "From 1 to 5. Relevance is how far caption and picture show the same: what a model would learn from."
    return Section("strategies", "Which pairs are worth training on?", lead, grids)


def _spaced(name: str) -> str:
    """Write the name of a criterion in words."""
    return name.replace("_", " ")


def _followed(run: RunFolders) -> Section | None:
    """Show how what strategies rank by follows people's ratings."""
    table = _scores_of(run, folders.PEARSON, "params.strategy", "with.criterion", "method")
    if table is None:
        return None
    table = table.filter(metric="human_correlation", model="captions").rename(
        {"params.strategy": "strategy", "with.criterion": "criterion"}
    )
    rows = []
    for name in dict.fromkeys(run.needed(folders.SELECTED, SELECTED)["strategy"]):
        found = [row_of(table, strategy=name, criterion=criterion) for criterion in PAIR_CRITERIA]
        cells = [Cell("–") if row is None else number(row["value"], row["ci_low"], row["ci_high"]) for row in found]
        known = [row["value"] for row in found if row is not None and row["value"] is not None]
        rows.append((Cell(NAMES.get(name, name)), *cells, number(fmean(known) if known else None)))
    grid = Grid(
        "Pearson correlation with people's ratings", ("ranked by", *map(_spaced, PAIR_CRITERIA), "all"), tuple(rows)
    )
    lead = "Over the pairs that people rated; the last column is the mean of the six, as in the paper."
    return Section("pearson", "Do alignments follow people?", lead, (grid,))


def criteria(run: RunFolders) -> Section | None:
    """Show people's ratings of images by criterion and model, and what images deserve where that is known."""
    table, truth = _scores_of(run, folders.RATINGS, "criterion"), _truth_of(run)
    if table is None:
        return None
    kinds = [("Mean ratings by people", table)] + ([] if truth is None else [("What images deserve", truth)])
    grids = tuple(
        Grid(caption, ("model", *map(_spaced, IMAGE_CRITERIA)), tuple(
            (Cell(model), *(looked_up(part, metric="rating_mean", model=model, criterion=criterion, group=None)
                            for criterion in IMAGE_CRITERIA))
            for model in run.models
        ))
        for caption, part in kinds
    )  # fmt: skip
    return Section("criteria", "Six criteria", "From 1 to 5, with 95 % intervals.", grids)


def _histogram(run: RunFolders) -> Section | None:
    """Show how often people gave each rating."""
    if not run.has(folders.IMPORTED, folders.OF_MODELS):
        return None
    path = run.table(folders.IMPORTED, folders.OF_MODELS)
    about = read_table(run.table(folders.IMPORTED, folders.OF_MODELS, file="rated_items.parquet"), RATED_ITEMS)
    answers = careful_answers(read_table(path, ANNOTATIONS)).drop_nulls("value")
    rated = answers.join(about.select("item_id", "model"), on="item_id")
    rows = []
    for model in run.models:
        ratings = rated.filter(model=model)["value"]
        shares = [int((ratings == step).sum()) / max(1, len(ratings)) for step in STEPS]
        above = sum(share for step, share in zip(STEPS, shares, strict=True) if step >= ABOVE)
        rows.append((Cell(model), *(Cell(f"{share:.1%}", "", share) for share in (*shares, above))))
    columns = ("model", *map(str, STEPS), f"{ABOVE} and more")
    return Section("histogram", "How people rated", "Shares of all ratings, over all criteria.",
                   (Grid("Ratings of images", columns, tuple(rows)),))  # fmt: skip


def _expansion(run: RunFolders) -> Section | None:
    """Show what became of proposals, and which were dropped for an earlier caption."""
    path = run.table(folders.CAPTIONS, file="caption_proposals.parquet")
    if not path.is_file():
        return None
    proposals, manifest = read_table(path, CAPTION_PROPOSALS), run.manifest(folders.CAPTIONS)
    counts = proposals["outcome"].value_counts().sort("count", "outcome", descending=[True, False])
    texts = dict(run.needed(folders.CAPTIONS, CAPTIONS).select("id", "text").iter_rows())
    twice = proposals.drop_nulls("nearest").sort("similarity", "round", "request", "position", descending=True)
    dropped = twice.filter(pl.col("outcome") != "kept").head(EXAMPLES)
    grids = (
        Grid("What became of proposals", ("outcome", "proposals"),
             tuple((Cell(outcome), Cell(f"{count:,}")) for outcome, count in counts.iter_rows())),
        Grid("Dropped for an earlier caption, some", ("proposal", "earlier caption", "cosine"), tuple(
            (Cell(row["text"]), Cell(texts[row["nearest"]], row["nearest"]), number(row["similarity"]))
            for row in dropped.iter_rows(named=True)
        )),
    )  # fmt: skip
    return Section("expansion", "How the captions grew", f"{manifest.notes.get('ended', '')}.", grids)


def _exported(run: RunFolders) -> Section | None:
    """Show how many pairs each strategy exports, under which licences, and what a fine-tune learnt from them."""
    variants = run.variants(folders.EXPORTED)
    if not variants:
        return None
    rows = []
    for name in variants:
        table = read_table(run.table(folders.EXPORTED, variant=name, file="exported.parquet"), EXPORTED)
        for licence, part in table.group_by("licence", maintain_order=True):
            sources = ", ".join(sorted(set(part["source"].drop_nulls())))
            rows.append((Cell(NAMES.get(name, name)), Cell(licence[0] or "none"), Cell(sources or "–"),
                         Cell(f"{part['item'].n_unique():,}")))  # fmt: skip
    grid = Grid("Exported pairs", ("strategy", "licence", "source", "pairs"), tuple(rows))
    return Section("exports", "What goes out", "With the licence and the source of each pair.", (grid,))


C3_PAGE = SectionReport("caption-report", 8, _c3_page, (folders.TRUTH, folders.PAIR_TRUTH))
