"""C³ from vectors of captions, images and objects: how well each caption fits, and which to keep."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.builders.captions.pairs import best_of, total
from culturekit.core.arrays import load_array
from culturekit.core.choices import CONFIDENCE
from culturekit.core.declared import Typed, check_options
from culturekit.core.errors import NothingScored, UsageError, argument_error
from culturekit.core.schemas import SELECTION, VALUES
from culturekit.core.stage import Outcome, Work, run_shards, seal
from culturekit.core.tables import read_part, save_parquet, save_part, write_frames, write_table
from culturekit.index.embedding.embedding import load_vectors
from culturekit.metrics.captions import STRATEGIES, check_widths, grouped_maxima, unit_vectors
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval, Mean, half_width
from culturekit.scores.catalog import describe
from culturekit.scores.family import (
    Row,
    Scored,
    check_ranges,
    scored,
    scored_in,
    scores,
    statistic_row,
    value_rows,
    write_scored,
)
from culturekit.scores.inputs import LabelledVectors, VectorFolder, folder_of, labelled, one_identity_of_all, vectors_in

SPACES = (("source", "target", "objects"), ("image", "image_target"))
"""The roles whose vectors are compared with each other."""

ROLES = tuple(role for space in SPACES for role in space)
CAPTIONED = ("target", "image_target")  # The roles that make an item: without a caption there is nothing to score

SIDES = {"text": ("source", "target"), "image": ("image", "image_target"), "object": ("objects", "target")}
"""What each term compares."""

ROWS_PER_SHARD = 2**18
NUMBERS_AT_ONCE = 2**21  # Of vectors that are compared together: 16 MB in float64, whatever a shard has


def _with_items(ids: pl.DataFrame) -> pl.DataFrame:
    """Say which item each id is of: ids are ITEM, or ITEM#k for token or object k of it."""
    item = pl.col("id").str.replace(r"(?s)^(.+)#[0-9]+$", "$1")
    several = ids["id"].str.contains("#", literal=True).any()
    return ids.with_columns(item=item if several else pl.col("id"))


@dataclass(frozen=True, slots=True)
class Side:
    """Vectors, and id, item and row of those that are meant, in order of items."""

    vectors: NDArray[np.floating]
    ids: pl.DataFrame


def side_of(labelled: LabelledVectors) -> Side:
    """Put the vectors of a role in order of their items; ids are ITEM, or ITEM#k."""
    ids = pl.DataFrame({"id": list(labelled.ids)}, {"id": pl.String}).with_row_index("row")
    return Side(np.asarray(labelled.vectors), _with_items(ids).sort("item", "id"))


def terms_of(sides: Mapping[str, Side]) -> pl.DataFrame:
    """Give each item its terms: item, text, image, object (null is missing), and whether it is captioned.

    Args:
        sides: by role. An item that lacks one side of a term lacks the term.
    """
    for role, side in sides.items():
        if side.ids["id"].n_unique() < side.ids.height:
            twice = side.ids.filter(pl.col("id").is_duplicated())["id"][0]
            raise UsageError(f"an id stands twice among the vectors of {role}", found=repr(twice))
    items, starts = _numbered({role: side.ids["item"] for role, side in sides.items()})
    rows = {role: side.ids["row"].to_numpy() for role, side in sides.items()}
    found = {term: np.full(len(items), np.nan) for term in SIDES}
    for first, last in _blocks(sides, starts):
        at = {role: each[first : last + 1] for role, each in starts.items()}
        units = {}
        for role, side in sides.items():
            block = rows[role][at[role][0] : at[role][-1]]
            units[role] = _unit(role, side.vectors[block], items[first:last], at[role] - at[role][0])
        for term, (one, other) in SIDES.items():
            if one in units and other in units:
                ours, theirs = at[one] - at[one][0], at[other] - at[other][0]
                found[term][first:last] = grouped_maxima(units[one], ours, units[other], theirs)
    captioned = np.zeros(len(items), bool)
    for role in set(CAPTIONED) & set(sides):
        captioned |= np.diff(starts[role]) > 0
    table = pl.DataFrame({"item": items, **found, "captioned": captioned})
    return table.with_columns(pl.col(*SIDES).fill_nan(None))


