"""What is refused before anything is loaded; torch is not needed."""

import json
import math
import os
import re
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.errors import UsageError
from culturekit.generation.diffusion.training import TuningOptions, pairs_in, pipeline_of
from tests.generation.diffusion.tiny_pipelines import prompts_of


def asked(tmp_path: Path, model: str, *more: object) -> str:
    words = ["finetune", "--pairs", tmp_path, "--model", model, "--out", tmp_path / "tuned", *more]
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code != 0
    return f"{result.output}{result.exception}"


@pytest.mark.parametrize("model", ["simulated", "diffusers:x?steps=3", "diffusers:x?lora=y", "embedded"])
def test_only_a_pipeline_with_what_says_how_it_is_loaded_is_trained_on_sides_of_whole_eights(
    tmp_path: Path, model: str
) -> None:
    assert "a side of 20 pixels" in asked(tmp_path, "diffusers:x", "--size", 20)
    assert "diffusers:FOLDER with no option but device, dtype, revision, variant" in asked(tmp_path, model)


def test_a_pipeline_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    with pytest.raises(UsageError, match="cannot be trained here"):
        pipeline_of(TuningOptions(f"diffusers:{tmp_path}"))


def saved(path: Path, shapes: dict[str, list[int]]) -> None:
    """Write a safetensors file of zeros, by its format."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    path.parent.mkdir()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(end))


def test_the_plan_reads_headers_alone(tmp_path: Path) -> None:
    index = {"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "U"], "vae": ["diffusers", "V"]}
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    layers = {
        "a.attn1.to_q.weight": [4, 6], "a.attn2.to_out.0.weight": [4, 8], "a.attn1.to_q.bias": [4], "b.weight": [9],
    }  # fmt: skip
    saved(tmp_path / "unet/diffusion_pytorch_model.safetensors", layers)
    saved(tmp_path / "vae/diffusion_pytorch_model.safetensors", {"d.attn.to_q.weight": [5, 5]})
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.png", "text": "a"}\n' * 4)
    words = ["finetune", "--pairs", tmp_path, "--out", tmp_path / "tuned", "--rank", 3, "--steps", 10, "--batch", 2]
    model = f"diffusers:{tmp_path}?dtype=float16"
    done = CliRunner().invoke(app, [*map(str, words), "--model", model, "--plan", "--json"])
    assert json.loads(done.stdout) == {
        "steps": 10, "pairs": 4, "passes": 5.0, "learned": 3 * (10 + 12), "state_bytes": 16 * 66,
        "weights_bytes": 2 * (24 + 32 + 4 + 9) + 4 * 25, "seconds": None, "peak_bytes": None,
    }  # fmt: skip
    done = CliRunner().invoke(app, [*map(str, words), "--model", model, "--plan"])
    assert done.stdout.splitlines()[:2] == ["10 steps: 5 passes over 4 pairs", "66 numbers are learned"]
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize("package", ["torch", "peft", "diffusers"])
def test_missing_packages_are_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "model_index.json").write_text('{"_class_name": "StableDiffusionPipeline"}')
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.png", "text": "a"}\n')
    answer = asked(tmp_path, f"diffusers:{tmp_path}")
    assert "pip install -c constraints.txt 'culturekit[embed,generate]'" in answer


@pytest.mark.parametrize("row", ["{", "[]", {"file_name": "a.png"}, {"file_name": "a.png", "text": " "}, {"text": "a"}])
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, row: Any) -> None:
    line = row if isinstance(row, str) else json.dumps(row)
    (tmp_path / "metadata.jsonl").write_text(f'{{"file_name": "a.png", "text": "a"}}\n{line}\n')
    with pytest.raises(UsageError, match="line 2: a line is no pair"):
        pairs_in(tmp_path)
    with pytest.raises(UsageError, match="there are no pairs to train on"):
        pairs_in(tmp_path / "elsewhere")


def test_without_its_packages_the_backend_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "diffusers", None)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    spec = f"diffusers:{tmp_path / 'model'}"
    arguments = ["generate", "--backend", spec, "--prompts", prompts_of(tmp_path, 2), "--out", tmp_path / "images"]
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code != 0
    assert "pip install -c constraints.txt 'culturekit[embed,generate]'" in f"{done.output}{done.exception}"


@pytest.mark.parametrize("option", ["stpes=3", "steps=-1", "dtype=int8", "offload=disk", "high_noise=2"])
def test_a_wrong_option_is_told_before_anything_is_loaded(tmp_path: Path, option: str) -> None:
    arguments = ["generate", "--backend", f"diffusers:x?{option}", "--prompts", prompts_of(tmp_path, 1), "--out", "o"]
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code != 0
    assert "option" in f"{done.output}{done.exception}"


ROOT = Path(__file__).parents[3]

PAGE = ROOT / "docs/run-your-own-model.md"


def commands() -> list[str]:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def test_the_page_has_commands_to_type() -> None:
    assert [line.split()[0] for line in commands()] == ["python", *["culturekit"] * 4]
    assert "--pilot" in commands()[-2]


@pytest.mark.slow
def test_the_page_works_as_typed(tmp_path: Path) -> None:
    for package in ("torch", "diffusers", "transformers"):
        pytest.importorskip(package)
    folder, tools = tmp_path / "checkout", tmp_path / "bin"
    folder.mkdir()
    tools.mkdir()
    for name in ("benchmarks", "recipes"):
        (folder / name).symlink_to(ROOT / name)
    for name, what in (("python", ""), ("culturekit", "-m culturekit")):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    outputs = []
    for line in commands():
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        outputs.append(done.stdout)
    assert re.search(r"pilot: \S+ s for an image, so about \S+ minutes for the \d+ that are left", outputs[-2])
    images = pl.read_parquet(folder / "images/images.parquet")
    assert set(images["status"]) == {"ok"}
    assert images["seed_honoured"].all()
