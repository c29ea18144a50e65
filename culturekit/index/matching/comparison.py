"""An index opened for mapping: its scopes, its searcher, and the matches of a batch of images in a place."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.arrays import save_array
from culturekit.core.choices import BLOCKS_PER_SHARD, MATCHES_PER_SHARD, Aggregate, ChannelName
from culturekit.core.declared import Typed
from culturekit.core.digests import Manifest, read_manifest, state_of
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import recorded
from culturekit.core.schemas import MATCHES
from culturekit.core.stage import seal
from culturekit.core.tables import save_parquet
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import OpenIndex, open_index
from culturekit.index.matching.match_batch import (
    NOTHING,
    SPARE,
    Adjusted,
    ChannelVectors,
    Matched,
    Ranking,
    Scope,
    country_sets,
    leads,
    match_batch,
    near_scores,
    places_by_row,
    ranked_by_blocks,
    ranking_of,
    scope_of,
)
from culturekit.index.search.search import Searcher, searcher

# Corrections for hubs, artifacts that are near to everything: cross-domain similarity (CSLS) and inverted softmax.
#
# Both learn from a bank of images how near an artifact is to images in general. That bank is never the images that
# are evaluated: what a model shows too often would be taken for a hub, and its bias corrected away or turned around.

_AdjustmentName: TypeAlias = Literal["csls", "inverted-softmax"]
_BANK_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Adjustment:
    """How scores are corrected for hubs; not at all without a name."""

    # `csls`, twice the score less the mean of the `neighbours` best scores that the artifact has in the bank, less
    # that of the image among the artifacts (Conneau and others, 2018); or `inverted-softmax`, the score less
    # temperature times the logarithm of the bank's mean of exp(score / temperature): the logarithm of what Smith and
    # others (2017) take, in units of the score
    name: Annotated[
        _AdjustmentName | None, Field(description="Correct scores for hubs; needs --bank."), Typed("adjust")
    ] = None
    neighbours: Annotated[
        int, Field(ge=1, le=1000, description="Neighbours that csls averages."), Typed(needs="adjust=csls")
    ] = 10  # of `csls`
    temperature: Annotated[
        float,
        Field(gt=0, le=10, description="Temperature of inverted-softmax."),
        Typed(needs="adjust=inverted-softmax"),
    ] = 0.05  # of `inverted-softmax`


def hubness(scope: Scope, bank: Vectors, how: Adjustment, begin: int, end: int) -> NDArray[np.float64]:
    """Say how near the artifacts at places `begin` to `end` of a scope are to a bank of images: (end - begin,)."""
    best = np.full((end - begin, 0), NOTHING)
    logarithm = np.full(end - begin, -np.inf)
    for start in range(0, len(bank), _BANK_AT_ONCE):
        scores = near_scores(scope, bank[start : start + _BANK_AT_ONCE], begin, end)
        if how.name == "csls":
            best = np.sort(np.concatenate([best, scores], axis=1), axis=1)[:, -how.neighbours :]
        else:
            part = np.logaddexp.reduce(scores.astype(np.float64) / how.temperature, axis=1)
            logarithm = np.logaddexp(logarithm, part)
    soft: NDArray[np.float64] = how.temperature * (logarithm - np.log(len(bank)))
    return best.mean(axis=1, dtype=np.float64) if how.name == "csls" else soft


# How images are mapped, and what with: options, inputs, and the scopes that artifacts are looked for in.

Within: TypeAlias = Literal["concept", "country", "both"]  # what of its prompt's an image is limited to
ScopeKey: TypeAlias = tuple[str | None, str | None]  # a concept and a country; None is any
# such an image would be mapped to something else, with a score and an interval
NO_SUCH_CONCEPT = "the index has no artifact of the prompt's concept"
ANYWHERE: ScopeKey = (None, None)


def check_known(kind: str, named: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a concept or country that no artifact of the index has."""
    choices = sorted(set(known))
    for name in named:
        if name not in choices:
            near = difflib.get_close_matches(name.casefold(), map(str.casefold, choices), n=5, cutoff=0.5)
            alike = [choice for choice in choices if choice.casefold() in near]
            first = sorted(alike, key=lambda choice: near.index(choice.casefold()))
            listed = [*first, *(choice for choice in choices if choice not in first)]
            raise UsageError(
                f"the index has no artifact of the {kind} {name!r}", expected=f"one of {', '.join(listed)}"
            )


