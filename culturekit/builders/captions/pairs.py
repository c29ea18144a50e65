"""Pairs of captions and images for training elsewhere: a folder with a list, and shards, with licence and source."""

import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.atomic import whole_file, write_atomically
from culturekit.core.declared import check_options, kept
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import roles_of
from culturekit.core.pictures.picture_files import NoPicture, read_bytes_inside
from culturekit.core.pictures.picture_reading import format_of
from culturekit.core.schemas import EXPORTED, IMAGES, RIGHTS, SELECTED, VALUES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Seed, StageCommand, Typed
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.embedding.embed_table import TextColumns, opened, texts_of
from culturekit.metrics.captions import STRATEGIES, C3Alignment, keep_best

# Strategies that choose pairs of captions and images: the alignments of C³, and chance.

Strategy: TypeAlias = Literal["random", "labse", "clip", "c3", "no-objects", "objects"]

TERMS: Mapping[str, tuple[str, ...]] = {
    "random": (), "labse": ("text",), "clip": ("image",), "objects": ("object",), "no-objects": ("text", "image"),
    "c3": ("text", "image", "object"),
}  # fmt: skip
"""What a strategy ranks by."""

BELOW, INCOMPLETE, UNKNOWN = "below the number kept", "lacks a term", "has none of the terms"


@dataclass(frozen=True, slots=True)
class SelectOptions:
    """What is kept, and by which strategies."""

    keep: Annotated[int, Field(ge=1, description="Pairs that each strategy keeps.")]
    strategies: Annotated[
        tuple[Strategy, ...],
        Field(description="How pairs are ranked: by chance, by one term, by all three, or by all but objects."),
        Typed(
            once=True, help="How pairs are ranked, with commas between: random, labse, clip, objects, no-objects, c3."
        ),
    ] = ("c3",)
    missing: Annotated[
        Literal["sum", "leave-out"],
        Field(description="A pair that lacks a term is ranked by the sum of the others, or left out."),
    ] = "sum"
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class SelectReads:
    """What is chosen from."""

    values: Annotated[Path, Field(description="Values that `score c3` wrote beside its scores.")]


def select_stage(given: SelectReads, options: SelectOptions) -> Stage:
    """Keep the best pairs of captions and images.

    By one strategy or several; it says why the others are left out.
    """
    check_options(options)

    def select(work: Work) -> Outcome:
        selected = select_pairs(read_table(given.values, VALUES), options)
        write_table(work.out, SELECTED, selected)
        return counted(selected, options)

    decided = kept(options, but=("seed",))
    return Stage("selected", "select", 1, select, roles_of(given), decided, {"draws": options.seed})


SELECT = StageCommand(select_stage, "--values scores/values.parquet --keep 500 --strategies c3,random --out selected")


def select_pairs(values: pl.DataFrame, options: SelectOptions) -> pl.DataFrame:
    """Rank the items of `score c3` by each strategy, and keep the best; chance ranks every item.

    Args:
        values: the VALUES of one scoring.
        options: how many to keep, and by what.
    """
    terms = _terms_of(values)
    found = [C3Alignment(*cells) for cells in terms.drop("item").fill_null(float("nan")).iter_rows()]
    return pl.concat([ranked(strategy, terms, found, options) for strategy in dict.fromkeys(options.strategies)])


def _terms_of(values: pl.DataFrame) -> pl.DataFrame:
    """Give a row for each item, by its name, with text, image and object; null is a term that it lacks."""
    rows = values.filter(pl.col("metric").is_in([f"c3_{term}" for term in TERMS["c3"]]))
    scorings = rows.select("model", "benchmark", "params").unique().height
    if scorings != 1:
        raise UsageError(
            "these are not the values of one scoring of captions",
            expected="values.parquet of one `culturekit score c3`", found=f"{scorings} scorings by C³",
        )  # fmt: skip
    terms = rows.pivot("metric", index="item", values="value").sort("item")
    return terms.select("item", *(pl.col(f"c3_{term}").alias(term) for term in TERMS["c3"]))


def ranked(strategy: str, terms: pl.DataFrame, found: Sequence[C3Alignment], options: SelectOptions) -> pl.DataFrame:
    """Rank every item under a strategy; chance draws in their order, so that fewer kept are among more kept."""
    drawn = np.random.default_rng(options.seed).random(terms.height) if strategy == "random" else None
    values = [STRATEGIES[strategy](one) for one in found] if drawn is None else drawn
    lacks = [pl.when(pl.col(term).is_null()).then(pl.lit(term)) for term in TERMS[strategy]]
    table = terms.select(
        "item", pl.Series("value", values, pl.Float64),
        missing=pl.concat_list(lacks).list.drop_nulls() if lacks else pl.lit([], dtype=pl.List(pl.String)),
    )  # fmt: skip
    left_out = (pl.col("missing").list.len() > 0) & (options.missing == "leave-out")
    scores = table.select(pl.when(~left_out).then("value").fill_null(np.nan)).to_series()
    order = pl.DataFrame({"item": keep_best(table["item"].to_list(), scores, n=terms.height)}, {"item": pl.String})
    rank, value = pl.col("rank"), pl.col("value")
    return (
        table.join(order.with_row_index("rank", offset=1), on="item", how="left")
        .with_columns(value.fill_nan(None), strategy=pl.lit(strategy), kept=(rank <= options.keep).fill_null(False))
        .with_columns(
            reason=pl.when("kept").then(None).when(rank.is_not_null()).then(pl.lit(BELOW))
            .when(value.is_null()).then(pl.lit(UNKNOWN)).otherwise(pl.lit(INCOMPLETE))
        )
        .select(list(SELECTED.columns))
    )  # fmt: skip


