"""How well the embedded encoder recognises simulated artifacts, and how exactly an accuracy can be dialled in.

    python benchmarks/recognition.py            # 3,000 artifacts; the ends of the dial once
    python benchmarks/recognition.py --full     # four accuracies, with three sets of artifacts of each size

References are four pictures of each artifact without error, at 64 pixels. Times are processor seconds.
"""

import io
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image
from recording import record

from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from culturekit.generation.backend import BACKENDS, ImageRequest, Picture
from culturekit.generation.simulated.simulated_backend import Attraction, Options, rows_of
from culturekit.index.encoder import Vectors
from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from tests.generation.simulated.dials import DIALS, drawn_share, knob_for

COUNTRIES = ("BR", "FR", "IN", "IT", "JP", "NG", "TR", "US")
REFERENCES = 4
QUERIES = 3000
ENCODER = EmbeddedEncoder()

Pixels = NDArray[np.uint8]


def space(artifacts: int, *, first: int) -> pl.DataFrame:
    """Make a CSpace of one concept, its artifacts dealt out to eight countries."""
    rows = [
        {
            "artifact_id": f"Q{first + place}", "qid": f"Q{first + place}", "name": f"artifact {place}",
            "concept": "cuisine", "country": COUNTRIES[place % len(COUNTRIES)], "country_name": "", "continent": "",
            "source": "wikidata", "popularity": 1.0, "path": [],
        }
        for place in range(artifacts)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=CSPACE.schema)


@dataclass(frozen=True, slots=True)
class World:
    """A CSpace, the folder of its table, and the vectors of its references, four runs over all artifacts."""

    cspace: pl.DataFrame
    folder: Path
    references: Vectors

    @classmethod
    def made(cls, artifacts: int, folder: Path, *, first: int = 1) -> "World":
        """Draw and encode the references."""
        cspace = space(artifacts, first=first)
        folder.mkdir()
        write_table(folder, CSPACE, cspace)
        return cls(cspace, folder, ENCODER.encode_images(pictures(folder, cspace, "", runs=REFERENCES, seed=first)))

    def drawn(self, options: str, *, runs: int, seed: int) -> list[Pixels]:
        """Draw all artifacts, several times over, by a model with these options."""
        return pictures(self.folder, self.cspace, options, runs=runs, seed=seed)

    def nearest(self, images: Sequence[Pixels]) -> NDArray[np.int64]:
        """Give the place of the artifact whose best reference is nearest to each image."""
        vectors, found = ENCODER.encode_images(images), []
        for start in range(0, len(vectors), 500):
            likeness = vectors[start : start + 500] @ self.references.T
            found.append(likeness.reshape(len(likeness), REFERENCES, -1).max(axis=1).argmax(axis=1))
        return np.concatenate(found)

    def accuracy(self, images: Sequence[Pixels]) -> float:
        """Give the share of images that are mapped to what they show."""
        return float((self.nearest(images) == np.arange(len(images)) % self.cspace.height).mean())


def pictures(folder: Path, cspace: pl.DataFrame, options: str, *, runs: int, seed: int) -> list[Pixels]:
    """Draw all artifacts of a CSpace, each picture from a seed of its own."""
    backend = BACKENDS.make(f"simulated?{options}" if options else "simulated", cspace=folder / "cspace.parquet")
    requests = [
        ImageRequest("p", "", None, 10_000_000 * seed + number, 0, 0, "cuisine", None, artifact_id)
        for number, artifact_id in enumerate(cspace["artifact_id"].to_list() * runs)
    ]
    return [reply.pixels for reply in backend.generate(requests) if isinstance(reply, Picture)]


def stored(picture: Pixels, form: str, quality: int) -> Pixels:
    """Store a picture with losses, and read it again."""
    file = io.BytesIO()
    Image.fromarray(picture).save(file, form, quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))


def resized(picture: Pixels, side: int) -> Pixels:
    """Bring a picture to another size."""
    return np.asarray(Image.fromarray(picture).resize((side, side), Image.Resampling.BICUBIC))


CHANGES: dict[str, Callable[[Pixels], Pixels]] = {
    "as drawn": lambda picture: picture,
    "JPEG, quality 60": lambda picture: stored(picture, "JPEG", 60),
    "WebP, quality 60": lambda picture: stored(picture, "WEBP", 60),
    "resized to 96": lambda picture: resized(picture, 96),
    "resized to 128": lambda picture: resized(picture, 128),
    "resized to 48": lambda picture: resized(picture, 48),
}


