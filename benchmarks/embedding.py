"""Files to vectors, against the encoder alone on prepared pictures: interleaved pairs in one run.

Three bare passes stand beside the whole way: batches one after the other with as many threads for arithmetic as there
are cores, as a script would run the model; batches side by side with one thread each, as the whole way runs it; and,
for the encoder without weights, whose pictures take longer to decode than to encode, everything from the bytes on.
"""

import argparse
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
from PIL import Image, ImageFilter
from recording import record

from culturekit.core.digests import digest_file
from culturekit.core.engines import LocalEngine, available_cores
from culturekit.core.pictures.picture_reading import ReadPicture, picture_from
from culturekit.core.schemas import IMAGES
from culturekit.index.embedding.embedding import embed, encoder_of, encoding_pool
from culturekit.index.encoder import ImageEncoder, Prepared

Item = TypeVar("Item")

SIDE = 512
GOAL = 0.85


class Silent:
    """Hears of progress and says nothing."""

    def begin(self, total: int, unit: str) -> None:
        """Do nothing."""

    def advance(self, done: int) -> None:
        """Do nothing."""

    def tell(self, totals: str) -> None:
        """Do nothing."""


def pictures(folder: Path, count: int, suffix: str) -> pl.DataFrame:
    """Write pictures with the detail of photographs, and list them."""
    rows = []
    for number in range(count):
        noise = np.random.default_rng(number).integers(0, 256, (SIDE // 4, SIDE // 4, 3), dtype=np.uint8)
        soft = Image.fromarray(noise).resize((SIDE, SIDE)).filter(ImageFilter.GaussianBlur(2))
        path = folder / f"{number:05d}.{suffix}"
        soft.save(path, quality=90)
        rows.append({"image_id": path.stem, "path": path.name, "sha256": digest_file(path)})
    return pl.DataFrame(rows, schema={name: IMAGES.schema[name] for name in ("image_id", "path", "sha256")})


def vision_model(folder: Path, *, width: int = 768, depth: int = 12, patch: int = 32) -> str:
    """Save a vision transformer, by default of the size of CLIP's ViT-B/32, of random weights, and give its SPEC."""
    importlib.import_module("culturekit.core.torch_places").mend_torchvision()
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    torch.manual_seed(0)
    config = transformers.Dinov2Config(hidden_size=width, num_hidden_layers=depth, num_attention_heads=width // 64,
                                       patch_size=patch, image_size=224)  # fmt: skip
    transformers.Dinov2Model(config).save_pretrained(folder)
    settings = {
        "image_processor_type": "BitImageProcessor",
        "do_resize": True, "size": {"shortest_edge": 256}, "resample": 3,
        "do_center_crop": True, "crop_size": {"height": 224, "width": 224},
        "do_rescale": True, "rescale_factor": 1 / 255,
        "do_normalize": True, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return f"transformers:{folder}?device=auto"


def runs(ready: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Cut prepared pictures into batches."""
    return [ready[start : start + size] for start in range(0, len(ready), size)]


def one_after_the_other(encoder: ImageEncoder, ready: Sequence[Prepared]) -> None:
    """Encode batches with all threads at each."""
    for batch in runs(ready, encoder.batch_size):
        encoder.encode_prepared(batch)


def side_by_side(encoder: ImageEncoder, ready: Sequence[Prepared]) -> None:
    """Encode batches side by side, one thread for arithmetic each."""
    with encoding_pool(available_cores()) as (pool, _):
        list(pool.map(encoder.encode_prepared, runs(ready, encoder.batch_size)))


def from_bytes(encoder: ImageEncoder, contents: Sequence[bytes]) -> None:
    """Decode, prepare and encode, with nothing around it."""

    def prepared(content: bytes) -> Prepared:
        found = picture_from(content)
        assert isinstance(found, ReadPicture)
        return encoder.prepare(found.pixels)

    with ThreadPoolExecutor(available_cores()) as pool:
        for batch in runs(contents, encoder.batch_size):
            encoder.encode_prepared(list(pool.map(prepared, batch)))


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measured(spec: str, folder: Path, images: pl.DataFrame, rounds: int) -> Mapping[str, list[float]]:
    """Time the whole way and the bare passes in turn."""
    encoder = encoder_of(spec)
    contents = [(folder / name).read_bytes() for name in images["path"]]
    ready = []
    for content in contents:
        found = picture_from(content)
        assert isinstance(found, ReadPicture)
        ready.append(encoder.prepare(found.pixels))
    encoder.encode_prepared(ready[: encoder.batch_size])
    with LocalEngine() as engine, tempfile.TemporaryDirectory() as scratch:

        def whole() -> None:
            with tempfile.TemporaryDirectory(dir=scratch) as fresh:
                embed(images, folder, spec, Path(fresh), engine=engine, progress=Silent())

        whole()
        passes: dict[str, Callable[[], object]] = {
            "whole": whole,
            "one after the other": lambda: one_after_the_other(encoder, ready),
            "side by side": lambda: side_by_side(encoder, ready),
            "from bytes": lambda: from_bytes(encoder, contents),
        }
        times: dict[str, list[float]] = {name: [] for name in passes}
        for _ in range(rounds):
            for name, work in passes.items():
                times[name].append(seconds(work))
    return times


def table_rows(name: str, times: Mapping[str, Sequence[float]], count: int) -> list[list[str]]:
    """Give pictures a second, and the whole way as a share of each bare pass, the median over rounds."""
    rows = []
    for what, taken in times.items():
        ratio = statistics.median(bare / whole for bare, whole in zip(taken, times["whole"], strict=True))
        rate = count / statistics.median(taken)
        rows.append([name, what, f"{rate:,.1f}", "" if what == "whole" else f"{ratio:.2f}"])
    return rows


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["embedded", "transformers"], help="one of the two encoders")
    given = parser.parse_args()
    table = [["encoder", "pass", "pictures/s", "whole way as a share of it"]]
    with tempfile.TemporaryDirectory() as made:
        for suffix in ("jpg", "png"):
            folder = Path(made) / suffix
            folder.mkdir()
            images = pictures(folder, given.images, suffix)
            if given.only != "transformers":
                table += table_rows(
                    f"embedded, {suffix}", measured("embedded", folder, images, given.rounds), given.images
                )
            if given.only != "embedded":
                spec = vision_model(Path(made) / "model")
                times = measured(spec, folder, images, given.rounds)
                table += table_rows(f"vision transformer B/32, {suffix}", times, given.images)
    record(
        "embedding",
        title=f"{SIDE}-pixel files to vectors, against the encoder alone (goal: {GOAL} of the faster bare pass)",
        command="python benchmarks/embedding.py",
        table=table,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