def counted(selected: pl.DataFrame, options: SelectOptions) -> Outcome:
    """Count what each strategy keeps, with terms missing and in all, and why it leaves out the rest."""
    kept = selected.filter("kept")
    counts, incomplete = Counter(kept["strategy"]), Counter(kept.filter(pl.col("missing").list.len() > 0)["strategy"])
    drops = Counter(selected.filter(~pl.col("kept")).select(pl.format("{}: {}", "strategy", "reason")).to_series())
    short = [f"{name} keeps {counts[name]:,} of {options.keep:,}" for name in options.strategies
             if counts[name] < options.keep]  # fmt: skip
    return Outcome(
        {"selected": selected.height, **{f"{name} kept": counts[name] for name in options.strategies},
         **{f"{name} kept without a term": count for name, count in incomplete.items()}},
        dict(drops),
        {"findings": [f"there are fewer pairs than asked for: {', '.join(short)}"]} if short else {},
    )  # fmt: skip


UNLICENSED = "pairs without a licence"
METADATA = "metadata.jsonl"
OF_ITEM = ("item", "rank", "text", "sha256", "licence", "source", "author")


@dataclass(frozen=True, slots=True)
class PairFiles:
    """What is exported."""

    selected: Annotated[Path, Field(description="Table that `select` wrote.")]
    captions: Annotated[Path, Field(description="Captions by the id of their image: a table, CSV or JSON lines.")]
    images: Annotated[Path, Field(description="Images table.")]
    rights: Annotated[
        Path | None, Field(description="Licence, source and author by image_id: a table, CSV or JSON lines.")
    ] = None


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Which pairs, and in which form."""

    strategy: Annotated[Strategy, Field(description="Whose pairs.")] = "c3"
    forms: Annotated[
        tuple[Literal["imagefolder", "webdataset"], ...],
        Field(description="A folder of images with metadata.jsonl, shards of WebDataset, or both."),
        Typed("format", once=True, help="Forms to write, with commas between: imagefolder, webdataset."),
    ] = ("imagefolder",)
    unlicensed: Annotated[
        Literal["refuse", "leave-out", "include"], Field(description="What to do where a pair has no licence.")
    ] = "refuse"
    per_shard: Annotated[
        int, Field(ge=1, le=100_000, description="Pairs in a shard."), Typed(needs="format=webdataset")
    ] = 1000


def export_pairs_stage(given: PairFiles, options: PairOptions) -> Stage:
    """Write the pairs that a strategy keeps, with their licences.

    As a folder of images or as shards.
    """
    check_options(options)
    run = partial(_export_pairs, given=given, options=options)
    return Stage("pairs", "export-pairs", 1, run, roles_of(given), kept(options))


EXPORT = StageCommand(
    export_pairs_stage,
    "--selected selected/selected.parquet --captions translations/translations.parquet --images images/images.parquet "
    "--rights rights.csv --format webdataset --out pairs",
)


def _export_pairs(work: Work, given: PairFiles, options: PairOptions) -> Outcome:
    """Write the pairs that a strategy keeps, best first, and list every file with its hash."""
    pairs, without = _licensed(_paired(given, options), options)
    work.progress.begin(len(pairs) * len(options.forms), "pairs")
    rows: list[dict[str, Any]] = []
    for form in dict.fromkeys(options.forms):
        folder = work.out / form
        folder.mkdir(exist_ok=True)
        writing = _in_folder if form == "imagefolder" else _in_shards
        for row in writing(folder, given.images.parent, pairs, options):
            rows.append({**{name: row[name] for name in OF_ITEM}, "form": form, "path": row["path"]})
            work.progress.advance(1)
    write_table(work.out, EXPORTED, pl.DataFrame(rows, schema=EXPORTED.schema))
    unlicensed = {UNLICENSED: without} if without else {}
    counts = {"exported": len(rows), "pairs": len(pairs)}
    return Outcome(counts, unlicensed) if options.unlicensed == "leave-out" else Outcome({**counts, **unlicensed})


def _paired(given: PairFiles, options: PairOptions) -> list[dict[str, Any]]:
    """Find caption, picture and rights of each item that is kept, best first."""
    kept = read_table(given.selected, SELECTED).filter(pl.col("kept") & (pl.col("strategy") == options.strategy))
    if kept.is_empty():
        raise UsageError(f"nothing was kept by {options.strategy}", where=str(given.selected))
    captions = texts_of([given.captions], TextColumns()).texts
    images = read_table(given.images, IMAGES).filter(status="ok").select("image_id", "path", "sha256")
    rights = pl.DataFrame(schema=RIGHTS.schema) if given.rights is None else _rights_in(given.rights)
    rows = kept.select("item", "rank").join(images, left_on="item", right_on="image_id", how="left")
    rows = rows.join(rights, left_on="item", right_on="image_id", how="left").sort("rank")
    pairs = [{**row, "text": captions.get(row["item"])} for row in rows.iter_rows(named=True)]
    for place, name in ((given.captions, "text"), (given.images, "sha256")):
        lacking = [pair["item"] for pair in pairs if not pair[name]]
        if lacking:
            raise UsageError(
                f"pairs that are kept have no {'caption' if name == 'text' else 'picture'}", where=str(place),
                expected="the tables whose vectors were scored", found=f"{len(lacking):,}, such as {lacking[0]!r}",
            )  # fmt: skip
    return pairs


def _rights_in(path: Path) -> pl.DataFrame:
    """Read who may do what with an image; a word left empty is none."""
    table = opened(path)
    lacking = [name for name in RIGHTS.columns if name not in table.columns]
    if lacking:
        raise UsageError("a table of rights lacks columns", where=str(path), expected=", ".join(RIGHTS.columns),
                         found=", ".join(table.columns))  # fmt: skip
    words = pl.exclude("image_id").str.strip_chars().replace("", None)
    table = table.select(pl.col(list(RIGHTS.columns)).cast(pl.String)).with_columns(words)
    if problems := RIGHTS.problems(table):
        raise UsageError("this is no table of rights", where=str(path), found="; ".join(problems))
    return table


def _licensed(pairs: Sequence[dict[str, Any]], options: PairOptions) -> tuple[list[dict[str, Any]], int]:
    """Refuse, leave out or include the pairs without a licence, and count them."""
    without = [pair["item"] for pair in pairs if not pair["licence"]]
    if without and (options.unlicensed == "refuse" or (options.unlicensed != "include" and len(without) == len(pairs))):
        raise UsageError(
            "pairs have no licence, so nobody may pass them on", expected="a licence in --rights for each",
            found=f"{len(without):,} of {len(pairs):,} without, such as {without[0]!r}",
            hint="Name their licences, or say --unlicensed leave-out, or include where nothing is passed on.",
        )  # fmt: skip
    return [pair for pair in pairs if pair["licence"] or options.unlicensed == "include"], len(without)


def _in_folder(
    folder: Path, root: Path, pairs: Sequence[dict[str, Any]], options: PairOptions
) -> Iterator[dict[str, Any]]:
    """Write pictures under their rank, and the list that `datasets` reads."""
    lines = []
    for pair in pairs:
        content, name = _picture_of(pair, root)
        write_atomically(folder / name, content)
        lines.append(json.dumps({"file_name": name, **_metadata(pair)}, ensure_ascii=False) + "\n")
        yield {**pair, "path": f"{folder.name}/{name}"}
    write_atomically(folder / METADATA, "".join(lines).encode())


def _in_shards(
    folder: Path, root: Path, pairs: Sequence[dict[str, Any]], options: PairOptions
) -> Iterator[dict[str, Any]]:
    """Write shards: a picture, its caption and what is known of it, one after another, with no time or owner."""
    for number, start in enumerate(range(0, len(pairs), options.per_shard)):
        path = folder / f"pairs-{number:05d}.tar"
        with whole_file(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as shard:
            for pair in pairs[start : start + options.per_shard]:
                content, name = _picture_of(pair, root)
                key, metadata = name.partition(".")[0], json.dumps(_metadata(pair), ensure_ascii=False).encode()
                for member, held in ((name, content), (f"{key}.json", metadata), (f"{key}.txt", pair["text"].encode())):
                    entry = tarfile.TarInfo(member)
                    entry.size = len(held)
                    shard.addfile(entry, io.BytesIO(held))
                yield {**pair, "path": f"{folder.name}/{path.name}/{name}"}


def _metadata(pair: dict[str, Any]) -> dict[str, Any]:
    """Say of a pair what goes with it."""
    return {name: pair[name] for name in OF_ITEM}


def _picture_of(pair: dict[str, Any], root: Path) -> tuple[bytes, str]:
    """Read the file of a pair, as its table has it, and name it by its rank and by what it is."""
    content = read_bytes_inside(root, pair["path"])
    found = content.reason if isinstance(content, NoPicture) else digest_bytes(content)
    if isinstance(content, NoPicture) or found != pair["sha256"]:
        raise IntegrityError("a picture is not the one of its table", where=str(root / pair["path"]),
                             expected=f"SHA-256 {pair['sha256']}", found=found)  # fmt: skip
    kind = format_of(content)
    if kind is None:
        raise IntegrityError("a picture is of no known kind", where=str(root / pair["path"]))
    return content, f"{pair['rank']:06d}.{kind.lower()}"
