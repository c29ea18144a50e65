"""What `make gpu` measures, part by part: each against what that GPU can do at its best, and against the CPU."""

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gpu_floor import fastest, measured_rates
from numpy.typing import NDArray

__all__ = ["PARTS", "Bench", "Row"]

K = 10
Row = dict[str, Any]
Vectors = NDArray[np.float32]


@dataclass
class Bench:
    """What is measured with: the device, whether sizes are small, a folder, and what the device can do."""

    device: str
    small: bool
    folder: Path
    flops: float = 0.0
    moved: float = 0.0
    rows: list[Row] = field(default_factory=list)

    def size(self, real: int, small: int) -> int:
        """Choose a size."""
        return small if self.small else real

    def add(self, what: str, value: float | int | str | bool, *, unit: str = "", goal: str = "") -> None:
        """Keep a figure, with what was wanted of it."""
        kept = float(value) if isinstance(value, (float, np.floating)) else value
        self.rows.append({"what": what, "value": kept, "unit": unit, "goal": goal})

    def seconds(self, work: Callable[[], Any], *, times: int = 3) -> float:
        """Time work that was warmed up."""
        work()
        return fastest(work, self.device, times=times)


def floors(bench: Bench) -> None:
    """Measure the device itself."""
    torch = importlib.import_module("torch")
    side, size = bench.size(8192, 512), bench.size(2**30, 2**22)
    bench.flops, bench.moved = measured_rates(bench.device, side=side, size=size)
    named = torch.cuda.get_device_name(0) if bench.device.startswith("cuda") else "CPU"
    bench.add("device", named)
    bench.add("torch", torch.__version__)
    bench.add("half-precision arithmetic at best", bench.flops / 1e12, unit="TFLOP/s")
    bench.add("memory moved at best", bench.moved / 1e9, unit="GB/s")


def search(bench: Bench) -> None:
    """Search all rows against arithmetic and bytes; what is found against the twin on the CPU."""
    from search_vectors import written

    torch = importlib.import_module("torch")
    rows, dim = bench.size(300_000, 20_000), bench.size(768, 64)
    for kind in ("clustered", "random"):
        vectors = np.load(written(bench.folder, kind, rows, dim))
        for dtype in (torch.float16, torch.bfloat16):
            search_one(bench, vectors, kind, dtype)


