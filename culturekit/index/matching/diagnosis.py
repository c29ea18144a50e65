"""The instrument looked at: which references it recognises, which artifacts are near to everything, its ceiling."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.atomic import write_atomically
from culturekit.core.choices import COPIES_PER_SHARD
from culturekit.core.digests import digest, digest_bytes
from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.roles import SHUFFLED
from culturekit.core.schemas import HUBS, IMAGES, MATCHES, RECOGNITION
from culturekit.core.stage import Outcome, Work, run_shards, seal_pictures
from culturekit.core.tables import merge_parts, read_table, save_parquet, table_outcome, write_table
from culturekit.index.embedding.embedding import load_picture
from culturekit.index.folder.index_folder import OpenIndex, open_index
from culturekit.index.matching.calibration import held_out, tried
from culturekit.index.matching.comparison import Comparison, MappingOptions, weights_for

CEILING = "ceiling"  # the model that the ceiling stands under
_TOP = 20  # so many hubs are listed for each model


def diagnose(
    work: Work, folder: Path, matches: list[Path], *, mapping: MappingOptions, size: int, repeats: int, seed: int
) -> Outcome:
    """Write `recognition`, `hubs`, and as `matches` those of the ceiling."""
    index = open_index(folder)
    found, why = _held_out_matches(work, index, mapping)
    recognition = recognition_of(found, index.artifacts) if found.height else pl.DataFrame(schema=RECOGNITION.schema)
    write_table(work.out, RECOGNITION, recognition)
    ceiling = ceiling_matches(found, index.artifacts, size=size, repeats=repeats, seed=seed)
    write_table(work.out, MATCHES, ceiling)
    mapped = [read_table(path, MATCHES) for path in matches]
    hubs = pl.concat([hubs_of(table) for table in mapped]) if mapped else pl.DataFrame(schema=HUBS.schema)
    write_table(work.out, HUBS, hubs.unique(["model", "rank"], keep="first", maintain_order=True))
    indexed = int(np.unique(np.concatenate([one.owners for one in index.channels.values()])).size)
    skews = [neighbour_skew(table, indexed) for table in mapped]
    skew = {model: value for each in skews for model, value in each.items()}
    notes: dict[str, object] = {"neighbour_skew": dict(sorted(skew.items())), "mapping": asdict(mapping)}
    if why:
        notes["no_recognition"] = why
    counts = {"recognition": recognition.height, "hubs": hubs.height, "matches": ceiling.height}
    return Outcome({**counts, "references": found.height}, {}, notes)


def _held_out_matches(work: Work, index: OpenIndex, mapping: MappingOptions) -> tuple[pl.DataFrame, str]:
    """Match references that are held out, or say why none can be.

    Returns:
        A row per reference: `shown`, the artifact it shows, and what it was mapped to.
    """
    comparison = Comparison(
        index.folder, mapping.aggregate, weights_for(index, mapping), mapping.concepts, mapping.countries, "numpy"
    )
    try:
        known = held_out(index, comparison, None)
    except UsageError as error:
        return pl.DataFrame(schema={"shown": pl.String, **MATCHES.schema}), error.problem
    found = tried(work, comparison, known)
    nearest = index.artifacts[found["nearest"].to_numpy()]
    rows = nearest.select(
        "artifact_id",
        "artifact",
        "countries",
        country=pl.col("countries").list.first(),
        continent=pl.col("continents").list.first(),
    )
    shown = index.artifacts["artifact_id"].gather(found["artifact"]).alias("shown")
    return rows.with_columns(found["score"], found["margin"], shown), ""


def ceiling_matches(
    held_out: pl.DataFrame, artifacts: pl.DataFrame, *, size: int, repeats: int, seed: int
) -> pl.DataFrame:
    """Deal held-out references out in batches of different artifacts, and give what each was mapped to, as MATCHES.

    The references went through the same mapping as images do, so that its errors are in the ceiling too. A concept with
    fewer artifacts than a batch has places shows some of them twice, as any model would have to.

    Args:
        held_out: a row per held-out picture: `shown`, the artifact it shows; `artifact_id`, `artifact`, `country`,
            `countries`, `continent`, `score` and `margin` of what it was mapped to.
        artifacts: conforms to ARTIFACTS.
        size: images per batch.
        repeats: batches per concept.
        seed: of the draws.
    """
    concepts = artifacts.select(shown="artifact_id", concept="concepts").explode("concept")
    placed = held_out.join(concepts, on="shown").sort("concept", "shown", "score", "artifact_id")
    rows: list[pl.DataFrame] = []
    for (concept,), group in placed.group_by("concept", maintain_order=True):
        rng = np.random.default_rng([seed, int(digest(["ceiling", str(concept)])[:16], 16)])
        of_artifact = group.with_row_index("row").group_by("shown", maintain_order=True).agg("row")["row"].to_list()
        for repeat in range(repeats):
            chosen = _dealt(len(of_artifact), size, rng)
            picked = [int(rng.choice(of_artifact[artifact])) for artifact in chosen]
            batch = group[picked].with_columns(
                repeat=pl.lit(repeat, pl.UInt16), slot=pl.int_range(len(picked)).cast(pl.UInt8)
            )
            rows.append(batch)
    if not rows:
        return pl.DataFrame(schema=MATCHES.schema)
    return (
        pl.concat(rows)
        .with_columns(
            image_id=pl.format("ceiling-{}-{}-{}", "concept", "repeat", "slot"),
            model=pl.lit(CEILING),
            prompt_id=pl.format("ceiling-{}", "concept"),
            rank=pl.lit(1, pl.UInt16),
            abstained=pl.lit(value=False),
            method=pl.lit("nearest"),
            country_margin=pl.lit(float("nan")),  # nobody asks for it here
        )
        .select(pl.col(name).cast(dtype) for name, dtype in MATCHES.schema.items())
    )


def _dealt(artifacts: int, size: int, rng: np.random.Generator) -> list[int]:
    """Draw `size` artifacts, all of them before any comes again."""
    drawn: list[int] = []
    while len(drawn) < size:
        drawn += rng.permutation(artifacts).tolist()
    return drawn[:size]


def recognition_of(held_out: pl.DataFrame, artifacts: pl.DataFrame) -> pl.DataFrame:
    """Count precision and recall of countries, and over all the share of artifacts that were recognised.

    An artifact of several countries counts for each: mapping it to any artifact of that country is right there.

    Args:
        held_out: a row per held-out picture: `shown`, the artifact it shows, and `artifact_id` and `country`, what it
            was mapped to.
        artifacts: conforms to ARTIFACTS.

    Returns:
        Conforms to RECOGNITION, the row over all first; precision of a country that nothing was mapped to, and recall
        of one of which nothing was shown, are null.
    """
    places = artifacts.select("artifact_id", "countries")
    rows = held_out.join(places.rename({"artifact_id": "shown", "countries": "own"}), on="shown").join(
        places.rename({"countries": "found"}), on="artifact_id"
    )
    shown = (
        rows.explode("own")
        .with_columns(hit=pl.col("found").list.contains(pl.col("own")))
        .group_by(country="own")
        .agg(shown=pl.len(), recognised=pl.col("hit").sum())
    )
    mapped = (
        rows.with_columns(hit=pl.col("own").list.contains(pl.col("country")))
        .group_by("country")
        .agg(mapped=pl.len(), right=pl.col("hit").sum())
    )
    countries = shown.join(mapped, on="country", how="full", coalesce=True).sort("country")
    right = int((rows["shown"] == rows["artifact_id"]).sum())
    over_all = pl.DataFrame(
        {"country": [None], "shown": [rows.height], "recognised": [right], "mapped": [rows.height], "right": [right]},
        schema_overrides={"country": pl.String},
    )
    counts = pl.col("shown", "recognised", "mapped", "right")
    table = pl.concat([over_all, countries.select(over_all.columns)], how="vertical_relaxed")
    return (
        table.with_columns(counts.fill_null(0).cast(pl.UInt64))
        .with_columns(recall=share("recognised", "shown"), precision=share("right", "mapped"))
        .select(list(RECOGNITION.columns))
    )


def share(part: str, whole: str) -> pl.Expr:
    """Divide two counts; nothing of nothing is null."""
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))


def hubs_of(matches: pl.DataFrame, *, top: int = _TOP) -> pl.DataFrame:
    """List the artifacts that most images of each model have among the neighbours kept, as HUBS."""
    images = matches.group_by("model").agg(images=pl.col("image_id").n_unique())
    counts = (
        matches.drop_nulls("artifact_id")
        .group_by("model", "artifact_id")
        .agg(
            artifact=pl.col("artifact").first(),
            country=pl.col("countries").first().list.first(),
            neighbours=pl.len().cast(pl.UInt64),
            nearest=(pl.col("rank") == 1).sum().cast(pl.UInt64),
        )
    )
    ranked = counts.sort(["model", "neighbours", "nearest", "artifact_id"], descending=[False, True, True, False])
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("model")
    listed = (
        ranked.with_columns(rank=rank).filter(pl.col("rank") <= top).join(images, on="model", maintain_order="left")
    )
    return listed.with_columns(share=pl.col("neighbours") / pl.col("images")).select(list(HUBS.columns))


def neighbour_skew(matches: pl.DataFrame, artifacts: int) -> dict[str, float]:
    """Measure the skewness of how often each of all artifacts is among the neighbours of a model's images.

    Where neighbours fall on all alike it is about 0; a few hubs among many artifacts that nothing is near make it
    large.
    """
    counts = matches.drop_nulls("artifact_id").group_by("model", "artifact_id").len().sort("model", "artifact_id")
    return {
        model: round(
            _skewness(np.pad(group["len"].to_numpy().astype(np.float64), (0, max(artifacts - group.height, 0)))), 4
        )
        for (model,), group in counts.group_by("model", maintain_order=True)
    }


def _skewness(counts: NDArray[np.float64]) -> float:
    """Give the third standardised moment; 0 where nothing varies."""
    deviations = counts - counts.mean()
    spread = float(np.sqrt((deviations**2).mean()))
    return 0.0 if spread == 0 else float(((deviations / spread) ** 3).mean())


# Pictures cut into tiles and shuffled: the same colours and textures, and nothing that they could show.


@dataclass(frozen=True, slots=True)
class _ShuffleShard:
    """A run of images to shuffle, as a work item: rows `start:stop` of those that are taken."""

    images: Path
    tiles: int
    repeats: int
    seed: int
    start: int
    stop: int
    out: Path
    part: Path


def shuffle_pictures(work: Work, images_path: Path, *, tiles: int, repeats: int, seed: int) -> Outcome:
    """Write shuffled copies of the images of a table, and the table that lists them."""
    taken = _taken_images(images_path, repeats)
    if taken.is_empty():
        raise UsageError("there is no image to shuffle", where=str(images_path), expected="rows with status ok")
    shards = [
        _ShuffleShard(
            images_path, tiles, repeats, seed, start, min(start + COPIES_PER_SHARD, taken.height), work.out,
            work.scratch / f"shuffled-{start:09d}.parquet",
        )
        for start in range(0, taken.height, COPIES_PER_SHARD)
    ]  # fmt: skip
    run_shards(work, shards, _shuffle_shard, size=lambda shard: shard.stop - shard.start, unit="images")
    images = merge_parts([shard.part for shard in shards], _columns())
    return table_outcome(work, IMAGES, images, notes={"tiles": tiles})


def _taken_images(images_path: Path, repeats: int) -> pl.DataFrame:
    """Choose the images: the first repeats of each prompt, or all where there are to be 0."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok").sort("image_id")
    return images.filter(pl.col("repeat").fill_null(0) < repeats) if repeats else images


