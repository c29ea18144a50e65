"""Files from outside that are not what they should be, given to every command that reads one."""

import gzip
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import culturekit

DEEP = 100_000
FINE = {0, 1, 2, 3, 4}  # Exit codes of what could be read after all, or is said; 70 is a mistake of ours

READERS = {
    "list.csv": "cspace import {file} --out {out}",
    "list.json": "cspace import {file} --out {out}",
    "list.jsonl": "cspace import {file} --out {out}",
    "list.parquet": "cspace import {file} --out {out}",
    "cube.json": "prompts build cube --cspace {file} --out {out}",
    "cspace.parquet": "prompts build cube --cspace {file} --out {out}",
    "release.json": "audit {file}",
    "release.csv": "audit {file}",
    "release.parquet": "audit {file}",
    "roots.yaml": "roots validate {file}",
    "recipe.yaml": "run {file} --workdir {out}",
    "plugins.yaml": "--plugins {file} plugins",
    "countries.yaml": "--countries-file {file} doctor",
    "redirects.csv": "roots validate {roots} --graph {run}/graph --redirects {file}",
    "pictures/list.csv": "generate --backend folder:{folder}?manifest={file} --out {out}",
    "pictures/list.jsonl": "generate --backend folder:{folder}?manifest={file} --out {out}",
    "pictures/captions.json": "generate --backend folder:{folder}?manifest={file} --out {out}",
    "pictures/list.parquet": "generate --backend folder:{folder}?manifest={file} --out {out}",
    "pictures/one.png": "generate --backend folder:{folder} --out {out}",
    "matches.parquet": "score qvs --matches {file} --out {out}",
    "images.parquet": "quality --images {file} --scorer embedded --out {out}",
    "audits.parquet": "score qvs --matches {run}/matches-broad/matches.parquet --audits {file} --out {out}",
    "values.parquet": "score gaps --values {file} --scheme cultivate --out {out}",
    "groups.csv": "score gaps --values {run}/scores/values.parquet --scheme cultivate --groups {file} --out {out}",
    "captions.jsonl": "captions translate --captions {file} --table {file} --out {out}",
    "captions.csv": "captions translate --captions {file} --table {file} --out {out}",
    "captions.txt": "captions translate --captions {file} --table {file} --out {out}",
    "coco.json": "captions translate --captions {file} --table {file} --out {out}",
    "objects.csv": "captions objects --table {file} --out {out}",
    "task2.csv": "score task2 --task2 {file} --out {out}",
    "prices.json": "llm prices update {file}",
    "prices.yaml": "llm prices update {file}",
    "query.rq": "kg query @{file} --graph {run}/graph --around Q17",
    "graph.ttl": "kg import {file} --out {out}",
    "graph.nt": "kg import {file} --out {out}",
    "graph.jsonld": "kg import {file} --out {out}",
    "graph.graphml": "kg import {file} --out {out}",
    "dump.json": "kg ingest {file} --out {out} --workers 1",
    "dump.json.gz": "kg ingest {file} --out {out} --workers 1",
    "dump.json.bz2": "kg ingest {file} --out {out} --workers 1",
    "dump.json.zst": "kg ingest {file} --out {out} --workers 1",
    "iran.json": "descriptors import --files {file} --out {out}",
    "gone.csv": "index remove --index {run}/index --artifacts {file} --out {out}",
    "pages.yaml": "activities read --pages {file} --out {out}",
    "answers.json": "annotate import {file} --project {asked} --out {out}",
    "answers.jsonl": "annotate import {file} --project {asked} --out {out}",
    "asked/annotation_key.parquet": "annotate import {answers} --project {folder} --out {out}",
    "scheme.yaml": "annotate export {file} {images} --out {out}",
    "gold.csv": "annotate export cube {images} --gold {file} --out {out}",
    "annotations.parquet": "score agreement --annotations {file} --out {out}",
    "ratings.csv": "score ratings --annotations {file} --out {out}",
    "coded.csv": "annotate coded --sheets {file} --sheets {file} --sheets {file} --out {out}",
    "hand/card.yaml": "card build {run}/cspace --hand {folder} --out {out}",
    "hand/card.md": "card build {run}/cspace --hand {folder} --out {out}",
    "card/README.md": "card check {folder}",
    "card/croissant.json": "card check {folder}",
    "card/card.json": "card check {folder}",
    "run/recipe.json": "report {folder} --out {out}",
    "run/recipe.json ": "trace {folder}?metric=vs&model=broad&concept=art&kernel=artifact",
    "run/recipe.json  ": "audit plan {folder}",
    "run/recipe.json   ": "verify {folder} --only scores",
    "run/scores/manifest.json": "trace {top}?metric=vs&model=broad&concept=art&kernel=artifact",
    "run/scores/run.json": "trace {top}?metric=vs&model=broad&concept=art&kernel=artifact",
    "run/scores/scores.parquet": "report {top} --out {out}",
    "run/scores/scores.parquet ": "trace {top}?metric=vs&model=broad&concept=art&kernel=artifact",
    "run/index/vectors.npy": "index map --index {folder} --images {run}/images-broad/images.parquet --out {out}",
    "run/index/artifacts.parquet": "index map --index {folder} --images {run}/images-broad/images.parquet --out {out}",
    "run/graph/items.parquet": "kg explain Q17 --graph {folder} --roots {roots}",
    "run/graph/children.npy": "kg explain Q17 --graph {folder} --roots {roots}",
}  # fmt: skip