def search_one(bench: Bench, vectors: Vectors, kind: str, dtype: Any) -> None:  # noqa: ANN401 - a torch.dtype
    """Search one set of vectors in one kind of numbers."""
    from gpu_floor import floor_seconds
    from search_vectors import draw_queries

    from culturekit.index.search.flat_torch import GpuSearcher
    from culturekit.index.search.search import best_by_hand

    torch = importlib.import_module("torch")
    (rows, dim), count = vectors.shape, bench.size(10_000, 512)
    queries = draw_queries(vectors, kind, count)
    made = GpuSearcher(vectors, device=torch.device(bench.device), dtype=dtype)
    taken = bench.seconds(lambda: made.best(queries, k=K))
    floor = floor_seconds(rows, dim, count, flops=bench.flops, bytes_per_second=bench.moved)
    name = f"search, {kind}, {count:,} x {rows:,} x {dim}, {str(dtype).removeprefix('torch.')}"
    bench.add(f"{name}: seconds", taken, unit="s")
    bench.add(f"{name}: times the floor", taken / floor, goal="at most 3" if dtype == torch.float16 else "")
    few = queries[: bench.size(16, 4)]
    found, by_hand = made.best(few, k=K), best_by_hand(vectors, few, k=K)
    same = np.array_equal(found.rows, by_hand.rows) and found.scores.tobytes() == by_hand.scores.tobytes()
    bench.add(f"{name}: rows and bits of the twin", bool(same), goal="true")
    some = [slice(rows // 3, rows // 3 + rows // 60)]
    bench.add(f"{name}: one row in 60", bench.seconds(lambda: made.best(queries, k=K, slices=some)), unit="s")


def encoders(bench: Bench) -> None:
    """Encode files with vision transformers of two sizes: the whole way, from bytes, and the network alone."""
    from embedding import measured, pictures, vision_model

    from culturekit.core.torch_places import same_bits
    from culturekit.index.embedding.embedding import encoder_of

    files = bench.folder / "pictures"
    files.mkdir()
    count = bench.size(4096, 32)
    images = pictures(files, count, "jpg")
    shapes = {"ViT-B/32": (768, 12, 32), "ViT-L/14": (1024, 24, 14)}
    for name, (width, depth, patch) in {"ViT of 64": (64, 2, 32)}.items() if bench.small else shapes.items():
        spec = vision_model(bench.folder / name.replace("/", "-"), width=width, depth=depth, patch=patch)
        encoder: Any = encoder_of(spec.replace("device=auto", f"device={bench.device}"))
        times = measured(spec.replace("device=auto", f"device={bench.device}"), files, images, bench.size(2, 1))
        rate = {what: count / min(taken) for what, taken in times.items()}
        grey = np.full((512, 512, 3), 128, np.uint8)
        inputs = encoder.inputs([encoder.prepare(grey)] * encoder.batch_size)
        with same_bits():
            alone = encoder.batch_size / bench.seconds(lambda: encoder.loaded.network(**inputs), times=5)  # noqa: B023
        bench.add(f"{name}: network alone, its batch on the device", alone, unit="pictures/s")
        bench.add(f"{name}: encoder, prepared pictures", rate["one after the other"], unit="pictures/s")
        bench.add(f"{name}: decoded, prepared, encoded", rate["from bytes"], unit="pictures/s")
        bench.add(f"{name}: whole way, files to a finished folder", rate["whole"], unit="pictures/s")
        bench.add(f"{name}: encoder / network alone", rate["one after the other"] / alone, goal="at least 0.9")
        bench.add(f"{name}: whole way / encoder", rate["whole"] / rate["one after the other"], goal="at least 0.9")
        bench.add(f"{name}: whole way / what decodes and encodes and keeps nothing", rate["whole"] / rate["from bytes"])
        agreement(bench, name, spec, files, list(images["path"][: bench.size(64, 8)]))


def agreement(bench: Bench, name: str, spec: str, files: Path, names: list[str]) -> None:
    """Hold the device's vectors against the CPU's."""
    from PIL import Image

    from culturekit.index.encoder import ENCODERS

    shown = [np.asarray(Image.open(files / one).convert("RGB")) for one in names]
    plain: Any = ENCODERS.make(spec.replace("device=auto", "device=cpu"))
    expected = plain.encode_images(shown)
    for dtype, least in (("float32", 1 - 1e-5), ("bfloat16", 0.99), ("float16", 0.999)):
        made: Any = ENCODERS.make(spec.replace("device=auto", f"device={bench.device}&dtype={dtype}"))
        found = made.encode_images(shown)
        bench.add(f"{name}, {dtype}: lowest cosine with the CPU", float((found * expected).sum(axis=1).min()),
                  goal=f"above {least}")  # fmt: skip
        again = made.encode_images(shown).tobytes() == found.tobytes()
        bench.add(f"{name}, {dtype}: the same bits again", again, goal="true")


def spread(bench: Bench) -> None:
    """Measure LPIPS with an AlexNet of the real widths: pairs a second, the network alone, and the CPU's distances."""
    from lpips_weights import save_alexnet

    from culturekit.core.torch_places import same_bits
    from culturekit.index.raters.picture_spread import PAIR_MEASURES

    weights = save_alexnet(bench.folder / "alexnet.safetensors")
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (256, 256, 3), np.uint8) for _ in range(bench.size(64, 4))]
    there: Any = PAIR_MEASURES.make(f"lpips:{weights}?device={bench.device}")
    here: Any = PAIR_MEASURES.make(f"lpips:{weights}?device=cpu")
    prepared = [there.prepare(picture) for picture in pictures]
    torch = importlib.import_module("torch")
    stacked = torch.from_numpy(np.stack(prepared)).to(bench.device)
    taken = bench.seconds(lambda: there.distances(prepared))
    with same_bits():
        alone = bench.seconds(lambda: there.network.distances(stacked))
    pairs = len(pictures) * (len(pictures) - 1) // 2
    bench.add("LPIPS, pairs of pictures", pairs / taken, unit="pairs/s")
    bench.add("LPIPS, network alone / measure", alone / taken, goal="at least 0.9")
    few = prepared[:8]
    off = float(np.abs(there.distances(few) - here.distances(few)).max())
    bench.add("LPIPS, farthest from the CPU", off, goal="below 1e-4")


