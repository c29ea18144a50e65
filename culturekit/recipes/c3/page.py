"""The page of a `c3` run: every table of the paper as a section; scores are looked up."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

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
    VALUES,
)
from culturekit.core.tables import read_table
from culturekit.metrics.linguistic.human_tables import item_scores
from culturekit.people.importing import read_project
from culturekit.recipes.c3 import roles as folders
from culturekit.recipes.c3.pairs import EVERY
from culturekit.report.gallery import Chosen, Gallery, Strip, values_of
from culturekit.report.headline import judge_stands, sentences_on, standing
from culturekit.report.plots import minus
from culturekit.report.provenance import not_put_right
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import RunFolders, with_params
from culturekit.report.sections import (
    Cell,
    Grid,
    Section,
    SectionPage,
    Where,
    drawn,
    grid,
    looked_up,
    number,
    row_of,
    score_grid,
    section_page,
)
from culturekit.scores.answers import careful_answers

TITLE = "How well do these models draw what is hard about a culture?"
STATED = ("judged-vqascore", "truth", "aligned-…", "ratings", "worth", "pearson")
IMAGE_CRITERIA = ("object_presence", "object_localization", "cultural_appropriateness", "visual_aesthetics",
                  "semantic_consistency", "cohesion")  # fmt: skip
# In the order of the paper's tables.
PAIR_CRITERIA = ("adequacy", "fluency", "consistency", "relevance", "context", "cultural_appropriateness")

NAMES = {"labse": "LaBSE (A_ST)", "clip": "CLIP (A_IT)", "objects": "only A_OT", "no-objects": "without A_OT",
         "c3": "C³"}  # fmt: skip
SENTENCES = ("labse", "clip", "objects", "c3")
ALIGNMENTS = {"c3": "A", "c3_image": "A_IT", "c3_object": "A_OT"}
EVERYWHERE: dict[str, Any] = dict.fromkeys(("country", "concept", "group"))
METRIC, RATING, RELEVANCE, ABOVE = "vqascore", "rating_mean", "relevance", 3
EXAMPLES, WORST, STEPS, BINS = 8, 2, (1, 2, 3, 4, 5), 8


def _c3_page(run: RunFolders) -> SectionPage:
    """Collect everything the page shows."""
    culture = run.needed(folders.CAPTIONS, CAPTIONS)["culture"][0] or "Other"
    shown = Gallery(run)
    found = [
        models(run, shown), learnt(run), _benchmark(run), _difficulty(run, shown), strategies(run, shown),
        _followed(run), _spread(run), criteria(run), _histogram(run, shown), _asked(run), _expansion(run),
        _exported(run),
    ]  # fmt: skip
    caveats = not_put_right(run, folders.JUDGED, {"": "Corrections"})
    return section_page(run, TITLE, (f"{culture} captions",), verdict(run), caveats, found, STATED)


def _truth_of(run: RunFolders) -> pl.DataFrame | None:
    """Read what models truly deserve."""
    return run.scored(folders.TRUTH, "", "", "criterion", "labels")


def verdict(run: RunFolders) -> Iterator[str]:
    """Say who comes first as judged, as corrected and in truth, and which strategy keeps the best pairs."""
    corrected, alone = run.scored(folders.JUDGED, "", "", "labels"), run.scored(roles.FAITHFULNESS)
    everywhere = {**EVERYWHERE, "metric": METRIC}
    sources: list[tuple[str, pl.DataFrame | None, dict[str, str]]] = [
        ("the corrected scores", corrected, {"labels": "corrected"}), ("the judge alone", alone, {}),
        ("the truth", _truth_of(run), {"labels": "truth"}),
    ]  # fmt: skip
    words = ("comes first in VQAScore", "ahead of")
    found = [standing(table, run.models, by, words, {**everywhere, **where}) for by, table, where in sources]
    yield from sentences_on(found)
    if not found[0].order:
        yield judge_stands(asked=corrected is not None)
    worth = run.scored(folders.WORTH, "", "", "criterion", "labels")
    if worth is None:
        return
    named = worth.with_columns(pl.col("model").replace(NAMES))
    strategies = named["model"].unique(maintain_order=True).to_list()
    fit = ("keeps the pairs that fit best", "better than")
    common = {"metric": RATING, "criterion": RELEVANCE, "country": None, "group": None}
    yield from sentences_on([
        standing(named, strategies, by, fit, {**common, "labels": labels})
        for labels, by in (("people", "people's ratings"), ("truth", "the truth"))
    ])  # fmt: skip


def models(run: RunFolders, shown: Gallery) -> Section:
    """Put judged, corrected and true scores side by side, and the alignments of images with their captions."""
    corrected, truth = run.scored(folders.JUDGED, "", "", "labels"), _truth_of(run)
    alone = run.scored(roles.FAITHFULNESS)
    sources: list[tuple[str, Where, pl.DataFrame | None]] = [
        ("VQAScore as judged", {}, alone), ("corrected by people", {"labels": "corrected"}, corrected),
        ("true", {"labels": "truth"}, truth),
    ]  # fmt: skip
    scores = grid("VQAScore over all captions, with 95 % intervals", ("model", *(name for name, *_ in sources)), (
        (model, [looked_up(table, **{**EVERYWHERE, "metric": METRIC, "model": model, **where})
                 for _, where, table in sources])
        for model in run.models
    ))  # fmt: skip
    alignments = score_grid(
        "Alignment over all captions", "model", [(name, {"metric": metric}) for metric, name in ALIGNMENTS.items()],
        [(model, {}, run.needed(folders.ALIGNED, SCORES, model)) for model in run.models],
    )  # fmt: skip
    return Section(
        "models", "What is shown, as judged, as corrected, as true",
        "VQAScore is how probable a judge finds it that an image shows its caption; people say how many of the things "
        "it names are there. A is A_IT (image and caption) plus A_OT (objects in the image and caption). "
        f"{_seen_by(run)}", tuple(drawn(one, "dots", one.caption.partition(" ")[0]) for one in (scores, alignments)),
        strips=_examples(run, shown),
    )  # fmt: skip


def _examples(run: RunFolders, shown: Gallery) -> tuple[Strip, ...]:
    """Show the images that score highest and lowest, and where the judge and people differ most."""
    judged = values_of(run, roles.FAITHFULNESS, {"metric": METRIC})
    rated = values_of(run, folders.RATINGS, {"metric": "rating_mean", "criterion": "object_presence"})
    far = shown.apart(("judge", judged), ("people", rated.with_columns((pl.col("value") - 1) / 4)), run.models)
    return (
        *shown.strip("Highest and lowest VQAScore of each model", shown.ends(judged, run.models, most=3)),
        *shown.strip("Captions on which the judge and people differ most, from 0 to 1", far),
    )


def _seen_by(run: RunFolders) -> str:
    """Say who lists objects in place of the paper's GRiT, and what vectors the alignments compare."""
    listed, variant = run.manifest(folders.OBJECTS, run.models[0]).options, "image-target"
    vectors, images = (run.manifest(folders.VECTORS, run.models[0], which) for which in (variant, "image"))
    who = f"the detector {listed['detector']}" if "detector" in listed else "a vision model"
    compared = ("Single tokens are compared, as in the equations" if vectors.options.get("give") == "tokens"
                else "One vector of a caption is compared, as in the authors' code")  # fmt: skip
    patches = "; images are compared by their patches" if "give=patches" in str(images.options["encoder"]) else ""
    return f"In place of GRiT, {who} lists objects. {compared}{patches}."


