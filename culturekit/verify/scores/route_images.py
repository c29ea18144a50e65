"""What two routes say of images, read again from their tables, and how far they agree: shares, kappa, limits."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, clustered_share
from culturekit.verify.scores.labelled_images import DiversityTables, quality_of
from culturekit.verify.scores.student import t_quantile
from culturekit.verify.scores.vendi import LEVELS

__all__ = ["Pair", "Sides", "kappa_answer", "read_sides", "scored_tables", "share_answer"]

NOTHING = "(none shown)"
READ = ("ok", "repaired")

Rows = Mapping[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Sides:
    """Two routes: image -> its nearest match with `said`; the methods that name them; quality by scorer."""

    a: Rows
    b: Rows
    names: tuple[str, str]
    quality: Mapping[str, Mapping[str, float]]

    @property
    def common(self) -> list[str]:
        """The images that both have, in order."""
        return sorted(set(self.a) & set(self.b))


def read_sides(tree: RunTree, stage: FinishedStage) -> Sides | None:
    """Read both routes; None where an input is not here as it was."""
    found: dict[str, list[Path]] = {"a": [], "b": [], "quality": [], "judgments": []}
    paths = tree.inputs_of(stage)
    if paths is None:
        return None
    for role, path in paths.items():
        found[role.partition("-")[0]].append(path)
    said: dict[str, str] = {}
    for path in found["judgments"]:
        judged = pl.read_parquet(path).filter(pl.col("outcome").is_in(READ)).drop_nulls("choice")
        said |= dict(judged.select("image_id", "choice").iter_rows())
    a, b = (side(found[name], said) for name in ("a", "b"))
    methods = [next((row["method"] for row in rows.values()), name) for name, rows in (("a", a), ("b", b))]
    names = (methods[0], methods[1]) if methods[0] != methods[1] else (f"{methods[0]} a", f"{methods[1]} b")
    return Sides(a, b, names, quality_of([pl.read_parquet(path) for path in found["quality"]]))


def side(paths: Sequence[Path], said: Mapping[str, str]) -> Rows:
    """Read one route, and say of each image whether it is named, not sure, shows nothing, or got no answer."""
    rows = {}
    for path in paths:
        for row in pl.read_parquet(path).filter(pl.col("rank") == 1).iter_rows(named=True):
            choice, bare = said.get(row["image_id"]), row["artifact"] is None
            if bare:
                kind = {None: "no answer", "no": "none shown"}.get(choice, "abstained")
            else:
                kind = "abstained" if row["abstained"] else "named"
            rows[row["image_id"]] = {**row, "said": kind}
    return rows


def labelled(row: dict[str, Any]) -> bool:
    """Tell whether an image has something to be scored by."""
    return row["artifact"] is not None or row["said"] == "none shown"


def scored_tables(sides: Sides) -> DiversityTables:
    """Give the labels that diversity is scored of, under the names of the routes."""
    images = [image for image in sides.common if labelled(sides.a[image]) and labelled(sides.b[image])]
    tables = [
        pl.DataFrame([scored(rows[image], name) for image in images], schema=SCORED, orient="row")
        for rows, name in ((sides.a, sides.names[0]), (sides.b, sides.names[1]))
    ]
    return DiversityTables(tables, [], [], sides.quality, None, None, {}, ())


SCORED = {
    "image_id": pl.String, "model": pl.String, "concept": pl.String, "prompt_id": pl.String, "repeat": pl.UInt16,
    "slot": pl.UInt8, "method": pl.String, **dict.fromkeys(LEVELS, pl.String),
}  # fmt: skip


def scored(row: dict[str, Any], method: str) -> dict[str, Any]:
    """Keep what diversity is scored of; images that show nothing are alike in that."""
    labels = {level: NOTHING if row["said"] == "none shown" else row[level] for level in LEVELS}
    return {**{name: row[name] for name in SCORED if name in row}, **labels, "method": method}


Pair = tuple[str, str, str]
"""The label by the one, the label by the other, and the batch."""


def share_answer(pairs: Sequence[Pair], confidence: float) -> Answer:
    """Give the share of equal labels, and Wilson's limits for as many images as scatter like the batches."""
    if not pairs:
        return Answer(math.nan, math.nan, math.nan)
    return clustered_share([float(a == b) for a, b, _ in pairs], [[batch for *_, batch in pairs]], confidence)


def kappa_answer(pairs: Sequence[Pair], confidence: float) -> Answer:
    """Give kappa, and t limits from leaving batches out one at a time."""
    value = kappa(pairs)
    batches = sorted({batch for *_, batch in pairs})
    nothing = Answer(value, math.nan, math.nan)
    if len(batches) < 2 or math.isnan(value):
        return nothing
    without = Leaving(pairs)
    values = [without.kappa(batch) for batch in batches]
    average = math.fsum(values) / len(values)
    spread = (len(batches) - 1) / len(batches) * math.fsum((one - average) ** 2 for one in values)
    if not spread > 0:
        return nothing
    margin = t_quantile(len(batches) - 1, confidence) * math.sqrt(spread)
    return Answer(value, max(-1.0, value - margin), min(1.0, value + margin))


def kappa(pairs: Sequence[Pair]) -> float:
    """Give Cohen's kappa; NaN where both give one and the same label, or there is nothing to compare."""
    if not pairs:
        return math.nan
    return of_counts(
        sum(a == b for a, b, _ in pairs), Counter(a for a, *_ in pairs), Counter(b for _, b, _ in pairs), len(pairs)
    )


def of_counts(equal: int, of_a: Counter[str], of_b: Counter[str], n: int) -> float:
    """Give kappa from how many labels are equal and how often each was given."""
    chance = sum(count * of_b[label] for label, count in of_a.items()) / n**2
    return (equal / n - chance) / (1 - chance) if chance < 1 else math.nan


class Leaving:
    """Kappa of all images but those of one batch."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        """Count everything once, and batch by batch."""
        self.members: defaultdict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            self.members[pair[2]].append(pair)
        self.equal = sum(a == b for a, b, _ in pairs)
        self.of_a, self.of_b = Counter(a for a, *_ in pairs), Counter(b for _, b, _ in pairs)
        self.n = len(pairs)

    def kappa(self, batch: str) -> float:
        """Leave a batch out."""
        own = self.members[batch]
        of_a, of_b = Counter(self.of_a), Counter(self.of_b)
        of_a.subtract(a for a, *_ in own)
        of_b.subtract(b for _, b, _ in own)
        return of_counts(self.equal - sum(a == b for a, b, _ in own), of_a, of_b, self.n - len(own))
