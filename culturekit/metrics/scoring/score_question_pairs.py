"""From vectors of pictures and of pairs of captions to the share that each caption gets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.linguistic.question_pairs import LOGIT_SCALE, question_pair
from culturekit.metrics.scoring.prompted_images import Place, mean_rows, plain_row, prompted_images
from culturekit.metrics.scoring.score_neutral import with_vectors
from culturekit.metrics.scoring.scored import Scored, scored

__all__ = ["CAPTION_PAIRS", "QuestionPairOptions", "score_question_pairs"]

CAPTION_PAIRS = (
    ("a traditional environment", "a modern environment"),
    ("a traditional setting", "a modern setting"),
)
"""Two wordings of one question; the paper names them and does not print its captions."""


@dataclass(frozen=True, slots=True)
class QuestionPairOptions:
    """What to ask, and how.

    Attributes:
        pairs: pairs of captions.
        logit_scale: what cosines are multiplied by; it belongs to the encoder.
        encoder: what made the vectors, as it stands in params.
        confidence: of the intervals.
        benchmark: the name under which the scores stand.
    """

    pairs: tuple[tuple[str, str], ...] = CAPTION_PAIRS
    logit_scale: float = LOGIT_SCALE
    encoder: str = ""
    confidence: float = 0.95
    benchmark: str = "linguistic"


def score_question_pairs(
    images: pl.DataFrame,
    prompts: pl.DataFrame,
    vectors: tuple[NDArray[np.floating], Sequence[str]],
    captions: Mapping[str, NDArray[np.floating]],
    *,
    options: QuestionPairOptions,
) -> Scored:
    """Score the share of the first caption of each pair, per model and group of prompts, and over all.

    Args:
        images: conforms to IMAGES.
        prompts: conforms to PROMPTS: the groups.
        vectors: float, (n, dim) of pictures, and the n images they belong to.
        captions: caption -> its vector in the same space.
        options: what to ask, and how.

    Raises:
        UsageError: a table does not conform, a caption has no vector, or no picture has one.
    """
    missing = [caption for pair in options.pairs for caption in pair if caption not in captions]
    if missing:
        raise UsageError("a caption has no vector", found=repr(missing[0]), expected=", ".join(map(repr, captions)))
    left_out: Counter[str] = Counter()
    known = with_vectors(prompted_images(images, prompts, left_out), vectors[1], left_out)
    if not known.height:
        raise UsageError("no picture has a vector", found=f"{len(vectors[1])} vectors")
    rows, values = [], []
    pictures = np.asarray(vectors[0][known["row"].to_numpy()])
    for first, second in options.pairs:
        shares = question_pair(pictures, captions[first], captions[second], logit_scale=options.logit_scale)[:, 0]
        answered = known.with_columns(value=pl.Series(shares)).rename({"image_id": "item"})
        params: dict[str, object] = {"first": first, "second": second, "logit_scale": options.logit_scale}
        if options.encoder:
            params["encoder"] = options.encoder
        for (model, group), part in parts_of(answered):
            place = Place("question_share", model, options.benchmark, group)
            row, below = mean_rows(part, place, params, confidence=options.confidence)
            rows.append(row)
            values += below
            if part.height > 1:
                deviation = float(np.sort(part["value"].to_numpy()).std(ddof=1))
                rows.append(plain_row(replace(place, metric="question_sd"), deviation, part.height, params))
    return scored(rows, values, left_out={reason: count for reason, count in sorted(left_out.items()) if count})


def parts_of(answered: pl.DataFrame) -> list[tuple[tuple[str, str | None], pl.DataFrame]]:
    """Part pictures by model, and a model's by group; its whole comes first, with no group."""
    parts: list[tuple[tuple[str, str | None], pl.DataFrame]] = []
    for model in answered.sort("model", "item").partition_by("model", maintain_order=True):
        name = model["model"][0]
        parts.append(((name, None), model))
        groups = model.filter(pl.col("group").is_not_null()).sort("group", "item")
        parts += [((name, part["group"][0]), part) for part in groups.partition_by("group", maintain_order=True)]
    return parts
