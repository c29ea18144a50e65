"""What strategies keep of pairs of captions and images, ranked anew; and every exported file, hashed anew."""

import hashlib
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
    where = f"{stage.name}/exported.parquet"
    rows = pl.read_parquet(stage.folder / "exported.parquet")
    hashes, words = files_in(stage.folder)
    if hashes.keys() != set(rows["path"]):
        ledger.broken("pairs", where, "lists other pictures than there are", expected=len(hashes), found=rows.height)
    sources = [tree.source(stage, role) for role in ("selected", "images")]
    chosen, images = (None if path is None else pl.read_parquet(path) for path in sources)
    known = None if images is None else dict(images.select("image_id", "sha256").iter_rows())
    wanted = None if chosen is None else kept_by(str(stage.manifest.options["strategy"]), chosen)
    for row in rows.iter_rows(named=True):
        name, told = repr(row["item"]), {key: row[key] for key in LISTED}
        if hashes.get(row["path"]) != row["sha256"] or (known is not None and known.get(row["item"]) != row["sha256"]):
            ledger.broken("pairs", where, f"the picture of {name} is another", expected=row["sha256"])
        if words.get(row["path"]) != told:
            ledger.broken("pairs", where, f"what goes with {name} says something else", expected=told)
        if wanted is not None and wanted.get(row["item"]) != row["rank"]:
            ledger.broken("pairs", where, f"{name} was not kept in this place", found=row["rank"])
        if not row["licence"] and stage.manifest.options["unlicensed"] != "include":
            ledger.broken("pairs", where, f"{name} has no licence")
        ledger.count("exported pictures hashed")
    without = stage.manifest.drops.get("pairs without a licence", 0)
    if wanted is not None and rows["item"].n_unique() + without != len(wanted):
        ledger.broken("pairs", where, "pairs that were kept are not there", expected=len(wanted), found=rows.height)


def kept_by(strategy: str, chosen: pl.DataFrame) -> dict[str, int]:
    """Give the rank of each item that a strategy keeps."""
    return dict(chosen.filter(pl.col("kept") & (pl.col("strategy") == strategy)).select("item", "rank").iter_rows())


def files_in(folder: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Hash the pictures of an export, by path, and read what goes with each."""
    hashes, words = {}, {}
    for path in sorted(folder.glob("imagefolder/*")):
        if path.name == "metadata.jsonl":
            for line in path.read_text(encoding="utf-8").splitlines():
                said = json.loads(line)
                words[f"imagefolder/{said.pop('file_name')}"] = said
        else:
            hashes[f"imagefolder/{path.name}"] = sha256_of(path)
    for path in sorted(folder.glob("webdataset/*.tar")):
        with tarfile.open(path) as shard:
            held = {entry.name: reader.read() for entry in shard if (reader := shard.extractfile(entry))}
        for name, content in held.items():
            stem, _, kind = name.partition(".")
            if kind not in {"json", "txt"}:
                place = f"webdataset/{path.name}/{name}"
                hashes[place] = hashlib.sha256(content).hexdigest()
                said = json.loads(held.get(f"{stem}.json", b"{}"))
                words[place] = said if held.get(f"{stem}.txt", b"").decode() == said.get("text") else {}
    return hashes, words
