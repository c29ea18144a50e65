"""Pairs of captions and images for training elsewhere: a folder with a list, and shards, with licence and source."""

import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.atomic import whole_file, write_atomically
from culturekit.core.declared import Seed, Typed, builds, kept
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.pictures.picture_files import NoPicture, read_bytes_inside
from culturekit.core.pictures.picture_reading import format_of
from culturekit.core.schemas import EXPORTED, IMAGES, RIGHTS, SELECTED, VALUES
from culturekit.core.stage import Outcome, Work, run_shards, seal
from culturekit.core.tables import blocks_of, read_part, read_table, save_part, write_table
from culturekit.index.embedding.embed_table import ROWS_PER_BLOCK, TextColumns, opened, texts_of
from culturekit.metrics.captions import STRATEGIES

# Strategies that choose pairs of captions and images: the alignments of C³, and chance.

Strategy: TypeAlias = Literal["random", "labse", "clip", "c3", "no-objects", "objects"]

TERMS: Mapping[str, tuple[str, ...]] = {"random": (), **STRATEGIES}  # by whose sum a strategy ranks

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
    listed: Annotated[
        Literal["all", "kept"],
        Field(description="Every pair, kept or not, or those kept only, which takes no more memory for more pairs."),
        Typed("list"),
    ] = "all"
    seed: Seed = 0


@builds(
    "select", "selected", version=2, seeds={"draws": "seed"}, packages=("numpy", "polars"), workers=True,
    decides=lambda given: kept(given["options"]),
    example="--values scores/values.parquet --keep 500 --strategies c3,random --out selected",
)  # fmt: skip
def select(
    work: Work,
    values: Annotated[Path, Field(description="Values that `score c3` wrote beside its scores.")],
    *,
    options: SelectOptions,
) -> Outcome:
    """Keep the best pairs of captions and images.

    By one strategy or several; it says why the others are left out.
    """
    if options.listed == "kept":
        return _select_in_shards(work, values, options)
    selected = select_pairs(read_table(values, VALUES), options)
    write_table(work.out, SELECTED, selected)
    drops = selected.filter(~pl.col("kept")).select(pl.format("{}: {}", "strategy", "reason")).to_series()
    return _counted(selected, Counter(drops), options)


def select_pairs(values: pl.DataFrame, options: SelectOptions) -> pl.DataFrame:
    """Rank the items of one scoring by `score c3` by each strategy, and keep the best; chance ranks every item."""
    rows = values.filter(pl.col("metric").is_in(list(_TERM_OF)))
    _check_one_scoring(rows.select("metric", "model", "benchmark", "params").unique())
    terms = rows.pivot("metric", index="item", values="value").sort("item")
    terms = terms.select("item", *(pl.col(metric).alias(term) for metric, term in _TERM_OF.items()))
    return pl.concat([_ranked(strategy, terms, options) for strategy in dict.fromkeys(options.strategies)])


def total(*terms: str) -> pl.Expr:
    """Sum the terms that an item has; null where it has none. What rounding loses is added, so that ties stay ties."""
    whole, lost = pl.col(terms[0]).fill_null(0.0), pl.lit(0.0)
    for term in terms[1:]:
        more = pl.col(term).fill_null(0.0)
        added = whole + more
        lost = lost + ((whole - (added - (added - whole))) + (more - (added - whole)))
        whole = added
    return pl.when(pl.any_horizontal(pl.col(*terms).is_not_null())).then(whole + lost)


def best_of(frames: Iterable[pl.DataFrame], n: int) -> pl.DataFrame:
    """Keep the n items of the highest value, best first, equal ones in order of items; null is never kept."""
    best = pl.DataFrame()
    for frame in frames:
        found = pl.concat([best, frame.drop_nulls("value")], how="diagonal")
        best = found.sort("value", "item", descending=[True, False]).head(n)
    return best


def _check_one_scoring(found: pl.DataFrame) -> None:
    """Reject values of several scorings; that a term is missing may stand in the params of its metric."""
    scorings = max(found.select("model", "benchmark").unique().height, found.height - len(_TERM_OF) + 1)
    if scorings != 1:
        raise UsageError(
            "these are not the values of one scoring of captions",
            expected="values.parquet of one `culturekit score c3`", found=f"{scorings} scorings by C³",
        )  # fmt: skip


