"""Images compared with the references of their prompts, and what images of a prompt cover together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.ahead.descriptor_scores import evenness, gain, mean_of
from culturekit.metrics.ahead.matching import BestMatches, PhraseLists, best_matches, normalise_phrase
from culturekit.metrics.scoring.ahead_tables import Described
from culturekit.records.schemas import DESCRIPTOR_MATCHES

__all__ = ["Cells", "compare_images", "descriptor_matches", "variety_of_prompts"]

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Cells:
    """Every image in every dimension of its prompt.

    Attributes:
        frame: model, prompt_id, dimension, image_id, n_ref, n_pred: one row per cell, in that order.
        references: prompt_id, dimension, phrase: in the order of the references of a cell.
        predictions: cell, phrase: cell by cell.
        best: the best similarities of the cells.
    """

    frame: pl.DataFrame
    references: pl.DataFrame
    predictions: pl.DataFrame
    best: BestMatches

    def counted(self, tau: float) -> pl.DataFrame:
        """Add `covered`, how many references each cell shows, and `wrong`, how many predictions nothing asks for."""
        below = self.best.of_prediction < tau
        cells = self.predictions["cell"].to_numpy()
        wrong = np.bincount(cells[below], minlength=self.frame.height)
        return self.frame.with_columns(covered=pl.Series(self.best.covered(tau)), wrong=pl.Series(wrong))

    def best_of(self, images: pl.DataFrame) -> NDArray[np.float64]:
        """Give the best similarity of each reference to each of some images, where anything was said of them."""
        chosen = self.frame["image_id"].is_in(images["image_id"].implode()).to_numpy()
        values = self.best.of_reference[np.repeat(chosen, self.frame["n_ref"].to_numpy())]
        return np.asarray(values[np.isfinite(values)])


def compare_images(found: Described, vectors: NDArray[np.floating], ids: Sequence[str]) -> Cells:
    """Compare the images with the references of their prompts.

    Args:
        found: what was said of images, and what should have been.
        vectors: one per phrase, (n, dim), in rows that `ids` names.
        ids: the phrases themselves; they are normalised like the tokens.

    Raises:
        UsageError: a phrase has no vector.
    """
    phrases = pl.concat([found.references["phrase"], found.predictions["phrase"]]).unique().sort().to_list()
    known = np.asarray(vectors[places_of_phrases(phrases, ids, vectors=len(vectors))])
    check_directions(known, phrases)
    rows = {phrase: row for row, phrase in enumerate(phrases)}
    groups = found.references.group_by("prompt_id", "dimension", maintain_order=True).agg(n_ref=pl.len())
    groups = groups.with_row_index("group")
    frame = (
        found.images.select("image_id", "model", "prompt_id")
        .join(groups, on="prompt_id", how="inner")
        .sort("model", "prompt_id", "dimension", "image_id")
        .with_row_index("cell")
    )
    predictions = (
        found.predictions.join(frame.select("image_id", "dimension", "cell"), on=["image_id", "dimension"], how="inner")
        .select("cell", "phrase")
        .sort("cell", "phrase")
    )
    n_pred = np.bincount(predictions["cell"].to_numpy(), minlength=frame.height)
    best = best_matches(
        known,
        references=lists(found.references["phrase"], groups["n_ref"].to_numpy(), rows),
        predictions=lists(predictions["phrase"], n_pred, rows),
        groups=frame["group"].to_numpy().astype(np.int64),
    )
    frame = frame.with_columns(n_pred=pl.Series(n_pred)).drop("cell", "group")
    return Cells(
        frame.select("model", "prompt_id", "dimension", "image_id", pl.col("n_ref").cast(pl.Int64), "n_pred"),
        found.references,
        predictions,
        best,
    )


def places_of_phrases(phrases: Sequence[str], ids: Sequence[str], *, vectors: int) -> list[int]:
    """Find the vector of each phrase: an id that is the phrase letter by letter, or else the first that becomes it."""
    if len(ids) != vectors:
        raise UsageError("vectors and ids do not belong together", found=f"{vectors} vectors, {len(ids)} ids")
    forms = {name: normalise_phrase(name) for name in ids}
    ranked = sorted(range(len(ids)), key=lambda row: (forms[ids[row]] != ids[row], ids[row]))
    rows = {forms[ids[row]]: row for row in reversed(ranked)}
    missing = [phrase for phrase in phrases if phrase not in rows]
    if missing:
        raise UsageError(
            f"{len(missing)} of {len(phrases)} phrases have no vector",
            found=", ".join(map(repr, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else ""),
            hint="Encode them with the encoder of the others and add them to the folder of vectors; "
            "the id of a vector is the phrase itself.",
        )
    return [rows[phrase] for phrase in phrases]


def check_directions(vectors: NDArray[np.floating], phrases: Sequence[str]) -> None:
    """Refuse a vector that has no direction, naming its phrase."""
    bad = np.flatnonzero(~(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)))
    if len(bad):
        raise UsageError(
            "a vector must be finite and not all zero: it has no direction",
            where=f"the phrase {phrases[bad[0]]!r}",
            hint="Encode it again.",
        )


def lists(phrases: pl.Series, lengths: NDArray[np.int64], rows: Mapping[str, int]) -> PhraseLists:
    """Put phrases, list by list, into flat arrays of rows."""
    numbers = phrases.replace_strict(rows, return_dtype=pl.Int64).to_numpy() if len(phrases) else np.empty(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return PhraseLists(numbers.astype(np.int64), starts)


@dataclass(frozen=True, slots=True)
class ImageSet:
    """The images of one model and prompt in one dimension; `best` is float64, (n_images, n_ref)."""

    model: str
    prompt_id: str
    dimension: str
    best: NDArray[np.float64]


def image_sets(cells: Cells) -> Iterator[ImageSet]:
    """Part the cells by model, prompt and dimension; they stand in that order, so each part is one block."""
    sets = cells.frame.group_by("model", "prompt_id", "dimension", maintain_order=True).agg(
        pl.len(), pl.col("n_ref").first()
    )
    start = 0
    for model, prompt_id, dimension, images, n_ref in sets.iter_rows():
        block = cells.best.of_reference[start : start + images * n_ref].reshape(images, n_ref)
        start += images * n_ref
        yield ImageSet(model, prompt_id, dimension, block)


def variety_of_prompts(cells: Cells, tau: float) -> pl.DataFrame:
    """Give model, prompt_id, images, ddiv and sdiv of every prompt; NaN where there are fewer than two images."""
    rows: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for images in image_sets(cells):
        n, counts = len(images.best), (images.best >= tau).sum(axis=0)
        rows.setdefault((images.model, images.prompt_id), []).append((n, evenness(counts), gain(counts, images=n)))
    answer = [
        (*key, found[0][0], *(mean_of([row[score] for row in found], images=found[0][0]) for score in (1, 2)))
        for key, found in rows.items()
    ]
    schema = {"model": pl.String, "prompt_id": pl.String, "images": pl.Int64, "ddiv": pl.Float64, "sdiv": pl.Float64}
    return pl.DataFrame(answer, schema=schema, orient="row")


def descriptor_matches(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every descriptor how well it was met; conforms to DESCRIPTOR_MATCHES."""
    parts = [references_met(cells, tau), predictions_met(cells, tau)]
    return pl.concat(parts).sort(DESCRIPTOR_MATCHES.key)