def _numbered(roles: Mapping[str, pl.Series]) -> tuple[pl.Series, dict[str, NDArray[np.int64]]]:
    """List the items of all roles in order, and say where the rows of each begin, (items + 1,), role by role."""
    begins = {role: np.flatnonzero(np.diff(part.rle_id().to_numpy(), prepend=-1)) for role, part in roles.items()}
    named = {role: part.gather(begins[role]) for role, part in roles.items()}
    first = next(iter(named.values()))
    alike = all(part.equals(first) for part in named.values())
    items = first if alike else pl.concat(list(named.values())).unique().sort()
    starts = {}
    for role, part in roles.items():
        at = np.arange(len(items)) if alike else items.search_sorted(named[role]).to_numpy()
        counts = np.zeros(len(items) + 1, np.int64)
        counts[at + 1] = np.diff(begins[role], append=len(part))
        starts[role] = np.cumsum(counts)
    return items, starts


def _blocks(sides: Mapping[str, Side], starts: Mapping[str, NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """Cut items into runs whose vectors fit in memory together; an item is never cut."""
    numbers = sum((starts[role] * side.vectors.shape[1] for role, side in sides.items()), np.zeros(1, np.int64))
    cuts = np.searchsorted(numbers, np.arange(0, numbers[-1], NUMBERS_AT_ONCE))
    yield from pairwise(np.unique([*cuts, len(numbers) - 1]).tolist())


def _unit(role: str, vectors: NDArray[np.floating], items: pl.Series, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bring vectors to length one; an error names the item."""
    try:
        found = unit_vectors(role, vectors)
    except UsageError:
        for item, (first, last) in zip(items, pairwise(starts.tolist()), strict=True):
            try:
                unit_vectors(role, vectors[first:last])
            except UsageError as error:
                error.where = f"item {item!r}"
                raise
        raise
    return np.empty((0, vectors.shape[1])) if found is None else found


# Folders of vectors of any size: ids are read some at a time, vectors are mapped, and each shard holds whole items.


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors on disk, with a table of id and row in order of items."""

    vectors: Path
    ids: Path
    count: int

    def parts(self) -> Iterator[pl.DataFrame]:
        """Read ids in their order, with the item of each."""
        for start in range(0, self.count, ROWS_PER_SHARD):
            yield self.rows(start, start + ROWS_PER_SHARD)

    def rows(self, start: int, stop: int) -> pl.DataFrame:
        """Read some ids, with the item of each."""
        scan = pl.scan_parquet(self.ids).select("id", "row")
        return _with_items(scan.slice(start, stop - start).collect())

    def first(self) -> str:
        """Name the first item."""
        return str(self.rows(0, 1)["item"][0])


def stored_vectors(folder: Path, *, role: str, scratch: Path) -> StoredVectors:
    """Open a folder of vectors in order of items, as `embed` writes them; ids in another order are sorted in memory."""
    path, ids = vectors_in(folder, role), folder_of(folder) / "ids.parquet"
    if not (path.is_file() and ids.is_file()):
        load_vectors(folder_of(folder))  # says what is missing
    shape, dtype = (opened := load_array(path)).shape, opened.dtype
    found, last, start = StoredVectors(path, ids, int(pl.scan_parquet(ids).select(pl.len()).collect().item())), "", 0
    in_order = len(shape) == 2 and dtype == np.float32 and shape[0] == found.count
    for part in found.parts() if in_order else ():
        rows = pl.int_range(start, start + part.height, dtype=pl.UInt32, eager=True)
        in_order = bool((part["row"] == rows).all()) and part["item"].is_sorted() and part["item"][0] >= last
        if not in_order:
            break
        last, start = part["item"][-1], start + part.height
    ordered = scratch / f"{role}-ids.parquet"
    if not in_order and not ordered.is_file():
        save_parquet(side_of(labelled(folder)).ids.select("id", "row"), ordered)
    return found if in_order else replace(found, ids=ordered)


@dataclass(frozen=True, slots=True)
class AlignedShard:
    """The items of a range: which rows of each role's ids these are, and where their terms go."""

    roles: Mapping[str, StoredVectors]
    ranges: Mapping[str, tuple[int, int]]
    part: Path

    @property
    def size(self) -> int:
        """Count the rows of the role with most."""
        return max(stop - start for start, stop in self.ranges.values())


def align_shard(shard: AlignedShard) -> int:
    """Write the terms of a range of items."""
    sides = {
        role: Side(load_array(stored.vectors), ids)
        for role, stored in shard.roles.items()
        if (ids := stored.rows(*shard.ranges[role])).height
    }
    save_part(terms_of(sides), shard.part)
    seal(shard.part)
    return shard.size


def aligned_shards(roles: Mapping[str, StoredVectors], folder: Path) -> list[AlignedShard]:
    """Cut items into ranges, each with as many rows of the role with most as a shard takes."""
    longest = max(roles.values(), key=lambda stored: stored.count)
    begins = pl.concat([part["item"].head(1) for part in longest.parts()]).unique().sort()[1:]
    cuts = {role: np.zeros(len(begins), np.int64) for role in roles}
    for role, stored in roles.items():
        for part in stored.parts() if len(begins) else ():
            cuts[role] += part["item"].search_sorted(begins, side="left").to_numpy()
    bounds = {role: list(pairwise([0, *cuts[role].tolist(), stored.count])) for role, stored in roles.items()}
    return [
        AlignedShard(roles, {role: each[number] for role, each in bounds.items()}, folder / f"terms-{number:06d}.arrow")
        for number in range(len(begins) + 1)
    ]


_PAPER = "On the Cultural Gap in Text-to-Image Generation (C³), section 4.2, equations 3 to 6"
_LABSE = "that of the text encoder (LaBSE: Apache-2.0)"
_CLIP = "that of the image-text encoder (CLIP: MIT)"
_INTERVAL = (
    "The interval is a t interval over items and speaks about captions like these; with fewer than 20 there is none."
)

_cosine = partial(describe, low=-1.0, direction="higher", unit="cosine")

TEXT = _cosine(
    "c3_text", "Text-text alignment of captions",
    "A_ST = mean over tokens s of the original of max over tokens t of the translation of cos(s, t)",
    paper=f"{_PAPER}; on sentence vectors of LaBSE it is the baseline of that name",
    inputs=("folders of vectors, ids ITEM or ITEM#k: source, target",),
    pitfalls=(
        "With sentence vectors, as the authors use it, there is one token on each side and the metric is one cosine.",
        _INTERVAL,
    ),
    licence=_LABSE,
)  # fmt: skip
IMAGE = _cosine(
    "c3_image", "Image-text alignment of captions",
    "A_IT = max over tokens t of the translation of cos(image, t); of an image's patches, their mean of it",
    paper=f"{_PAPER}; on caption vectors of CLIP it is the baseline of that name",
    inputs=("folders of vectors, ids ITEM or ITEM#k: image, image_target",),
    pitfalls=(
        "CLIP saw English captions of Western pictures; it is weakest where the benchmark is hardest.",
        _INTERVAL,
    ),
    licence=_CLIP,
)  # fmt: skip
OBJECT = _cosine(
    "c3_object", "Object-text alignment of captions",
    "A_OT = mean over detected objects o of max over tokens t of the translation of cos(o, t)", paper=_PAPER,
    inputs=("folders of vectors, ids ITEM or ITEM#k: objects, target",),
    pitfalls=(
        "Objects are those of a detector above probability 0.5; what it has no word for, such as objects of the "
        "culture in question, is not asked of the caption.",
        "An image without detected objects has no such term: it is missing, not 0.",
        _INTERVAL,
    ),
    licence=f"{_LABSE}; that of the detector",
)  # fmt: skip
C3 = describe(
    "c3", "Multi-modal alignment of captions", "A = A_ST + A_IT + A_OT, the sum of the terms that are present",
    paper=_PAPER, inputs=(*TEXT.inputs, *IMAGE.inputs, *OBJECT.inputs),
    pitfalls=(
        "A missing term is left out of the sum, so that items without objects stand lower than items with them. The "
        "manifest counts the items that lack each term.",
        "Cosines of two encoders have different ranges, LaBSE's near 0.6 to 0.9 for translations, CLIP's near 0.2 to "
        "0.35 for captions: the terms do not weigh the same in the sum.",
        _INTERVAL,
    ),
    low=-3.0, high=3.0, direction="higher", unit="sum of cosines", licence=f"{_LABSE}; {_CLIP}; that of the detector",
)  # fmt: skip

METRICS = {"c3": total(*SIDES), **{f"c3_{term}": pl.col(term) for term in SIDES}}
"""How each metric is made of the terms."""


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
    "c3", C3, IMAGE, OBJECT, TEXT, version=3, workers=True, engine=True,
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
    image: Annotated[VectorFolder | None, Field(description="Of the images, or of their patches.")] = None,
    image_target: Annotated[
        VectorFolder | None, Field(description="Of the translated captions, in the space of the images.")
    ] = None,
    *,
    options: C3Options = DEFAULTS,
) -> Outcome:
    """Score captions by C³'s three alignments.

    Ids of vectors are ITEM, or ITEM#k for its token or object k.
    """
    by_role = {"source": source, "target": target, "objects": objects, "image": image, "image_target": image_target}
    given = {role: folder.folder for role, folder in by_role.items() if folder is not None}
    for space in SPACES:
        one_identity_of_all([folder for role, folder in given.items() if role in space])
    counts: dict[str, int] = {}
    done = write_scored(work, scored_in(work, partial(_score_folders, work, given, options, counts)))
    return replace(done, counts={**done.counts, **counts})


def _score_folders(work: Work, folders: Mapping[str, Path], options: C3Options, counts: dict[str, int]) -> Scored:
    """Score folders of vectors in shards; values are written some at a time, and counted."""
    stored = {role: stored_vectors(folder, role=role, scratch=work.scratch) for role, folder in folders.items()}
    known = {role: one for role, one in stored.items() if one.count}  # no picture may show an object
    _check({role: load_array(one.vectors).shape[1] for role, one in stored.items()}, known)
    shards = aligned_shards(known, work.scratch)
    run_shards(work, shards, align_shard, size=lambda shard: shard.size, unit="vectors")
    first = {role: one.first() for role, one in known.items()}
    terms = _Terms(lambda: (read_part(shard.part) for shard in shards), first)
    answer = terms.scored(options)
    write_frames(work.out, VALUES, terms.values(options))
    counts["values"] = sum(part.height for part in terms.captioned()) * len(METRICS)
    if options.keep is not None:
        write_table(work.out, SELECTION, terms.selection(options))
    return answer


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
    known = {role: side_of(each) for role, each in vectors.items() if len(each.ids)}
    _check({role: np.shape(each.vectors)[1] for role, each in vectors.items()}, known)
    table, first = terms_of(known), {role: side.ids["item"][0] for role, side in known.items()}
    terms = _Terms(lambda: iter([table]), first)
    answer = terms.scored(options)
    every = scored(answer.scores.rows(named=True), list(terms.values(options)), left_out=answer.left_out)
    return C3Scores(every, terms.selection(options))


def _check(widths: Mapping[str, int], given: Collection[str]) -> None:
    """Reject vectors without captions, of which no two are comparable, or that share a space and differ in width."""
    if not set(CAPTIONED) & set(given):
        raise NothingScored("there is no caption to score", expected="vectors of target or of image_target")
    for space in SPACES:
        check_widths(**{role: widths[role] for role in space if role in widths})
    if not any(set(sides) <= set(given) for sides in SIDES.values()):
        raise NothingScored(
            "nothing says how well the captions fit", found=f"vectors of {' and '.join(given)}",
            expected="source and target, objects and target, or image and image-target",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms of all items, in parts that follow one another, and the first item of each role."""

    parts: Callable[[], Iterator[pl.DataFrame]]
    first: Mapping[str, str]

    def captioned(self) -> Iterator[pl.DataFrame]:
        """Give the items that are scored."""
        return (part.filter("captioned") for part in self.parts())

    def scored(self, options: C3Options) -> Scored:
        """Average each metric over the items that have it; values are apart.

        The interval speaks about items like these; fewer than 20 of them have none.
        """
        counts, left_out = Counter[str](), Counter[str]()
        sums, squares = dict.fromkeys(METRICS, 0.0), dict.fromkeys(METRICS, 0.0)
        for every in self.parts():
            part = every.filter("captioned")
            for metric, value in METRICS.items():
                known = part.select(value).to_series().drop_nulls()
                counts[metric] += len(known)
                sums[metric] += float(known.sum())
            left_out.update({f"items without the term {term}": part[term].null_count() for term in SIDES})
            left_out["items without a caption"] += every.height - part.height
        self._check_common(counts)
        means = {metric: sums[metric] / counts[metric] if counts[metric] else np.nan for metric in METRICS}
        for part in self.captioned():
            for metric, value in METRICS.items():
                squares[metric] += part.select(((value - means[metric]) ** 2).sum()).item()
        rows = [self._row(metric, counts[metric], means[metric], squares[metric], options) for metric in METRICS]
        return scored(rows, left_out=left_out)

    def _check_common(self, counts: Mapping[str, int]) -> None:
        """Reject two sides of a term without an item in common."""
        for term, (one, other) in SIDES.items():
            if not counts[f"c3_{term}"] and {one, other} <= set(self.first):
                raise NothingScored(
                    f"no item has vectors of both {one} and {other}", expected="ids ITEM, or ITEM#k, of the same items",
                    found=" and ".join(repr(self.first[side]) for side in (one, other)),
                )  # fmt: skip

    def _row(self, metric: str, count: int, mean: float, squares: float, options: C3Options) -> Row:
        """Write the score of a metric."""
        margin = np.nan
        if count >= FEWEST_PROMPTS:
            margin = half_width(Mean(mean, squares / (count - 1) / count, count - 1), confidence=options.confidence)
        answer = Interval(mean, mean - margin, mean + margin, count, "population")
        return statistic_row(**_about(metric, options), answer=answer, params=_params(count))

    def values(self, options: C3Options) -> Iterator[pl.DataFrame]:
        """Give the values of all items, in order of their key."""
        for metric, value in sorted(METRICS.items()):
            has = any(part.select(value.count()).item() for part in self.captioned())
            for part in self.captioned():
                table = value_rows(_about(metric, options), _params(has), part.select("item", value=value))
                check_ranges(table)
                yield table

    def selection(self, options: C3Options) -> pl.DataFrame:
        """List the items kept, best first."""
        if options.keep is None:
            return pl.DataFrame(schema=SELECTION.schema)
        value = total(*STRATEGIES[options.strategy])
        kept = best_of((part.select("item", value=value) for part in self.captioned()), options.keep)
        if kept.is_empty():
            raise UsageError(f"no item has what the strategy {options.strategy!r} ranks by", expected="its vectors")
        table = kept.with_row_index("rank", offset=1).with_columns(strategy=pl.lit(options.strategy))
        return table.select(list(SELECTION.schema))


def _about(metric: str, options: C3Options) -> dict[str, str]:
    """Name the score of a metric."""
    return {"metric": metric, "model": options.model, "benchmark": options.benchmark}


def _params(has: object) -> dict[str, object]:
    """Say what the interval is about, and why there is no value where there is none."""
    params: dict[str, object] = {"target": "population"}
    return params if has else params | {"no_value": "vectors of one side of the term are not given"}
