"""What completing a large collection takes, whoever proposes: names are looked up in all candidates, round by round.

The proposer answers in this process with names of which a third are known, so nothing is waited for. With `--full` the
collection has half a million candidates, and a graph of two million items is looked through as well.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import polars as pl
from recording import record

from culturekit.builders.completing.completion import complete
from culturekit.builders.completing.completion_rounds import CompletionLimits
from culturekit.core.engines import LocalEngine
from culturekit.core.schemas import CANDIDATES, DROPS, ITEMS, KEPT, STATEMENTS
from culturekit.core.stage import Work
from culturekit.core.tables import save_parquet, write_table
from culturekit.kg.concepts import load_concept
from culturekit.kg.countries import by_qid
from culturekit.llm.client import Reply, Request
from culturekit.llm.clients.clients import CLIENTS

CONCEPTS = ("art", "cuisine", "landmarks")
COUNTRIES = ("BR", "FR", "IN", "IT", "JP", "NG", "TR", "US")
LIMIT_MB = 2048


def main() -> None:
    """Measure two sizes, each in a process of its own."""
    sizes = ((250_000, 0), (500_000, 2_000_000)) if "--full" in sys.argv else ((25_000, 0), (50_000, 200_000))
    rows = [["candidates", "items of the graph", "proposals", "added", "seconds", "most memory", "of 2 GB"]]
    for candidates, items in sizes:
        with tempfile.TemporaryDirectory() as folder:
            given = [sys.executable, __file__]
            subprocess.run([*given, "make", folder, str(candidates), str(items)], check=True)
            done = subprocess.run([*given, "measure", folder], capture_output=True, check=True)
        said = json.loads(done.stdout)
        memory = f"{said['mb']:,.0f} MB"
        counts = [f"{said['proposals']:,}", f"{said['added']:,}", f"{said['seconds']:.0f}", memory]
        rows.append([f"{candidates:,}", f"{items:,}", *counts, f"{said['mb'] / LIMIT_MB:.2f}"])
    command = "python benchmarks/completion.py --full"
    record("completion", title="Completing a collection, names looked up four times", command=command, table=rows)


def names(size: int, first: int) -> pl.DataFrame:
    """Make up names: three words of a language that nobody speaks."""
    syllables = pl.Series(
        ["ba", "ké", "li", "mo", "nú", "pa", "ri", "so", "ta", "vu", "xe", "zã", "dor", "gel", "hun", "fal"]
    )
    number = pl.int_range(first, first + size, eager=True)

    def word(by: int) -> pl.Expr:
        parts = [syllables.gather((number // (by * 16**place)) % 16) for place in range(3)]
        return pl.concat_str([pl.lit(part) for part in parts])

    made = pl.DataFrame({"number": number})
    return made.with_columns(
        label=pl.concat_str([word(1), word(7), word(4096)], separator=" "),
        title=pl.concat_str([word(1), word(7), word(4096)], separator="-"),
        alias=pl.concat_str([word(3), word(11), word(4096)], separator=" "),
    )


def make(folder: Path, candidates: int, items: int) -> None:
    """Write a collection, three in five of whose candidates were kept, and the graph beside it."""
    qids = [next(qid for qid, country in by_qid().items() if country.iso == iso) for iso in COUNTRIES]
    made = names(candidates, 1)
    declared = CANDIDATES.columns.items()
    blank = {name: pl.lit([], dtype=column.dtype) for name, column in declared if isinstance(column.dtype, pl.List)}
    nothing = {name: pl.lit(None, dtype=column.dtype) for name, column in declared if column.nullable}
    own = {"label": pl.col("label"), "title": pl.col("title")}
    rows = (
        made.with_columns(**{**blank, **nothing, **own})
        .with_columns(
            qid=pl.format("Q{}", "number"),
            aliases=pl.concat_list("alias", pl.format("{} of old", "alias"), pl.format("great {}", "label")),
            concept=pl.Series([*CONCEPTS]).gather(made["number"] % 3),
            country_qids=pl.concat_list(pl.Series(qids).gather(made["number"] % 8)),
            hop=pl.lit(1, dtype=pl.UInt8),
            sitelinks=(pl.col("number") % 97).cast(pl.UInt16),
            p31=pl.concat_list(pl.format("Q{}", pl.col("number") % 900 + 10**8)),
        )
        .sort("concept", "qid")
    )
    write_table(folder, CANDIDATES, rows.select(CANDIDATES.columns.keys()))
    kept = rows.filter(pl.col("number") % 5 < 3).with_columns(verdict=pl.lit("keep"), reason=pl.lit("judge x"))
    write_table(folder, KEPT, kept.select(KEPT.columns.keys()))
    dropped = rows.filter(pl.col("number") % 5 >= 3)
    drops = dropped.select(
        "concept", key="qid", stage=pl.lit("filter"), reason=pl.lit("judge x"), detail=pl.lit(None, dtype=pl.String)
    ).select(DROPS.columns.keys())
    write_table(folder, DROPS, drops)
    if items:
        graph(folder / "graph", items)


def graph(folder: Path, items: int) -> None:
    """Write the tables of a graph of items that are no candidates."""
    folder.mkdir()
    made = names(items, 10_000_000)
    columns = {
        name: pl.lit(None if column.nullable else 0, dtype=column.dtype)
        for name, column in ITEMS.columns.items()
        if name not in {"qid", "number", "label", "title", "aliases"}
    }
    rows = made.select(
        qid=pl.format("Q{}", "number"), number=pl.col("number").cast(pl.UInt32), label="label", title="title",
        aliases=pl.concat_list("alias"), **columns,
    )  # fmt: skip
    save_parquet(rows.select(ITEMS.columns.keys()), folder / "items.parquet")
    write_table(folder, STATEMENTS, pl.DataFrame(schema=STATEMENTS.schema))


class Proposer:
    """Names new things, things of the collection and things of the graph, for four rounds; agrees with everything."""

    model, caveat = "proposer", ""

    def ask(self, request: Request) -> Reply:
        """Answer at once."""
        data: Mapping[str, Any] = request.data
        if request.task == "cspace.verify":
            said: dict[str, object] = {"id": data["id"], "instance": "yes", "belongs": "yes", "item": "same"}
            return Reply(msgspec.json.encode(said).decode())
        kind = data["kinds"][0]
        new = [f"{data['id'].replace('/', ' ')} new {data['round']} {place}" for place in range(14)]
        known = [*data["known"][data["round"] * 6 :][:6]]
        artifacts = [{"name": name, "other_names": [], "kind": kind, "what": "x"} for name in [*new, *known]]
        return Reply(msgspec.json.encode({"id": data["id"], "wrong": [], "artifacts": artifacts}).decode())


class Silent:
    """Hears nothing."""

    def begin(self, total: int, unit: str) -> None:
        """Do nothing."""

    def advance(self, done: int) -> None:
        """Do nothing."""

    def tell(self, totals: str) -> None:
        """Do nothing."""


def measure(folder: Path) -> None:
    """Complete the collection, and say what it took."""
    out, scratch = folder / "out", folder / "scratch"
    out.mkdir()
    scratch.mkdir()
    concepts = [load_concept(name).model_copy(update={"countries": COUNTRIES}) for name in CONCEPTS]
    beside = folder / "graph"
    kept, candidates, drops = (folder / f"{name}.parquet" for name in ("kept", "candidates", "drops"))
    graph, limits = beside if beside.is_dir() else None, CompletionLimits(per_cell=200)
    began = time.perf_counter()
    with LocalEngine(1) as engine:
        work = Work({}, out, scratch, engine, Silent())
        with patch.multiple(CLIENTS, make=lambda spec: Proposer(), brought_by=lambda spec: {}):
            stage = complete.stage(
                kept, candidates, drops, graph, roots=tuple(concepts), proposer="proposer", limits=limits
            )
            outcome = stage.run(work)
    said = {
        "seconds": time.perf_counter() - began,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **outcome.counts,
    }
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["measure"]:
        measure(Path(sys.argv[2]))
    else:
        main()
