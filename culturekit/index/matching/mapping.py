"""Images to their nearest artifacts, with the margins that say how clear each case is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.arrays import save_array
from culturekit.core.choices import BLOCKS_PER_SHARD
from culturekit.core.declared import Seed, StageCommand, Typed, check_options, kept
from culturekit.core.digests import digest_file, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import Numbered, roles_among, roles_of
from culturekit.core.schemas import CSPACE, DROPS, IMAGES, MATCHES, PROMPTS
from culturekit.core.stage import Outcome, Stage, Work, run_shards
from culturekit.core.tables import (
    merge_parts,
    prompts_table,
    read_table,
    save_parquet,
    space_table,
    write_drops,
    write_frames,
    write_table,
)
from culturekit.index.embedding.embedding import embed, encoder_of, load_vectors, save_vectors
from culturekit.index.encoder import Vectors
from culturekit.index.folder.index_folder import OpenIndex, check_identity, differing, open_index
from culturekit.index.matching.calibration import Known, calibrate, calibration_table, described, held_out, known_images
from culturekit.index.matching.comparison import (
    ANYWHERE,
    NO_SUCH_CONCEPT,
    Comparer,
    Comparison,
    HubShard,
    MappingInputs,
    MappingOptions,
    MatchShard,
    artifacts_within,
    check_any_concept,
    check_known,
    check_mapped_through,
    find_hubs,
    match_shard,
    places_of,
    ranges,
    weights_for,
    without_concept,
)
from culturekit.index.matching.diagnosis import diagnose, shuffle_pictures
from culturekit.index.search.search import searcher

_MAP = "map"  # what drops of this stage name it


def _images_to_map(images_path: Path, prompts_path: Path | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the images that have a picture, by id, and the drops of those that have none."""
    images = _with_prompts(read_table(images_path, IMAGES).sort("image_id"), prompts_path)
    usable, without = images.filter(pl.col("status") == "ok"), images.filter(pl.col("status") != "ok")
    detail = pl.concat_str(pl.col("status"), pl.col("reason"), separator=": ", ignore_nulls=True)
    drops = _dropped(without, reason=pl.lit("image without a picture"), detail=detail)
    if usable.is_empty():
        raise UsageError("there is no image to map", where=str(images_path), expected="rows with status ok")
    return usable, drops


def _with_prompts(images: pl.DataFrame, prompts_path: Path | None) -> pl.DataFrame:
    """Fill in the concept and country of the prompt where the images table does not say them."""
    absent = [name for name in ("concept", "country") if name not in images.columns]
    images = images.with_columns([pl.lit(None, pl.String).alias(name) for name in absent])
    if prompts_path is None:
        return images
    prompts = read_table(prompts_path, PROMPTS).select("prompt_id", "concept", "country", "artifact_id")
    joined = images.join(prompts, on="prompt_id", how="left", maintain_order="left", suffix="_asked")
    return joined.with_columns(
        concept=pl.coalesce("concept", "concept_asked"), country=pl.coalesce("country", "country_asked")
    ).rename({"artifact_id": "asked_artifact_id"})


def _with_truth(images_path: Path, prompts_path: Path | None) -> pl.DataFrame:
    """List the pictures of a table that say which artifact they show: by their truth, or by what was asked for."""
    images = _with_prompts(read_table(images_path, IMAGES).sort("image_id"), prompts_path)
    known = [name for name in ("truth_artifact_id", "asked_artifact_id") if name in images.columns]
    if not known:
        raise UsageError(
            "the table does not say which artifact an image shows", where=str(images_path),
            expected="a column truth_artifact_id, or --prompts with the prompts that the images were made from",
        )  # fmt: skip
    shown = images.filter(pl.col("status") == "ok").with_columns(artifact_id=pl.coalesce(known))
    return shown.filter(pl.col("artifact_id").is_not_null())


