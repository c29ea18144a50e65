"""Whether an audit carries a correction, by rules of its own: no corrected score may be missing that it carries."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from culturekit.storage.digests import digest
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.corrected_scores import CorrectedScores, told_apart
from culturekit.verify.scores.labelled_images import DiversityTables
from culturekit.verify.scores.rater_errors import NONE, gold_of
from culturekit.verify.scores.score_rows import SCORES_FILE
from culturekit.verify.scores.vendi import kernel_name

__all__ = ["check_withheld"]

FEWEST, FEWEST_OF_PROMPT, FEWEST_GOLD = 30, 20, 10
MOST_UNPLACED, LEAST_RIGHT = 0.1, 0.75
REDRAWN, FARTHEST = 1999, 4.0
ANSWERED, MATTERS, FEWEST_DRAWN = 0.8, 0.05, 5
MEANINGS = ("no culture shown", "cannot tell", "not in the list")


@dataclass(frozen=True, slots=True)
class Audited:
    """The images of a model and concept, and an audit.

    Attributes:
        images: their nearest matches.
        audits: all answers, as they came.
        pool: whose count.
        told: the answers of the pool about these images, none of these told apart.
        kept: those of them that nothing anchored.
        samples: what was drawn, a table of each drawing.
        unknown: nobody knows how the images were chosen.
    """

    images: pl.DataFrame
    audits: pl.DataFrame
    pool: str | None
    told: pl.DataFrame
    kept: pl.DataFrame
    samples: Sequence[pl.DataFrame]
    unknown: bool


def check_withheld(
    tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], tables: DiversityTables, ledger: Ledger
) -> None:
    """Hold against the audit which kernels of models and concepts were corrected: all that it carries, and no other."""
    if tables.audits is None or tables.missing:
        return
    options = stage.manifest.options
    pool, unknown = options.get("pool"), options.get("design", "drawn") == "unknown"
    samples = [pl.read_parquet(path) for _, path in tree.sources_of(stage, "audit_sample.parquet")]
    scores = CorrectedScores(tables, 0, "drawn")
    there = {(row["model"], row["concept"], tuple(map(float, row["about"]["weights"]))) for row in rows
             if row["metric"] == "vs" and row["about"].get("labels") == "corrected"}  # fmt: skip
    due = set[tuple[Any, ...]]()
    for (model,), own in scores.nearest.group_by("model"):
        concepts = own["concept"].unique().to_list()
        for concept in concepts:
            images = scores.images(str(model), concept)
            said = scores.said(images, pool)
            one = Audited(images, tables.audits, pool, said, scores.kept(said, pool), samples, unknown)
            uneven_draw = list(design(one))
            for kernel in options["kernels"]:
                weights = tuple(map(float, kernel))
                if not uneven_draw and not list(refusals(one, weights, int(options["size"]))):
                    due.add((model, concept, weights))
        for weights in {weights for _, _, weights in due} if len(concepts) > 1 else ():
            if all((model, concept, weights) in due for concept in concepts):
                due.add((model, None, weights))
    for model, concept, weights in sorted(due ^ there, key=str):
        ledger.broken(
            "scores", f"{stage.name}/{SCORES_FILE} ({model}, {concept or 'all concepts'}, {kernel_name(weights)})",
            "a corrected score is missing, though its audit carries it" if (model, concept, weights) in due
            else "a corrected score stands here that its audit does not carry",
        )  # fmt: skip
    ledger.count("corrected scores that audits carry", len(due))


def refusals(one: Audited, weights: Sequence[float], size: int) -> Iterator[str]:
    """Say why a kernel cannot be corrected; nothing where it can."""
    column = next(name for name, weight in zip(("artifact_id", "country", "continent"), weights[::-1], strict=True)
                  if weight > 0)  # fmt: skip
    pools = set(one.audits["pool"])
    if (one.pool is None and len(pools) > 1) or (one.pool is not None and one.pool not in pools):
        yield "pools"
        return
    own = one.audits if one.pool is None else one.audits.filter(pl.col("pool") == one.pool)
    if "none_means" in own.columns and set(own["none_means"].drop_nulls()) - set(MEANINGS):
        yield "unknown meanings of none"
    if one.told.is_empty():
        yield "no answers"
        return
    yield from contradictions(own.join(one.images.select("image_id"), on="image_id", how="semi"), one.images)
    label = pl.when("none_of_these").then(pl.lit(NONE)).otherwise(column)
    placed, kept = (table.with_columns(label=label).drop_nulls("label") for table in (one.told, one.kept))
    audited = one.told["image_id"].n_unique()
    if audited - placed["image_id"].n_unique() > MOST_UNPLACED * audited:
        yield "images that nobody could place"
    if kept["image_id"].n_unique() < FEWEST:
        yield "few images"
    yield from raters(kept, own, column)
    prompts = one.images.group_by("prompt_id").len()
    if weights[2] > 0:
        met = kept.select("image_id").unique().join(one.images, on="image_id")["prompt_id"].value_counts()
        if (
            prompts.join(met, on="prompt_id", how="left", nulls_equal=True)["count"].fill_null(0) < FEWEST_OF_PROMPT
        ).any():
            yield "few images of a prompt"
    elif (prompts["len"] < size).all():
        yield "no batch"
    named = kept.filter(~pl.col("none_of_these"), pl.col("label").is_not_null())
    for wider, weight in zip(("continent", "country"), weights[:2], strict=True):
        lost = named.filter(pl.col(wider).is_null())["image_id"].n_unique()
        if weight > 0 and lost > MOST_UNPLACED * kept["image_id"].n_unique():
            yield f"answers that do not say the {wider}"


def contradictions(answers: pl.DataFrame, images: pl.DataFrame) -> Iterator[str]:
    """Find answers that say a place and none, and countries on two continents."""
    for row in answers.filter("none_of_these").iter_rows(named=True):
        listed = row.get("none_means") != MEANINGS[2]
        if row["artifact_id"] or row["country"] or (row["continent"] and listed):
            yield "a place and none"
            break
    lies_in: dict[str, str | None] = {}
    for table in (images, answers):
        for country, continent in table.select("country", "continent").drop_nulls("country").iter_rows():
            if lies_in.setdefault(country, continent) != continent:
                yield "continents"
                return


def raters(kept: pl.DataFrame, audits: pl.DataFrame, column: str) -> Iterator[str]:
    """Find raters who agree too seldom, or who are wrong of what is known."""
    same = pairs = 0
    for labels in kept.group_by("image_id").agg("label")["label"]:
        alike = [a == b for a, b in combinations(labels.to_list(), 2)]
        same, pairs = same + sum(alike), pairs + len(alike)
    if same < LEAST_RIGHT * pairs:
        yield "disagreement"
    known = gold_of(told_apart(audits), column)
    tested = [known[person] for person in set(kept["annotator"]) if person in known]
    asked, right = (sum(one[place] for one in tested) for place in (0, 1))
    if asked >= FEWEST_GOLD and right < LEAST_RIGHT * asked:
        yield "gold"


def design(one: Audited) -> Iterator[str]:
    """Hold the answered images against what was drawn, and against even draws."""
    if one.unknown:
        if one.samples:
            yield "a design that is known"
        return
    answered = set(one.told["image_id"])
    if one.samples:
        names = {digest(table["image_id"].sort().to_list())[:16] for table in one.samples}
        if "drawing" in one.told.columns and set(one.told["drawing"].drop_nulls()) - names:
            yield "another drawing"
        drawn = pl.concat(one.samples).join(one.images.select("image_id"), on="image_id", how="semi")
        if answered - set(drawn["image_id"]):
            yield "images that were not drawn"
        met = drawn.with_columns(met=pl.col("image_id").is_in(list(answered)))
        for column in ("prompt_id", "stratum"):
            parts = met.group_by(column).agg(drawn=pl.len(), share=pl.col("met").mean())
            much = (pl.col("drawn") >= MATTERS * drawn.height) | (pl.col("share") == 0)
            low = parts.filter(pl.col("drawn") >= FEWEST_DRAWN, much, pl.col("share") < ANSWERED)
            if low.height or met["met"].sum() < ANSWERED * drawn.height:
                yield "parts without answers"
    images = one.images.with_columns(met=pl.col("image_id").is_in(list(answered)))
    rng = np.random.default_rng(0)
    for column in ("prompt_id", "country"):
        parts = images.group_by(column).agg(images=pl.len(), met=pl.col("met").sum()).sort(column)
        if uneven(parts["images"].to_list(), parts["met"].to_list(), rng):
            yield f"uneven over {column}"
    scores = images.filter(pl.col("score").is_not_null() & pl.col("score").is_finite())
    if abs(away(scores["score"].to_list(), scores["met"].to_list())) > FARTHEST:
        yield "clear images"


def uneven(images: Sequence[int], met: Sequence[int], rng: np.random.Generator) -> bool:
    """Tell whether no even draw meets parts as unevenly."""
    total, audited = sum(images), sum(met)
    if len(images) == 1 or audited in (0, total):
        return False
    expected = np.array(images) * audited / total
    drawn = rng.multivariate_hypergeometric(images, audited, size=REDRAWN, method="marginals")
    far = float((((drawn - expected) ** 2) / expected).sum(axis=1).max())
    return math.fsum((m - e) ** 2 / e for m, e in zip(met, expected, strict=True)) > far + 1e-9


def away(scores: Sequence[float], met: Sequence[bool]) -> float:
    """Say by how many standard errors answered images rank above all."""
    n, audited = len(scores), sum(met)
    if not 0 < audited < n:
        return 0.0
    places: dict[float, list[int]] = {}
    for place, score in enumerate(sorted(scores), start=1):
        places.setdefault(score, []).append(place)
    ranks = [sum(places[score]) / len(places[score]) for score in scores]
    middle = math.fsum(ranks) / n
    spread = math.sqrt(math.fsum((rank - middle) ** 2 for rank in ranks) / (n - 1))
    if spread == 0:
        return 0.0
    own = math.fsum(rank for rank, one in zip(ranks, met, strict=True) if one) / audited
    return (own - middle) / (spread * math.sqrt(1 / audited - 1 / n))