def learnt(run: RunFolders) -> Section | None:
    """Put what a model and those trained from it draw of the same captions side by side, with their differences."""
    manifests = {name: run.manifest(roles.IMAGES, name) for name in run.models}
    tuned = [name for name, images in manifests.items() if "adapter" in images.inputs]
    if not tuned:
        return None
    backend = manifests[tuned[0]].options["backend"]
    before = next(
        name for name in run.models if name not in tuned and manifests[name].options.get("backend") == backend
    )
    trained = {name: run.found(folders.FINETUNED, name) or run.manifest(folders.FINETUNED, before) for name in tuned}
    compared = run.scored(folders.COMPARED, "", "", "of.criterion", "p_corrected")
    rated = [] if compared is None else [name for name in IMAGE_CRITERIA if name in set(compared["of.criterion"])]
    differences = (
        (f"{one} less {other}", [*_change(compared, one, other, criterion=None),
                                 *(_change(compared, one, other, criterion=criterion)[0] for criterion in rated)])
        for other, one in combinations((before, *tuned), 2)
    )  # fmt: skip
    learning = (
        (name, [*(Cell(f"{found.counts[count]:,}") for count in ("pairs", "steps", "learned numbers")),
                *(number(found.notes["loss"][when]) for when in ("before", "after"))])
        for name, found in trained.items()
    )  # fmt: skip
    how = next(iter(trained.values())).options
    what = "Every weight of the denoiser" if how.get("learns") == "full" else f"An adapter (LoRA, rank {how['rank']})"
    training = (f"{what} was trained, in batches of {how['batch']} on {how.get('processes', 1)} device(s); in the "
                "paper every weight, in one pass with batches of 2 on 8 GPUs.")  # fmt: skip
    after = tuned[0] if len(tuned) == 1 else f"{len(tuned)} models"
    return Section(
        "finetune", f"{before} before, {after} after the fine-tune",
        f"The same captions, with the same seeds; the scores stand above. {training}",
        (grid("Differences, caption by caption, with 95 % intervals",
              ("models", "VQAScore", "p, corrected", *map(_spaced, rated)), differences),
         grid("What was learnt: the loss is that on pairs of the training, with the same noise",
              ("model", "pairs", "steps", "numbers learned", "loss before", "loss after"), learning)),
    )  # fmt: skip