def valued(strategy: str, terms: pl.DataFrame, options: SelectOptions, *, start: int = 0) -> pl.DataFrame:
    """Give what a strategy ranks items by (item, value, missing); left out is null.

    Chance draws in the order of items, so that fewer kept are among more kept, and `start` is where these begin.
    """
    lacks = [pl.when(pl.col(term).is_null()).then(pl.lit(term)) for term in TERMS[strategy]]
    if strategy == "random":
        rng = np.random.Generator(bits := np.random.PCG64(options.seed))
        bits.advance(start)
        value: pl.Expr | pl.Series = pl.Series(rng.random(terms.height), dtype=pl.Float64)
    else:
        value = total(*TERMS[strategy])
    return terms.select(
        "item", value=value,
        missing=pl.concat_list(lacks).list.drop_nulls() if lacks else pl.lit([], dtype=pl.List(pl.String)),
    )  # fmt: skip


def _left_out(options: SelectOptions) -> pl.Expr:
    """Tell whether an item is not ranked although it has a value."""
    return (pl.col("missing").list.len() > 0) & (options.missing == "leave-out")


def _ranked(strategy: str, terms: pl.DataFrame, options: SelectOptions) -> pl.DataFrame:
    """Rank every item under a strategy."""
    table = valued(strategy, terms, options)
    order = best_of([table.filter(~_left_out(options)).select("item", "value")], terms.height).select("item")
    rank, value = pl.col("rank"), pl.col("value")
    return (
        table.join(order.with_row_index("rank", offset=1), on="item", how="left")
        .with_columns(strategy=pl.lit(strategy), kept=(rank <= options.keep).fill_null(False))
        .with_columns(
            reason=pl.when("kept").then(None).when(rank.is_not_null()).then(pl.lit(BELOW))
            .when(value.is_null()).then(pl.lit(UNKNOWN)).otherwise(pl.lit(INCOMPLETE))
        )
        .select(list(SELECTED.columns))
    )  # fmt: skip


def _counted(selected: pl.DataFrame, drops: Mapping[str, int], options: SelectOptions) -> Outcome:
    """Count what each strategy keeps, with terms missing and in all."""
    kept = selected.filter("kept")
    counts, incomplete = Counter(kept["strategy"]), Counter(kept.filter(pl.col("missing").list.len() > 0)["strategy"])
    short = [f"{name} keeps {counts[name]:,} of {options.keep:,}" for name in options.strategies
             if counts[name] < options.keep]  # fmt: skip
    return Outcome(
        {"selected": selected.height, **{f"{name} kept": counts[name] for name in options.strategies},
         **{f"{name} kept without a term": count for name, count in incomplete.items()}},
        drops,
        {"findings": [f"there are fewer pairs than asked for: {', '.join(short)}"]} if short else {},
    )  # fmt: skip


# Of more pairs than memory holds, shards of the values keep their best, and the best of these are kept.

_TERM_OF = {f"c3_{term}": term for term in STRATEGIES["c3"]}
PAIRS_PER_SHARD = 2**20


@dataclass(frozen=True, slots=True)
class SelectShard:
    """Items `start:stop` of a table of values; `firsts` are the first rows of each metric in it."""

    values: Path
    firsts: Mapping[str, int]
    start: int
    stop: int
    options: SelectOptions
    part: Path


def terms_between(values: Path, firsts: Mapping[str, int], start: int, stop: int) -> pl.DataFrame:
    """Read the terms of some items, whose rows stand in the same order under each metric."""
    scan = pl.scan_parquet(values).select("item", "value")
    found = {_TERM_OF[metric]: scan.slice(first + start, stop - start).collect() for metric, first in firsts.items()}
    items = found["text"]["item"]
    _check_same_items(values, all(each["item"].equals(items) for each in found.values()))
    return pl.DataFrame({"item": items, **{term: found[term]["value"] for term in STRATEGIES["c3"]}})


def firsts_in(values: Path) -> tuple[dict[str, int], int]:
    """Find where the rows of each term begin in a table of values, and how many items there are."""
    rows = pl.scan_parquet(values).with_row_index("at").filter(pl.col("metric").is_in(list(_TERM_OF)))
    found = rows.group_by("metric", "model", "benchmark", "params").agg(first=pl.col("at").min(), items=pl.len())
    table = found.collect(engine="streaming").sort("metric")
    _check_one_scoring(table)
    _check_same_items(values, table.height == len(_TERM_OF) and table["items"].n_unique() == 1)
    return dict(table.select("metric", "first").iter_rows()), int(table["items"][0])


def _check_same_items(values: Path, same: bool) -> None:
    """Reject values of which the terms of an item cannot be found by its row."""
    if not same:
        raise IntegrityError("the values are not those of `score c3`", where=str(values),
                             expected="each metric of the same items, in their order")  # fmt: skip


