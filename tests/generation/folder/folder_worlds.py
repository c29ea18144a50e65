"""Folders of images for tests, and what is made of them."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from culturekit.cli.stage_command import set_aside
from culturekit.core.run import StageRun, run_stage
from culturekit.core.schemas import PROMPTS
from culturekit.core.tables import write_table
from culturekit.generation.folder.folder_run import image_folder, stage_of
from tests.conftest import HeardProgress, HereEngine

TEXTS = {
    "p1": "A photo of Jollof rice, from Nigeria", "p2": "A photo of Crème brûlée, from France",
        "p3": "写真:抹茶 (日本)",
    "p4": "A photo of Jollof rice and fish, from Ghana",
}  # fmt: skip


def prompts(folder: Path, texts: Mapping[str, str] | None = None) -> Path:
    rows = [
        {"prompt_id": prompt_id, "text": text, "benchmark": "cube", "kind": "cube", "concept": "cuisine"}
        | {"country": country_of(text), "artifact_id": f"Q{number}", "language": "en", "template_id": "t"}
        for number, (prompt_id, text) in enumerate((texts or TEXTS).items(), start=1)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    return write_table(folder, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))


def country_of(text: str) -> str:
    return next((code for name, code in COUNTRIES.items() if name in text), "JP")


COUNTRIES = {"Nigeria": "NG", "France": "FR", "Ghana": "GH"}


def picture(number: int, *, form: str = "PNG", mode: str = "RGB", size: int = 8) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 255, (size, size, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, form)
    return buffer.getvalue()


def fill(root: Path, names: Sequence[str]) -> Path:
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(number))
    return root


def take(spec: str, out: Path, table: Path | None = None, **stated: object) -> tuple[StageRun, pl.DataFrame]:
    """Take a folder in; give the run and the table, in the order of the file names."""
    stage = stage_of(image_folder(spec, table, **stated))  # type: ignore[arg-type]
    run = run_stage(stage, out, engine=HereEngine(), progress=HeardProgress(), replace=True)
    rows = pl.read_parquet(out / "images.parquet").sort("source", "prompt_id", "repeat", "slot", nulls_last=True)
    return run, rows


def clean(run: StageRun) -> bool:
    return not set_aside(run, strict=False)
