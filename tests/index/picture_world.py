"""A small world of drawn artifacts: an index over references of them, and tables of images to map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.digests import MANIFEST, Manifest, describe_outputs, digest_file
from culturekit.core.schemas import ARTIFACTS, IMAGES
from culturekit.core.tables import write_table
from culturekit.index.folder.index_folder import write_index
from culturekit.index.models.embedded_encoder import EmbeddedEncoder
from tests.generation.simulated.simulated_models import model, portraits, space

ENCODER = EmbeddedEncoder()
REFERENCES = 4
PLACES = {"cuisine": [["BR"], ["FR"], ["JP"], ["BR", "FR"]], "art": [["JP"], ["FR", "BR"], ["US"]]}
"""The countries of the artifacts of each concept, again and again."""


@dataclass(frozen=True)
class PictureWorld:
    """An index on disk, and a hand that draws its artifacts."""

    folder: Path
    artifacts: pl.DataFrame
    index: Path
    space: pl.DataFrame
    names: Mapping[str, int] = field(default_factory=dict)

    def drawn(self, ids: Sequence[str], *, seed: int, options: str = "") -> list[NDArray[np.uint8]]:
        return [picture.pixels for picture in portraits(model(self.folder, self.space, options), ids, first_seed=seed)]

    def images(self, name: str, ids: Sequence[str], *, seed: int, options: str = "", **columns: Any) -> Path:
        """A table of fresh images of artifacts, with the truth."""
        return image_table(
            self.folder / name, self.drawn(ids, seed=seed, options=options), truth_artifact_id=list(ids), **columns
        )


def made_artifacts(each: int) -> pl.DataFrame:
    rows = []
    for concept, places in PLACES.items():
        for number in range(each):
            countries = places[number % len(places)]
            name = f"Q{concept[0]}{number:03d}"
            rows.append((name, f"{concept} {number}", [concept], countries, ["x"] * len(countries)))
    rows.append(("Qz000", "a dish and a picture", ["art", "cuisine"], ["US", "JP"], ["x", "x"]))
    return pl.DataFrame(rows, schema=ARTIFACTS.schema, orient="row").sort("artifact_id")


def made_world(folder: Path, *, each: int = 20, texts: bool = False) -> PictureWorld:
    """Draw references of every artifact, and build the index over them."""
    folder.mkdir(parents=True, exist_ok=True)
    artifacts = made_artifacts(each)
    places = artifacts.select("artifact_id", pl.col("concepts").list.first(), pl.col("countries").list.first())
    drawable = space(*((artifact, concept, country, 1.0) for artifact, concept, country in places.iter_rows()))
    world = PictureWorld(folder, artifacts, folder / "index", drawable)
    ids = artifacts["artifact_id"].to_list() * REFERENCES
    vectors = ENCODER.encode_images(world.drawn(ids, seed=0))
    rows = pl.DataFrame({"channel": "image", "artifact_id": ids, "source": [f"r{n:05d}" for n in range(len(ids))]})
    if texts:
        vectors = np.concatenate([vectors, vectors[: artifacts.height]])
        rows = pl.concat([rows, rows.head(artifacts.height).with_columns(channel=pl.lit("text"), source=pl.lit("t"))])
    write_built(world.index, rows, vectors, artifacts)
    return world


def write_built(
    folder: Path, rows: pl.DataFrame, vectors: NDArray[np.float32], artifacts: pl.DataFrame, **notes: Any
) -> None:
    folder.mkdir()
    write_index(folder, rows, vectors, artifacts)
    said = {"encoder": "embedded", "identity": ENCODER.identity.as_options(), "caveat": ENCODER.caveat} | notes
    finish(folder, "index", said, counts={"indexed": artifacts.height, "references": len(vectors)})


def finish(
    folder: Path, stage: str, notes: Mapping[str, Any] | None = None, *, counts: Mapping[str, int] | None = None
) -> None:
    """Write the manifest of a folder, as if a stage had written what is in it."""
    content, outputs = describe_outputs(folder, {})
    manifest = Manifest(
        stage=stage, version=1, key="", sha256=content, code={}, packages={}, inputs={}, options={}, seeds={},
        counts=dict(counts or {}), drops={}, notes=dict(notes or {}), outputs=outputs,
    )  # fmt: skip
    (folder / MANIFEST).write_bytes(manifest.encode())


def image_table(folder: Path, pictures: Sequence[NDArray[np.uint8]], **columns: Any) -> Path:
    """Save pictures and write their table; columns may be given for all rows, or a list."""
    paths = []
    folder.mkdir()
    for number, pixels in enumerate(pictures):
        paths.append(f"{number:05d}.png")
        Image.fromarray(pixels).save(folder / paths[-1])
    return write_images(folder, paths, **columns)


def write_images(folder: Path, paths: Sequence[str], **columns: Any) -> Path:
    count = len(paths)
    said: dict[str, Any] = {
        "image_id": [f"i{number:05d}" for number in range(count)], "path": list(paths), "prompt_id": "p",
        "model": "m", "repeat": 0, "slot": 0, "rewriter": "off", "provider_params": "{}",
        "sha256": [digest_file(folder / path) if (folder / path).is_file() else "" for path in paths],
        "width": 64, "height": 64, "status": "ok", "concept": "cuisine", "country": None,
    } | columns  # fmt: skip
    known = {**IMAGES.columns, **IMAGES.optional}
    frame = pl.DataFrame(
        {name: pl.Series(name, said[name] if isinstance(said.get(name), list) else [said.get(name)] * count,
            dtype=column.dtype) for name, column in known.items() if name in said or name in IMAGES.columns}
    )  # fmt: skip
    return write_table(folder, IMAGES, frame)
