"""Images compared with the references of their prompts, and what images of a prompt cover together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.choices import ANSWERED
from culturekit.core.errors import UsageError
from culturekit.core.schemas import DESCRIPTOR_MATCHES, DESCRIPTORS, EXAGGERATIONS, IMAGES, JUDGMENTS, PROMPTS
from culturekit.core.tables import checked
from culturekit.metrics.ahead.descriptor_scores import (
    FEWEST_IMAGES,
    Aggregate,
    Reduce,
    evenness,
    exaggeration,
    gain_of,
    mean_of,
)
from culturekit.metrics.ahead.matching import (
    DIMENSIONS,
    NOT_EXTRACTED,
    BestMatches,
    PhraseLists,
    best_matches,
    dimension_name,
    normalise_phrase,
)

# The tables that AHEaD reads: which images are scored, what was said of them, and what should have been.

EXTRACT, STEREOTYPE = "extract", "stereotype"  # tasks of judgments: descriptors extracted, candidates scored

PER_IMAGE = {"image_id": pl.String(), "exag": pl.Float64()}


@dataclass(frozen=True, slots=True)
class Described:
    """Images with what was said of them and what should have been, phrases normalised and each once."""

    images: pl.DataFrame  # image_id, model, prompt_id, repeat, country: those that are scored
    references: pl.DataFrame  # prompt_id, dimension, phrase: of their prompts, in dimensions that the extractor has
    predictions: pl.DataFrame  # image_id, dimension, phrase: in dimensions in which the image's prompt has references
    unanswered: pl.DataFrame  # image_id, dimension: of which nothing is known, as the extractor gave no answer
    judge: str  # the model that described the images
    left_out: Counter[str]  # what is not scored, by reason


def pictured(images: pl.DataFrame, prompts: pl.DataFrame, left_out: Counter[str]) -> pl.DataFrame:
    """Give the images that were made, with model, prompt, repeat and country."""
    table, asked = checked(images, IMAGES), checked(prompts, PROMPTS)
    drawn = table.filter(status="ok")
    left_out["images not made"] += table.height - drawn.height
    known = drawn.select("image_id", "model", "prompt_id", "repeat").join(
        asked.select("prompt_id", "country"), on="prompt_id", how="inner"
    )
    left_out["images of no known prompt"] += drawn.height - known.height
    if known.is_empty():
        raise UsageError(
            "there is no image to score",
            expected="images that were made (status ok), of prompts in the table of prompts",
            found=f"{drawn.height:,} made of {table.height:,}, {asked.height:,} prompts such as "
            f"{asked['prompt_id'][0] if asked.height else 'none'!r}",
        )
    return known.sort("image_id")


def _judged(judgments: pl.DataFrame, task: str) -> tuple[pl.DataFrame, str]:
    """Give the judgments of one task, with the only judge that made them."""
    rows = checked(judgments, JUDGMENTS).filter(task=task)
    judges = rows["judge"].unique().sort().to_list()
    if len(judges) != 1:
        raise UsageError(
            f"the judgments of the task {task!r} must come from one judge", expected="one judge",
            found=", ".join(judges) or f"no judgment of that task among {judgments.height}",
            hint="Score the judgments of each judge on their own." if judges else "",
        )  # fmt: skip
    return rows, str(judges[0])


def described_images(
    images: pl.DataFrame, descriptors: pl.DataFrame, extracted: pl.DataFrame, *, has: tuple[str, ...] | None,
    left_out: Counter[str],
) -> Described:  # fmt: skip
    """Put together what was said of images and what should have been.

    Args:
        images: as `pictured` gives them.
        descriptors: conforms to DESCRIPTORS: what a picture of each prompt should show.
        extracted: conforms to JUDGMENTS; of the task `extract` one row per image and token, which is empty where
            nothing was found in the dimension. Where the extractor did not answer, the dimension of that image is left
            out of its scores, for silence would mean nothing there; an image without any answer is not scored.
        has: the dimensions that the extractor has; without it the published ones and whichever the judgments have.
        left_out: counts to add to.
    """
    rows, judge = _judged(extracted, EXTRACT)
    ok = pl.col("outcome").is_in(ANSWERED)
    failed = rows.filter(~ok)
    lost = failed.filter(pl.col("dimension").is_null())["image_id"]  # of no known dimension: nothing is known
    whole = rows.filter(ok & ~pl.col("image_id").is_in(lost.implode()))
    described = images.filter(pl.col("image_id").is_in(rows["image_id"].implode()))
    answered = described.filter(pl.col("image_id").is_in(whole["image_id"].implode()))
    left_out["images not described"] += images.height - described.height
    left_out["images the extractor failed on"] += described.height - answered.height
    unanswered = named(failed.join(answered, on="image_id", how="semi").select("image_id", "dimension")).unique()
    left_out["dimensions of scored images the extractor failed on"] += unanswered.height
    phrases = _phrases_said(whole.join(answered, on="image_id", how="semi"))
    wanted = checked(descriptors, DESCRIPTORS).join(answered, on="prompt_id", how="semi")
    references = normalised(named(wanted.select("prompt_id", "dimension", "token")), "token").unique()
    seen = {*DIMENSIONS, *phrases["dimension"]} if has is None else {dimension_name(name) for name in has}
    _check_dimensions(references, phrases, seen, stated=has is not None)
    unseen = references.filter(~pl.col("dimension").is_in(seen))
    for dimension, count in unseen.group_by("dimension").len().sort("dimension").iter_rows():
        left_out[f"references the extractor cannot see: {dimension}"] += count
    references = references.filter(pl.col("dimension").is_in(seen)).sort("prompt_id", "dimension", "phrase")
    scored = answered.join(references, on="prompt_id", how="semi").sort("image_id")
    left_out["images of prompts without descriptors"] += answered.height - scored.height
    placed = phrases.join(scored.select("image_id", "prompt_id"), on="image_id", how="inner")
    compared = placed.join(references, on=["prompt_id", "dimension"], how="semi")
    left_out["predictions in a dimension without references"] += placed.height - compared.height
    predictions = compared.select("image_id", "dimension", "phrase").sort("image_id", "dimension", "phrase")
    return Described(scored, references, predictions, unanswered, judge, left_out)


def _phrases_said(rows: pl.DataFrame) -> pl.DataFrame:
    """Give image_id, dimension and normalised phrase of extracted tokens, each once."""
    tokens = rows.filter(pl.col("item") != "")
    if tokens["dimension"].null_count():
        raise UsageError(
            "an extracted descriptor has no dimension",
            where=f"image {tokens.filter(pl.col('dimension').is_null())['image_id'][0]!r}",
            expected="a dimension: descriptors are compared within one",
        )
    return normalised(named(tokens.select("image_id", "dimension", "item")), "item").unique()


def _check_dimensions(references: pl.DataFrame, phrases: pl.DataFrame, seen: Set[str], *, stated: bool) -> None:
    """Reject references and predictions that do not speak of the same dimensions: one side would be lost unnoticed."""
    asked = set(references["dimension"])
    unasked = sorted((set(phrases["dimension"]) & seen) - asked) if asked else []
    unseen = [] if stated else sorted(asked - seen - NOT_EXTRACTED)
    if not unasked and not unseen:
        return
    lost = [f"{name} was extracted and has no reference in any prompt" for name in unasked]
    lost += [f"{name} has references and was not extracted" for name in unseen]
    raise UsageError(
        "ALIGN and HAL would leave a dimension out",
        expected="descriptors and judgments of the same dimensions (`setting` is a name of background)",
        found="; ".join(lost), hint="Rename the dimension, add its descriptors, or leave its judgments away.",
    )  # fmt: skip


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each dimension its one name."""
    names = {written: dimension_name(written) for written in frame["dimension"].unique()}
    return frame.with_columns(pl.col("dimension").replace_strict(names, return_dtype=pl.String))


