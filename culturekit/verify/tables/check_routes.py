"""Two routes from image to label: their scores, how far they agree and where they part, worked out again."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.diversity_scores import check_diversity, values_by_score
from culturekit.verify.scores.qvs_scores import check_terms
from culturekit.verify.scores.route_images import Pair, Sides, kappa_answer, read_sides, scored_tables, share_answer
from culturekit.verify.scores.score_rows import SCORES_FILE, close, compare_row, wrong_row
from culturekit.verify.scores.stability import ranking_rows
from culturekit.verify.scores.vendi import LEVELS, order_of, spelled

__all__ = ["check_routes"]

CHECK = "scores"
AGREEMENT = {"route_agreement": share_answer, "route_kappa": kappa_answer}
HOW = "counted again from both tables of matches, image by image; limits from the batches"
SAID = ("named", "abstained", "none shown", "no answer")

Parts = Mapping[tuple[str, str | None], list[str]]
"""Model and concept, None for all concepts, to the common images."""


def check_routes(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out every row and the table of disagreements."""
    sides = read_sides(tree, stage)
    diversity = [row for row in rows if row["metric"] in {"vs", "qvs"}]
    check_terms(stage, diversity, ledger)
    if sides is None:
        ledger.not_verifiable(stage.name, rows, "its matches, judgments or quality are not here")
        return
    check_diversity(stage.name, diversity, scored_tables(sides), values_by_score(stage), ledger)
    parts = parts_of(sides)
    for row in rows:
        if row["metric"] in AGREEMENT:
            check_agreement(stage.name, row, sides, parts, ledger)
    plain = [{**row, "about": without_labels(row["about"])} for row in diversity]
    ranking_rows(stage.name, rows, {name: of_route(plain, name) for name in sides.names}, ledger)
    check_there(stage, rows, sides, parts, ledger)
    check_disagreements(stage, sides, parts, ledger)


def without_labels(about: Mapping[str, Any]) -> dict[str, Any]:
    """Take out where labels come from, which parts the routes' scores."""
    return {key: value for key, value in about.items() if key != "labels"}


