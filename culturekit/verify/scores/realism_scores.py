"""Realism, worked out again from vectors: which images entered stands in the values, the rest is written out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import wrong_row

__all__ = ["check_realism"]

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""How far a limit may be off that is the value itself."""

HOW = "from the vectors of the images that entered"
NO_INTERVAL = f"{HOW}; its interval is not worked out"
MOST = 2e10
"""Numbers that are subtracted at most for the neighbourhoods of one model."""

EXACT, CLOSE = 1e-9, 1e-7
"""What rounding may leave, of shares and of numbers that are made by adding up and taking away larger ones."""

SHARES = ("prdc_precision", "prdc_recall", "prdc_density", "prdc_coverage")
ROWS = 128


def check_realism(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out every value of a stage of realism scores."""
    vectors = dict(tree.sources_of(stage, "vectors.npy", "probabilities.npy"))
    ids = dict(tree.sources_of(stage, "ids.parquet"))
    if "real-vectors" not in vectors or len(vectors) != len(ids):
        ledger.not_verifiable(stage.name, rows, "its vectors are not here")
        return
    values = pl.read_parquet(stage.folder / "values.parquet")
    real = Stored(vectors, ids, ("real-",))
    fake = Stored(vectors, ids, tuple(role for role in vectors if not role.startswith(("real-", "probs"))))
    probs = Stored(vectors, ids, ("probs",))
    whole = [row for row in rows if row["metric"] == "prdc_precision" and place_of(row)[1:] == (None, None, None)]
    check_equal(stage.name, whole, ledger)
    for cell in sorted({place_of(row) for row in rows}, key=str):
        own = [row for row in rows if place_of(row) == cell]
        with ledger.guarded("scores", f"{stage.name} {cell}"):
            check_cell(stage.name, own, values, real, fake, probs, ledger)


def place_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Name the cell of a score."""
    return row["model"], row["concept"], row["country"], row["group"]


class Stored:
    """Vectors of several folders by the id of their image."""

    def __init__(self, vectors: Mapping[str, Any], ids: Mapping[str, Any], roles: tuple[str, ...]) -> None:
        """Open the folders of some roles."""
        self.places: dict[str, tuple[Any, int]] = {}
        for role, path in vectors.items():
            if not roles or not role.startswith(roles):
                continue
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            stem = role.removesuffix("-vectors")
            for row, name in pl.read_parquet(ids[f"{stem}-ids"]).select("row", "id").iter_rows():
                self.places[name] = (array, row)

    def of(self, names: Sequence[str]) -> Floats:
        """Give the vectors of some images."""
        return np.array([array[row] for array, row in (self.places[name] for name in names)], np.float64)


def check_equal(folder: str, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Make sure that models that are said to have equally many images have."""
    counts = {row["n"] for row in rows if "equal" in row["about"]}
    if len(counts) > 1:
        wrong_row(
            folder, rows[0], "the models are not scored on equally many images", expected="one number",
            found=", ".join(map(str, sorted(counts))), ledger=ledger,
        )  # fmt: skip


def check_cell(
    folder: str,
    rows: Sequence[dict[str, Any]],
    values: pl.DataFrame,
    real: Stored,
    fake: Stored,
    probs: Stored,
    ledger: Ledger,
) -> None:
    """Work out the scores of one model in one cell."""
    items = {row["metric"]: items_of(row, values) for row in rows}
    made, shown = items.get("prdc_precision", []), items.get("prdc_recall", [])
    found: dict[str, tuple[float, float]] = {}
    if made and shown:
        images, references = fake.of(made), real.of(shown)
        largest = max(float(np.square(side).sum(axis=1).max()) for side in (images, references))
        found["frechet_distance"] = (frechet(references, images), CLOSE * max(1.0, largest))
        kernel = (largest / images.shape[1] + 1) ** 3
        found["kernel_distance"] = (squared_mmd(references, images), EXACT * kernel)
        if (len(images) + len(references)) ** 2 * images.shape[1] <= MOST:
            k = int(next(row["about"]["k"] for row in rows if row["metric"] == "prdc_precision"))
            found |= {name: (one, EXACT) for name, one in zip(SHARES, shares(references, images, k), strict=True)}
    for row in rows:
        if row["metric"] == "inception_score" and made and all(name in probs.places for name in made):
            found["inception_score"] = (inception(probs.of(sorted(made)), int(row["about"]["splits"])), CLOSE)
        judge(folder, row, found.get(row["metric"]), ledger)


def items_of(row: Mapping[str, Any], values: pl.DataFrame) -> list[str]:
    """Name the images behind a score."""
    own = values.filter(pl.col("metric") == row["metric"], pl.col("params") == row["params"])
    for name in ("model", "concept", "country", "group"):
        own = own.filter(pl.col(name).eq_missing(pl.lit(row[name], pl.String)))
    return own["item"].sort().to_list()


def judge(folder: str, row: dict[str, Any], found: tuple[float, float] | None, ledger: Ledger) -> None:
    """Compare one value with what was found, within what rounding may leave."""
    if found is None:
        ledger.judge(folder, row, "not verifiable", "too many pairs to go through here, or images that are not known")
        return
    value, slack = found
    right = abs(row["value"] - value) <= slack
    if not right:
        wrong_row(
            folder, row, "value is not what the vectors give", expected=repr(value), found=repr(row["value"]),
            ledger=ledger,
        )  # fmt: skip
    low, high = row["ci_low"], row["ci_high"]
    if low is None or high is None:
        ledger.judge(folder, row, "verified" if right else "wrong", HOW)
        return
    inside = low - ROUNDING <= row["value"] <= high + ROUNDING
    if not inside:
        wrong_row(
            folder, row, "the value lies outside its interval", expected=f"{low} to {high}", found=row["value"],
            ledger=ledger,
        )  # fmt: skip
    ledger.judge(folder, row, "consistent" if right and inside else "wrong", NO_INTERVAL)


def frechet(a: Floats, b: Floats) -> float:
    """Give the Fréchet distance: the trace of the root of the product is the sum of singular values of one table.

    With few images that table is of all pairs of centred images; with many, the roots of covariances stand for them.
    """
    centred = [side - side.mean(axis=0) for side in (a, b)]
    apart = float(np.square(a.mean(axis=0) - b.mean(axis=0)).sum())
    spread = sum(float(np.square(side).sum()) / (len(side) - 1) for side in centred)
    one, other = (factor(side / np.sqrt(len(side) - 1)) for side in centred)
    return max(0.0, apart + spread - 2 * float(np.linalg.svd(one @ other.T, compute_uv=False).sum()))


def factor(rows: Floats) -> Floats:
    """Give R with R'R the covariance: the rows themselves, or where they are many its root."""
    if len(rows) <= rows.shape[1]:
        return rows
    numbers, directions = np.linalg.eigh(rows.T @ rows)
    return np.asarray(np.sqrt(numbers.clip(min=0))[:, np.newaxis] * directions.T)


def squared_mmd(a: Floats, b: Floats) -> float:
    """Give the unbiased squared MMD with the cubic kernel."""
    own = 0.0
    for side in (a, b):
        diagonal = float(((np.square(side).sum(axis=1) / side.shape[1] + 1) ** 3).sum())
        own += (kernel_sum(side, side) - diagonal) / (len(side) * (len(side) - 1))
    return own - 2 * kernel_sum(a, b) / (len(a) * len(b))


def kernel_sum(a: Floats, b: Floats) -> float:
    """Sum the kernel over all pairs of two sets."""
    rows = (a[start : start + ROWS] for start in range(0, len(a), ROWS))
    return sum(float(((part @ b.T / a.shape[1] + 1) ** 3).sum()) for part in rows)


def shares(real: Floats, fake: Floats, k: int) -> tuple[float, float, float, float]:
    """Give precision, recall, density and coverage from all distances, written out."""
    around_real, around_fake = radii(real, k), radii(fake, k)
    apart = np.concatenate([squares(real[i : i + 1], fake) for i in range(len(real))])
    within_real, within_fake = apart < around_real[:, np.newaxis], apart < around_fake[np.newaxis, :]
    precision, recall = within_real.any(axis=0).mean(), within_fake.any(axis=1).mean()
    density, coverage = within_real.sum() / (k * len(fake)), within_real.any(axis=1).mean()
    return float(precision), float(recall), float(density), float(coverage)


def radii(points: Floats, k: int) -> Floats:
    """Give the squared distance of each point to its k-th nearest other point."""
    found = []
    for place in range(len(points)):
        apart = np.delete(squares(points[place : place + 1], points)[0], place)
        found.append(np.sort(apart)[k - 1])
    return np.array(found)


def squares(one: Floats, others: Floats) -> Floats:
    """Give the squared distances from one point to others, (1, n)."""
    return np.asarray(np.square(others - one).sum(axis=1)[np.newaxis])


def inception(probabilities: Floats, splits: int) -> float:
    """Give the mean of exp(mean KL(p(y|x) || p(y))) over runs of images."""
    found, count = [], len(probabilities)
    for part in range(splits):
        own = probabilities[part * count // splits : (part + 1) * count // splits]
        own = own / own.sum(axis=1, keepdims=True)
        middle = own.mean(axis=0)
        ratio = np.log(np.where(own > 0, own, 1.0)) - np.log(np.where(middle > 0, middle, 1.0))
        found.append(float(np.exp((own * ratio).sum(axis=1).mean())))
    return float(np.mean(found))