def select_shard(shard: SelectShard) -> int:
    """Write the best of some items under each strategy, and why others of them are not ranked."""
    terms, options = terms_between(shard.values, shard.firsts, shard.start, shard.stop), shard.options
    best, drops = [], []
    for strategy in dict.fromkeys(options.strategies):
        table = valued(strategy, terms, options, start=shard.start).with_columns(strategy=pl.lit(strategy))
        ranked = table.filter(~_left_out(options))
        best.append(best_of([ranked], options.keep))
        unknown, there = table["value"].null_count(), ranked["value"].count()
        drops += [(strategy, UNKNOWN, unknown), (strategy, INCOMPLETE, table.height - unknown - there)]
    others = shard.part.with_suffix(".drops")
    save_part(pl.DataFrame(drops, ["strategy", "reason", "pairs"], orient="row"), others)
    save_part(pl.concat(best), shard.part)
    seal(shard.part, [others])
    return terms.height


def _select_in_shards(work: Work, values: Path, options: SelectOptions) -> Outcome:
    """Keep the best by each strategy, and count the others."""
    firsts, items = firsts_in(values)
    shards = [
        SelectShard(values, firsts, start, min(start + PAIRS_PER_SHARD, items), options,
                    work.scratch / f"best-{start:012d}.arrow")
        for start in range(0, items, PAIRS_PER_SHARD)
    ]  # fmt: skip
    run_shards(work, shards, select_shard, size=lambda shard: shard.stop - shard.start, unit="pairs")
    drops, tables = Counter[str](), []
    for shard in shards:
        for strategy, reason, pairs in read_part(shard.part.with_suffix(".drops")).iter_rows():
            drops[f"{strategy}: {reason}"] += pairs
    for strategy in dict.fromkeys(options.strategies):
        best = best_of((read_part(shard.part).filter(strategy=strategy) for shard in shards), options.keep)
        there = items - drops[f"{strategy}: {UNKNOWN}"] - drops[f"{strategy}: {INCOMPLETE}"]
        drops[f"{strategy}: {BELOW}"] = there - best.height
        tables.append(best.with_row_index("rank", offset=1))
    selected = pl.concat(tables).with_columns(kept=pl.lit(True), reason=pl.lit(None, pl.String))
    write_table(work.out, SELECTED, selected.select(list(SELECTED.columns)))
    return _counted(selected, +drops, options)


UNLICENSED = "pairs without a licence"
METADATA = "metadata.jsonl"
OF_ITEM = ("item", "rank", "text", "sha256", "licence", "source", "author")

Form: TypeAlias = Literal["imagefolder", "webdataset"]
Unlicensed: TypeAlias = Literal["refuse", "leave-out", "include"]


@builds(
    "export-pairs", "pairs", packages=("numpy", "polars"),
    example="--selected selected/selected.parquet --captions translations/translations.parquet --images "
    "images/images.parquet --rights rights.csv --format webdataset --out pairs",
)  # fmt: skip
def export(
    work: Work,
    selected: Annotated[Path, Field(description="Table that `select` wrote.")],
    captions: Annotated[Path, Field(description="Captions by the id of their image: a table, CSV or JSON lines.")],
    images: Annotated[Path, Field(description="Images table.")],
    rights: Annotated[
        Path | None, Field(description="Licence, source and author by image_id: a table, CSV or JSON lines.")
    ] = None,
    *,
    strategy: Annotated[Strategy, Field(description="Whose pairs.")] = "c3",
    forms: Annotated[
        tuple[Form, ...],
        Field(description="A folder of images with metadata.jsonl, shards of WebDataset, or both."),
        Typed("format", once=True, help="Forms to write, with commas between: imagefolder, webdataset."),
    ] = ("imagefolder",),
    unlicensed: Annotated[Unlicensed, Field(description="What to do where a pair has no licence.")] = "refuse",
    per_shard: Annotated[
        int, Field(ge=1, le=100_000, description="Pairs in a shard."), Typed(needs="format=webdataset")
    ] = 1000,
) -> Outcome:
    """Write the pairs that a strategy keeps, with their licences.

    As a folder of images or as shards.
    """
    every = _paired(work, selected, captions, images, rights, strategy)
    pairs, without = _licensed(every, unlicensed)
    work.progress.begin(len(pairs) * len(forms), "pairs")
    rows: list[dict[str, Any]] = []
    for form in dict.fromkeys(forms):
        folder = work.out / form
        folder.mkdir(exist_ok=True)
        in_folder = form == "imagefolder"
        root = images.parent
        for row in _in_folder(folder, root, pairs) if in_folder else _in_shards(folder, root, pairs, per_shard):
            rows.append({**_metadata(row), "form": form, "path": row["path"]})
            work.progress.advance(1)
    write_table(work.out, EXPORTED, pl.DataFrame(rows, schema=EXPORTED.schema))
    unlicensed_pairs = {UNLICENSED: without} if without else {}
    counts = {"exported": len(rows), "pairs": len(pairs)}
    return Outcome(counts, unlicensed_pairs) if unlicensed == "leave-out" else Outcome({**counts, **unlicensed_pairs})