def of_route(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Keep the scores of one route."""
    return [row for row in rows if row["about"].get("method") == name]


def parts_of(sides: Sides) -> Parts:
    """Part common images by model and concept, and by model over its concepts."""
    parts: dict[tuple[str, str | None], list[str]] = {}
    for image in sides.common:
        row = sides.a[image]
        for concept in dict.fromkeys((row["concept"], None)):
            parts.setdefault((row["model"], concept), []).append(image)
    several = len({sides.a[image]["concept"] for image in sides.common}) > 1
    named = {model for model, concept in parts if concept is not None}
    return {key: own for key, own in parts.items() if key[1] is not None or several or key[0] not in named}


def pairs_in(sides: Sides, images: Sequence[str], level: str) -> Iterator[tuple[str, str, str]]:
    """Give the labels as they came, and the batch, of images for which both name one."""
    for image in images:
        a, b = sides.a[image], sides.b[image]
        if (a["said"], b["said"]) != ("named", "named") or a[level] is None or b[level] is None:
            continue
        whole = a["prompt_id"] is None or a["repeat"] is None
        yield a[level], b[level], image if whole else f"{a['prompt_id']}\n{a['repeat']}"


def check_agreement(folder: str, row: dict[str, Any], sides: Sides, parts: Parts, ledger: Ledger) -> None:
    """Work one measure of agreement out."""
    images, level = parts.get((row["model"], row["concept"]), []), str(row["about"].get("level"))
    if level not in LEVELS or not images:
        wrong_row(folder, row, "no common image is behind this", expected="images of both", found=level, ledger=ledger)
        ledger.judge(folder, row, "wrong", HOW)
        return
    pairs: list[Pair] = [(spelled(a), spelled(b), batch) for a, b, batch in pairs_in(sides, images, level)]
    answer = AGREEMENT[row["metric"]](pairs, float(row["about"]["confidence"]))
    said: dict[str, object] = {
        "between": list(sides.names), "common": len(images), "batches": len({batch for *_, batch in pairs}),
    }  # fmt: skip
    for side, table in (("a", sides.a), ("b", sides.b)):
        own = [one for one in table.values() if one["model"] == row["model"]]
        said[f"images_{side}"] = sum(row["concept"] in {None, one["concept"]} for one in own)
        counts = Counter(table[image]["said"] for image in images)
        said |= {f"{kind.replace(' ', '_')}_{side}": counts[kind] for kind in SAID}
    compare_row(folder, row, answer, len(pairs), HOW, ledger, said=said)


def check_there(
    stage: FinishedStage, rows: Sequence[dict[str, Any]], sides: Sides, parts: Parts, ledger: Ledger
) -> None:
    """Compare the rows that are there with those that there must be."""
    options = stage.manifest.options
    orders = [order_of("inf" if q is None else q) for q in (options["q"], *options["other_orders"])]
    kernels = [tuple(float(weight) for weight in kernel) for kernel in options["kernels"]]
    wanted: set[tuple[Any, ...]] = set()
    for model, concept in parts:
        wanted |= {(metric, model, concept, level) for metric in AGREEMENT for level in LEVELS}
    for table in scored_tables(sides).mapped:
        method = table["method"][0] if table.height else ""
        for model, concept in table.select("model", "concept").unique().iter_rows():
            several = table["concept"].n_unique() > 1
            for place in {concept, None} if several else {concept}:
                for scorer in (None, *sides.quality):
                    metric = "vs" if scorer is None else "qvs"
                    wanted |= {(metric, model, place, method, k, q, scorer) for k in kernels for q in orders}
    there = [key_of(row) for row in rows if row["metric"] != "ranking_stability"]
    for key in sorted(wanted - set(there), key=str):
        ledger.broken(CHECK, f"{stage.name}/{SCORES_FILE}", "a score is missing", expected=key)
    for key in sorted({key for key in there if key not in wanted or there.count(key) > 1}, key=str):
        ledger.broken(CHECK, f"{stage.name}/{SCORES_FILE}", "a score that nobody asked for", found=key)


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Name a score by what it scores."""
    about, place = row["about"], (row["metric"], row["model"], row["concept"])
    if row["metric"] in AGREEMENT:
        return (*place, about.get("level"))
    weights = tuple(float(weight) for weight in about.get("weights", ()))
    order = order_of(about["q"]) if "q" in about else None
    return (*place, about.get("method"), weights, order, about.get("scorer"))


def check_disagreements(stage: FinishedStage, sides: Sides, parts: Parts, ledger: Ledger) -> None:
    """Count again which labels the routes give where they part."""
    found: dict[tuple[str, str | None, str, str, str], tuple[int, float]] = {}
    for (model, concept), images in parts.items():
        for level in LEVELS:
            pairs = list(pairs_in(sides, images, level))
            apart: dict[tuple[str, str], list[tuple[str, str]]] = {}
            for a, b, _ in pairs:
                if spelled(a) != spelled(b):
                    apart.setdefault((spelled(a), spelled(b)), []).append((a, b))
            for members in apart.values():
                a, b = min(one for one, _ in members), min(one for _, one in members)
                found[model, concept, level, a, b] = len(members), len(members) / len(pairs)
    names = ("model", "concept", "level", "label_a", "label_b")
    table = pl.read_parquet(stage.folder / "disagreements.parquet")
    stated = {tuple(row[name] for name in names): (row["images"], row["share"]) for row in table.to_dicts()}
    ledger.count("disagreements counted", table.height)
    for key in sorted({*found, *stated}, key=str):
        count, share = found.get(key, (0, math.nan))
        own, own_share = stated.get(key, (0, math.nan))
        if count != own or not close(own_share, share):
            where = f"{stage.name}/disagreements.parquet"
            ledger.broken(CHECK, where, f"the count of {key} is wrong", expected=count, found=own)