BINARY = {".parquet", ".npy", ".png", ".gz", ".bz2", ".zst"}
JSON = ("null", "[]", "{}", "[null]", "[[]]", "[{}]", '"x"', "1", '{"a": {"b": 1}}', '{"annotations": [{}]}')


def contents(kind: str, whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Give what a file of a kind may hold in place of what it should; `whole` is one as it should be."""
    draw = random.Random(5)
    yield "nothing", b""
    yield "zeros", bytes(4096)
    yield "noise", draw.randbytes(4096)
    yield "a table of another kind", b"name,concept,country\nsushi,cuisine,JP\n"
    yield "gzip that was cut", gzip.compress(draw.randbytes(9_000))[:5_000]
    yield "cut in half", whole[: len(whole) // 2]
    yield "without its end", whole[:-3]
    for number in range(6 if kind in BINARY else 2):
        flipped = bytearray(whole or b"x")
        for _ in range(1 + 3 * number):
            flipped[draw.randrange(len(flipped))] = draw.randrange(256)
        yield f"flipped {number}", bytes(flipped)
    if kind in BINARY:
        return
    yield "nested lists", b"[" * DEEP + b"]" * DEEP
    yield "nested objects", b'{"a":' * DEEP
    yield "half a letter", b'[{"name": "\\ud800", "concept": "\\udfff", "country": "BR", "file": "\\ud800"}]\n'
    yield "UTF-16", "name,concept,country\nsushi,cuisine,JP\n".encode("utf-16")
    yield "not UTF-8", b"name,concept,country\n\xff\xfe,\x80,JP\n"
    yield "NUL in a name", b"name,concept,country,model,path\na\0b,cuisine,JP,m,one.png\n"
    yield "a cell of 200,000 letters", b'name,concept,country\n"' + b"x" * 200_000 + b'",cuisine,JP\n'
    yield "a number of 10,000 digits", b'[{"name": ' + b"1" * 10_000 + b"}]"
    yield "infinity", b'[{"name": 1e999, "value": NaN, "concept": Infinity}]'
    for text in JSON if "json" in kind or kind == ".yaml" else JSON[:1]:
        yield text, text.encode()


def give(reader: str, root: Path, run: Path) -> Iterator[tuple[str, int, str]]:
    """Give each content to a command; say what it was, the exit code, and what was said."""
    name, line = reader.strip(), READERS[reader]
    root.mkdir(parents=True)
    if name.startswith("run/"):
        shutil.copytree(run, root / "run")
    images = f"--images {run}/images-broad/images.parquet --prompts {run}/prompts/prompts.parquet"
    if "asked" in name + line:
        culturekit(*f"annotate export cube {images} --out {root}/asked".split(), ends=0)
    (root / "answers.json").write_bytes(b"[]")
    shutil.copytree(HAND, root / "hand")
    if name.startswith("card/"):
        culturekit(*f"card build {run}/cspace --hand {root}/hand --out {root}/card".split(), ends=0)
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    like = next((run / path for path in LIKE if name.endswith(Path(path).name)), file)
    whole = file.read_bytes() if file.is_file() else like.read_bytes() if like.is_file() else WHOLE
    for number, (content, held) in enumerate(contents(file.suffix, whole)):
        if line.startswith("verify") and number % 3:
            continue  # it looks at the whole run each time; what it makes of edited ones is in tests/verify
        file.write_bytes(held)
        known = {
            "file": file, "folder": file.parent, "top": root / "run", "run": run, "out": root / f"out-{number}",
            "roots": ROOTS, "asked": root / "asked", "answers": root / "answers.json",
        }  # fmt: skip
        answer = culturekit(*line.replace("{images}", images).format(**known).split(" "))
        yield content, answer.returncode, answer.stderr + answer.stdout


LIKE = (
    "matches-broad/matches.parquet", "images-broad/images.parquet", "cspace/cspace.parquet", "scores/values.parquet",
)  # fmt: skip
WHOLE = b'[{"name": "sushi", "concept": "cuisine", "country": "JP"}]'
HAND = Path(__file__).parents[2] / "data_cards/cspace"
ROOTS = Path(__file__).parents[2] / "culturekit/kg/concepts/art.yaml"


@pytest.mark.parametrize("reader", READERS)
def test_whatever_a_file_holds_is_explained_with_its_name(reader: str, small_run: Path, tmp_path: Path) -> None:
    """Before, 31 contents of these gave 70 ("a mistake in culturekit") and some "Aborted!"."""
    ended = list(give(reader, tmp_path / "given", small_run))
    assert len(ended) >= 9
    assert [one for one in ended if one[1] not in FINE or "Traceback" in one[2]] == []
    assert [one for one in ended if one[1] in {2, 4} and Path(reader.strip()).name not in one[2]] == []