def _shuffle_shard(shard: _ShuffleShard) -> int:
    images = _taken_images(shard.images, shard.repeats).slice(shard.start, shard.stop - shard.start)
    rows = [_shuffled_row(row, shard) for row in images.iter_rows(named=True)]
    save_parquet(pl.DataFrame(rows, schema=_columns()), shard.part)
    seal_pictures(shard.part, shard.out, rows)
    return shard.stop - shard.start


def _shuffled_row(row: dict[str, Any], shard: _ShuffleShard) -> dict[str, Any]:
    """Save the shuffled copy of an image and describe it: what it was asked for stays, what it shows is gone."""
    rng = np.random.default_rng(int(digest([shard.seed, row["sha256"]])[:16], 16))
    pixels = shuffled(load_picture(shard.images.parent, row["path"], sha256=row["sha256"]), shard.tiles, rng)
    content = encoded(pixels)
    image_id = digest([SHUFFLED, row["image_id"]])[:16]
    relative = f"files/{image_id[:2]}/{image_id}.png"
    (shard.out / relative).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(shard.out / relative, content)
    kept = {name: row.get(name) for name in ("prompt_id", "repeat", "slot", "prompt_sent", "concept", "country")}
    return kept | {
        "image_id": image_id,
        "path": relative,
        "model": SHUFFLED,
        "model_version": f"{row['model']}, {shard.tiles} x {shard.tiles} tiles",
        "rewriter": "off",
        "provider_params": "{}",
        "sha256": digest_bytes(content),
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "status": "ok",
    }


def shuffled(picture: NDArray[np.uint8], tiles: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Put tiles x tiles parts of a picture, all of one size, into another order; what is left over is cut off."""
    height, width = (max(side // tiles, 1) for side in picture.shape[:2])
    down, across = picture.shape[0] // height, picture.shape[1] // width
    down, across = min(down, tiles), min(across, tiles)
    cut = picture[: down * height, : across * width].reshape(down, height, across, width, 3).swapaxes(1, 2)
    mixed = cut.reshape(down * across, height, width, 3)[rng.permutation(down * across)]
    whole = mixed.reshape(down, across, height, width, 3).swapaxes(1, 2)
    return np.ascontiguousarray(whole.reshape(down * height, across * width, 3))


def _columns() -> dict[str, pl.DataType]:
    """Give the columns of the table; nobody knows what a shuffled picture truly shows."""
    asked = {name: IMAGES.optional[name].dtype for name in ("concept", "country")}
    return {**IMAGES.schema, **asked}