def _change(compared: pl.DataFrame | None, one: str, other: str, *, criterion: str | None) -> tuple[Cell, Cell]:
    """Look up how much more one model has than another, and the p value of that; models are compared by name."""
    pair, sign = (f"{one} - {other}", 1) if one < other else (f"{other} - {one}", -1)
    row = row_of(compared, model=pair, **{"of.criterion": criterion}, **EVERYWHERE)
    if row is None:
        return Cell("–"), Cell("–")
    ends = sorted(sign * row[name] for name in ("ci_low", "ci_high")) if row["ci_low"] is not None else []
    p = row["p_corrected"]
    return number(sign * row["value"], *ends), Cell("–" if p is None else f"{float(p):.3f}")


def _benchmark(run: RunFolders) -> Section:
    """Count captions, words and objects of each set, and of each category of the sample."""
    tables = {
        name: read_table(run.table(folders.STATS, variant=name), CAPTION_STATS) for name in run.variants(folders.STATS)
    }
    rows = [(name, row) for name, table in tables.items() for row in table.filter(category="all").to_dicts()]
    parts = [(row["category"], row) for row in tables["sample"].filter(pl.col("category") != "all").to_dicts()]
    grids = tuple(
        grid(caption, (head, "captions", "words each", "objects each"), (
            (name, (Cell(f"{row['captions']:,}"), Cell(f"{row['words']:.2f}"),
                    Cell("–" if row["objects"] is None else f"{row['objects']:.2f}")))
            for name, row in counted
        ))
        for caption, head, counted in (("Sets of captions", "set", rows), ("The sample", "category of error", parts))
    )  # fmt: skip
    return Section("captions", "The captions", "The more words and objects, the harder to draw.", grids)