def _dropped(images: pl.DataFrame, *, reason: pl.Expr, detail: pl.Expr) -> pl.DataFrame:
    return images.select(
        key="image_id", concept="concept", stage=pl.lit(_MAP), reason=reason, detail=detail.cast(pl.String)
    ).select([pl.col(name).cast(dtype) for name, dtype in DROPS.schema.items()])


@dataclass(frozen=True, slots=True)
class _Seen:
    """Images that have a vector: `row` says which of `vectors` is an image's; and DROPS of those that have none."""

    images: pl.DataFrame
    vectors: Vectors
    drops: pl.DataFrame
    path: Path | None = None


def embedded(work: Work, images: pl.DataFrame, root: Path, encoder: str, *, name: str) -> _Seen:
    """Embed images; `name` keeps their shards apart from those of others."""
    scratch = work.scratch / name
    scratch.mkdir(exist_ok=True)
    vectors = embed(images, root, encoder, scratch, engine=work.engine, progress=work.progress)
    unread = vectors.unreadable.select("image_id", why="reason", what="detail")
    lost = images.join(unread, on="image_id", how="inner", maintain_order="left")
    drops = _dropped(lost, reason=pl.col("why"), detail=pl.col("what"))
    return _Seen(vectors.kept.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64)), vectors.vectors, drops)


def _vectors_from(folder: Path, images: pl.DataFrame, images_path: Path, index: OpenIndex) -> _Seen:
    """Take the vectors of images from a folder; what could not be embedded then is a drop now."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.stage != "embed":
        raise UsageError("not a folder of vectors", where=str(folder), hint="Make one with: culturekit index embed")
    for name, record in manifest.outputs.items():
        if not (folder / name).is_file() or digest_file(folder / name) != record.sha256:
            raise refused("not what was made", folder, name)
    stated, given = dict(index.notes.get("identity", {})), dict(manifest.notes.get("identity", {}))
    if stated != given:
        names = ", ".join(differing(stated, given))
        raise refused(f"of another encoder than the index ({names} differ)", folder, manifest.notes["encoder"])
    table = manifest.inputs.get("images")
    if table is None or table.sha256 != digest_file(images_path):
        raise refused("not the vectors of these images", folder, "nothing of them" if table is None else table.name)
    vectors, ids = load_vectors(folder)
    rows = pl.DataFrame({"image_id": ids, "row": np.arange(len(ids))}, schema={"image_id": pl.String, "row": pl.Int64})
    why = read_table(folder / "drops.parquet", DROPS).select(image_id="key", why="reason", what="detail")
    joined = images.join(rows, on="image_id", how="left", maintain_order="left")
    lost = joined.filter(pl.col("row").is_null()).join(why, on="image_id", how="left", maintain_order="left")
    if lost["why"].has_nulls():
        raise refused("without a vector of some images, and without a reason", folder, lost["image_id"][0])
    drops = _dropped(lost, reason=pl.col("why"), detail=pl.col("what"))
    return _Seen(joined.filter(pl.col("row").is_not_null()), vectors, drops, folder / "vectors.npy")


def refused(problem: str, folder: Path, found: str) -> IntegrityError:
    """Say why vectors are not taken."""
    hint = "Embed the images again with: culturekit index embed"
    return IntegrityError(f"the folder of vectors is {problem}", where=str(folder), found=found, hint=hint)


_MOST_UNEQUAL = 2.0  # how many times as often the most frequent artifact, or country, may be shown as the rarest


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a mapping begins with: the index, how images are compared with it, and who encodes."""

    index: OpenIndex
    comparison: Comparison
    encoder: str


