"""Tiny pipelines of diffusers, saved once for all tests, by the script that the documentation names."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from culturekit.core.schemas import PROMPTS
from culturekit.core.tables import write_table

__all__ = ["prompts_of", "script", "tiny"]

SCRIPT = Path(__file__).parents[3] / "benchmarks/tiny_pipeline.py"


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_pipeline", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny_pipeline"] = module
    spec.loader.exec_module(module)
    return module


def tiny(folder: Path, kind: str = "sdxl") -> Path:
    """Save a tiny pipeline below a folder, unless it is there."""
    path = folder / kind
    if not path.is_dir():
        made: Any = script()
        made.save_pipeline(path, kind)
    return path


def prompts_of(folder: Path, count: int) -> Path:
    rows = [
        {"prompt_id": f"p{number:05d}", "text": f"a dish of place {number}", "benchmark": "cube", "kind": "cube",
            "concept": "cuisine", "country": "BR", "language": "en", "template_id": "t"} for number in range(count)
    ]  # fmt: skip
    return write_table(folder, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))