def normalised(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Replace a column of texts by their phrases; texts of white space alone are nothing."""
    texts = frame[column].unique().to_list()
    forms: Mapping[str, str] = {text: normalise_phrase(text) for text in texts}
    phrases = frame[column].replace_strict(forms, return_dtype=pl.String)
    return frame.drop(column).with_columns(phrase=phrases).filter(pl.col("phrase") != "")


@dataclass(frozen=True, slots=True)
class Excess:
    """How much images exaggerate."""

    per_image: pl.DataFrame  # image_id, exag
    per_candidate: pl.DataFrame  # conforms to EXAGGERATIONS
    scorer: str  # who scored


def excess_of_images(
    images: pl.DataFrame, judgments: pl.DataFrame, *, real: str, reduce: Reduce, left_out: Counter[str]
) -> Excess:
    """Compare the scores of stereotype candidates with those of real images of the same country.

    Args:
        images: as `pictured` gives them, the real ones among them.
        judgments: conforms to JUDGMENTS; of the task `stereotype` one row per image and candidate, with its score.
        real: the model under whose name the real images stand.
        reduce: the mean over candidates, or the worst.
        left_out: counts to add to.
    """
    rows, scorer = _judged(judgments, STEREOTYPE)
    placed_images = images.filter(pl.col("country").is_not_null()).select("image_id", "model", "country")
    asked = placed_images.join(rows, on="image_id", how="semi")
    left_out["images not asked about stereotypes"] += placed_images.height - asked.height
    usable = rows.filter(pl.col("outcome").is_in(ANSWERED), pl.col("value").is_finite())
    placed = normalised(usable.select("image_id", "item", "value"), "item").join(asked, on="image_id")
    silent = asked.join(placed, on="image_id", how="anti")
    scores = placed.group_by("model", "country", "image_id", "phrase").agg(pl.col("value").sort().mean())
    of_real = scores.filter(model=real).group_by("country", "phrase")
    usual = of_real.agg(real_mean=pl.col("value").sort().mean()).sort("country", "phrase")
    if usual.is_empty():
        others = ", ".join(scores["model"].unique().sort())
        raise UsageError(
            f"no stereotype score of a real image: exaggeration is measured against images of the model {real!r}",
            found=f"models {others}" if others else f"{rows.height:,} scores of other images",
        )
    drawn = scores.filter(pl.col("model") != real)
    compared = drawn.join(usual, on=["country", "phrase"], how="inner")
    left_out["stereotype scores without real images to compare"] += drawn.height - compared.height
    per_image = list(_complete_images(compared, usual, reduce))
    answer = pl.concat(per_image) if per_image else pl.DataFrame(schema=PER_IMAGE)
    incomplete = drawn["image_id"].n_unique() - answer.height
    left_out["images without a score of every stereotype"] += silent.height + incomplete
    return Excess(answer, per_candidate(compared.join(answer, on="image_id", how="semi")), scorer)


def _complete_images(compared: pl.DataFrame, usual: pl.DataFrame, reduce: Reduce) -> Iterator[pl.DataFrame]:
    """Give `exag` of the images that have a score of every candidate of their country, country by country."""
    for candidates in usual.partition_by("country", maintain_order=True):
        scores = compared.filter(country=candidates["country"][0])
        full = scores.filter(pl.len().over("image_id") == candidates.height).sort("image_id", "phrase")
        matrix = full["value"].to_numpy().reshape(-1, candidates.height)
        names = full["image_id"].unique(maintain_order=True)
        excess = exaggeration(matrix, candidates["real_mean"].to_numpy(), reduce=reduce)
        yield pl.DataFrame({"image_id": names, "exag": excess}, schema=PER_IMAGE)


def per_candidate(scores: pl.DataFrame) -> pl.DataFrame:
    """Average the excess over the images of a model and country, candidate by candidate."""
    excess = (pl.col("value") - pl.col("real_mean")).clip(lower_bound=0.0).sort().mean()
    table = scores.group_by("model", "country", token=pl.col("phrase")).agg(
        images=pl.len().cast(pl.UInt64), real_mean=pl.col("real_mean").first(), excess=excess
    )
    return table.select(list(EXAGGERATIONS.schema)).sort(EXAGGERATIONS.key)


@dataclass(frozen=True, slots=True)
class Cells:
    """Every image in every dimension of its prompt."""

    frame: pl.DataFrame  # model, prompt_id, dimension, image_id, n_ref, n_pred: one row per cell, in that order
    references: pl.DataFrame  # prompt_id, dimension, phrase: in the order of the references of a cell
    predictions: pl.DataFrame  # cell, phrase: cell by cell
    best: BestMatches  # the best similarities of the cells

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
    known = np.asarray(vectors[_places_of_phrases(phrases, ids, vectors=len(vectors))])
    _check_directions(known, phrases)
    rows = {phrase: row for row, phrase in enumerate(phrases)}
    groups = found.references.group_by("prompt_id", "dimension", maintain_order=True).agg(n_ref=pl.len())
    groups = groups.with_row_index("group")
    frame = (
        found.images.select("image_id", "model", "prompt_id")
        .join(groups, on="prompt_id", how="inner")
        .join(found.unanswered, on=["image_id", "dimension"], how="anti")
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
        known, references=lists(found.references["phrase"], groups["n_ref"].to_numpy(), rows),
        predictions=lists(predictions["phrase"], n_pred, rows), groups=frame["group"].to_numpy().astype(np.int64),
    )  # fmt: skip
    columns = ("model", "prompt_id", "dimension", "image_id", pl.col("n_ref").cast(pl.Int64))
    return Cells(frame.select(*columns, n_pred=pl.Series(n_pred)), found.references, predictions, best)


def _places_of_phrases(phrases: Sequence[str], ids: Sequence[str], *, vectors: int) -> list[int]:
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
            found=", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else ""),
            hint="Encode them with the encoder of the others and add them to the folder of vectors; "
            "the id of a vector is the phrase itself.",
        )
    return [rows[phrase] for phrase in phrases]


def _check_directions(vectors: NDArray[np.floating], phrases: Sequence[str]) -> None:
    """Reject a vector that has no direction, naming its phrase."""
    bad = np.flatnonzero(~(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)))
    if len(bad):
        raise UsageError("a vector must be finite and not all zero: it has no direction",
                         where=f"the phrase {phrases[bad[0]]!r}", hint="Encode it again.")  # fmt: skip


def lists(phrases: pl.Series, lengths: NDArray[np.int64], rows: Mapping[str, int]) -> PhraseLists:
    """Put phrases, list by list, into flat arrays of rows."""
    numbers = phrases.replace_strict(rows, return_dtype=pl.Int64).to_numpy() if len(phrases) else np.empty(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return PhraseLists(numbers.astype(np.int64), starts)


def _image_sets(cells: Cells) -> Iterator[tuple[str, str, str, NDArray[np.float64]]]:
    """Part the cells by model, prompt and dimension, as they stand; give the best matches, (images, references)."""
    sets = cells.frame.group_by("model", "prompt_id", "dimension", maintain_order=True)
    start = 0
    for model, prompt_id, dimension, images, n_ref in sets.agg(pl.len(), pl.col("n_ref").first()).iter_rows():
        block = cells.best.of_reference[start : start + images * n_ref].reshape(images, n_ref)
        start += images * n_ref
        yield model, prompt_id, dimension, block


def variety_of_prompts(cells: Cells, tau: float, aggregate: Aggregate = "dimension") -> pl.DataFrame:
    """Give model, prompt_id, images, ddiv and sdiv of every prompt; NaN where there are fewer than two images.

    A dimension counts with the images of which it is known.
    """
    found: dict[tuple[str, str], list[tuple[int, NDArray[np.int64]]]] = {}
    for model, prompt_id, _, best in _image_sets(cells):
        found.setdefault((model, prompt_id), []).append((len(best), (best >= tau).sum(axis=0)))
    answer = [
        (*key, max(n for n, _ in each), mean_of([evenness(counts) for _, counts in several], images=FEWEST_IMAGES),
         gain_of([counts for _, counts in several], images=[n for n, _ in several], aggregate=aggregate))
        for key, each in found.items()
        for several in [[one for one in each if one[0] >= FEWEST_IMAGES]]
    ]  # fmt: skip
    schema = {"model": pl.String, "prompt_id": pl.String, "images": pl.Int64, "ddiv": pl.Float64, "sdiv": pl.Float64}
    return pl.DataFrame(answer, schema=schema, orient="row")


def descriptor_matches(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every descriptor how well it was met; conforms to DESCRIPTOR_MATCHES."""
    parts = [_references_met(cells, tau), _predictions_met(cells, tau)]
    return pl.concat(parts).sort(DESCRIPTOR_MATCHES.key)


def _references_met(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every reference which share of images shows it, and how similar what they show is on average."""
    listed = cells.references.group_by("prompt_id", "dimension", maintain_order=True).agg("phrase")
    phrases = {(prompt_id, dimension): names for prompt_id, dimension, names in listed.iter_rows()}
    rows = list[dict[str, object]]()
    for model, prompt_id, dimension, best in _image_sets(cells):
        about = {"model": model, "prompt_id": prompt_id, "dimension": dimension, "side": "reference"}
        answered = best[np.isfinite(best).all(axis=1)]
        similar = answered.mean(axis=0).tolist() if len(answered) else [None] * best.shape[1]
        covered = ((best >= tau).sum(axis=0) / len(best)).tolist()
        each = zip(phrases[prompt_id, dimension], covered, similar, strict=True)
        rows += ({**about, "token": token, "images": len(best), "covered": share, "similarity": near}
                 for token, share, near in each)  # fmt: skip
    return pl.DataFrame(rows, schema=DESCRIPTOR_MATCHES.schema)


def _predictions_met(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every predicted phrase how many images have it, and whether a reference asks for it."""
    places = cells.frame.select("model", "prompt_id", "dimension").with_row_index("cell")
    found = cells.predictions.with_columns(similarity=pl.Series(cells.best.of_prediction)).join(places, on="cell")
    parts = found.group_by("model", "prompt_id", "dimension", token=pl.col("phrase"))
    table = parts.agg(images=pl.len().cast(pl.UInt64), similarity=pl.col("similarity").first())
    covered = (pl.col("similarity") >= tau).cast(pl.Float64)
    return table.with_columns(side=pl.lit("predicted"), covered=covered).select(list(DESCRIPTOR_MATCHES.schema))
