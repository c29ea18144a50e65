"""A torchvision that is absent, whole, broken or hopeless: each in an interpreter of its own."""

import _ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from culturekit.core import torch_places
from culturekit.core.torch_places import mend_torchvision

pytest.importorskip("torch")

ROOT = Path(__file__).parents[1]
NEEDS_SCHEMAS = """
import torch
from torchvision import extension

@torch.library.register_fake("torchvision::nms")
def nms(dets, scores, iou_threshold):
    return scores
"""
MEND = "from culturekit.core.torch_places import mend_torchvision\nprint(mend_torchvision(), mend_torchvision())\n"
HALF = "try:\n    import torchvision\nexcept RuntimeError as error:\n    print('failed:', error)\n"
LEFT = "import sys\nprint('left:', 'torchvision' in sys.modules, 'torchvision.extension' in sys.modules)\n"
KNOWN = "import torch\nprint('known:', hasattr(torch.ops.torchvision, 'nms'))\n"
IMPORTED = "import torchvision\nprint('imported:', torchvision.__name__)\n"
MODELS = "from transformers import CLIPModel\nprint(CLIPModel.__name__)\n"


def package(place: Path, *, library: bytes, code: str) -> Path:
    """Lay a torchvision with this native library and this code into a folder of modules."""
    (place / "torchvision").mkdir(parents=True)
    (place / "torchvision/_C.so").write_bytes(library)
    (place / "torchvision/__init__.py").write_text(code)
    (place / "torchvision/extension.py").write_text("")
    return place


def told(script: str, place: Path | None = None) -> list[str]:
    """Run a script in an interpreter that finds the modules of a folder first; warnings are errors there too."""
    paths = os.pathsep.join(str(path) for path in (place, ROOT) if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_where_there_is_none_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_places, "installed_at", lambda package: None)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    assert mend_torchvision() == "absent"


def test_one_that_is_whole_is_left_alone(tmp_path: Path) -> None:
    whole = package(tmp_path, library=Path(_ctypes.__file__).read_bytes(), code="")
    assert told(MEND + KNOWN + IMPORTED, whole) == ["whole whole", "known: False", "imported: torchvision"]


@pytest.mark.slow
def test_one_without_its_native_library_is_mended_before_and_after_a_failed_import(tmp_path: Path) -> None:
    broken = package(tmp_path / "broken", library=b"no library", code=NEEDS_SCHEMAS)
    end = ["mended mended", "known: True", "imported: torchvision"]
    assert told(MEND + KNOWN + IMPORTED, broken) == end
    failed, left, *rest = told(HALF + LEFT + MEND + KNOWN + IMPORTED, broken)
    assert "operator torchvision::nms does not exist" in failed
    assert left == "left: False True"
    assert rest == end
    shutil.copytree(broken, tmp_path / "missing")
    (tmp_path / "missing/torchvision/_C.so").unlink()
    assert told(MEND + IMPORTED, tmp_path / "missing") == ["mended mended", "imported: torchvision"]


def test_schemas_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    broken = package(tmp_path, library=b"no library", code=NEEDS_SCHEMAS)
    theirs = (
        "import torch\nlibrary = torch.library.Library('torchvision', 'DEF')\n"
        "library.define('nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
    )
    assert told(theirs + MEND + IMPORTED, broken) == ["mended mended", "imported: torchvision"]


@pytest.mark.slow
def test_one_beyond_mending_is_hidden_and_models_load_without_it(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    hopeless = package(tmp_path, library=b"no library", code="raise RuntimeError('another CUDA')")
    script = MEND + "try:\n    import torchvision\nexcept ModuleNotFoundError:\n    print('not installed')\n" + MODELS
    assert told(script, hopeless) == ["hidden hidden", "not installed", "CLIPModel"]


def test_models_load_beside_the_installed_one() -> None:
    pytest.importorskip("tokenizers")
    states, model = told(MEND + MODELS)
    assert states in {"mended mended", "whole whole", "absent absent"}
    assert model == "CLIPModel"
