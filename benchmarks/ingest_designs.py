"""What the parts of ingest cost, and what other designs would: microseconds per generated entity, one thread.

    python benchmarks/ingest_designs.py

pysimdjson and duckdb are no dependencies, and a C compiler need not be there; their rows are there where they are.
"""

import ctypes
import gc
import importlib
import shutil
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from dump_generator import generated_lines
from isal import igzip, igzip_lib, isal_zlib
from recording import record

from culturekit.kg.concepts import ENTITY_STATEMENTS
from culturekit.kg.dump.entities import Item, ItemBatch, decoder_for, entity_type

ENTITIES = 12_000
ROUNDS = 5
NAME_AND_KIND = {"id": pl.String(), "type": pl.String()}
ORDER, NAMES = ("en", "mul"), ("language_0", "language_1")


class Skipped(msgspec.Struct):
    """An entity of which nothing is kept."""

    id: str
    type: str


def best_of(runs: int, function: Callable[[], object]) -> float:
    """Time a function in CPU seconds, the best of some runs."""
    times = []
    for _ in range(runs):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def each(function: Callable[[Any], object], arguments: Sequence[Any]) -> Callable[[], None]:
    """Call a function on each argument."""

    def run() -> None:
        for argument in arguments:
            function(argument)

    return run


def inflate(packed: bytes, feed: int) -> None:
    """Decompress, feeding so many compressed bytes at once."""
    inflater = isal_zlib.decompressobj(wbits=31)
    for start in range(0, len(packed), feed):
        inflater.decompress(packed[start : start + feed])


def inflate_in_steps(packed: bytes, step: int) -> None:
    """Decompress so many plain bytes at once."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    start = 0
    while not inflater.eof:
        feed = packed[start : start + 32_768] if inflater.needs_input else b""
        start += len(feed)
        inflater.decompress(feed, step)


def read_whole(packed: bytes) -> None:
    """Decompress as the limit does."""
    buffer = bytearray(1 << 20)
    with tempfile.NamedTemporaryFile(suffix=".gz") as file:
        file.write(packed)
        file.flush()
        opened: Any = igzip.open
        with opened(file.name) as stream:
            while stream.readinto(buffer):
                pass


def written(items: Sequence[Item]) -> None:
    """Turn items into part tables."""
    with tempfile.TemporaryDirectory() as folder:
        batch = ItemBatch(Path(folder), 0, {})
        for item in items:
            batch.add(item, 0, 0, 0)
        batch.write()


STATEMENTS = {
    'STRUCT("value" STRUCT(id VARCHAR, "numeric-id" UBIGINT, "entity-type" VARCHAR))': ENTITY_STATEMENTS,
    'STRUCT("value" VARCHAR)': ("P18", "P297"),
    'STRUCT("value" STRUCT(latitude DOUBLE, longitude DOUBLE))': ("P625",),
    'STRUCT("value" STRUCT("text" VARCHAR, "language" VARCHAR))': ("P1549",),
}
"""What is kept of statements, in DuckDB's types."""


def duckdb_columns() -> dict[str, str]:
    """Name all that is kept of an entity in DuckDB's types."""
    kept = ", ".join(
        f"{name} STRUCT(mainsnak STRUCT(snaktype VARCHAR, datavalue {held}), rank VARCHAR, "
        "qualifiers STRUCT(P582 JSON))[]"
        for held, names in STATEMENTS.items()
        for name in names
    )
    term, terms = (f'STRUCT(en STRUCT("value" VARCHAR){end}, mul STRUCT("value" VARCHAR){end})' for end in ("", "[]"))
    pages = "MAP(VARCHAR, STRUCT(title VARCHAR))"
    return {"id": "VARCHAR", "type": "VARCHAR", "labels": term, "descriptions": term, "aliases": terms,
            "claims": f"STRUCT({kept})", "sitelinks": pages}  # fmt: skip


def with_duckdb(ndjson: bytes, folder: Path) -> dict[str, Callable[[], object]]:
    """Have DuckDB read decompressed lines into a table, by one thread."""
    try:
        connection = importlib.import_module("duckdb").connect()
    except ModuleNotFoundError:
        return {}
    path = folder / "lines.json"
    path.write_bytes(ndjson)
    connection.execute("set threads = 1")
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in duckdb_columns().items())
    read = f"read_json('{path}', format = 'newline_delimited', maximum_object_size = 33554432, columns = {{{columns}}})"
    return {
        "DuckDB, all that is kept, to a table": lambda: connection.execute(
            f"create or replace table kept as from {read}"
        )
    }


