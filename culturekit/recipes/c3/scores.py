"""C³ from vectors of captions, images and objects: how well each caption fits, and which to keep."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.declared import check_options
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.schemas import SELECTION
from culturekit.core.stage_command import Typed
from culturekit.core.tables import write_table
from culturekit.core.work import Work
from culturekit.metrics.captions import STRATEGIES, C3Alignment, alignment_c3, keep_best
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, interval
from culturekit.scores.catalog import describe
from culturekit.scores.family import scores
from culturekit.scores.inputs import LabelledVectors, VectorFolder, one_identity_of_all
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row, value_rows

_PAPER = "On the Cultural Gap in Text-to-Image Generation (C³), section 4.2, equations 3 to 6"
_LABSE = "that of the text encoder (LaBSE: Apache-2.0)"
_CLIP = "that of the image-text encoder (CLIP: MIT)"
_INTERVAL = (
    "The interval is a t interval over items and speaks about captions like these; with fewer than 20 there is none."
)

_cosine = partial(describe, low=-1.0, direction="higher", unit="cosine")

TEXT = _cosine(
    "c3_text",
    "Text-text alignment of captions",
    "A_ST = mean over tokens s of the original of max over tokens t of the translation of cos(s, t)",
    paper=f"{_PAPER}; on sentence vectors of LaBSE it is the baseline of that name",
    inputs=("folders of vectors, ids ITEM or ITEM#k: source, target",),
    pitfalls=(
        "With sentence vectors, as the authors use it, there is one token on each side and the metric is one cosine.",
        _INTERVAL,
    ),
    licence=_LABSE,
)
IMAGE = _cosine(
    "c3_image",
    "Image-text alignment of captions",
    "A_IT = max over tokens t of the translation of cos(image, t)",
    paper=f"{_PAPER}; on caption vectors of CLIP it is the baseline of that name",
    inputs=("folders of vectors, ids ITEM or ITEM#k: image, image_target",),
    pitfalls=(
        "CLIP saw English captions of Western pictures; it is weakest where the benchmark is hardest.",
        _INTERVAL,
    ),
    licence=_CLIP,
)
OBJECT = _cosine(
    "c3_object",
    "Object-text alignment of captions",
    "A_OT = mean over detected objects o of max over tokens t of the translation of cos(o, t)",
    paper=_PAPER,
    inputs=("folders of vectors, ids ITEM or ITEM#k: objects, target",),
    pitfalls=(
        "Objects are those of a detector above probability 0.5; what it has no word for, such as objects of the "
        "culture in question, is not asked of the caption.",
        "An image without detected objects has no such term: it is missing, not 0.",
        _INTERVAL,
    ),
    licence=f"{_LABSE}; that of the detector",
)
C3 = describe(
    "c3",
    "Multi-modal alignment of captions",
    "A = A_ST + A_IT + A_OT, the sum of the terms that are present",
    paper=_PAPER,
    inputs=(*TEXT.inputs, *IMAGE.inputs, *OBJECT.inputs),
    pitfalls=(
        "A missing term is left out of the sum, so that items without objects stand lower than items with them. The "
        "manifest counts the items that lack each term.",
        "Cosines of two encoders have different ranges, LaBSE's near 0.6 to 0.9 for translations, CLIP's near 0.2 to "
        "0.35 for captions: the terms do not weigh the same in the sum.",
        _INTERVAL,
    ),
    low=-3.0,
    high=3.0,
    direction="higher",
    unit="sum of cosines",
    licence=f"{_LABSE}; {_CLIP}; that of the detector",
)

SPACES = (("source", "target", "objects"), ("image", "image_target"))
"""The roles whose vectors are compared with each other."""

ROLES = tuple(role for space in SPACES for role in space)
CAPTIONED = ("target", "image_target")
"""The roles that make an item: without a caption there is nothing to score."""

TERMS = {"text": ("source", "target"), "image": ("image", "image_target"), "object": ("objects", "target")}
"""What each term compares."""

METRICS = {"c3": "total", "c3_text": "text", "c3_image": "image", "c3_object": "object"}


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


DEFAULTS = C3Options()


@scores(
    "c3", C3, IMAGE, OBJECT, TEXT, version=2,
    example="--source source --target target --image images --image-target captions --keep 300000 --out scores",
)  # fmt: skip
def c3(
    work: Work,
    source: Annotated[VectorFolder | None, Field(description="Folder of vectors of the original captions.")] = None,
    target: Annotated[
        VectorFolder | None, Field(description="Of the translated captions, in the space of the source.")
    ] = None,
    objects: Annotated[
        VectorFolder | None, Field(description="Of the objects in the images, in the same space.")
    ] = None,
    image: Annotated[VectorFolder | None, Field(description="Of the images.")] = None,
    image_target: Annotated[
        VectorFolder | None, Field(description="Of the translated captions, in the space of the images.")
    ] = None,
    *,
    options: C3Options = DEFAULTS,
) -> Scored:
    """Score captions by C³'s three alignments.

    Ids of vectors are ITEM, or ITEM#k for its token or object k.
    """
    by_role = {"source": source, "target": target, "objects": objects, "image": image, "image_target": image_target}
    given = {role: folder for role, folder in by_role.items() if folder is not None}
    for space in SPACES:
        one_identity_of_all([folder.folder for role, folder in given.items() if role in space])
    answer = score_c3({role: folder.vectors() for role, folder in given.items()}, options=options)
    if options.keep is not None:
        write_table(work.out, SELECTION, answer.selection)
    return answer.scored


@dataclass(frozen=True, slots=True)
class C3Scores:
    """Scores over all items with the values of each, and the items kept (SELECTION; empty where none were asked)."""

    scored: Scored
    selection: pl.DataFrame


def score_c3(vectors: Mapping[str, LabelledVectors], *, options: C3Options = DEFAULTS) -> C3Scores:
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
    read = {role: _rows_by_item(role, labelled) for role, labelled in vectors.items()}
    rows = {role: items for role, items in read.items() if items}  # no picture may show an object: all lack that term
    items = sorted({item for role in CAPTIONED for item in rows.get(role, ())})
    if not items:
        raise NothingScored("there is no caption to score", expected="vectors of target or of image_target")
    _check_terms(rows)
    found = {item: _align(item, vectors, rows) for item in items}
    left_out = Counter(f"items without the term {term}" for answer in found.values() for term in answer.missing)
    left_out["items without a caption"] += len({item for each in rows.values() for item in each} - set(items))
    answers = [_metric_row(metric, found, options) for metric in METRICS]
    every = scored([row for row, _ in answers], [values for _, values in answers], left_out=left_out)
    return C3Scores(every, _selection(found, options))


def _check_terms(rows: Mapping[str, Mapping[str, list[int]]]) -> None:
    """Reject vectors of which no two are comparable, and two sides of a term without an item in common."""
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


_TOKEN = re.compile(r"^(?P<item>.+)#[0-9]+$", re.DOTALL)


def _rows_by_item(role: str, labelled: LabelledVectors) -> dict[str, list[int]]:
    """Find the rows of each item's vectors, whose ids are ITEM or ITEM#k."""
    if len(set(labelled.ids)) < len(labelled.ids):
        twice = Counter(labelled.ids).most_common(1)[0][0]
        raise UsageError(f"an id stands twice among the vectors of {role}", found=repr(twice))
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(labelled.ids):
        match = _TOKEN.match(name)
        rows.setdefault(match["item"] if match else name, []).append(row)
    return rows