def artifacts_within(
    artifacts: pl.DataFrame, scope: ScopeKey, *, concepts: Sequence[str], countries: Sequence[str]
) -> NDArray[np.bool_]:
    """Tell which artifacts are of a place, and of any of the concepts and countries that all images are limited to."""
    concept, country = scope
    mask = pl.col("artifact_id").is_not_null()
    for column, one, several in (("concepts", concept, concepts), ("countries", country, countries)):
        if one is not None:
            mask &= pl.col(column).list.contains(one)
        if several:
            mask &= pl.col(column).list.eval(pl.element().is_in(list(several))).list.any()
    return artifacts.select(mask).to_series().to_numpy().astype(np.bool_)


def places_of(images: pl.DataFrame, within: Within | None) -> pl.DataFrame:
    """Give each image its place: columns `in_concept` and `in_country`, null where any will do, and `homeless`.

    `homeless` says why an image has no place; null where it has one.
    """
    by_concept, by_country = within in {"concept", "both"}, within in {"country", "both"}
    nothing = pl.lit(None, pl.String)
    homeless = (
        pl.when(pl.lit(by_concept) & pl.col("concept").is_null())
        .then(pl.lit("no concept of a prompt to map within"))
        .when(pl.lit(by_country) & pl.col("country").is_null())
        .then(pl.lit("no country of a prompt to map within"))
    )
    return images.with_columns(
        in_concept=pl.col("concept") if by_concept else nothing,
        in_country=pl.col("country") if by_country else nothing,
        homeless=homeless,
    )


def _concepts_of(artifacts: pl.DataFrame) -> pl.Series:
    return artifacts["concepts"].explode(empty_as_null=False).drop_nulls().unique().sort()


def without_concept(artifacts: pl.DataFrame) -> pl.Expr:
    """Say of images whether they are about a concept of which the index has nothing; null where it has something."""
    return pl.when(pl.col("concept").is_in(_concepts_of(artifacts).implode()).not_()).then(pl.lit(NO_SUCH_CONCEPT))


def check_any_concept(placed: pl.DataFrame, artifacts: pl.DataFrame, *, where: str) -> None:
    """Refuse images that are all about concepts of which the index has nothing."""
    if placed.height and (placed["homeless"] == NO_SUCH_CONCEPT).fill_null(value=False).all():
        raise UsageError(
            NO_SUCH_CONCEPT, where=where, expected=" or ".join(_concepts_of(artifacts)),
            found=", ".join(placed["concept"].unique().sort()),
            hint="Name the concepts of prompts as the index does, or build an index of theirs.",
        )  # fmt: skip


_Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def weights_of(text: str) -> dict[ChannelName, float]:
    """Read weights such as `image=0.7,text=0.3`."""
    found: dict[ChannelName, float] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if name not in {"image", "text"} or name in found or not 0 <= weight < float("inf"):
            raise UsageError(
                "weights cannot be read", where="--weights", expected="such as image=0.7,text=0.3", found=repr(text)
            )
        found[cast("ChannelName", name)] = weight
    return found


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How images are mapped.

    All channels of an index count alike, unless `weights` says how much each of them does.
    """

    k: Annotated[int, Field(ge=1, le=1000, description="Artifacts to keep per image.")] = 5
    aggregate: Annotated[Aggregate, Field(description="How an artifact's vectors become its score.")] = "max"
    weights: Annotated[
        Mapping[ChannelName, _Weight] | None,
        Typed(read=weights_of, help="How much each channel counts, such as image=0.7,text=0.3. [all alike]"),
    ] = None
    within: Annotated[
        Within | None, Field(description="Compare each image only with artifacts of its own prompt's place.")
    ] = None
    concepts: Annotated[
        tuple[str, ...],
        Field(description="Compare only with artifacts of this concept; may be repeated."),
        Typed("concept"),
    ] = ()
    countries: Annotated[
        tuple[str, ...],
        Field(description="Compare only with artifacts of this country (ISO); may be repeated."),
        Typed("country"),
    ] = ()
    max_error: Annotated[
        float | None,
        Field(gt=0, lt=1, description="Abstain where matches would err more often than this share."),
        Typed("max-error"),
    ] = None


@dataclass(frozen=True, slots=True)
class MappingInputs:
    """What images are mapped with; where the encoder lies now and who searches decide no match."""

    index: Annotated[Path, Field(description="Folder that `index build` wrote.")]
    images: Annotated[Path, Field(description="Images table.")]
    prompts: Annotated[
        Path | None, Field(description="Prompts of the images: concept and country, where their table lacks them.")
    ] = None
    vectors: Annotated[Path | None, Field(description="Folder that `index embed` wrote for these images.")] = None
    calibration: Annotated[
        Path | None, Field(description="Images of known artifacts to calibrate on. [the index's references]")
    ] = None
    adjustment: Adjustment = Adjustment()
    bank: Annotated[
        Path | None, Field(description="Images that --adjust learns from: balanced, and none that is mapped.")
    ] = None
    encoder: Annotated[
        str | None, Field(description="SPEC of the index's own encoder, where its weights lie elsewhere now.")
    ] = None
    search: Annotated[
        str, Field(description="Who searches: auto, numpy, faiss, torch, torch:cuda. The matches are the same.")
    ] = "auto"

    def __post_init__(self) -> None:
        """Take a correction with what it learns from, or neither."""
        if (self.adjustment.name is None) != (self.bank is None):
            raise UsageError("--adjust and --bank go together", expected="both or neither")


MOST_ROWS = 2048  # rows asked for at most; where they show too few artifacts, all of the scope is looked at
_MOST_RUNS = 64


@dataclass(frozen=True, slots=True)
class Comparison:
    """What images are compared with, and how: all that a worker needs to know besides the images."""

    index: Path
    aggregate: Aggregate
    weights: tuple[tuple[str, float], ...]
    concepts: tuple[str, ...]
    countries: tuple[str, ...]
    search: str
    adjustment: Adjustment | None = None
    hubs: Path | None = None


def weights_for(index: OpenIndex, options: MappingOptions) -> tuple[tuple[str, float], ...]:
    """Give the weight of each channel that counts."""
    if options.weights is None:
        return tuple((name, 1.0) for name in sorted(index.channels))
    chosen = tuple(sorted((name, float(weight)) for name, weight in options.weights.items() if weight > 0))
    unknown = [name for name, _ in chosen if name not in index.channels]
    if unknown or not chosen:
        raise UsageError(
            f"the index has no channel {', '.join(unknown)}" if unknown else "no channel has a weight above 0",
            where=str(index.folder),
            expected=f"weights of {', '.join(sorted(index.channels))}",
        )
    return chosen


class Comparer:
    """Matches images with an index; what it opens and gathers is kept for the next batch."""

    def __init__(self, comparison: Comparison, index: OpenIndex) -> None:
        """Take an index that was opened."""
        self.how = comparison
        self.artifacts = index.artifacts
        self.countries = country_sets(index.artifacts["countries"])
        self.channels = {name: ChannelVectors(one.vectors, one.owners) for name, one in index.channels.items()}
        self.hubs = None if comparison.hubs is None else np.load(comparison.hubs, allow_pickle=False)
        self.scopes: dict[ScopeKey, Scope] = {}
        self.finder: Searcher | None = None

    def scope(self, key: ScopeKey) -> Scope:
        """Give what images of a place are compared with, before any correction."""
        if key not in self.scopes:
            limited = key != ANYWHERE or self.how.concepts or self.how.countries
            mask = artifacts_within(
                self.artifacts, key, concepts=self.how.concepts, countries=self.how.countries
            ) if limited else None  # fmt: skip
            self.scopes[key] = scope_of(
                self.channels,
                dict(self.how.weights),
                aggregate=self.how.aggregate,
                count=self.artifacts.height,
                within=mask,
            )
        return self.scopes[key]

    def rank(
        self, key: ScopeKey, queries: Vectors, *, count: int, left_out: NDArray[np.int64] | None = None
    ) -> Ranking:
        """Rank artifacts by their scores, corrected where that is asked for; at least `count` of them."""
        scope = self.adjusted(self.scope(key))
        return self.ranked(scope, key, queries, count=count, left_out=left_out)

    def match(self, key: ScopeKey, queries: Vectors, *, k: int) -> Matched:
        """Match images of a place."""
        scope = self.adjusted(self.scope(key))
        ranking = self.ranked(scope, key, queries, count=k + 1 + SPARE)
        matched = match_batch(scope, queries, self.countries, k=k, ranking=ranking)
        if self.how.adjustment is None or self.how.adjustment.name != "csls":
            return matched
        neighbours = self.how.adjustment.neighbours
        near = self.ranked(self.scope(key), key, queries, count=neighbours).scores[:, :neighbours]
        found_scores = np.where(np.isfinite(near), near, np.nan).astype(np.float64)
        scores = matched.scores - np.nanmean(found_scores, axis=1, keepdims=True)
        return replace(matched, scores=scores.astype(np.float32))

    def adjusted(self, scope: Scope) -> Scope:
        """Give a scope its correction for hubs."""
        if self.hubs is None or self.how.adjustment is None:
            return scope
        scale, lowest = (2.0, -4.0) if self.how.adjustment.name == "csls" else (1.0, -2.0)
        return replace(scope, adjusted=Adjusted(scale, -self.hubs, lowest))

    def ranked(
        self, scope: Scope, key: ScopeKey, queries: Vectors, *, count: int, left_out: NDArray[np.int64] | None = None
    ) -> Ranking:
        """Rank by search where the best rows decide and the place is not a small one, by blocks otherwise."""
        rows_decide = len(scope.channels) == 1 and scope.aggregate == "max" and scope.adjusted is None
        if self.how.search == "numpy" or key != ANYWHERE or not rows_decide:
            return ranked_by_blocks(scope, queries, count=count, left_out=left_out)
        if self.finder is None:
            channel = self.channels[self.how.weights[0][0]]
            order = np.empty(len(channel.owners), np.int64)
            order[np.argsort(channel.owners, kind="stable")] = np.arange(len(order))
            self.finder = searcher(channel.vectors, engine=self.how.search, order=order)
        return ranked_by_search(scope, queries, self.finder, count=count, left_out=left_out)


def comparer(comparison: Comparison) -> Comparer:
    """Open an index once per process while it stays as it is; whoever gives out the work has checked its files."""
    return _opened(comparison, state_of(comparison.index), state_of(comparison.hubs))


@lru_cache(maxsize=2)
def _opened(comparison: Comparison, *_: object) -> Comparer:
    return Comparer(comparison, open_index(comparison.index, verified=True))


def runs_of(scope: Scope) -> list[slice] | None:
    """Give the runs of rows that a scope of one channel is made of; None where there are too many to search apart."""
    rows = np.sort(scope.channels[0].rows)
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    if len(breaks) >= _MOST_RUNS:
        return None
    return [slice(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, breaks) if len(run)]


def ranked_by_search(
    scope: Scope, queries: Vectors, finder: Searcher, *, count: int, left_out: NDArray[np.int64] | None = None
) -> Ranking:
    """Rank at least `count` artifacts of each query; more rows are asked for where the first show too few."""
    runs, channel = runs_of(scope), scope.channels[0]
    place_of = places_by_row(scope)
    todo, width = np.arange(len(queries)), 2 * min(count, scope.size) + 16
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = []
    whole = np.zeros(len(queries), np.bool_)
    while len(todo) and runs is not None and width <= MOST_ROWS:
        found = finder.best(queries[todo], k=min(width, len(channel.rows)), slices=runs)
        row, column, first = _first_of_each(found.rows, place_of, None if left_out is None else left_out[todo])
        ended = (found.rows < 0).any(axis=1) | (width >= len(channel.rows))
        done = (np.bincount(row, minlength=len(todo)) >= count) | ended
        kept = done[row]
        parts.append((todo[row[kept]], first[kept], found.scores[row[kept], column[kept]]))
        whole[todo] = ended
        todo, width = todo[~done], width * 4
    if len(todo):
        rest = ranked_by_blocks(
            scope, queries[todo], count=count, left_out=None if left_out is None else left_out[todo]
        )
        row, column = np.nonzero(rest.artifacts >= 0)
        parts.append((todo[row], scope.places[rest.artifacts[row, column]], rest.scores[row, column]))
        whole[todo] = rest.whole
    which, places, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ranking_of(scope, which, places, scores, whole=whole)


def _first_of_each(
    rows: NDArray[np.int64], place_of: NDArray[np.int64], left_out: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find where each artifact is met first: query, column and place; rows stand best first."""
    places = np.where(rows >= 0, place_of[rows], -1)
    if left_out is not None:
        places[rows == left_out[:, np.newaxis]] = -1
    order = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, order, axis=1)
    new = ordered >= 0
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    row, at = np.nonzero(new)
    return row, order[row, at], ordered[row, at]


