"""What strategies keep of pairs of captions and images, ranked anew; and every exported file, hashed anew."""

import hashlib
import io
import json
import tarfile
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from culturekit.verify.chain import sha256_of
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_exported", "check_selected"]

USES = {"labse": "text", "clip": "image", "objects": "object", "no-objects": "text image", "c3": "text image object"}
SOURCES = {"selected": ("item", ("rank",)), "images": ("image_id", ("sha256",)), "captions": ("id", ("text",)),
           "rights": ("image_id", ("licence", "source", "author"))}  # fmt: skip
"""By role, the column that names the item, and what an export takes over."""

LISTED = ("item", "rank", "text", "sha256", "licence", "source", "author")


def check_selected(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Rank the items of each strategy by their terms once more, and hold every row against that."""
    where, source = f"{stage.name}/selected.parquet", tree.source(stage, "values")
    if source is None:
        ledger.note("pairs", stage.name, "the values that it ranks are not here")
        return
    rows = pl.read_parquet(source).filter(pl.col("metric").is_in(["c3_text", "c3_image", "c3_object"]))
    terms = rows.pivot("metric", index="item", values="value").sort("item")
    table = pl.read_parquet(stage.folder / "selected.parquet")
    for strategy in stage.manifest.options["strategies"]:
        stated = table.filter(strategy=strategy).sort("item")
        if not stated["item"].equals(terms["item"]):
            ledger.broken("pairs", where, f"{strategy} ranks others", expected=terms.height, found=stated.height)
            continue
        expected = ranked_anew(strategy, terms, stage)
        if not stated["reason"].is_null().equals(stated["kept"]):
            ledger.broken("pairs", where, f"{strategy} leaves out pairs without a reason, or keeps pairs with one")
        for name in expected.columns:
            pairs = zip(terms["item"], expected[name].to_list(), stated[name].to_list(), strict=True)
            for item, told, found in filter(lambda each: each[1] != each[2], pairs):
                ledger.broken("pairs", where, f"the {name} of {item!r} by {strategy}", expected=told, found=found)
        ledger.count("pairs ranked anew", terms.height)


def ranked_anew(strategy: str, terms: pl.DataFrame, stage: FinishedStage) -> pl.DataFrame:
    """Say of each item what it is ranked by, where it stands, and whether it is kept."""
    options, uses = stage.manifest.options, USES.get(strategy, "").split()
    cells = terms.select(f"c3_{term}" for term in uses).rows() if uses else []
    values = [fsum(there) if (there := [one for one in row if one is not None]) else None for row in cells]
    drawn = np.random.default_rng(stage.manifest.seeds["draws"]).random(terms.height).tolist()
    missing = [";".join(term for term, one in zip(uses, row, strict=True) if one is None) for row in cells]
    table = pl.DataFrame({
        "item": terms["item"], "value": pl.Series(values if uses else drawn, dtype=pl.Float64),
        "missing": missing if uses else [""] * terms.height,
    })  # fmt: skip
    out = (pl.col("missing") != "") & (options["missing"] == "leave-out")
    order = table.filter(pl.col("value").is_not_null() & ~out).sort("value", "item", descending=[True, False])
    table = table.join(order.select("item").with_row_index("rank", offset=1), on="item", how="left").sort("item")
    kept = (pl.col("rank") <= options["keep"]).fill_null(False)
    lists = (
        pl.when(pl.col("missing") == "")
        .then(pl.lit([], pl.List(pl.String)))
        .otherwise(pl.col("missing").str.split(";"))
    )
    return table.select("rank", "value", lists.alias("missing"), kept.alias("kept"))


def check_exported(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hash every exported picture, and hold it and its words against the tables that they are from."""
    where, options = f"{stage.name}/exported.parquet", stage.manifest.options
    rows = pl.read_parquet(stage.folder / "exported.parquet")
    hashes, words = files_in(stage.folder)
    if hashes.keys() != set(rows["path"]):
        ledger.broken("pairs", where, "lists other pictures than there are", expected=len(hashes), found=rows.height)
    known = {role: facts_in(tree.source(stage, role), role, str(options["strategy"])) for role in SOURCES}
    for row in rows.iter_rows(named=True):
        name, told = repr(row["item"]), {key: row[key] for key in LISTED}
        if hashes.get(row["path"]) != row["sha256"]:
            ledger.broken("pairs", where, f"the picture of {name} is another", expected=row["sha256"])
        if words.get(row["path"]) != told:
            ledger.broken("pairs", where, f"what goes with {name} says something else", expected=told)
        for role, facts in known.items():
            found = tuple(row[key] for key in SOURCES[role][1])
            if facts is not None and facts.get(row["item"], (None,) * len(found)) != found:
                ledger.broken("pairs", where, f"its {role} say something else of {name}", found=found)
        if not row["licence"] and options["unlicensed"] != "include":
            ledger.broken("pairs", where, f"{name} has no licence")
        ledger.count("exported pictures hashed")
    without, kept = stage.manifest.drops.get("pairs without a licence", 0), known["selected"]
    if kept is not None and rows["item"].n_unique() + without != len(kept):
        ledger.broken("pairs", where, "pairs that were kept are not there", expected=len(kept), found=rows.height)


def facts_in(path: Path | None, role: str, strategy: str) -> dict[str, tuple[Any, ...]] | None:
    """Read what a table says of each item; None where it is not here, or is no Parquet with the usual columns."""
    key, names = SOURCES[role]
    if path is None or path.suffix != ".parquet" or not {key, *names} <= set(pl.read_parquet_schema(path)):
        return None
    table = pl.read_parquet(path)
    if role == "selected":
        table = table.filter(pl.col("kept") & (pl.col("strategy") == strategy))
    if role == "rights":  # a word left empty is none
        table = table.with_columns(pl.col(names).str.strip_chars().replace("", None))
    return {item: tuple(rest) for item, *rest in table.select(key, *names).iter_rows()}


def files_in(folder: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Hash the pictures of an export, by path, and read what goes with each."""
    hashes: dict[str, str] = {}
    words: dict[str, dict[str, Any]] = {}
    place = ""
    for path in sorted(folder.glob("imagefolder/*")):
        if path.name != "metadata.jsonl":
            hashes[f"imagefolder/{path.name}"] = sha256_of(path)
            continue
        with path.open(encoding="utf-8", newline="\n") as lines:  # a caption may hold what else ends a line
            for said in map(json.loads, lines):
                words[f"imagefolder/{said.pop('file_name')}"] = said
    for path in sorted(folder.glob("webdataset/*.tar")):
        with tarfile.open(path) as shard:
            for entry in shard:
                stem, _, kind = entry.name.partition(".")
                content = (shard.extractfile(entry) or io.BytesIO()).read()
                if kind == "json":
                    words[place] = json.loads(content)
                elif kind == "txt":
                    words[place] = words[place] if words[place].get("text") == content.decode() else {}
                else:
                    place = f"webdataset/{path.name}/{stem}.{kind}"
                    hashes[place] = hashlib.sha256(content).hexdigest()
    return hashes, words