def _align(
    item: str, vectors: Mapping[str, LabelledVectors], rows: Mapping[str, Mapping[str, list[int]]]
) -> C3Alignment:
    """Score one item; an error names it."""
    sides = {role: vectors[role].vectors[rows[role][item]] for role in rows if item in rows[role]}
    try:
        return alignment_c3(**{role: sides.get(role) for role in ROLES})
    except UsageError as error:
        error.where = f"item {item!r}"
        raise


def _metric_row(metric: str, found: Mapping[str, C3Alignment], options: C3Options) -> tuple[Row, pl.DataFrame]:
    """Make the score of one metric over the items that have it, and the values of all; null where an item has none.

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
    about = {"metric": metric, "model": options.model, "benchmark": options.benchmark}
    params = {"target": "population"}
    if not known:
        params["no_value"] = "vectors of one side of the term are not given"
    answer = replace(answer, value=answer.value if known else np.nan, n=len(known))
    table = pl.DataFrame({"item": list(values), "value": list(values.values())})
    return statistic_row(**about, answer=answer, params=params), value_rows(about, params, table)


def _selection(found: Mapping[str, C3Alignment], options: C3Options) -> pl.DataFrame:
    """List the items kept, best first."""
    values = {item: STRATEGIES[options.strategy](answer) for item, answer in found.items()}
    kept = keep_best(list(values), list(values.values()), n=options.keep or 0)
    if options.keep and not kept:
        raise UsageError(f"no item has what the strategy {options.strategy!r} ranks by", expected="its vectors")
    rows = [
        {"item": item, "strategy": options.strategy, "rank": rank, "value": values[item]}
        for rank, item in enumerate(kept, start=1)
    ]
    return pl.DataFrame(rows, schema=SELECTION.schema)
