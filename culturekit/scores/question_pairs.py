"""From vectors of pictures and of pairs of captions to the share that each caption gets."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import IMAGES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Typed
from culturekit.core.work import Work
from culturekit.metrics.linguistic.neutral_groups import LOGIT_SCALE, question_pair
from culturekit.scores.family import Confidence, Family, described, family_stage
from culturekit.scores.image_collections import Place, mean_rows, parts_by_group, plain_row, prompted_images
from culturekit.scores.inputs import AnyImages, GroupedPrompts, NamedVectors, asked, one_identity
from culturekit.scores.neutral import with_vectors
from culturekit.scores.score_rows import Scored, scored

CAPTION_PAIRS = (
    ("a traditional environment", "a modern environment"),
    ("a traditional setting", "a modern setting"),
)
"""Two wordings of one question; the paper names them and does not print its captions."""


def caption_pair(text: str) -> tuple[str, str]:
    """Read two captions with a slash between them."""
    first, mark, second = (part.strip() for part in text.partition(" / "))
    if not (first and mark and second):
        raise UsageError("--question is two captions with a slash between", expected="FIRST / SECOND", found=repr(text))
    return first, second


@dataclass(frozen=True, slots=True)
class QuestionPairReads:
    """Pictures, what was asked for, and vectors of pictures and captions in one space."""

    images: AnyImages
    prompts: GroupedPrompts
    vectors: Annotated[NamedVectors, Field(description="Folder of vectors of the images.")]
    captions: Annotated[NamedVectors, Field(description="Folder of vectors of the captions, ids the captions.")]


@dataclass(frozen=True, slots=True)
class QuestionPairOptions:
    """What to ask, and how; the encoder is what made the vectors, as it stands in params."""

    pairs: Annotated[
        tuple[tuple[str, str], ...],
        Field(
            description="FIRST / SECOND: two captions; repeatable. [traditional and modern, an environment and a "
            "setting]",
        ),
        Typed("question", caption_pair),
    ] = CAPTION_PAIRS
    logit_scale: Annotated[float, Field(description="What cosines are multiplied by before the softmax.")] = LOGIT_SCALE
    encoder: str = ""
    confidence: Confidence = CONFIDENCE
    benchmark: str = "linguistic"

    def __post_init__(self) -> None:
        """Refuse a caption that is held against itself, and a question asked twice."""
        if any(first == second for first, second in self.pairs) or len(set(self.pairs)) < len(self.pairs):
            raise argument_error("pairs", "two captions that differ, each pair once", self.pairs)


def question_pairs(given: QuestionPairReads, options: QuestionPairOptions, *, name: str = "scores") -> Stage:
    """Score which of two captions fits pictures better, per group.

    Traditional or modern, for instance.
    """
    known = replace(options, encoder=options.encoder or given.vectors.encoder)

    def score(work: Work) -> Scored:
        one_identity(given.vectors.folder, given.captions.folder)
        words, captions = given.captions.vectors()
        images, prompts = given.images.together(IMAGES), asked(given.prompts, work.scratch)
        by_caption = dict(zip(captions, words, strict=True))
        return score_question_pairs(images, prompts, given.vectors.vectors(), by_caption, options=known)

    return family_stage("question-pairs", roles_of(given), kept(known), score, name=name)


QUESTION_PAIRS = Family(
    question_pairs,
    metrics=described("question_sd question_share"),
    example="--images images/images.parquet --prompts prompts/prompts.parquet --vectors vectors --captions captions "
    "--out scores",
)


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
        raise NothingScored("no picture has a vector", found=f"{len(vectors[1])} vectors").counting(left_out)
    rows, values = [], []
    pictures = np.asarray(vectors[0][known["row"].to_numpy()])
    for first, second in options.pairs:
        shares = question_pair(pictures, captions[first], captions[second], logit_scale=options.logit_scale)[:, 0]
        answered = known.with_columns(value=pl.Series(shares)).rename({"image_id": "item"})
        params: dict[str, object] = {"first": first, "second": second, "logit_scale": options.logit_scale}
        if options.encoder:
            params["encoder"] = options.encoder
        for part in parts_by_group(answered, item="item"):
            place = Place("question_share", part["model"][0], options.benchmark, part["group"][0])
            row, below = mean_rows(part, place, params, confidence=options.confidence)
            rows.append(row)
            values += below
            if part.height > 1:
                deviation = float(np.sort(part["value"].to_numpy()).std(ddof=1))
                rows.append(plain_row(replace(place, metric="question_sd"), deviation, part.height, params))
    return scored(rows, values, left_out=left_out)