def realism(bench: Bench) -> None:
    """Score PRDC and KID, which run on the CPU, and hold them against the same in plain torch on the device."""
    from gpu_realism import kid_by_torch, prdc_by_torch

    from culturekit.metrics import kernel_distance, prdc

    n, dim, device = bench.size(20_000, 600), bench.size(512, 32), bench.device
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(40, dim))
    real = (middles[rng.integers(0, 40, n)] + 0.6 * rng.normal(size=(n, dim))).astype(np.float32)
    fake = (middles[rng.integers(0, 30, n)] + 0.55 * rng.normal(size=(n, dim))).astype(np.float32)
    started = time.perf_counter()
    ours = prdc(real, fake, k=5)
    mine = time.perf_counter() - started
    theirs = prdc_by_torch(real, fake, k=5, device=device)
    bench.add(f"PRDC, {n:,} + {n:,} x {dim}, here on the CPU", mine, unit="s")
    bench.add("PRDC, plain torch on the device, float32", theirs.pop("seconds"), unit="s")
    worst = max(abs(getattr(ours, name) - value) for name, value in theirs.items())
    bench.add("PRDC, farthest from plain torch", worst, goal="below 1e-3 (float32 decides close calls otherwise)")
    started = time.perf_counter()
    mine_kid = kernel_distance(real, fake)
    bench.add("KID, here on the CPU", time.perf_counter() - started, unit="s")
    value, seconds = kid_by_torch(real, fake, device=device)
    bench.add("KID, plain torch on the device, float64", seconds, unit="s")
    bench.add("KID, relative distance from plain torch", abs(mine_kid - value) / abs(value), goal="below 1e-6")


def generation(bench: Bench) -> None:
    """Generate with an SDXL of real size and random weights: the runner against a bare loop of the same calls."""
    from generation_overhead import Contest
    from gpu_pipeline import SMALL, save_sdxl

    place = bench.folder / "contest"
    place.mkdir()
    started = time.perf_counter()
    pipeline = save_sdxl(place / "pipeline", **(SMALL if bench.small else {}))
    bench.add("pipeline, made and saved", time.perf_counter() - started, unit="s")
    images, batch, steps, size = (4, 2, 2, "64x64") if bench.small else (16, 4, 20, "1024x1024")
    started = time.perf_counter()
    contest = Contest(place, images=images, batch=batch, steps=steps, device=bench.device, size=size, saved=pipeline)
    bench.add("pipeline, checked, hashed, loaded and warmed up", time.perf_counter() - started, unit="s")
    pairs = [contest.pair(number) for number in range(2)]
    clock = [run.clock / bare.clock for bare, run in pairs]
    bench.add(f"{images} images of {size}, {steps} steps, batch {batch}: bare loop", min(b.clock for b, _ in pairs),
              unit="s")  # fmt: skip
    bench.add("runner / bare loop, clock, lowest and highest", f"{min(clock):.3f} to {max(clock):.3f}",
              goal="at most 1.05")  # fmt: skip
    bench.add("runner, milliseconds an image more", 1e3 * min(r.clock - b.clock for b, r in pairs) / images, unit="ms")


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "floors": floors, "search": search, "encoders": encoders, "lpips": spread, "realism": realism,
    "generation": generation,
}  # fmt: skip