def references_met(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every reference which share of images shows it, and how similar what they show is on average."""
    phrases = {
        (prompt_id, dimension): names
        for prompt_id, dimension, names in cells.references.group_by("prompt_id", "dimension", maintain_order=True)
        .agg("phrase")
        .iter_rows()
    }
    columns: dict[str, list[Any]] = {name: [] for name in DESCRIPTOR_MATCHES.schema}
    for images in image_sets(cells):
        n, k = images.best.shape
        said = images.best[np.isfinite(images.best).all(axis=1)]
        columns["model"] += [images.model] * k
        columns["prompt_id"] += [images.prompt_id] * k
        columns["dimension"] += [images.dimension] * k
        columns["side"] += ["reference"] * k
        columns["token"] += phrases[images.prompt_id, images.dimension]
        columns["images"] += [n] * k
        columns["covered"] += ((images.best >= tau).sum(axis=0) / n).tolist()
        columns["similarity"] += said.mean(axis=0).tolist() if len(said) else [None] * k
    return pl.DataFrame(columns, schema=DESCRIPTOR_MATCHES.schema)


def predictions_met(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every predicted phrase how many images have it, and whether a reference asks for it."""
    places = cells.frame.select("model", "prompt_id", "dimension").with_row_index("cell")
    found = cells.predictions.with_columns(similarity=pl.Series(cells.best.of_prediction))
    table = (
        found.join(places, on="cell")
        .group_by("model", "prompt_id", "dimension", token=pl.col("phrase"))
        .agg(images=pl.len().cast(pl.UInt64), similarity=pl.col("similarity").first())
        .with_columns(side=pl.lit("predicted"), covered=(pl.col("similarity") >= tau).cast(pl.Float64))
    )
    return table.select(list(DESCRIPTOR_MATCHES.schema))