# Matches that are compared come from one index and one mapping rule, as the manifests behind tables tell.


MAP = "map"  # The kind of the stage that maps images to the artifacts of an index

DEPTH = "k"  # How many neighbours are kept: the nearest stays the same


def check_mapped_alike(tables: Sequence[Path]) -> None:
    """Refuse tables of matches, or of scores of them, that were mapped through different indexes or by other rules.

    What no manifest tells, as of tables that somebody merged, is not known.
    """
    known: Mapping[str, Any] = {}
    for path in tables:
        for mapped in maps_behind(path):
            settings = {**mapped.options, "index": mapped.inputs["index"].sha256[:12], DEPTH: None}
            known = known or settings
            apart = [name for name in sorted({*known, *settings}) if known.get(name) != settings.get(name)]
            if apart:
                raise UsageError(
                    "models are compared that were mapped in different ways", where=", ".join(map(str, tables)),
                    expected=", ".join(f"{name} {known.get(name)}" for name in apart),
                    found=", ".join(f"{name} {settings.get(name)}" for name in apart),
                    hint="Map the images of all models with one index and the same options.",
                )  # fmt: skip


def check_mapped_through(index: Path, tables: Sequence[Path]) -> None:
    """Refuse tables of matches that were mapped through another index than one that is looked at."""
    wanted = read_manifest(index)
    for path in tables:
        for through in [mapped.inputs["index"].sha256 for mapped in maps_behind(path)]:
            if wanted is not None and through != wanted.sha256:
                raise UsageError(
                    "these images were mapped through another index", where=str(path),
                    expected=f"index {wanted.sha256[:12]} ({index})", found=f"index {through[:12]}",
                    hint="Map them through this one, or name the index they were mapped through.",
                )  # fmt: skip


