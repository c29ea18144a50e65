"""From vectors of captions, images and objects to C³: how well each caption fits, and which to keep."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.declared import check_options, kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import SELECTION
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Typed
from culturekit.core.tables import write_table
from culturekit.core.work import Work
from culturekit.metrics.captions import STRATEGIES, C3Alignment, alignment_c3, keep_best
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, interval
from culturekit.scores.family import Family, described, family_stage
from culturekit.scores.inputs import LabelledVectors, VectorFolder, one_identity_of_all
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row, value_rows

SPACES = (("source", "target", "objects"), ("image", "image_target"))
"""The roles whose vectors are compared with each other."""

TERMS = {"text": ("source", "target"), "image": ("image", "image_target"), "object": ("objects", "target")}
"""What each term compares."""

CAPTIONED = ("target", "image_target")
"""The roles that make an item: without a caption there is nothing to score."""

METRICS = {"c3": "total", "c3_text": "text", "c3_image": "image", "c3_object": "object"}

NO_TERM = "vectors of one side of the term are not given"

TOKEN = re.compile(r"^(?P<item>.+)#[0-9]+$", re.DOTALL)
"""An id of one of several vectors of an item."""


@dataclass(frozen=True, slots=True)
class C3Reads:
    """Folders of vectors: the arguments of `alignment_c3`."""

    source: Annotated[VectorFolder | None, Field(description="Folder of vectors of the original captions.")] = None
    target: Annotated[
        VectorFolder | None, Field(description="Of the translated captions, in the space of the source.")
    ] = None
    objects: Annotated[VectorFolder | None, Field(description="Of the objects in the images, in the same space.")] = (
        None
    )
    image: Annotated[VectorFolder | None, Field(description="Of the images.")] = None
    image_target: Annotated[
        VectorFolder | None, Field(description="Of the translated captions, in the space of the images.")
    ] = None

    def vectors(self) -> dict[str, LabelledVectors]:
        """Open the folders that are given, by role; those of one space are of one encoder."""
        folders: dict[str, VectorFolder | None] = {role: getattr(self, role) for role in ROLES}
        given = {role: folder for role, folder in folders.items() if folder is not None}
        for space in SPACES:
            one_identity_of_all([folder.folder for role, folder in given.items() if role in space])
        return {role: folder.vectors() for role, folder in given.items()}


ROLES = tuple(each.name for each in fields(C3Reads))
"""What vectors are of."""


@dataclass(frozen=True, slots=True)
class C3Options:
    """What to score, and how."""

    keep: Annotated[int | None, Field(ge=1, description="List this many best items. [no list]")] = None
    strategy: Annotated[
        Literal["c3", "labse", "clip", "objects", "no-objects"],
        Field(description="Rank by the whole, by one term (LaBSE, CLIP, objects), or by all but objects."),
        Typed(needs="keep"),
    ] = "c3"
    model: Annotated[str, Field(description="Whose captions they are, as it stands in the scores.")] = "captions"
    confidence: float = CONFIDENCE
    benchmark: str = "c3"


def c3(given: C3Reads, options: C3Options, *, name: str = "scores") -> Stage:
    """Score captions by C³'s three alignments.

    Ids of vectors are ITEM, or ITEM#k for its token or object k.
    """

    def score(work: Work) -> Scored:
        answer = score_c3(given.vectors(), options=options)
        if options.keep is not None:
            write_table(work.out, SELECTION, answer.selection)
        return answer.scored

    return family_stage("c3", roles_of(given), kept(options), score, version=2, name=name)


C3 = Family(
    c3,
    metrics=described("c3 c3_image c3_object c3_text"),
    example="--source source --target target --image images --image-target captions --keep 300000 --out scores",
)


@dataclass(frozen=True, slots=True)
class C3Scores:
    """Scores over all items with the values of each, and the items kept (SELECTION; empty where none were asked)."""

    scored: Scored
    selection: pl.DataFrame


def score_c3(vectors: Mapping[str, LabelledVectors], *, options: C3Options) -> C3Scores:
    """Score the caption of every item, term by term, and keep the best.

    Args:
        vectors: by role, those of ROLES that there are. An item is what a caption is given for; one that lacks the
            other side of a term lacks that term.
        options: what to score, and how.

    Raises:
        UsageError: an option breaks its rule, a vector has no direction, or widths differ within a space.
    """
    check_options(options)
    unknown = sorted(set(vectors) - set(ROLES))
    if unknown:
        raise argument_error("vectors", f"of the roles {', '.join(ROLES)}", ", ".join(unknown))
    read = {role: rows_of_items(role, labelled) for role, labelled in vectors.items()}
    rows = {role: own for role, own in read.items() if own}  # pictures may show no object: a term that all items lack
    items = sorted({item for role in CAPTIONED for item in rows.get(role, ())})
    if not items:
        raise NothingScored("there is no caption to score", expected="vectors of target or of image_target")
    check_terms(rows)
    found = {item: align_item(item, vectors, rows) for item in items}
    left_out = Counter(f"items without the term {term}" for answer in found.values() for term in answer.missing)
    strays = {item for each in rows.values() for item in each} - set(items)
    left_out["items without a caption"] += len(strays)
    answers = [metric_rows(metric, found, options) for metric in METRICS]
    scores, values = [score for score, _ in answers], [behind for _, behind in answers]
    every = scored(scores, values, left_out=left_out)
    return C3Scores(every, selection(found, options))


def check_terms(rows: Mapping[str, Mapping[str, list[int]]]) -> None:
    """Refuse vectors of which nothing can be compared, and two sides of a term that have no item in common."""
    given = {term: sides for term, sides in TERMS.items() if all(side in rows for side in sides)}
    if not given:
        raise NothingScored(
            "nothing says how well the captions fit", found=f"vectors of {' and '.join(rows)}",
            expected="source and target, objects and target, or image and image-target",
        )  # fmt: skip
    for first, other in given.values():
        if not rows[first].keys() & rows[other].keys():
            raise NothingScored(
                f"no item has vectors of both {first} and {other}", expected="ids ITEM, or ITEM#k, of the same items",
                found=" and ".join(repr(min(rows[side], default="")) for side in (first, other)),
            )  # fmt: skip


def rows_of_items(role: str, labelled: LabelledVectors) -> dict[str, list[int]]:
    """Find the rows of each item's vectors."""
    if len(set(labelled.ids)) < len(labelled.ids):
        twice = Counter(labelled.ids).most_common(1)[0][0]
        raise UsageError(f"an id stands twice among the vectors of {role}", found=repr(twice))
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(labelled.ids):
        match = TOKEN.match(name)
        rows.setdefault(match["item"] if match else name, []).append(row)
    return rows


