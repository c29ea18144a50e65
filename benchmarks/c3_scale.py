"""The recipe `c3` at a tenth of the paper's size, its models behind a server on loopback; and texts in blocks.

The recipe grows 989 captions; three models draw 50 of them; 50 translated pairs are rated, 300 are kept of 1,008, and
once more 9,000 of 10,800, and 30,000 of 36,000, niced, without the others: `python benchmarks/c3_scale.py pairs 1000`.
Texts are captions of
thirteen words, which the encoder `letters` turns into vectors in blocks of 20,000, where a million is usual; and of
which the simulated world names the objects, which are counted. Memory is what a process of its own holds.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import polars as pl
from c3_filtering import Held, OneCore
from recording import record

from culturekit.builders.captions.caption_files import objects, stats
from culturekit.core.run import run_stage
from culturekit.index.embedding import embed_table
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from tests.faults.world_model import knows
from tests.llm.server import Script, running_server
from tests.recipes.test_recipes_online import TENTH, made

TEXTS, CAPTIONS, BLOCK = (60_000, 120_000), (60_000, 240_000), 20_000
PAIRS = {300: "10,800 pairs, 9,000 kept", 1000: "36,000 pairs, 30,000 kept"}  # by how many of each activity


def main() -> None:
    """Measure each in a process of its own."""
    table = [["what", "size", "seconds of a core", "requests", "MB held"]]
    works = [
        ("recipe",),
        *(("pairs", str(n)) for n in PAIRS),
        *(("texts", str(n)) for n in TEXTS),
        *(("captions", str(n)) for n in CAPTIONS),
    ]
    for what in works:
        done = subprocess.run([sys.executable, __file__, *what], check=True, capture_output=True)
        table.append([*done.stdout.decode().strip().rpartition("\n")[2].split("; ")])
    record("c3_scale", title="C3 at scale, on one core", command="python benchmarks/c3_scale.py", table=table)


def tenth(root: Path, each: int = 0) -> str:
    """Run the recipe, perhaps with so many pairs of each activity."""
    more = (f"pairs.simulated.each={each}", f"pairs.keep={each * 30}", "llm.budget=100") if each else ()
    os.environ |= {"OPENAI_API_KEY": "sk-of-nobody", "GEMINI_API_KEY": "key-of-nobody"}
    with running_server(Script(), model=knows) as server:
        held, started = Held(), time.process_time()
        made("c3", root / "run", server, *TENTH, *more)
        seconds, requests = time.process_time() - started, server.stats()["requests"]
    captions = pl.read_parquet(root / "run/captions/captions.parquet").height
    size = PAIRS.get(each, f"{captions:,} captions")
    return f"a tenth of the paper; {size}; {seconds:.0f}; {requests:,}; {held.most / 1e6:.0f}"


def texts(root: Path, count: int) -> str:
    """Turn texts into vectors."""
    script = (
        "import polars as pl, sys; n = int(sys.argv[1]); at = pl.int_range(n, eager=True); "
        "words = [(at * k % 9973).cast(pl.String) for k in (3, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)]; "
        "table = pl.DataFrame({'id': at.cast(pl.String).str.zfill(9), **{str(k): w for k, w in enumerate(words)}}); "
        "table.select('id', text=pl.concat_str(pl.all(), separator=' ')).write_parquet(sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", script, str(count), str(root / "texts.parquet")], check=True)
    embed_table.ROWS_PER_BLOCK = BLOCK
    held, started = Held(), time.process_time()
    stage = embed_stage(EmbedSource(texts=(root / "texts.parquet",)), encoder="letters")
    run_stage(stage, root / "vectors", engine=OneCore())
    return f"texts to vectors; {count:,}; {time.process_time() - started:.0f}; 0; {held.most / 1e6:.0f}"


def captions(root: Path, count: int) -> str:
    """List the objects of captions, and count them."""
    script = (
        "import polars as pl, sys; at = pl.int_range(int(sys.argv[1]), eager=True); "
        "text = pl.format('Students in qipao dress {} with red envelopes {}', at, at * 7 % 8191); "
        "pl.select(id=at.cast(pl.String).str.zfill(9), text=text).write_parquet(sys.argv[2])"
    )
    subprocess.run([sys.executable, "-c", script, str(count), str(root / "captions.parquet")], check=True)
    held, started = Held(), time.process_time()
    named = objects.stage(captions=root / "captions.parquet", lister="simulated:lister")
    run_stage(named, root / "named", engine=OneCore())
    run_stage(stats.stage(root / "captions.parquet", root / "named/objects.parquet"), root / "stats", engine=OneCore())
    return f"captions, objects, counts; {count:,}; {time.process_time() - started:.0f}; 0; {held.most / 1e6:.0f}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            what, *size = sys.argv[1:]
            here, counts = Path(folder), [int(one) for one in size]
            done = {"recipe": partial(tenth, here), "pairs": partial(tenth, here, *counts),
                    "texts": partial(texts, here, *counts), "captions": partial(captions, here, *counts)}  # fmt: skip
            sys.stdout.write(done[what]())
    else:
        main()