def map_images(work: Work, given: MappingInputs, options: MappingOptions) -> Outcome:
    """Embed the images of a table and write the nearest artifacts of each."""
    opened = _opened_index(given, options)
    images, drops = _images_to_map(given.images, given.prompts)
    placed, homeless = _with_places(images, opened, options)
    seen = _seen_images(work, given, placed, opened)
    if seen.images.is_empty():
        raise UsageError("no image could be read and compared", where=str(given.images), expected="at least one")
    opened, bank = _with_hubs(work, given, opened, seen)
    notes: dict[str, object] = {**opened.index.notes, "channels": dict(opened.comparison.weights)}
    if bank:
        notes["adjustment"] = bank
    found = known = None
    if options.max_error is not None:
        known = _known(work, given, opened, options)
        found = calibrate(work, opened.comparison, known, max_error=options.max_error)
    shards = _match_shards(work, seen, opened.comparison, k=options.k, threshold=found.threshold if found else -np.inf)
    run_shards(work, shards, match_shard, size=lambda shard: shard.stop - shard.start, unit="matches")
    counts: Counter[str] = Counter(matches=0, images=0, abstained=0)
    nearest: list[NDArray[np.float32]] = []
    write_frames(work.out, MATCHES, _counted(shards, counts, nearest))
    reasons = write_drops(work.out, pl.concat([drops, homeless, seen.drops]))
    scores = np.concatenate(nearest).astype(np.float64)  # far from everything is a sign of images without culture
    shares = {"lowest 5 %": 0.05, "median": 0.5, "highest 5 %": 0.95}
    notes["similarity"] = {name: round(float(np.quantile(scores, share)), 4) for name, share in shares.items()}
    if found is not None and known is not None and options.max_error is not None:
        calibration_table(work.out, found, options.max_error)
        accepted = counts["images"] - counts["abstained"]
        notes["abstention"] = described(found, known, options.max_error, images=counts["images"], accepted=accepted)
    made_here = {} if given.vectors is not None else {"ids": seen.images.height}
    return Outcome({**counts, "drops": sum(reasons.values()), **made_here}, reasons, notes)


def _counted(
    shards: list[MatchShard], counts: Counter[str], nearest: list[NDArray[np.float32]]
) -> Iterator[pl.DataFrame]:
    """Give the rows of the shards, in order, and count what goes by."""
    for shard in shards:
        rows = merge_parts([shard.part], MATCHES.schema)
        first = rows.filter(pl.col("rank") == 1)
        counts.update(matches=rows.height, images=first.height, abstained=int(first["abstained"].sum()))
        nearest.append(first["score"].to_numpy())
        yield rows


def _opened_index(given: MappingInputs, options: MappingOptions) -> _Opened:
    """Open the index, and make sure that what is asked for can be had from it."""
    searcher(np.eye(1, dtype=np.float32), engine=given.search)  # an unknown or missing one is said before any work
    index = open_index(given.index)
    for kind, named, column in (("concept", options.concepts, "concepts"), ("country", options.countries, "countries")):
        check_known(kind, named, index.artifacts[column].explode(empty_as_null=False))
    comparison = Comparison(
        given.index, options.aggregate, weights_for(index, options), options.concepts, options.countries, given.search
    )
    chosen = given.encoder or index.encoder
    check_identity(index, encoder_of(chosen))
    return _Opened(index, comparison, chosen)


