"""The encoder held against open_clip's own transform, tokenizer and model."""

import importlib.util
import json
import pickle
import shutil
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.torch_places import mend_torchvision
from culturekit.index.encoder import ENCODERS, ImageEncoder, TextEncoder
from culturekit.index.models.open_clip_encoder import PictureSettings, picture_settings
from tests.index.models.tiny_transformers import tiny_folder

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
mend_torchvision()
open_clip = pytest.importorskip("open_clip")
pytest.importorskip("open_clip")

from culturekit.core.torch_places import mend_torchvision  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SIZES = [(32, 32), (64, 48), (33, 100), (5, 7), (1, 1), (200, 20), (301, 299)]

TEXTS = ["Akara", "a picture of Pão de queijo", "寿司", "", "naïve " * 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("models") / "tiny", preprocessing={"mean": [0.5, 0.4, 0.3]})


def encoder(target: object, options: str = "") -> Any:
    return ENCODERS.make(f"open_clip:{target}?device=cpu{options}")


def random_picture(size: tuple[int, int]) -> NDArray[np.uint8]:
    return np.random.default_rng(size).integers(0, 256, (*size, 3), np.uint8)


PICTURES = [random_picture(size) for size in SIZES]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("mode", "interpolation", "wanted"), [
    *product(("shortest", "squash", "longest"), ("bicubic", "bilinear"), (32, (24, 40))),
])  # fmt: skip
def test_a_picture_is_fitted_as_by_open_clip(
    size: tuple[int, int], mode: str, interpolation: str, wanted: int | tuple[int, int]
) -> None:
    config = {"resize_mode": mode, "interpolation": interpolation, "fill_color": 7}
    peer = open_clip.image_transform(
        wanted, is_train=False, mean=(0, 0, 0), std=(1, 1, 1), resize_mode=mode, interpolation=interpolation,
        fill_color=7,
    )  # fmt: skip
    picture = random_picture(size)
    ours = picture_settings(config, size=wanted, where="x").fitted(picture)
    theirs = (peer(Image.fromarray(picture)) * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("size", [(20, 900), (900, 20), (17, 1201)])
def test_a_very_long_picture_gives_the_same_middle_without_the_memory(size: tuple[int, int]) -> None:
    picture = random_picture(size)
    peer = open_clip.image_transform(32, is_train=False, mean=(0, 0, 0), std=(1, 1, 1))
    ours = PictureSettings((32, 32)).fitted(picture).astype(int)
    theirs = (peer(Image.fromarray(picture)) * 255).round().permute(1, 2, 0).numpy()
    assert np.abs(ours - theirs).max() <= 1
    assert (ours == theirs).mean() > 0.99
    assert PictureSettings((224, 224)).fitted(np.zeros((1, 200_000, 3), np.uint8)).shape == (224, 224, 3)


def test_vectors_are_those_of_open_clip(folder: Path) -> None:
    found = encoder(folder)
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    model.eval()
    with torch.inference_mode():
        pictures = torch.cat(
            [model.encode_image(transform(Image.fromarray(p))[None], normalize=True) for p in PICTURES]
        )
        texts = model.encode_text(open_clip.get_tokenizer(f"local-dir:{folder}")(TEXTS), normalize=True)
    np.testing.assert_allclose(found.encode_images(PICTURES), pictures.numpy(), atol=1e-6)
    np.testing.assert_allclose(found.encode_texts(TEXTS), texts.numpy(), atol=1e-6)
    assert np.ptp(pictures.numpy(), axis=0).max() > 0.1


def test_pe_core_is_read_as_open_clip_does(tmp_path: Path) -> None:
    """Its picture tower is one of timm, with rotary positions and attention pooling; pictures are squashed."""
    pytest.importorskip("timm")
    published = open_clip.get_model_config("PE-Core-T-16-384")
    weights = tmp_path / "pe"
    tiny_folder(
        weights, embed_dim=published["embed_dim"], custom_text=published["custom_text"],
        vision_cfg=published["vision_cfg"],
        text_cfg={**published["text_cfg"], "width": 32, "heads": 2, "layers": 1},
        preprocessing=open_clip.get_pretrained_cfg("PE-Core-T-16-384", "meta"),
    )  # fmt: skip
    found = encoder(weights)
    assert "squash to 384x384, Pillow bilinear" in found.identity.preprocessing
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{weights}")
    model.eval()
    with torch.inference_mode():
        planes = [transform(Image.fromarray(picture))[None] for picture in PICTURES[:3]]
        pictures = torch.cat([model.encode_image(plane, normalize=True) for plane in planes]).numpy()
        texts = model.encode_text(open_clip.get_tokenizer(f"local-dir:{weights}")(TEXTS), normalize=True).numpy()
    np.testing.assert_allclose(found.encode_images(PICTURES[:3]), pictures, atol=1e-5)
    np.testing.assert_allclose(found.encode_texts(TEXTS), texts, atol=1e-5)
    assert np.ptp(pictures, axis=0).max() > 0.01
    assert (found.identity.dim, found.context) == (512, 32)


def test_vectors_are_unit_float32_whatever_they_are_encoded_with(folder: Path) -> None:
    found = encoder(folder, "&batch=3")
    assert isinstance(found, ImageEncoder)
    assert isinstance(found, TextEncoder)
    for vectors in (found.encode_images(PICTURES), found.encode_texts(TEXTS)):
        assert vectors.dtype == np.float32
        assert vectors.shape[1] == found.identity.dim == 16
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    together = found.encode_images(PICTURES)
    assert all(np.array_equal(found.encode_images([p])[0], row) for p, row in zip(PICTURES, together, strict=True))
    assert found.encode_images([]).shape == found.encode_texts([]).shape == (0, 16)


def test_a_text_longer_than_the_context_is_told_of(folder: Path) -> None:
    found = encoder(folder)
    fits, over = "word " * 10, "word " * 11
    assert found.too_long([fits, over, "寿" * 30]) == [
        type(found.too_long([over])[0])(1, 13, 12),
        type(found.too_long([over])[0])(2, found.count_tokens("寿" * 30), 12),
    ]
    assert np.array_equal(found.encode_texts([over]), found.encode_texts([over + "more"]))
    assert not np.array_equal(found.encode_texts([fits]), found.encode_texts(["word " * 9]))


def test_the_identity_changes_with_weights_settings_and_preprocessing(folder: Path, tmp_path: Path) -> None:
    same = encoder(shutil.copytree(folder, tmp_path / "copy")).identity
    assert same == encoder(folder).identity
    others = [
        tiny_folder(tmp_path / "weights", preprocessing={"mean": [0.5, 0.4, 0.3]}, seed=1),
        tiny_folder(tmp_path / "settings", preprocessing={"mean": [0.5, 0.4, 0.3]}, quick_gelu=True),
        tiny_folder(tmp_path / "pictures", preprocessing={"mean": [0.5, 0.4, 0.3], "resize_mode": "squash"}),
    ]
    assert len({same, *(encoder(other).identity for other in others)}) == 4


def named(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    config = json.loads((folder / "open_clip_config.json").read_text())["model_cfg"]
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "Tiny-8", config)


def test_file_and_name_give_what_a_folder_does(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, folder)
    file = shutil.copy(folder / "open_clip_model.safetensors", tmp_path / "weights.safetensors")
    by_file, by_name = encoder(file, "&model=Tiny-8"), encoder("Tiny-8", f"&pretrained={file}")
    assert np.array_equal(by_file.encode_texts(TEXTS), encoder(folder).encode_texts(TEXTS))
    assert by_name.identity == by_file.identity
    assert by_file.settings.mean == open_clip.OPENAI_DATASET_MEAN, "a bare file has open_clip's usual range"
    beside = encoder(folder / "open_clip_model.safetensors")
    assert beside.identity == encoder(folder).identity


@pytest.mark.parametrize(("target", "options", "match"), [
    ("{folder}/none", "", "neither a folder, a file"),
    ("{folder}", "&model=ViT-B-32", "model does not go with"),
    ("ViT-B-32", "", "a name needs its weights; expected .*laion2b"),
    ("ViT-B-32", "&pretrained=missing.safetensors", "neither a file nor on the hub"),
    ("ViT-B-32", "&pretrained=cc12m", "neither a file nor on the hub|no safetensors in the local cache"),
    ("{file}", "&model=ViT-Z", "no model 'ViT-Z'"),
    ("{file}", "", "needs the name of its model"),
    ("{file}", "&model=ViT-B-32", "do not belong together"),
    ("owner/model", "", "no safetensors in the local cache, and the hub is switched off"),
    ("{folder}", "&size=3", "no option size"),
])  # fmt: skip
def test_what_cannot_be_read_is_explained(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, options: str, match: str
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    file = shutil.copy(folder / "open_clip_model.safetensors", tmp_path / "weights.safetensors")
    with pytest.raises(CultureKitError, match=match):
        encoder(target.format(folder=folder, file=file), options)


def test_a_pickle_is_never_opened(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    trap = pickle.dumps({"ran": 1})
    (copy / "open_clip_pytorch_model.bin").write_bytes(trap)
    assert encoder(copy).identity == encoder(folder).identity
    (copy / "open_clip_model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"are a pickle.*culturekit weights convert .*open_clip_pytorch_model\.bin"):
        encoder(copy)
    with pytest.raises(UsageError, match="are a pickle"):
        encoder(copy / "open_clip_pytorch_model.bin", "&model=ViT-B-32")


def test_a_cut_file_is_told_from_a_broken_model(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    weights = copy / "open_clip_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(IntegrityError, match="cut or changed"):
        encoder(copy)


@pytest.mark.parametrize(
    "config", [{"resize_mode": "crop"}, {"interpolation": "lanczos"}, {"mean": [1, 2]}, {"std": "x"}]
)
def test_preprocessing_that_is_not_known_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(IntegrityError, match="preprocessing"):
        picture_settings(config, size=32, where="x")


SCRIPT = Path(__file__).parents[3] / "benchmarks/tiny_clip.py"


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