def _difficulty(run: RunFolders, shown: Gallery) -> Section | None:
    """Show how hard each category of error is, and what models draw worst of it."""
    table = run.scored(folders.DIFFICULTY, "", "", "category")
    categories = [] if table is None else sorted(set(table["category"]))
    if table is None or not categories:
        return None
    columns = [(model, {"model": model}) for model in run.models]
    grids = tuple(
        score_grid(what, "category", columns,
                   [(name, {"metric": metric, "category": name}, table) for name in categories], "dots", axis)
        for metric, what, axis in ((METRIC, "VQAScore as judged", "VQAScore"),
                                   (RATING, "Mean rating by people over all criteria", "rating"))
        if metric in set(table["metric"])
    )  # fmt: skip
    values = values_of(run, folders.DIFFICULTY, {"metric": METRIC})
    named = values.with_columns(category=pl.col("params").str.json_path_match("$.category"))
    lowest = named.drop_nulls("value").sort("value", "item").group_by("model", "category").head(WORST)
    worst = [
        (f"{model}, {name}", [(item, [f"{value:.2f}"]) for item, value in part.select("item", "value").iter_rows()])
        for model in run.models for name in categories for part in [lowest.filter(model=model, category=name)]
    ]  # fmt: skip
    strips = shown.strip("Drawn worst, as judged: the caption stands with each picture", worst)
    lead = "By category of error; captions without one, such as COCO's, are called other. The lower, the harder."
    return Section("difficulty", "Which captions are hard?", lead, grids, strips=strips)


def strategies(run: RunFolders, shown: Gallery) -> Section | None:
    """Show what the pairs that each strategy keeps are worth: as people rate them, and in truth."""
    worth = run.scored(folders.WORTH, "", "", "criterion", "labels")
    if worth is None:
        return None
    names = list(dict.fromkeys(run.needed(folders.SELECTED, SELECTED)["strategy"]))
    grids = tuple(
        score_grid(caption, "strategy", _of_criteria(PAIR_CRITERIA), [
            (NAMES.get(name, name), {"model": name, "labels": labels}, worth) for name in names
        ], "dots", "mean rating")
        for labels, caption in (("people", "Mean ratings by people of the pairs that are kept, with 95 % intervals"),
                                ("truth", "What all pairs that are kept truly deserve"))
        if labels in worth["labels"].to_list()
    )  # fmt: skip
    lead = "From 1 to 5. Relevance is how far caption and picture show the same: what a model would learn from."
    return Section("strategies", "Which pairs are worth training on?", lead, grids, strips=_kept(run, names, shown))


def _kept(run: RunFolders, names: Sequence[str], shown: Gallery) -> tuple[Strip, ...]:
    """Show the pictures that each strategy ranks first and last."""
    by_rank = run.needed(folders.SELECTED, SELECTED).drop_nulls("value").sort("rank", "item")
    groups: list[tuple[str, Chosen]] = []
    for name in names:
        items = by_rank.filter(strategy=name)["item"].to_list()
        ends = [(item, ["first"]) for item in items[:2]] + [(item, ["last"]) for item in items[-2:]]
        groups.append((NAMES.get(name, name), ends))
    return shown.strip("Pictures that each strategy ranks first and last", groups)


def _spaced(name: str) -> str:
    """Write the name of a criterion in words."""
    return name.replace("_", " ")


def _of_criteria(names: Sequence[str]) -> list[tuple[str, Where]]:
    """Give a column to each criterion."""
    return [(_spaced(name), {"criterion": name}) for name in names]


def _followed(run: RunFolders) -> Section | None:
    """Show how what strategies rank by follows people's ratings."""
    table = run.scored(folders.PEARSON, "", "", "strategy", "with.criterion", "p")
    if table is None:
        return None
    found = {
        NAMES.get(name, name): [row_of(table, strategy=name, **{"with.criterion": one})
                                for one in (*PAIR_CRITERIA, EVERY)]
        for name in dict.fromkeys(run.needed(folders.SELECTED, SELECTED)["strategy"])
    }  # fmt: skip
    rows = ((name, [Cell("–") if row is None else number(row["value"], row["ci_low"], row["ci_high"]) for row in each])
            for name, each in found.items())  # fmt: skip
    columns = ("ranked by", *map(_spaced, PAIR_CRITERIA), EVERY)
    lead = "Over the pairs that people rated; the last column is the mean of the six, as in the paper."
    return Section("pearson", "Do alignments follow people?", lead, (
        drawn(grid("Pearson correlation with people's ratings, with 95 % intervals", columns, rows), "dots",
              "correlation"),
        grid("How often values dealt out at random follow people as closely (p)", columns,
             ((name, map(_p_value, each)) for name, each in found.items())),
    ))  # fmt: skip