def _with_places(images: pl.DataFrame, opened: _Opened, options: MappingOptions) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give each image the place that it is compared in; those without any artifact to compare with are drops."""
    placed = places_of(images, options.within)
    compared, index = Comparer(opened.comparison, opened.index), opened.index
    if compared.scope(ANYWHERE).size == 0:
        raise UsageError(
            "the index has no artifact of these concepts and countries together",
            where=str(index.folder),
            found=", ".join([*options.concepts, *options.countries]),
        )
    indexed = np.zeros(index.artifacts.height, np.bool_)
    indexed[compared.scope(ANYWHERE).artifacts] = True
    places = placed.select("in_concept", "in_country").unique(maintain_order=True)
    empty = [
        not (indexed & artifacts_within(index.artifacts, scope, concepts=(), countries=())).any()
        for scope in places.iter_rows()
    ]
    placed = placed.join(
        places.with_columns(empty=pl.Series(empty, dtype=pl.Boolean)),
        on=["in_concept", "in_country"], how="left", nulls_equal=True, maintain_order="left",
    )  # fmt: skip
    why = pl.when(pl.col("empty")).then(pl.lit("no artifact to map to within the prompt's place"))
    placed = placed.with_columns(homeless=pl.coalesce("homeless", why, without_concept(index.artifacts)))
    check_any_concept(placed, index.artifacts, where=str(index.folder))
    lost = placed.filter(pl.col("homeless").is_not_null())
    within = pl.concat_str("in_concept", "in_country", separator=", ", ignore_nulls=True)
    asked = pl.when(pl.col("homeless") == NO_SUCH_CONCEPT).then("concept").otherwise(within)
    kept = placed.filter(pl.col("homeless").is_null()).drop("homeless", "empty")
    return kept, _dropped(lost, reason=pl.col("homeless"), detail=asked)


def _seen_images(work: Work, given: MappingInputs, images: pl.DataFrame, opened: _Opened) -> _Seen:
    """Embed the images to be mapped and keep their vectors, or take those that are there already."""
    if given.vectors is not None:
        return _vectors_from(given.vectors, images, given.images, opened.index)
    seen = embedded(work, images, given.images.parent, opened.encoder, name="images")
    save_vectors(work.out, seen.vectors, seen.images["image_id"].to_list())
    return _Seen(seen.images, seen.vectors, seen.drops, work.out / "vectors.npy")


def _with_hubs(work: Work, given: MappingInputs, opened: _Opened, seen: _Seen) -> tuple[_Opened, Mapping[str, object]]:
    """Learn the correction for hubs from the bank, if there is one."""
    if given.bank is None:
        return opened, {}
    shown = _with_truth(given.bank, given.prompts)
    bank = embedded(work, shown, given.bank.parent, opened.encoder, name="bank")
    where = str(given.bank)
    _check_independent(bank.images, bank.vectors, seen.images, seen.vectors, where=where)
    plain = Comparer(opened.comparison, opened.index).scope(ANYWHERE)
    inside = opened.index.artifacts[np.sort(plain.artifacts)]
    figures = _check_balanced(bank.images, inside, where=where)
    save_array(work.scratch / "bank.npy", bank.vectors)
    learning = replace(opened.comparison, adjustment=given.adjustment)
    ends = [0, *(end for _, end in plain.blocks())]
    shards = [
        HubShard(
            learning,
            work.scratch / "bank.npy",
            first,
            ends[min(first + BLOCKS_PER_SHARD, len(ends) - 1)] - ends[first],
            work.scratch / f"hubs-{first:06d}.npy",
        )
        for first in range(0, len(ends) - 1, BLOCKS_PER_SHARD)
    ]
    run_shards(work, shards, find_hubs, size=lambda shard: shard.size, unit="artifacts")
    hubs: NDArray[np.float64] = np.zeros(opened.index.artifacts.height)
    hubs[plain.artifacts] = np.concatenate([np.load(shard.part, allow_pickle=False) for shard in shards])
    save_array(work.scratch / "hubs.npy", hubs)
    adjusted = replace(learning, hubs=work.scratch / "hubs.npy")
    return replace(opened, comparison=adjusted), {"name": given.adjustment.name, **figures}


def _known(work: Work, given: MappingInputs, opened: _Opened, options: MappingOptions) -> Known:
    """Find pictures of known artifacts, from which the margin is learned at which matches err as seldom as stated."""
    if given.calibration is None:
        return held_out(opened.index, opened.comparison, options.within)
    shown = _with_truth(given.calibration, given.prompts)
    seen = embedded(work, shown, given.calibration.parent, opened.encoder, name="calibration")
    return known_images(opened.index, seen.images, seen.vectors, opened.comparison, options.within)


def _match_shards(work: Work, seen: _Seen, comparison: Comparison, *, k: int, threshold: float) -> list[MatchShard]:
    """Cut the images into work items."""
    listed = work.scratch / "images.parquet"
    asked = ("image_id", "model", "prompt_id", "concept", "country", "repeat", "slot")
    save_parquet(seen.images.select("row", *asked, "in_concept", "in_country"), listed)
    method = "nearest" if comparison.adjustment is None else f"nearest+{comparison.adjustment.name}"
    return [
        MatchShard(comparison, listed, seen.path or listed, start, stop, k, threshold, method,
                   work.scratch / f"matches-{start:09d}.parquet")
        for start, stop in ranges(seen.images.height)
    ]  # fmt: skip


def _check_independent(
    bank: pl.DataFrame, bank_vectors: Vectors, images: pl.DataFrame, vectors: Vectors, *, where: str
) -> None:
    """Refuse a bank that shares an image with those that are mapped, by its file or by its vector."""
    files = bank.join(images.select("sha256"), on="sha256", how="semi")
    seen = {row.tobytes() for row in bank_vectors}
    alike = sum(row.tobytes() in seen for row in vectors)
    if files.height or alike:
        raise UsageError(
            "the bank shares images with those that are mapped",
            where=where,
            expected="other images: of another model, or references",
            found=f"{files.height:,} equal files and {alike:,} equal vectors",
            hint="Corrected with its own images as the bank, a model's bias is taken for hubs and corrected away.",
        )


def balance_of(names: Sequence[str | None], every: Sequence[str]) -> tuple[int, int, str]:
    """Count how often the rarest and the most frequent of `every` name occur, and name the rarest."""
    seen = Counter(names)
    rarest = min(sorted(set(every)), key=lambda name: seen[name])
    return seen[rarest], max(seen[name] for name in every), rarest


def _check_balanced(bank: pl.DataFrame, artifacts: pl.DataFrame, *, where: str) -> dict[str, object]:
    """Refuse a bank that shows some artifacts and some countries much more often than others; give its figures.

    It is balanced if each artifact of the index, or each country that stands first with one, is shown, and none more
    than twice as often as another.
    """
    first = artifacts.select("artifact_id", place=pl.col("countries").list.first())
    shown = bank.join(first, on="artifact_id", how="left", maintain_order="left")
    by_artifact = balance_of(shown["artifact_id"].to_list(), first["artifact_id"].to_list())
    by_country = balance_of(shown["place"].to_list(), first["place"].drop_nulls().unique().to_list())
    if not any(fewest > 0 and most <= _MOST_UNEQUAL * fewest for fewest, most, _ in (by_artifact, by_country)):
        raise UsageError(
            "the bank is not balanced",
            where=where,
            expected=f"every artifact, or every country, shown at least once and none over {_MOST_UNEQUAL:g} times as "
            "often as another",
            found=f"countries {by_country[0]:,} ({by_country[2]}) to {by_country[1]:,} times, artifacts "
            f"{by_artifact[0]:,} ({by_artifact[2]}) to {by_artifact[1]:,} times",
        )
    return {
        "images": bank.height,
        "per_artifact": {"fewest": by_artifact[0], "most": by_artifact[1]},
        "per_country": {"fewest": by_country[0], "most": by_country[1]},
    }


# The stages: what images truly show, what they are mapped to, floors, and a diagnosis of the instrument.


def truth_stage(images: Path, cspace: Path) -> Stage:
    """Write down what simulated images really show."""
    return Stage(
        "truth", "truth", 1, lambda work: true_matches(work, images, space_table(cspace, work.scratch)),
        {"images": images, "cspace": cspace}, packages=("polars",),
    )  # fmt: skip


def true_matches(work: Work, images_path: Path, cspace_path: Path) -> Outcome:
    """Write the truth as a mapping that never errs; a culture-free image has a row without an artifact."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok")
    if "truth_artifact_id" not in images.columns:
        raise UsageError("these images do not come with the truth", where=str(images_path), expected="simulated images")
    work.progress.begin(images.height, "images")
    shown = read_table(cspace_path, CSPACE).unique(["artifact_id", "country"], maintain_order=True)
    everywhere = shown.group_by("artifact_id").agg(countries=pl.col("country").sort())
    rows = images.join(
        shown.select("artifact_id", "country", "continent", artifact="name"),
        left_on=["truth_artifact_id", "truth_country"],
        right_on=["artifact_id", "country"],
        how="left",
    ).join(everywhere, left_on="truth_artifact_id", right_on="artifact_id", how="left")
    matches = rows.select(
        "image_id", "model", "prompt_id", "concept", "repeat", "slot", "artifact", "continent",
        rank=pl.lit(1, pl.UInt16),
        artifact_id="truth_artifact_id",
        country="truth_country",
        countries=pl.col("countries").fill_null([]),
        score=pl.lit(1.0, pl.Float32),
        margin=pl.lit(1.0, pl.Float32),
        country_margin=pl.lit(1.0, pl.Float32),
        abstained=pl.col("truth_artifact_id").is_null(),
        method=pl.lit("truth"),
    ).select(list(MATCHES.columns))  # fmt: skip
    write_table(work.out, MATCHES, matches)
    work.progress.advance(images.height)
    return Outcome({"matches": matches.height, "culture_free": int(matches["abstained"].sum())})


