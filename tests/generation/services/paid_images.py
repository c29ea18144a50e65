"""Runs of paid images against a server on loopback, for tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.run import StageRun, run_stage
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.llm.answers import LlmOptions
from tests.conftest import HeardProgress, HereEngine
from tests.generation.folder.folder_worlds import prompts
from tests.llm.server import RunningServer

__all__ = ["KEY", "buy", "google", "images_of", "openai"]

KEY = "sk-a-key-that-must-stand-nowhere-0123456789"


def openai(server: RunningServer, model: str = "gpt-image-1", **options: object) -> str:
    """Write the SPEC of a model of OpenAI's that this server stands for."""
    return spec(f"openai:{model}", server.openai_url, {"quality": "low", **options})


def google(server: RunningServer, model: str = "gemini-2.5-flash-image", **options: object) -> str:
    """Write the SPEC of a model of Google's that this server stands for."""
    return spec(f"google:{model}", server.google_url, options)


def spec(name: str, url: str, options: Mapping[str, object]) -> str:
    pairs = {"base_url": url, "timeout": 20, **options}
    return f"{name}?" + "&".join(f"{key}={value}" for key, value in pairs.items())


def buy(
    backend: str, folder: Path, *, plan: ImagePlan | None = None, llm: LlmOptions | None = None,
    texts: Mapping[str, str] | None = None, seed: int = 3, fresh: bool = False, progress: HeardProgress | None = None,
    **stated: Any,
) -> StageRun:  # fmt: skip
    """Buy images of some prompts into `folder/out`."""
    stage = generate_stage(
        prompts(folder / "prompts", texts), plan or ImagePlan(), backend=backend, model="m", seed=seed,
        llm=llm or LlmOptions(concurrency=4), **stated,
    )  # fmt: skip
    heard = progress or HeardProgress()
    return run_stage(stage, folder / "out", engine=HereEngine(), progress=heard, fresh=fresh, replace=True)


def images_of(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "out/images.parquet").sort("prompt_id", "repeat", "slot")
