"""What strategies keep of pairs of captions and images, ranked anew; and every exported file, hashed anew."""

import hashlib
import json
import tarfile
from collections import defaultdict
from collections.abc import Mapping
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
    terms: dict[str, dict[str, float]] = defaultdict(dict)
    for row in pl.read_parquet(source).iter_rows(named=True):
        if row["metric"] in {"c3_text", "c3_image", "c3_object"}:
            terms[row["item"]][row["metric"][3:]] = row["value"]
    table = pl.read_parquet(stage.folder / "selected.parquet")
    for strategy in stage.manifest.options["strategies"]:
        stated = {row.pop("item"): row for row in table.filter(strategy=strategy).iter_rows(named=True)}
        if stated.keys() != terms.keys():
            ledger.broken("pairs", where, f"{strategy} ranks others", expected=len(terms), found=len(stated))
            continue
        expected = ranked_anew(strategy, terms, stage)
        for item, row in stated.items():
            if any(row[name] != value for name, value in expected[item].items()):
                ledger.broken("pairs", where, f"{strategy} puts {item!r} elsewhere", expected=expected[item], found=row)
            ledger.count("pairs ranked anew")


def ranked_anew(
    strategy: str, terms: Mapping[str, Mapping[str, float | None]], stage: FinishedStage
) -> dict[str, dict[str, Any]]:
    """Say of each item what it is ranked by, where it stands, and whether it is kept."""
    options, items = stage.manifest.options, sorted(terms)
    drawn = np.random.default_rng(stage.manifest.seeds["draws"]).random(len(items)).tolist()
    values: dict[str, float | None] = dict(zip(items, drawn, strict=True))
    missing: dict[str, list[str]] = {item: [] for item in items}
    if strategy != "random":
        for item in items:
            found = {term: terms[item].get(term) for term in USES[strategy].split()}
            there = [value for value in found.values() if value is not None]
            values[item] = fsum(there) if there else None
            missing[item] = [term for term, value in found.items() if value is None]
    out = {item for item in items if values[item] is None or (missing[item] and options["missing"] == "leave-out")}
    order = sorted((item for item in items if item not in out), key=lambda item: (-(values[item] or 0.0), item))
    ranks = {item: rank for rank, item in enumerate(order, start=1)}
    return {
        item: {"rank": ranks.get(item), "value": values[item], "missing": missing[item],
               "kept": ranks.get(item, options["keep"] + 1) <= options["keep"]}
        for item in items
    }  # fmt: skip


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
