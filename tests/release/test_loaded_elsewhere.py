"""A card as other people's tools read it, each in an environment of its own that a variable names.

`CULTUREKIT_MLCROISSANT_PYTHON` is an interpreter with `mlcroissant[parquet]`, `CULTUREKIT_DATASETS_PYTHON` one with
`datasets`.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.release.test_card import ACCEPTED_BY_OTHERS, CORRUPTIONS

pytestmark = [pytest.mark.external, pytest.mark.slow]

CROISSANT_ROWS = """
import json, sys
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1] + "/croissant.json")
assert not dataset.metadata.ctx.issues.errors
assert not dataset.metadata.ctx.issues.warnings, dataset.metadata.ctx.issues.report()
def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value
rows = {}
for record_set in dataset.metadata.record_sets:
    rows[record_set.id] = [
        {key.partition("/")[2]: plain(value) for key, value in row.items()} for row in dataset.records(record_set.id)
    ]
print(json.dumps({"rows": rows, "biases": dataset.metadata.data_biases}))
"""

DATASETS_ROWS = """
import json, sys
import datasets
datasets.disable_progress_bars()
folder = sys.argv[1]
loaded = {name: datasets.load_dataset(folder, name) for name in datasets.get_dataset_config_names(folder)}
rows = {name: {split: data.to_list() for split, data in splits.items()} for name, splits in loaded.items()}
default = {split: data.num_rows for split, data in datasets.load_dataset(folder).items()}
print(json.dumps({"rows": rows, "default": default}))
"""


def interpreter(variable: str, needs: str) -> str:
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no interpreter; one is made with: python -m venv E && E/bin/pip install {needs}")
    return path


def answer(python: str, script: str, card: Path, home: Path) -> dict[str, Any]:
    quiet = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run([python, "-c", script, str(card)], capture_output=True, text=True, env=quiet, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    value = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(value, dict)
    return value


def rows_of(card: Path, name: str) -> dict[str, list[dict[str, Any]]]:
    import polars as pl

    return {path.stem: pl.read_parquet(path).to_dicts() for path in sorted((card / "data" / name).glob("*.parquet"))}


def test_mlcroissant_gets_the_rows_of_every_record_set(card: Path, tmp_path: Path) -> None:
    python = interpreter("CULTUREKIT_MLCROISSANT_PYTHON", "'mlcroissant[parquet]'")
    rows = answer(python, CROISSANT_ROWS, card, tmp_path / "home")
    wanted = rows_of(card, "cspace")
    assert rows["rows"]["cspace"] == [row for split in sorted(wanted) for row in wanted[split]]
    assert rows["rows"]["drops"] == []
    assert rows["biases"] == ["What the tests say about known biases."]


def test_datasets_reads_the_folder(card: Path, tmp_path: Path) -> None:
    python = interpreter("CULTUREKIT_DATASETS_PYTHON", "datasets")
    rows = answer(python, DATASETS_ROWS, card, tmp_path / "home")
    assert rows["rows"] == {"cspace": rows_of(card, "cspace")}
    assert rows["default"] == {"cuisine": 3, "landmarks": 1}


@pytest.mark.parametrize("name", list(CORRUPTIONS)[:ACCEPTED_BY_OTHERS])
def test_mlcroissant_accepts_what_our_check_finds(card: Path, tmp_path: Path, name: str) -> None:
    """Should it refuse one day, our check is no longer the only one: then this test may go."""
    python = interpreter("CULTUREKIT_MLCROISSANT_PYTHON", "'mlcroissant[parquet]'")
    CORRUPTIONS[name][0](card)
    command = [str(Path(python).parent / "mlcroissant"), "validate", "--jsonld", str(card / "croissant.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
