"""The text channel proven end to end: a model trained on names and pictures maps new pictures by their names."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from culturekit.core.torch_places import mend_torchvision  # noqa: E402

mend_torchvision()
pytest.importorskip("open_clip")

SCRIPT = Path(__file__).parents[2] / "benchmarks/tiny_clip.py"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("tiny_clip", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny_clip"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tiny_clip"]


@pytest.mark.slow
def test_held_out_pictures_are_found_by_name_alone(script: ModuleType, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    setting = script.Setting(artifacts=24, steps=150, batch=24, width=64, layers=2, text_width=32, text_layers=1)
    space = script.world(setting.artifacts)
    script.trained(space, tmp_path, setting)
    figures = script.tried(tmp_path, space, each=10)
    torch.set_num_threads(threads)
    assert figures.right > 0.5 * figures.pictures, "against 1/24 by chance"
    assert figures.right_when_shuffled < 0.2 * figures.pictures
