"""What strategies keep of pairs of captions and images, ranked anew; captions and exported files, looked at anew."""

import hashlib
import io
import json
import tarfile
import unicodedata
from collections import Counter, defaultdict
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from culturekit.verify.chain import sha256_of
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_expansion", "check_exported", "check_objects", "check_sample", "check_selected", "check_translations"]

KEPT, SAME, ALIKE, NEAR = "kept", "same as an earlier caption", "like an earlier caption", 1e-6


def words(text: str) -> str:
    """Keep letters, digits and marks, in small letters, with one space between words."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(one if unicodedata.category(one)[0] in "LNM" else " " for one in plain).split())


def check_expansion(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Follow each caption to its proposal or its seed, and hold each proposal against the captions before it."""
    where, options = f"{stage.name}/captions.parquet", stage.manifest.options
    captions = {row["id"]: row for row in pl.read_parquet(stage.folder / "captions.parquet").iter_rows(named=True)}
    source = tree.source(stage, "culture")
    seeds = [row["text"] for row in captions.values() if row["round"] == 0]
    if source is None:
        ledger.note("captions", stage.name, "its culture is not here")
    elif seeds != [seed["caption"] for seed in yaml.safe_load(source.read_text(encoding="utf-8"))["seeds"]]:
        ledger.broken("captions", where, "begins with other seeds than its culture", found=seeds)
    for text, count in Counter(words(row["text"]) for row in captions.values()).items():
        if count > 1:
            ledger.broken("captions", where, "a caption stands twice", found=text)
    told: dict[str, tuple[str, str, int]] = {}
    shown: dict[int, list[str]] = defaultdict(list)
    for row in pl.read_parquet(stage.folder / "caption_proposals.parquet").iter_rows(named=True):
        place = f"{stage.name}/caption_proposals.parquet ({row['round']}/{row['request']}/{row['position']})"
        if row["outcome"] == KEPT:
            told[row["caption_id"]] = (row["text"], row["category"], row["round"])
        if not true_outcome(row, captions, options["similarity"]):
            ledger.broken(
                "captions", place, f"is not {row['outcome']!r}", found=f"{row['nearest']} {row['similarity']}"
            )
        if any(each not in captions or captions[each]["round"] >= row["round"] for each in row["examples"]):
            ledger.broken("captions", place, "was shown captions that were not there yet", found=row["examples"])
        if row["position"] == 1:
            shown[row["round"]] += row["examples"]
    for number, examples in shown.items():
        if len(set(examples)) < len(examples):
            ledger.broken("captions", stage.name, f"round {number} shows a caption twice")
    stated = {own: (row["text"], row["category"], row["round"]) for own, row in captions.items() if row["round"]}
    for own in sorted(stated.keys() | told.keys()):
        said, found = told.get(own), stated.get(own)
        if said != found:
            ledger.broken("captions", where, f"{own} is not what was proposed", expected=said, found=found)
        ledger.count("captions followed to their proposals")


def true_outcome(row: dict[str, Any], captions: dict[str, dict[str, Any]], threshold: float) -> bool:
    """Say whether what became of a proposal follows from the earlier caption that it is said to be most like."""
    near, alike = captions.get(row["nearest"]), row["similarity"]
    if row["outcome"] == SAME:
        return near is not None and words(near["text"]) == words(row["text"])
    if row["outcome"] == ALIKE:
        return near is not None and alike >= threshold - NEAR
    return row["outcome"] != KEPT or alike is None or alike < threshold + NEAR


def check_sample(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Draw the sample once more, category by category, and hold prompts against it."""
    where, source = f"{stage.name}/captions.parquet", tree.source(stage, "captions")
    drawn = {row["id"]: row for row in pl.read_parquet(stage.folder / "captions.parquet").iter_rows(named=True)}
    asked = dict(pl.read_parquet(stage.folder / "prompts.parquet").select("prompt_id", "text").iter_rows())
    if asked != {own: row["text"] for own, row in drawn.items()}:
        ledger.broken("captions", f"{stage.name}/prompts.parquet", "does not ask for the captions of the sample")
    if source is None:
        ledger.note("captions", stage.name, "the captions that it is drawn from are not here")
        return
    every = sorted(pl.read_parquet(source).iter_rows(named=True), key=lambda row: str(row["id"]))
    given = shared_out(Counter(row["category"] for row in every), stage.manifest.options["size"])
    wanted: dict[str, dict[str, Any]] = {}
    for place in np.random.default_rng(stage.manifest.seeds["seed"]).permutation(len(every)).tolist():
        if given[every[place]["category"]]:
            given[every[place]["category"]] -= 1
            wanted[every[place]["id"]] = every[place]
    if drawn != wanted:
        expected, found = sorted(wanted.keys() - drawn.keys())[:5], sorted(drawn.keys() - wanted.keys())[:5]
        ledger.broken("captions", where, "is another sample than its seed draws", expected=expected, found=found)
    ledger.count("captions drawn anew", len(drawn))


def shared_out(sizes: Counter[str], size: int) -> dict[str, int]:
    """Give each category a place, and each further one to that which lacks most of its share."""
    given = {name: int(position < size) for position, name in enumerate(sorted(sizes))}
    while sum(given.values()) < size:
        lacks = {name: Fraction(size * sizes[name], sizes.total()) - count for name, count in given.items()}
        given[max((name for name in lacks if given[name] < sizes[name]), key=lambda name: lacks[name])] += 1
    return given


def check_translations(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold each translation against its caption: it says something else than that, and the caption is as it was."""
    where, source = f"{stage.name}/translations.parquet", tree.source(stage, "captions")
    texts: dict[str, str] = {}
    if source is not None and source.suffix == ".parquet":
        table = pl.read_parquet(source)
        texts = dict(table.select("id", "text").iter_rows()) if {"id", "text"} <= set(table.columns) else {}
    for row in pl.read_parquet(stage.folder / "translations.parquet").iter_rows(named=True):
        if not words(row["text"]) or words(row["text"]) == words(row["source"]):
            ledger.broken("captions", where, f"{row['id']} has no translation", found=row["text"])
        if texts and texts.get(row["id"]) != row["source"]:
            ledger.broken("captions", where, f"{row['id']} is another caption", expected=texts.get(row["id"]))
        ledger.count("translations held against their captions")


def check_objects(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Count the objects of each item anew: each once, above the threshold."""
    del tree
    where, threshold = f"{stage.name}/objects.parquet", stage.manifest.options["threshold"]
    of_items: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in pl.read_parquet(stage.folder / "objects.parquet").iter_rows(named=True):
        of_items[row["item"]].append(row)
        if row["probability"] is not None and row["probability"] <= threshold:
            ledger.broken("captions", where, f"{row['id']} is not above {threshold}", found=row["probability"])
        ledger.count("objects counted anew")
    for item, rows in of_items.items():
        if {row["id"] for row in rows} != {f"{item}#{number}" for number in range(1, len(rows) + 1)}:
            ledger.broken("captions", where, f"the objects of {item!r} are not numbered from 1")
        if len({words(row["text"]) for row in rows}) < len(rows):
            ledger.broken("captions", where, f"an object of {item!r} stands twice")


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
