"""What two routes say of images, read again from their matches and from what a judge said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.labelled_images import DiversityTables, quality_of
from culturekit.verify.scores.vendi import LEVELS

__all__ = ["Sides", "read_sides", "scored_tables"]

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
    for role in sorted(stage.manifest.inputs):
        path = tree.source(stage, role)
        if path is None:
            return None
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
