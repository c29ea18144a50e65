"""Scores of what people see in objects and triplets, from the raw answers: pairs and distances, one at a time."""

import ast
import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, clustered_share, wilson
from culturekit.verify.scores.score_rows import close, compare_row, wrong_row

__all__ = ["answers_of", "check_consistency", "check_seen_scores", "closer_answers", "code_of", "inside_answers",
           "key_of", "reliable", "scored_again"]  # fmt: skip

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Key: TypeAlias = tuple[object, ...]
Answers: TypeAlias = dict[Key, list[tuple[float, str, str]]]
"""By what is scored: each answer's value, image (or triplet) and annotator."""

CODES = {"africa": "af", "europe": "eu", "southeastasia": "sea"}
CELLS = ((), ("region",), ("object",), ("region", "object"))
CRITERIA = {"similarity": "similar_id", "appeal": "appealing_id"}
LOW = "the mean over objects of a low percentile of their scores; its limits are not recomputed"
HOW = "from what each person answered; limits by image and annotator"


def check_seen_scores(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Score Task 1 or Task 2 again; what cannot be is left to the values beside the scores."""
    task = stage.manifest.stage.removeprefix("score-")
    source, options = tree.source(stage, task), stage.manifest.options
    if source is None or options.get("sources"):
        return
    people = pl.read_parquet(source).to_dicts() if source.suffix == ".parquet" else public_rows(source)
    kept = reliable(list(people), options["least"])
    answers = answers_of(kept)
    if task == "task1":
        spaces, real = spaces_of(tree, stage, {row["about"].get("extractor", "") for row in rows})
        answers |= closer_answers(kept, spaces, options["bins"])
        if real is not None:
            answers |= inside_answers(kept, spaces[options["real"]], real, options["real"], options["k"])
    for row in rows:
        said = answers.get(key_of(row))
        if said:
            again = scored_again(row["metric"], said, options["confidence"])
            compare_row(stage.name, row, again, len(said), HOW, ledger)


def public_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the public layout; rows that cannot be read are left out."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            try:
                said = ast.literal_eval(row["annotation_result"])
                shown = {"ym": True, "nm": False}[said["match"]]
            except (ValueError, SyntaxError, KeyError, TypeError):
                continue
            yield {**row, "shown": shown, "object_regions": said.get("obj") or [], "region": row["region"] or None,
                   "background_regions": said.get("geo") or [], "source": row.get("source") or "real"}  # fmt: skip


def code_of(region: str | None) -> str | None:
    """Give the code of a region."""
    return CODES.get("".join(letter for letter in (region or "").casefold() if letter.isalpha()))


def reliable(people: Rows, least: float) -> Rows:
    """Leave out, object by object and region by region, who sees the object in too few photographs."""
    seen = defaultdict[Key, list[bool]](list)
    for row in people:
        cell = (row["annotator_id"], row["object"], row["region"])
        if isinstance(row["shown"], bool):
            seen[cell] += [row["shown"]] if row["source"] == "real" else []
            continue
        places = {"reference_id": row["reference_source"], "first_id": row["source"], "second_id": row["source"]}
        for name in (name for name, source in places.items() if source == "real" and row["shown"] is not None):
            seen[cell].append(row[name] in row["shown"])
    low = {cell for cell, found in seen.items() if found and sum(found) / len(found) < least}
    return [row for row in people if (row["annotator_id"], row["object"], row["region"]) not in low]


def answers_of(people: Rows) -> Answers:
    """Collect the answers behind rates, consistency, co-occurrence and agreement."""
    found: Answers = defaultdict(list)
    choices: dict[Key, list[tuple[str, object]]] = defaultdict(list)
    for row in people:
        where, who, source, region = (row[name] for name in ("annotator_loc", "annotator_id", "source", "region"))
        if "triplet_id" in row:
            for criterion, column in CRITERIA.items():
                if row[column] is not None:
                    choices[source, region, criterion, row["triplet_id"]].append((where, row[column]))
            if None not in (row["similar_id"], row["appealing_id"]):
                same = float(row["similar_id"] == row["appealing_id"])
                key = ("appeal_with_similarity", source, region, None, where, None)
                found[key].append((same, row["triplet_id"], who))
            continue
        own, item = code_of(region), row["img_path"]
        named = {what: own in row[f"{what}_regions"] for what in ("object", "background")} if own else {}
        for question, answer in {"shown": row["shown"], **named}.items():
            choices[source, region, question, item].append((where, answer))
        side = "in" if own == code_of(where) else "out"
        for cell in CELLS if region is not None else CELLS[::2]:
            at = (source, region if "region" in cell else None, row["object"] if "object" in cell else None)
            found["object_seen", *at, where, cell].append((float(row["shown"]), item, who))
            for target, names in named.items():
                found["in_region_rate", *at, (side, target), cell].append((float(names), item, who))
    for (source, region, asked, shown), said in choices.items():
        for pairs, pool, shares in pairs_of(said):
            about: Key = (source, region, None, pool, (asked, pairs))
            found["location_agreement", *about].append((sum(shares) / len(shares), str(shown), ""))
            found["location_unanimity", *about].append((float(all(shares)), str(shown), ""))
            own_said = [answer for place, answer in said if pool in (None, place)]
            found["location_kappa", *about].append((float(own_said.count(True)), str(shown), str(len(own_said))))
    return found


def pairs_of(said: Sequence[tuple[str, object]]) -> Iterator[tuple[str, str | None, list[bool]]]:
    """Compare everybody with everybody, each pool within itself, and with all others."""
    pools = sorted({place for place, _ in said})
    groups: list[tuple[str, str | None, list[tuple[object, object]]]] = [
        ("all", None, [(a[1], b[1]) for a, b in combinations(said, 2)])
    ]
    for pool in pools:
        own, others = ([answer for place, answer in said if (place == pool) is here] for here in (True, False))
        groups.append(("within", pool, list(combinations(own, 2))))
        groups.append(("across", pool, [(one, other) for one in own for other in others]))
    yield from ((kind, pool, [one == other for one, other in both]) for kind, pool, both in groups if both)


def spaces_of(tree: RunTree, stage: FinishedStage, names: Iterable[str]) -> tuple[dict[str, dict[str, Any]], Any]:
    """Give the vectors of images by extractor, and those of all photographs by the extractor of the manifold."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    real = None
    for role, path in tree.sources_of(stage, "vectors.npy"):
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        own = role.removesuffix("-values").removeprefix("features-")
        if own == "real":
            real = np.asarray(vectors, np.float64)
            continue
        ids = pl.read_parquet(path.parent / "ids.parquet").sort("row")["id"].to_list()
        name = max((one for one in names if f"{own}-".startswith(f"{one}-")), key=len, default=own)
        found[name] |= dict(zip(ids, vectors, strict=True))
    return found, real


def squared(one: Any, other: Any) -> float:  # noqa: ANN401 - vectors
    """Give the squared distance of two vectors."""
    return float(np.square(np.asarray(one, np.float64) - np.asarray(other, np.float64)).sum())


def closer_answers(people: Rows, spaces: Mapping[str, Mapping[str, Any]], bins: int) -> Answers:
    """Say of each answer whether the image chosen is the closer one, by extractor and by how much closer."""
    answered = [row for row in people if row["similar_id"] is not None]
    further: dict[tuple[str, str], float] = {}
    for name, space in spaces.items():
        for row in answered:
            if (name, row["triplet_id"]) not in further:
                first, second = (
                    squared(space[row["reference_id"]], space[row[end]]) for end in ("first_id", "second_id")
                )
                further[name, row["triplet_id"]] = second - first
    most = {name: max(abs(gap) for (one, _), gap in further.items() if one == name) or 1.0 for name in spaces}
    placed = {key: min(bins - 1, math.floor(abs(gap) / most[key[0]] * bins)) for key, gap in further.items() if gap}
    reached = [{place for (one, _), place in placed.items() if one == name} for name in spaces]
    found: Answers = defaultdict(list)
    for name in spaces:
        for row in answered:
            item, place = row["triplet_id"], placed.get((name, row["triplet_id"]))
            if place is not None and all(place in own for own in reached):
                nearer = row["first_id"] if further[name, item] > 0 else row["second_id"]
                key = ("closer_choice_rate", "all", None, None, row["annotator_loc"], (name, place))
                found[key].append((float(row["similar_id"] == nearer), item, row["annotator_id"]))
    return found


def inside_answers(people: Rows, space: Mapping[str, Any], real: Any, name: str, k: int) -> Answers:  # noqa: ANN401
    """Say of each appealing image whether it lies in the manifold of real ones, where one of the two compared does."""
    radii = [np.sort(np.square(real - one).sum(axis=1))[k] for one in real]
    inside: dict[str, bool] = {}
    found: Answers = defaultdict(list)
    for row in people:
        if row["combo"] != "A" or row["appealing_id"] is None:
            continue
        for image in (row["first_id"], row["second_id"]):
            if image not in inside:
                inside[image] = bool((np.square(real - np.asarray(space[image], np.float64)).sum(axis=1) < radii).any())
        if inside[row["first_id"]] != inside[row["second_id"]]:
            key = ("appeal_in_manifold", row["source"], row["region"], None, row["annotator_loc"], (name, k))
            found[key].append((float(inside[row["appealing_id"]]), row["triplet_id"], row["annotator_id"]))
    return found


def key_of(row: Mapping[str, Any]) -> Key:
    """Name what a row scores."""
    about, metric = row["about"], row["metric"]
    pool: object = about.get("pool")
    more: object = None
    if metric.startswith("location_"):
        more = (about["criterion"], about["pairs"])
    elif metric == "closer_choice_rate":
        more = (about["extractor"], about["bin"])
    elif metric == "appeal_in_manifold":
        more = (about["extractor"], about["k"])
    elif metric in {"in_region_rate", "object_seen"}:
        more = tuple(about["by"])
        pool = (about["side"], about["target"]) if metric == "in_region_rate" else pool
    return (metric, row["model"], row["group"], row["concept"], pool, more)


def scored_again(metric: str, said: Sequence[tuple[float, str, str]], confidence: float) -> Answer:
    """Give the value and the limits of a score from the answers behind it."""
    values, items, people = [one for one, *_ in said], [one for _, one, _ in said], [one for *_, one in said]
    if metric == "location_kappa":
        return Answer(kappa([(yes, int(every)) for yes, every in zip(values, people, strict=True)]), math.nan, math.nan)
    if metric == "location_unanimity":
        share = fsum(values) / len(values)
        return Answer(share, *wilson(share, len(values), NormalDist().inv_cdf((1 + confidence) / 2)))
    return clustered_share(values, (items, people), confidence)


def check_consistency(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Take a low percentile of each object's scores again, and their mean; other rows are left to their values."""
    wanted, path = [row for row in rows if row["metric"] == "object_consistency"], stage.folder / "values.parquet"
    prompts = tree.source(stage, "prompts")
    if not wanted or prompts is None:
        return
    named = dict(pl.read_parquet(prompts).select("prompt_id", "concept").iter_rows())
    scores: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in pl.read_parquet(path).filter(pl.col("concept").is_null(), metric="object_clip_score").to_dicts():
        scores[one["model"], one["group"]][named[one["prompt_id"]]].append(one["value"])
    for row in wanted:
        objects = scores[row["model"], row["group"]].values()
        low = [float(np.percentile(own, row["about"]["percentile"])) for own in objects]
        found = fsum(low) / len(low) if low else math.nan
        if not close(row["value"], found):
            wrong_row(stage.name, row, "is not what its values give", expected=found, found=row["value"], ledger=ledger)
        ledger.judge(stage.name, row, "consistent" if close(row["value"], found) else "wrong", LOW)


def kappa(counts: Sequence[tuple[float, int]]) -> float:
    """Give Fleiss' kappa of yes and no; of each item how many say yes, and of how many."""
    items = [(yes, n) for yes, n in counts if n > 1]
    share = fsum(yes for yes, _ in items) / sum(n for _, n in items)
    chance = share**2 + (1 - share) ** 2
    seen = fsum((yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1)) for yes, n in items) / len(items)
    return (seen - chance) / (1 - chance)
