import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from tests.generation.diffusion.tiny_pipelines import prompts_of


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