def _paired(
    work: Work, selected: Path, captions_file: Path, images_table: Path, rights_file: Path | None, strategy: Strategy
) -> list[dict[str, Any]]:
    """Find caption, picture and rights of each item that is kept, best first."""
    kept = read_table(selected, SELECTED).filter(pl.col("kept") & (pl.col("strategy") == strategy))
    if kept.is_empty():
        raise UsageError(f"nothing was kept by {strategy}", where=str(selected))
    wanted = kept["item"]
    captions = texts_of([captions_file], TextColumns(), only=wanted).texts
    parts = (part.filter(pl.col("image_id").is_in(wanted.implode()), status="ok")
             for part in blocks_of(images_table, IMAGES, rows=ROWS_PER_BLOCK, scratch=work.scratch))  # fmt: skip
    images = pl.concat([part.select("image_id", "path", "sha256") for part in parts])
    rights = pl.DataFrame(schema=RIGHTS.schema) if rights_file is None else _rights_in(rights_file, wanted)
    rows = kept.select("item", "rank").join(images, left_on="item", right_on="image_id", how="left")
    rows = rows.join(rights, left_on="item", right_on="image_id", how="left").sort("rank")
    pairs = [{**row, "text": captions.get(row["item"])} for row in rows.iter_rows(named=True)]
    for path, name in ((captions_file, "text"), (images_table, "sha256")):
        lacking = [pair["item"] for pair in pairs if not pair[name]]
        if lacking:
            raise UsageError(
                f"pairs that are kept have no {'caption' if name == 'text' else 'picture'}", where=str(path),
                expected="the tables whose vectors were scored", found=f"{len(lacking):,}, such as {lacking[0]!r}",
            )  # fmt: skip
    return pairs


def _rights_in(path: Path, images: pl.Series) -> pl.DataFrame:
    """Read who may do what with some images; a word left empty is none."""
    table = opened(path, lambda names: "image_id" if "image_id" in names else names[0], images)
    lacking = [name for name in RIGHTS.columns if name not in table.columns]
    if lacking:
        raise UsageError("a table of rights lacks columns", where=str(path), expected=", ".join(RIGHTS.columns),
                         found=", ".join(table.columns))  # fmt: skip
    words = pl.exclude("image_id").str.strip_chars().replace("", None)
    table = table.select(pl.col(list(RIGHTS.columns)).cast(pl.String)).with_columns(words)
    if problems := RIGHTS.problems(table):
        raise UsageError("this is no table of rights", where=str(path), found="; ".join(problems))
    return table


def _licensed(pairs: Sequence[dict[str, Any]], unlicensed: Unlicensed) -> tuple[list[dict[str, Any]], int]:
    """Refuse, leave out or include the pairs without a licence, and count them."""
    without = [pair["item"] for pair in pairs if not pair["licence"]]
    if without and (unlicensed == "refuse" or (unlicensed != "include" and len(without) == len(pairs))):
        raise UsageError(
            "pairs have no licence, so nobody may pass them on", expected="a licence in --rights for each",
            found=f"{len(without):,} of {len(pairs):,} without, such as {without[0]!r}",
            hint="Name their licences, or say --unlicensed leave-out, or include where nothing is passed on.",
        )  # fmt: skip
    return [pair for pair in pairs if pair["licence"] or unlicensed == "include"], len(without)


def _in_folder(folder: Path, root: Path, pairs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Write pictures under their rank, and the list that `datasets` reads."""
    lines = []
    for pair in pairs:
        content, name = _picture_of(pair, root)
        write_atomically(folder / name, content)
        lines.append(json.dumps({"file_name": name, **_metadata(pair)}, ensure_ascii=False) + "\n")
        yield {**pair, "path": f"{folder.name}/{name}"}
    write_atomically(folder / METADATA, "".join(lines).encode())


def _in_shards(folder: Path, root: Path, pairs: Sequence[dict[str, Any]], per_shard: int) -> Iterator[dict[str, Any]]:
    """Write shards: a picture, its caption and what is known of it, one after another, with no time or owner."""
    for number, start in enumerate(range(0, len(pairs), per_shard)):
        path = folder / f"pairs-{number:05d}.tar"
        with whole_file(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as shard:
            for pair in pairs[start : start + per_shard]:
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