def shuffle_stage(
    images: Annotated[Path, Field(description="Images table.")],
    *,
    tiles: Annotated[int, Field(ge=2, le=64, description="Tiles along each side of a picture.")] = 8,
    repeats: Annotated[int, Field(ge=0, description="Repeats of each prompt that are taken; 0 takes all.")] = 5,
    seed: Seed = 0,
) -> Stage:
    """Cut images into tiles and shuffle them.

    What such pictures score is the floor of a score.
    """
    return Stage(
        "shuffled", "shuffle", 1,
        lambda work: shuffle_pictures(work, images, tiles=tiles, repeats=repeats, seed=seed),
        {"images": images}, {"tiles": tiles, "repeats": repeats}, {"shuffle": seed},
        packages=("numpy", "pillow", "polars"),
    )  # fmt: skip


def diagnosis_stage(
    index: Annotated[Path, Field(description="Folder that `index build` wrote.")],
    matches: Annotated[
        Numbered, Field(description="Table that `index map` wrote, whose hubs are listed; may be repeated.")
    ] = Numbered(),
    *,
    mapping: Annotated[MappingOptions, Typed(only=("aggregate", "weights"))],
    size: Annotated[int, Field(ge=2, description="Images per batch of the ceiling.")] = 8,
    repeats: Annotated[int, Field(ge=1, le=65_535, description="Batches of the ceiling per concept.")] = 50,
    seed: Seed = 0,
) -> Stage:
    """Hold references out, and say how far the encoder is right.

    Precision and recall by country, the ceiling of a score, and the hubs of a mapping.
    """

    def run(work: Work) -> Outcome:
        check_mapped_through(index, matches.places)
        return diagnose(work, index, matches.places, mapping=mapping, size=size, repeats=repeats, seed=seed)

    return Stage(
        "diagnosis", "diagnose", 1, run, roles_among({"index": index, "matches": matches}),
        {"mapping": asdict(mapping), "size": size, "repeats": repeats}, {"ceiling": seed}, packages=("numpy", "polars"),
    )  # fmt: skip


SHUFFLE = StageCommand(shuffle_stage, "--images images/images.parquet --out shuffled", workers=True, engine=True)
DIAGNOSE = StageCommand(
    diagnosis_stage, "--index index --matches matches/matches.parquet --out diagnosis", workers=True, engine=True
)


def map_stage(given: MappingInputs, options: MappingOptions) -> Stage:
    """Map every image to its nearest artifacts, with margins."""
    check_options(options)
    check_options(given.adjustment)
    if given.calibration is not None and options.max_error is None:
        raise UsageError("images to calibrate on serve a stated error", expected="--max-error beside --calibration")

    def run(work: Work) -> Outcome:
        prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
        return map_images(work, replace(given, prompts=prompts), options)

    adjustment = {} if given.adjustment.name is None else {"adjustment": asdict(given.adjustment)}
    return Stage(
        "matches", "map", 2, run, roles_of(given), {**kept(options), **adjustment},
        packages=("numpy", "pillow", "polars"),
    )  # fmt: skip


MAP = StageCommand(map_stage, "--index index --images images/images.parquet --out matches", workers=True, engine=True)