def _spread(run: RunFolders) -> Section | None:
    """Show how sentence scores are spread over the pairs that people rated, beside people's mean ratings of them."""
    if not run.has(folders.RANKED):
        return None
    values = with_params(read_table(run.values_of(folders.RANKED), VALUES), "strategy").drop_nulls("value")
    answers = careful_answers(run.needed(folders.IMPORTED, ANNOTATIONS, folders.PAIRS))
    people = item_scores(answers)[1].group_by("item_id").agg(pl.col("score").mean())["score"]
    found = {NAMES[name]: values.filter(strategy=name)["value"] for name in SENTENCES} | {"people": people}
    grids = []
    for name, each in found.items():
        if each.is_empty():
            continue
        counts, edges = in_steps(each)
        shares = (Cell(f"{count / len(each):.1%}", point=(count / len(each), None, None)) for count in counts.tolist())
        columns = ("scored by", *(minus(f"{low:.2f}") for low in edges[:-1]))
        grids.append(drawn(Grid(f"Scores by {name}", columns, ((Cell(name), *shares),)), "bars", "from this value on"))
    lead = "Shares of the pairs that people rated, in steps of equal width; people: the mean over all criteria."
    return Section("spread", "How scores are spread", lead, tuple(grids))


def in_steps(values: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count values in steps of equal width, and say where these begin and end; values that are alike are in the first.

    A histogram of numpy refuses values that differ by rounding alone.
    """
    known = values.to_numpy()
    low, high = float(known.min()), float(known.max())
    edges = np.linspace(low, high if high - low > 1e-6 else low + 1, BINS + 1)
    return np.histogram(known, bins=edges)[0], edges


def _p_value(row: Mapping[str, Any] | None) -> Cell:
    """Write the p value of a score."""
    if row is None or row["p"] is None:
        return Cell("–")
    return Cell("< 0.001" if (p := float(row["p"])) < 0.001 else f"{p:.3f}")


def criteria(run: RunFolders) -> Section | None:
    """Show people's ratings of images by criterion and model, and what images deserve where that is known."""
    table, truth = run.scored(folders.RATINGS, "", "", "criterion"), _truth_of(run)
    if table is None:
        return None
    kinds = [("Mean ratings by people", table)] + ([] if truth is None else [("What images deserve", truth)])
    grids = tuple(
        score_grid(caption, "model", _of_criteria(IMAGE_CRITERIA), [
            (model, {"metric": "rating_mean", "model": model, "group": None}, part) for model in run.models
        ], "dots", "mean rating")
        for caption, part in kinds
    )  # fmt: skip
    return Section("criteria", "Six criteria", "From 1 to 5, with 95 % intervals.", grids)


def _histogram(run: RunFolders, shown: Gallery) -> Section | None:
    """Show how often people gave each rating to images of each set of captions, and some of these images."""
    beside = run.variants(folders.BESIDE_PROMPTS)
    sets = {"": folders.OF_MODELS, **{name: name for name in beside}}
    rows, most = list[tuple[str, list[Cell]]](), list[tuple[str, list[Cell]]]()
    for name, what in sets.items():
        if not run.has(folders.IMPORTED, what):
            continue
        about = read_table(run.table(folders.IMPORTED, what, file="rated_items.parquet"), RATED_ITEMS)
        answers = careful_answers(run.needed(folders.IMPORTED, ANNOTATIONS, what)).drop_nulls("value")
        rated = answers.join(about.select("item_id", "model"), on="item_id")
        for model in run.models:
            ratings, head = rated.filter(model=model)["value"], f"{model}, {name}" if name else model
            shares = [int((ratings == step).sum()) / max(1, len(ratings)) for step in STEPS]
            rows.append((head, [Cell(f"{share:.1%}", point=(share, None, None)) for share in shares]))
            most.append((head, [Cell(f"{sum(shares[STEPS.index(ABOVE) :]):.1%}")]))
    strips = [(f"{model}, {name or 'this benchmark'}", chosen) for name in ("", *beside)
              for model, chosen in _few(run, name)] if beside else []  # fmt: skip
    grids = (drawn(grid("Ratings of images", ("model", *map(str, STEPS)), rows), "bars", "rating"),
             grid(f"Ratings of {ABOVE} and more", ("model", "share"), most))  # fmt: skip
    lead = "Shares of all ratings, over all criteria."
    more = shown.strip("Images of each set of captions, highest and lowest VQAScore first", strips)
    return Section("histogram", "How people rated", lead, grids if rows else (), strips=more) if rows or more else None


def _few(run: RunFolders, beside: str) -> Iterator[tuple[str, Chosen]]:
    """Choose some images that each model drew of a set of captions, the highest and the lowest first."""
    role = folders.BESIDE_JUDGED if beside else roles.FAITHFULNESS
    values = values_of(run, role, {"metric": METRIC}, variant=beside).drop_nulls("value").sort("value", "item")
    for model in run.models:
        ends = values.filter(model=model)
        chosen = pl.concat([ends.tail(2).reverse(), ends.head(2)]).unique("item", maintain_order=True)
        yield model, [(item, [f"{value:.2f}"]) for item, value in chosen.select("item", "value").iter_rows()]


def _asked(run: RunFolders) -> Section | None:
    """Write out what people were asked, and what each step means."""
    grids = []
    for what, of in ((folders.OF_MODELS, "images"), (folders.PAIRS, "translated captions")):
        if not run.has(folders.FORMS, what):
            continue
        asked = [one for one in read_project(run.folder(folders.FORMS, what))[1].criteria if one.levels]
        steps = sorted({one.low + number for one in asked for number in range(len(one.levels)) if one.low is not None})
        rows = [(str(step), [Cell(one.levels[step - (one.low or 0)]) for one in asked]) for step in reversed(steps)]
        if rows:
            grids.append(grid(f"Of {of}", ("rating", *(_spaced(one.name) for one in asked)), rows))
    return Section("asked", "What each rating means", "As the forms say it.", tuple(grids)) if grids else None


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
        grid("What became of proposals", ("outcome", "proposals"),
             ((outcome, [Cell(f"{count:,}")]) for outcome, count in counts.iter_rows())),
        grid("Dropped for an earlier caption, some", ("proposal", "earlier caption", "cosine"), (
            (row["text"], (Cell(texts[row["nearest"]], row["nearest"]), number(row["similarity"])))
            for row in dropped.iter_rows(named=True)
        )),
    )  # fmt: skip
    return Section("expansion", "How the captions grew", f"{manifest.notes.get('ended', '')}.", grids)


def _exported(run: RunFolders) -> Section | None:
    """Show how many pairs each strategy exports, under which licences, and what a fine-tune learnt from them."""
    variants = run.variants(folders.EXPORTED)
    if not variants:
        return None
    rows = list[tuple[str, list[Cell]]]()
    for name in variants:
        table = read_table(run.table(folders.EXPORTED, variant=name, file="exported.parquet"), EXPORTED)
        for (licence,), part in table.group_by("licence", maintain_order=True):
            sources = ", ".join(sorted(set(part["source"].drop_nulls())))
            cells = (str(licence or "none"), sources or "–", f"{part['item'].n_unique():,}")
            rows.append((NAMES.get(name, name), list(map(Cell, cells))))
    shown = grid("Exported pairs", ("strategy", "licence", "source", "pairs"), rows)
    return Section("exports", "What goes out", "With the licence and the source of each pair.", (shown,))


C3_PAGE = SectionReport("caption-report", 11, _c3_page, (folders.TRUTH, folders.PAIR_TRUTH))