def recognition(world: World) -> list[list[str]]:
    """Measure accuracy without any knob, after each change to the pictures, and the encoder's time."""
    fresh = world.drawn("", runs=1, seed=900)
    table = [["pictures", "mapped right", "CPU-s for 1,200"]]
    for name, change in CHANGES.items():
        changed = [change(picture) for picture in fresh]
        table.append([name, f"{world.accuracy(changed):.4f}", f"{fastest(changed[:1200]):.2f}"])
    for side in (32, 96, 128):
        drawn = world.drawn(f"size={side}", runs=1, seed=901)
        table.append([f"drawn at {side}", f"{world.accuracy(drawn):.4f}", f"{fastest(drawn[:1200]):.2f}"])
    return table


def fastest(images: Sequence[Pixels], times: int = 5) -> float:
    """Measure the processor time of encoding images, at best."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        ENCODER.encode_images(images)
        seconds.append(time.process_time() - start)
    return min(seconds)


def dial_table(worlds: Sequence[World], accuracies: Sequence[float]) -> list[list[str]]:
    """Dial accuracies in, and measure what comes of it."""
    table = [["knob", "artifacts", "accuracy wanted", "knob set to", "accuracy found", "furthest off"]]
    sizes = sorted({world.cspace.height for world in worlds})
    for dial in DIALS:
        for size in sizes:
            for wanted in accuracies:
                of_size = [world for world in worlds if world.cspace.height == size]
                knob = knob_for(dial, wanted, artifacts=size, drawn=drawn_share(dial, of_size[0].cspace))
                found = [
                    world.accuracy(world.drawn(f"{dial}={knob:.4f}", runs=QUERIES // size, seed=903 + number))
                    for number, world in enumerate(of_size)
                ]
                off = max(abs(value - wanted) for value in found)
                cells = f"{min(found):.3f}" if len(found) == 1 else f"{min(found):.3f} to {max(found):.3f}"
                table.append([dial, f"{size:,}", f"{wanted:.2f}", f"{knob:.4f}", cells, f"{off:.3f}"])
    return table


def skewness(counts: NDArray[np.int64]) -> float:
    """Give the skewness of how often each artifact is the nearest."""
    apart = counts - counts.mean()
    return float((apart**3).mean() / (apart**2).mean() ** 1.5) if apart.any() else 0.0


def errors_table(world: World) -> list[list[str]]:
    """Show where errors go: to the hubs, to the dominant countries."""
    attraction = Attraction(rows_of(world.cspace), Options())
    ids, countries = world.cspace["artifact_id"].to_list(), np.array(world.cspace["country"].to_list())
    to_hub = np.isin(ids, attraction.hubs["cuisine"])
    home = np.isin(countries, attraction.countries)
    truth = np.arange(len(ids))
    table = [
        [
            "model", "mapped right", "skew of nearest counts", "errors to 3 hubs",
            f"errors to {' and '.join(attraction.countries)}", "precision there", "recall elsewhere",
        ]
    ]  # fmt: skip
    options = ["", "confusability=0.509", "hub_skew=0.065", "hub_skew=0.149", "hub_skew=0.21", "drift=0.085"]
    for knobs in [*options, "drift=0.198", "drift=0.281"]:
        nearest = world.nearest(world.drawn(knobs, runs=1, seed=902))
        wrong = nearest != truth
        errors = nearest[wrong]
        shares = [f"{np.mean(goal[errors]):.2f}" if wrong.any() else "-" for goal in (to_hub, home)]
        said_home = home[nearest]
        precision = (countries[nearest] == countries[truth])[said_home].mean()
        recall = (countries[nearest] == countries[truth])[~home].mean()
        table.append(
            [knobs or "no knob", f"{1 - wrong.mean():.3f}", f"{skewness(np.bincount(nearest, minlength=len(ids))):.1f}",
             *shares, f"{precision:.3f}", f"{recall:.3f}"]
        )  # fmt: skip
    return table


def main() -> int:
    """Measure, and write the tables."""
    full = "--full" in sys.argv
    command = f"python benchmarks/recognition.py{' --full' if full else ''}"
    sets = 3 if full else 1
    with tempfile.TemporaryDirectory() as folder:
        worlds = [
            World.made(size, Path(folder) / f"{size}-{number}", first=50_000_000 + 100_000 * number + 7 * size)
            for size in (300, 1000, 3000)
            for number in range(sets)
        ]
        largest = worlds[-1]
        title = "The embedded encoder on simulated pictures of 3,000 artifacts, 4 references each, 64 pixels"
        record("recognition", title=title, command=command, table=recognition(largest))
        title = "Where errors go, 3,000 artifacts of 8 countries, one picture each"
        record("recognition_errors", title=title, command=command, table=errors_table(largest))
        accuracies = (0.92, 0.87, 0.82, 0.75) if full else (0.92, 0.75)
        title = f"Accuracies dialled in, {QUERIES:,} pictures each; with fresh artifacts and seeds, {sets} of each size"
        record("recognition_dial", title=title, command=command, table=dial_table(worlds, accuracies))
    return 0


if __name__ == "__main__":
    sys.exit(main())