def maps_behind(table: Path) -> Iterator[Manifest]:
    """Give the stages that mapped what a table is, or was made of, where they are still there as they were."""
    manifest = read_manifest(table.parent)
    if manifest is None or table.name not in manifest.outputs:
        return
    if manifest.stage == MAP:
        yield manifest
    file = f"{MATCHES.name}.parquet"
    for role, record in manifest.inputs.items():
        if record.stage == MAP and record.name == file:
            with suppress(IntegrityError):  # where it lay is no longer known
                mapping = read_manifest(recorded(table.parent, role).parent)
                if mapping is not None and file in mapping.outputs and mapping.outputs[file].sha256 == record.sha256:
                    yield mapping


# The work items of a mapping: images to match, references to calibrate on, artifacts whose hubness is learned.

IMAGES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class MatchShard:
    """Rows `start:stop` of a table of images and of their vectors, to be matched.

    `threshold` is the margin from which on an image does not abstain.
    """

    comparison: Comparison
    images: Path
    vectors: Path
    start: int
    stop: int
    k: int
    threshold: float
    method: str
    part: Path


@dataclass(frozen=True, slots=True)
class TrialShard:
    """Rows `start:stop` of a table of pictures that show known artifacts, to see how they are matched.

    Their vectors are rows of the index's image channel, which are left out, or those of `vectors`.
    """

    comparison: Comparison
    shown: Path
    vectors: Path | None
    start: int
    stop: int
    part: Path


@dataclass(frozen=True, slots=True)
class HubShard:
    """The `size` artifacts in some blocks of an index, to learn from a bank of images how near they are to all."""

    comparison: Comparison
    bank: Path
    first: int
    size: int
    part: Path


def match_shard(shard: MatchShard) -> int:
    """Match a run of images and write their rows."""
    compared = comparer(shard.comparison)
    images = pl.scan_parquet(shard.images).slice(shard.start, shard.stop - shard.start).collect()
    vectors: Vectors = np.load(shard.vectors, mmap_mode="r", allow_pickle=False)
    shape = (images.height, shard.k)
    matched = Matched(np.full(shape, -1, np.int64), *np.zeros((3, *shape), np.float32))
    for scope, rows in _by_scope(images):
        found = compared.match(scope, vectors[images["row"].to_numpy()[rows]], k=shard.k)
        for name in ("artifacts", "scores", "margins", "country_margins"):
            getattr(matched, name)[rows] = getattr(found, name)
    table = _match_table(
        images,
        matched,
        compared.artifacts,
        countries=shard.comparison.countries,
        threshold=shard.threshold,
        method=shard.method,
    )
    save_parquet(table, shard.part)
    seal(shard.part)
    return images.height