def with_compiler(
    lines: Sequence[bytes], decode: Callable[[bytes], object], folder: Path
) -> dict[str, Callable[[], object]]:
    """Have compiled C copy what is kept of each line, checking the rest; its items must be those of the whole lines."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    source, library = Path(__file__).with_name("ingest_pruner.c"), folder / "pruner.so"
    subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    prune = ctypes.CDLL(str(library)).prune_lines
    prune.argtypes, prune.restype = (ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p), ctypes.c_long
    chunks = [b"\n".join(lines[start : start + 16]) + b"\n" for start in range(0, len(lines), 16)]
    out = ctypes.create_string_buffer(max(map(len, chunks)) + 64)
    padded = [(chunk + bytes(64), len(chunk)) for chunk in chunks]
    pruned: list[bytes] = []
    for chunk, size in padded:
        length = prune(chunk, size, out)
        pruned += out.raw[:length].split(b"\n")[:-1]
    if [decode(line) for line in pruned] != [decode(line) for line in lines]:
        raise SystemExit("pruned lines are other items")
    return {
        "C that copies what is kept and checks the rest": lambda: [prune(chunk, size, out) for chunk, size in padded],
        "what it copies, decoded to items": each(decode, pruned),
    }


def main() -> None:
    """Measure each part by itself."""
    gc.disable()
    lines = list(islice(generated_lines(), ENTITIES))
    whole, ndjson = b",\n".join(lines), b"\n".join(lines)
    view = memoryview(whole)
    packer = zlib.compressobj(6, wbits=31)
    packed = packer.compress(whole) + packer.flush()
    spans, start = [], 0
    for line in lines:
        spans.append((start, start + len(line)))
        start += len(line) + 2
    entity = entity_type(ORDER, NAMES)
    typed = msgspec.json.Decoder(entity).decode
    arrays = [b"[" + b",".join(lines[start : start + 20]) + b"]" for start in range(0, ENTITIES, 20)]
    decode = decoder_for(("en",))
    items = [item for item in map(decode, lines) if isinstance(item, Item)]
    ways: dict[str, Callable[[], object]] = {
        "igzip alone, 1 MB of plain bytes at a time": lambda: read_whole(packed),
        "isal, fed 64 kB": lambda: inflate(packed, 1 << 16),
        "isal, fed 128 kB": lambda: inflate(packed, 1 << 17),
        "isal, fed 1 MB": lambda: inflate(packed, 1 << 20),
        "isal, asked for 256 kB": lambda: inflate_in_steps(packed, 1 << 18),
        "isal, asked for 1 MB": lambda: inflate_in_steps(packed, 1 << 20),
        "msgspec that keeps nothing": each(msgspec.json.Decoder(Skipped).decode, lines),
        "msgspec, typed": each(typed, lines),
        "msgspec, typed, twenty lines as one array": each(msgspec.json.Decoder(list[entity]).decode, arrays),  # type: ignore[valid-type]
        "msgspec, typed, from views of the chunk": each(lambda span: typed(view[span[0] : span[1]]), spans),
        "msgspec, typed, from copies of the line": each(lambda span: typed(whole[span[0] : span[1]]), spans),
        "decoded to items": each(decode, lines),
        "items to part tables": lambda: written(items),
        "polars.read_ndjson, the name and the kind only": lambda: pl.read_ndjson(ndjson, schema=NAME_AND_KIND),
        "json of the standard library": each(importlib.import_module("json").loads, lines),
        "orjson, everything": each(importlib.import_module("orjson").loads, lines),
    }
    try:
        parser = importlib.import_module("simdjson").Parser()
    except ModuleNotFoundError:
        pass
    else:
        ways["simdjson, parsed and nothing read"] = each(lambda line: parser.parse(line) and None, lines)
    with tempfile.TemporaryDirectory() as folder:
        ways |= with_compiler(lines, decode, Path(folder)) | with_duckdb(ndjson, Path(folder))
        # In turn, so that what else the machine does meets all of them.
        rounds = [{what: best_of(1, function) for what, function in ways.items()} for _ in range(ROUNDS)]
    took = {what: min(one[what] for one in rounds) for what in ways}
    alone = took["igzip alone, 1 MB of plain bytes at a time"]
    table = [["what", "microseconds an entity", "igzip alone = 1", "MB/s"]]
    for what, seconds in took.items():
        table.append(
            [what, f"{1e6 * seconds / ENTITIES:.1f}", f"{seconds / alone:.2f}", f"{len(whole) / seconds / 1e6:,.0f}"]
        )
    record(
        "ingest_designs",
        title=f"What the parts of ingest cost, {ENTITIES:,} entities of {len(whole) / ENTITIES / 1000:.0f} kB",
        command="python benchmarks/ingest_designs.py",
        table=table,
    )


if __name__ == "__main__":
    main()
