"""Folders that are not what they should be: each is refused with what is wrong, and nothing is made up."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.index.encoder import ENCODERS

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.index.models.tiny_transformers import make_clip, packages

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("models") / "clip"
    make_clip(location)
    return location


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "clip"))


def encoder_of(folder: Path) -> Any:
    packages()
    return ENCODERS.make(f"transformers:{folder}?device=cpu&batch=2")


def edited(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def without_a_weight(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def with_a_wrong_shape(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["visual_projection.weight"] = weights["visual_projection.weight"][:, :5].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def padded(folder: Path) -> None:
    path = folder / "processor_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"image_processor": settings["image_processor"] | {"do_pad": True}}))


BROKEN: dict[str, tuple[Callable[[Path], object], type[CultureKitError], str]] = {
    "no config": (lambda at: (at / "config.json").unlink(), UsageError, r"expected config\.json"),
    "no JSON": (lambda at: (at / "config.json").write_text("{"), IntegrityError, "cannot be read"),
    "another kind": (lambda at: edited(at / "config.json", model_type="bert"), UsageError,
        "expected model_type clip or siglip.*found bert"),
    "no preprocessor": (lambda at: (at / "processor_config.json").unlink(), UsageError,
        r"expected preprocessor_config\.json"),
    "odd preprocessor": (padded, UsageError, "cannot follow.*do_pad"),
    "no tokenizer": (lambda at: (at / "tokenizer.json").unlink(), UsageError, r"expected tokenizer\.json"),
    "broken tokenizer": (lambda at: (at / "tokenizer.json").write_text("{}"), IntegrityError,
        "tokenizer cannot be loaded"),
    "no weights": (lambda at: (at / "model.safetensors").unlink(), UsageError, "no weights in this folder"),
    "a pickle": (lambda at: (at / "model.safetensors").rename(at / "pytorch_model.bin"), UsageError,
        "culturekit weights convert"),
    "cut weights": (cut, IntegrityError, "cut or changed"),
    "a weight less": (without_a_weight, IntegrityError, r"made up at random.*visual_projection\.weight"),
    "a wrong shape": (with_a_wrong_shape, IntegrityError, "do not belong together|made up at random"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused(folder: Path, name: str) -> None:
    breaks, kind, message = BROKEN[name]
    breaks(folder)
    with pytest.raises(kind, match=message):
        encoder_of(folder)


def test_a_pickle_beside_safetensors_is_never_opened(folder: Path) -> None:
    before = encoder_of(folder).identity
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02c__builtin__\nexit\n(tR.")
    assert encoder_of(folder).identity == before


def test_code_in_a_folder_is_never_run(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    (folder / "mine.py").write_text(f"open({str(trace)!r}, 'w')\nclass M: pass\n")
    auto = {"AutoConfig": "mine.M", "AutoModel": "mine.M", "AutoTokenizer": ["mine.M", "mine.M"]}
    edited(folder / "config.json", auto_map=auto)
    edited(folder / "tokenizer_config.json", auto_map=auto)
    with suppress(CultureKitError):
        encoder_of(folder)
    assert not trace.exists()


def test_old_files_of_a_preprocessor_mean_the_same(folder: Path) -> None:
    now = encoder_of(folder)
    settings = json.loads((folder / "processor_config.json").read_text())["image_processor"]
    (folder / "processor_config.json").unlink()
    old = {
        "feature_extractor_type": "CLIPFeatureExtractor", "size": settings["size"]["shortest_edge"],
        "crop_size": settings["crop_size"]["height"], "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "image_mean": settings["image_mean"], "image_std": settings["image_std"], "resample": 3,
    }  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(old))
    assert encoder_of(folder).identity.preprocessing == now.identity.preprocessing
    assert encoder_of(folder).identity.weights != now.identity.weights


def test_loading_says_nothing_on_its_own(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, transformers, _ = packages()
    level = transformers.utils.logging.get_verbosity()
    encoder_of(folder).encode_texts(["x" * 500])
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == ""
    assert transformers.utils.logging.get_verbosity() == level