def try_shard(shard: TrialShard) -> int:
    """Match a run of pictures that show known artifacts; write the nearest artifact of each, its score and margin."""
    compared = comparer(shard.comparison)
    shown = pl.scan_parquet(shard.shown).slice(shard.start, shard.stop - shard.start).collect()
    kept_rows = None if shard.vectors is not None else shown["row"].to_numpy().astype(np.int64)
    vectors: Vectors = (
        compared.channels["image"].vectors
        if shard.vectors is None
        else np.load(shard.vectors, mmap_mode="r", allow_pickle=False)
    )
    nearest, (scores, margins) = np.zeros(shown.height, np.int64), np.zeros((2, shown.height), np.float32)
    for scope, rows in _by_scope(shown):
        queries = vectors[shown["row"].to_numpy()[rows]]
        found = compared.rank(scope, queries, count=2, left_out=None if kept_rows is None else kept_rows[rows])
        nearest[rows], scores[rows] = found.artifacts[:, 0], found.scores[:, 0]
        margins[rows] = leads(found, 1, lowest=compared.adjusted(compared.scope(scope)).lowest)[:, 0]
    tried = {"artifact": shown["artifact"], "nearest": nearest, "score": scores, "margin": margins}
    save_parquet(pl.DataFrame(tried), shard.part)
    seal(shard.part)
    return shown.height


def find_hubs(shard: HubShard) -> int:
    """Learn how near some artifacts are to a bank of images."""
    compared = comparer(shard.comparison)
    scope, how = compared.scope(ANYWHERE), shard.comparison.adjustment
    bank: Vectors = np.load(shard.bank, mmap_mode="r", allow_pickle=False)
    blocks = list(scope.blocks())[shard.first : shard.first + BLOCKS_PER_SHARD]
    values = [hubness(scope, bank, how, begin, end) for begin, end in blocks] if how is not None else []
    save_array(shard.part, np.concatenate(values))
    seal(shard.part)
    return sum(end - begin for begin, end in blocks)


def _by_scope(images: pl.DataFrame) -> Iterator[tuple[ScopeKey, NDArray[np.int64]]]:
    """Part images by the place they are compared in, no more than are compared at once."""
    numbered = images.select("in_concept", "in_country").with_row_index("at")
    for (concept, country), part in numbered.group_by(["in_concept", "in_country"], maintain_order=True):
        rows = part["at"].to_numpy().astype(np.int64)
        address: ScopeKey = (None if concept is None else str(concept), None if country is None else str(country))
        for start in range(0, len(rows), IMAGES_AT_ONCE):
            yield address, rows[start : start + IMAGES_AT_ONCE]


def ranges(count: int) -> Iterator[tuple[int, int]]:
    """Cut rows into runs, a shard each."""
    for start in range(0, count, MATCHES_PER_SHARD):
        yield start, min(start + MATCHES_PER_SHARD, count)


def _match_table(
    images: pl.DataFrame,
    matched: Matched,
    artifacts: pl.DataFrame,
    *,
    countries: Sequence[str],
    threshold: float,
    method: str,
) -> pl.DataFrame:
    """Write out the matches of some images.

    A match's country is the prompt's where it is among the artifact's, else the first of the artifact's that was
    asked for with `countries`, else the artifact's first.

    Args:
        images: image_id, model, prompt_id, concept, country, repeat and slot of each.
        matched: their matches, in the same order.
        artifacts: ARTIFACTS, by number.
        countries: those that the mapping was limited to; empty when it was not.
        threshold: the margin from which on an image does not abstain.
        method: what the rows say of how they came about.
    """
    row, rank = np.nonzero(matched.artifacts >= 0)
    number = matched.artifacts[row, rank]
    shown = artifacts[number]
    asked = zip(shown["countries"].to_list(), images["country"].gather(row), strict=True)
    chosen = pl.Series([_place_of(codes, code, countries) for codes, code in asked], dtype=pl.Int64)
    shown = shown.with_columns(place=chosen)
    kept = matched.margins[:, 0] >= np.float32(threshold)
    columns = images.select("image_id", "model", "prompt_id", "concept", "repeat", "slot")[row].hstack(
        shown.select(
            "artifact_id",
            "artifact",
            "countries",
            country=pl.col("countries").list.get(pl.col("place"), null_on_oob=True),
            continent=pl.col("continents").list.get(pl.col("place"), null_on_oob=True),
        )
    )
    return columns.with_columns(
        rank=pl.Series(rank + 1, dtype=pl.UInt16),
        score=pl.Series(matched.scores[row, rank]),
        margin=pl.Series(matched.margins[row, rank]),
        country_margin=pl.Series(matched.country_margins[row, rank]),
        abstained=pl.Series(~kept[row]),
        method=pl.lit(method),
    ).select(list(MATCHES.columns))


def _place_of(codes: list[str], asked: str | None, limited: Sequence[str]) -> int:
    """Find which of an artifact's countries a match stands for, by its place among them."""
    if asked in codes:
        return codes.index(asked)
    return next((index for index, code in enumerate(codes) if code in limited), 0)