def align_item(
    item: str, vectors: Mapping[str, LabelledVectors], rows: Mapping[str, Mapping[str, list[int]]]
) -> C3Alignment:
    """Score one item; an error names it."""
    own = {role: vectors[role].vectors[rows[role][item]] for role in rows if item in rows[role]}
    try:
        return alignment_c3(**{role: own.get(role) for role in ROLES})
    except UsageError as error:
        error.where = f"item {item!r}"
        raise


def metric_rows(metric: str, found: Mapping[str, C3Alignment], options: C3Options) -> tuple[Row, pl.DataFrame]:
    """Make the score of one metric, over the items that have it, and its values; null for those that do not.

    The interval speaks about items like these; fewer than 20 of them have none.
    """
    values = {item: float(getattr(answer, METRICS[metric])) for item, answer in found.items()}
    known = {item: value for item, value in values.items() if not np.isnan(value)}
    answer = interval(
        list(known.values()) or [0.0],
        prompts=list(known) or [""],
        repeats=np.zeros(max(1, len(known)), np.int64),
        target="population" if len(known) >= FEWEST_PROMPTS else "these",
        confidence=options.confidence,
    )
    place = {"metric": metric, "model": options.model, "benchmark": options.benchmark}
    params = {"target": "population"} | ({} if known else {"no_value": NO_TERM})
    answer = replace(answer, value=answer.value if known else np.nan, n=len(known))
    behind = pl.DataFrame({"item": list(values), "value": list(values.values())})
    return statistic_row(**place, answer=answer, params=params), value_rows(place, params, behind)


def selection(found: Mapping[str, C3Alignment], options: C3Options) -> pl.DataFrame:
    """List the items kept, best first."""
    scores = {item: STRATEGIES[options.strategy](answer) for item, answer in found.items()}
    kept = keep_best(list(scores), list(scores.values()), n=options.keep or 0)
    if options.keep and not kept:
        raise UsageError(f"no item has what the strategy {options.strategy!r} ranks by", expected="its vectors")
    rows = [
        {"item": item, "strategy": options.strategy, "rank": rank, "value": scores[item]}
        for rank, item in enumerate(kept, start=1)
    ]
    return pl.DataFrame(rows, schema=SELECTION.schema)
