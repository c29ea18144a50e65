"""A folder such as an evaluator has: images of two models, pictures of artifacts, a published space and its prompts."""

import shutil
from pathlib import Path

import polars as pl

MODELS = {"sdxl": "broad", "flux": "empty"}  # What the models are called, and which simulated ones they are


def lay_out(run: Path, here: Path) -> Path:
    """Lay the files of a finished run out as an evaluator would have them; a reference picture for each artifact."""
    here.mkdir(parents=True, exist_ok=True)
    for stage in ("cspace", "prompts"):
        shutil.copy(run / f"{stage}/{stage}.parquet", here)
    for name, model in MODELS.items():
        for row in pl.read_parquet(run / f"images-{model}/images.parquet").iter_rows(named=True):
            copy(run / f"images-{model}" / row["path"], here / f"pictures/{name}", image_name(row))
    references = pl.read_parquet(run / "references/images.parquet").filter(pl.col("slot") == 0)
    for row in references.iter_rows(named=True):
        copy(run / "references" / row["path"], here / "references" / row["truth_artifact_id"], f"{row['image_id']}.png")
    return here


def image_name(row: dict[str, object]) -> str:
    return f"{row['prompt_id']}__{row['repeat']}-{row['slot']}.png"


def copy(picture: Path, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(picture, folder / name)
