"""Every family, from a folder of random weights: against transformers itself, and whatever may be in a batch."""

import importlib.util
import json
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from PIL import Image

from culturekit.builders.captions.caption_files import objects
from culturekit.core.errors import CultureKitError, IntegrityError, MissingDependency, UsageError
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.schemas import DROPS, OBJECTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.index.embedding.embed_table import EmbedSource, embed_table
from culturekit.index.embedding.embedding import load_vectors
from culturekit.index.encoder import ENCODERS, ImageEncoder, TextEncoder, TooLong
from culturekit.index.models.transformers_encoder import DETECTORS
from tests.builders.judging.test_image_judge import table
from tests.builders.picture_tables import pictures_of_one_colour
from tests.builders.put import do
from tests.index.models.tiny_transformers import (
    LAYERS,
    MAKERS,
    SIDE,
    bytes_of_clip,
    make_clip,
    make_siglip,
    packages,
    save,
)

pytest.importorskip("torch")

pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

READING = ["clip", "siglip", "siglip2"]

SIZES = [(50, 40), (SIDE, SIDE), (1, 1), (20, 5000), (5000, 20), (300, 31), (1, 7), (64, 200)]

TEXTS = ["a photo of jollof rice", "", "café 中 ☕", "Kyiv!", "  spaces   and\nlines ", "long " * 40, "x" * 100]


def noise(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(height * 10_000 + width).integers(0, 256, (height, width, 3), np.uint8)


PICTURES = [noise(*size) for size in SIZES]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, make in MAKERS.items():
        make(folder / name)
    return folder


def encoder(folder: Path, options: str = "batch=4") -> Any:
    packages()
    return ENCODERS.make(f"transformers:{folder}?device=cpu&{options}")


def reference_pictures(folder: Path, pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """What transformers' own processor and model make of pictures, one at a time."""
    torch, transformers, _ = packages()
    dinov3 = folder.name.startswith("dinov3")
    processor = transformers.AutoImageProcessor.from_pretrained(folder, **({} if dinov3 else {"backend": "pil"}))
    model = transformers.AutoModel.from_pretrained(folder).eval()
    ask = getattr(model, "get_image_features", model)
    options = {"do_resize": False, "return_tensors": "pt"} if dinov3 else {"return_tensors": "pt"}
    with torch.inference_mode():
        rows = [ask(**processor(Image.fromarray(picture), **options)).pooler_output for picture in pictures]
        vectors: NDArray[np.float32] = torch.nn.functional.normalize(torch.cat(rows)).numpy()
    return vectors


def reference_texts(folder: Path, texts: Sequence[str], **how: Any) -> NDArray[np.float32]:
    """What transformers' own tokenizer and model make of texts, all at once."""
    torch, transformers, _ = packages()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    context = model.config.text_config.max_position_embeddings
    with torch.inference_mode():
        written = tokenizer(list(texts), truncation=True, max_length=context, return_tensors="pt", **how)
        vectors = torch.nn.functional.normalize(model.get_text_features(**written).pooler_output)
        return np.asarray(vectors.numpy(), np.float32)


@pytest.mark.parametrize("family", MAKERS)
def test_pictures_are_encoded_as_transformers_does(folders: Path, family: str) -> None:
    found = encoder(folders / family)
    vectors = found.encode_images(PICTURES)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(PICTURES), found.identity.dim)
    assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)
    # what transformers resizes in fractions of a level, by torchvision, is in bytes here: see the next test
    pictures = [found.prepare(picture) for picture in PICTURES] if family.startswith("dinov3") else PICTURES
    assert np.abs(vectors - reference_pictures(folders / family, pictures)).max() < 1e-5
    assert np.linalg.norm(vectors[0] - vectors[1]) > 1e-3, "the model looks at its pictures"


def test_tokens_of_clip_lie_where_its_pictures_do_and_the_last_is_the_text(folders: Path) -> None:
    torch, transformers, _ = packages()
    built, texts = encoder(folders / "clip"), ["a jollof", "rice", "two words and more"]
    found, whole = built.encode_tokens(texts), built.encode_texts(texts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / "clip")
    model = transformers.AutoModel.from_pretrained(folders / "clip").eval()
    for text, vectors, one in zip(texts, found, whole, strict=True):
        written = tokenizer([text], return_tensors="pt")
        with torch.inference_mode():
            states = model.text_projection(model.text_model(**written).last_hidden_state)[0]
        expected = torch.nn.functional.normalize(states)[1:].numpy()  # all but that of the beginning
        assert np.abs(vectors - expected).max() < 1e-5
        assert np.abs(vectors[-1] - one).max() < 1e-5
    with pytest.raises(UsageError, match="no vectors of single tokens"):
        encoder(folders / "siglip").encode_tokens(texts)


def test_patches_of_clip_lie_where_its_texts_do_and_are_items(folders: Path, tmp_path: Path, work: Work) -> None:
    torch, transformers, _ = packages()
    found = encoder(folders / "clip", "batch=4&give=patches")
    model = transformers.AutoModel.from_pretrained(folders / "clip").eval()
    seen = found.inputs([found.prepare(picture) for picture in PICTURES])
    with torch.inference_mode():
        states = model.vision_model(**seen).last_hidden_state
        projected = model.visual_projection(model.vision_model.post_layernorm(states))
        expected = torch.nn.functional.normalize(projected, dim=-1).numpy()
    vectors = found.encode_images(PICTURES).reshape(len(PICTURES), found.patches, -1)
    assert np.abs(vectors - expected[:, 1:]).max() < 1e-5
    whole = encoder(folders / "clip")
    assert np.abs(whole.encode_images(PICTURES) - expected[:, 0]).max() < 1e-5, "the first is the picture itself"

    spec = f"transformers:{folders / 'clip'}?device=cpu"
    images = EmbedSource(images=pictures_of_one_colour(tmp_path / "images", 3))
    done = embed_table(work, images, f"{spec}&give=patches")
    stored, ids = load_vectors(work.out)
    assert ids == [f"{image:06d}#{patch}" for image in range(3) for patch in range(1, found.patches + 1)]
    assert stored.shape == (3 * found.patches, whole.identity.dim)
    answer = done.notes["identity"]
    assert answer == whole.identity.as_options(), "texts of the same model can be compared with them"
    with pytest.raises(UsageError, match="no vectors of patches"):
        encoder(folders / "siglip", "give=patches")


@pytest.mark.parametrize("size", [(50, 40), (SIDE, SIDE), (300, 31), (64, 200)])
def test_dinov3_prepares_pictures_within_a_level_of_transformers(folders: Path, size: tuple[int, int]) -> None:
    _, transformers, _ = packages()
    processor = transformers.AutoImageProcessor.from_pretrained(folders / "dinov3_vit")
    asked = {"do_normalize": False, "return_tensors": "np"}
    theirs = processor(Image.fromarray(noise(*size)), **asked)["pixel_values"][0].transpose(1, 2, 0) * 255
    ours = encoder(folders / "dinov3_vit").prepare(noise(*size))
    assert np.abs(ours - theirs).max() <= 1.01
    assert np.abs(ours - theirs).mean() < 0.4


@pytest.mark.parametrize("family", ["clip", "dinov2", "dinov2_with_registers", "dinov3_convnext", "dinov3_vit"])
def test_features_as_they_are_have_a_name_of_their_own(folders: Path, family: str) -> None:
    torch, transformers, _ = packages()
    unit, whole = encoder(folders / family), encoder(folders / family, "batch=4&give=features")
    assert whole.identity.name == ("CLIP features" if family == "clip" else f"DINOv{family[5]} features")
    assert whole.identity.weights == unit.identity.weights
    vectors = whole.encode_images(PICTURES)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.1
    assert vectors / lengths == pytest.approx(unit.encode_images(PICTURES), abs=1e-6)
    model = transformers.AutoModel.from_pretrained(folders / family).eval()
    with torch.inference_mode():
        numbers = whole.inputs([whole.prepare(PICTURES[0])])
        shown = model.get_image_features(**numbers) if family == "clip" else model(**numbers)
        assert vectors[0] == pytest.approx(getattr(shown, "pooler_output", shown)[0].numpy(), abs=1e-5)
    with pytest.raises(UsageError, match="vectors of length one only; expected CLIP, DINOv2 or DINOv3"):
        encoder(folders / "siglip", "give=features")


@pytest.mark.parametrize("family", READING)
def test_texts_are_encoded_as_transformers_does(folders: Path, family: str) -> None:
    found = encoder(folders / family)
    padding = True if family == "clip" else "max_length"
    vectors = found.encode_texts(TEXTS)
    assert np.abs(vectors - reference_texts(folders / family, TEXTS, padding=padding)).max() < 1e-5
    assert vectors.shape == (len(TEXTS), found.identity.dim)
    assert np.linalg.norm(vectors[0] - vectors[3]) > 1e-3, "the model reads its texts"


@pytest.mark.parametrize("family", READING)
def test_texts_that_are_too_long_are_told_and_not_cut_silently(folders: Path, family: str) -> None:
    found = encoder(folders / family)
    most = 77 if family == "clip" else 64
    shown = found.too_long(TEXTS)
    assert [problem.place for problem in shown] == [5, 6]
    assert {problem.most for problem in shown} == {most}
    assert all(problem.tokens > most for problem in shown)
    fits = "x" * (most - 2)
    assert found.too_long([fits, fits + "x" * 3])[0].place == 1
    assert found.too_long([]) == []
    assert f"texts of at most {most} tokens" in found.identity.preprocessing
    assert isinstance(shown[0], TooLong)


@pytest.mark.parametrize("family", MAKERS)
def test_a_vector_is_the_same_bits_whatever_else_is_encoded(folders: Path, family: str) -> None:
    found = encoder(folders / family)
    together = found.encode_images(PICTURES)
    alone = np.concatenate([found.encode_images([picture]) for picture in PICTURES])
    turned = found.encode_images(PICTURES[::-1])[::-1]
    assert together.tobytes() == alone.tobytes() == np.ascontiguousarray(turned).tobytes()
    assert found.encode_images([]).shape == (0, found.identity.dim)
    if family in READING:
        apart = np.concatenate([found.encode_texts([text]) for text in TEXTS])
        assert found.encode_texts(TEXTS).tobytes() == apart.tobytes()
        assert found.encode_texts([]).shape == (0, found.identity.dim)


@pytest.mark.parametrize("family", MAKERS)
def test_threads_prepare_what_one_thread_does_and_all_of_one_shape(folders: Path, family: str) -> None:
    found = encoder(folders / family)
    one = [found.prepare(picture) for picture in PICTURES]
    with ThreadPoolExecutor(4) as threads:
        many = list(threads.map(found.prepare, PICTURES))
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
    assert {(picture.shape, picture.dtype) for picture in one} == {(one[0].shape, np.dtype(np.uint8))}


def test_only_models_that_read_are_encoders_of_texts(folders: Path) -> None:
    for family in MAKERS:
        found = encoder(folders / family)
        assert isinstance(found, ImageEncoder)
        assert isinstance(found, TextEncoder) == (family in READING)
    with pytest.raises(UsageError, match="reads no texts"):
        encoder(folders / "dinov2", "lowercase=true")


def test_half_as_many_bits_give_nearly_the_same_vectors(folders: Path) -> None:
    for family in MAKERS:
        exact, coarse = encoder(folders / family), encoder(folders / family, "batch=4&dtype=bfloat16")
        assert coarse.identity.dtype == "bfloat16"
        assert exact.identity.dtype == "float32"
        cosines = (exact.encode_images(PICTURES) * coarse.encode_images(PICTURES)).sum(axis=1)
        assert cosines.min() > 0.99
        assert cosines.min() < 1


def test_capitals_are_kept_unless_told_and_said(tmp_path: Path) -> None:
    make_siglip(tmp_path / "keeps", lower=False)
    keeps, lowers = encoder(tmp_path / "keeps"), encoder(tmp_path / "keeps", "lowercase=true")
    assert "lowercase=true" in keeps.caveat
    assert lowers.caveat == ""
    assert not np.array_equal(keeps.encode_texts(["KYIV"]), keeps.encode_texts(["kyiv"]))
    assert np.array_equal(lowers.encode_texts(["KYIV"]), keeps.encode_texts(["kyiv"]))
    assert keeps.identity != lowers.identity


def test_siglip_does_without_sentencepiece_where_its_pieces_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    make_siglip(tmp_path / "known")
    make_siglip(tmp_path / "own", lower=False)
    settings = tmp_path / "own/tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"tokenizer_class": "SiglipTokenizer"}))
    known, mine = encoder(tmp_path / "known"), encoder(tmp_path / "own")
    assert mine.caveat == ""
    assert mine.encode_texts(TEXTS).tobytes() == known.encode_texts(TEXTS).tobytes()
    assert mine.too_long(TEXTS) == known.too_long(TEXTS)
    if importlib.util.find_spec("sentencepiece") is None:
        (tmp_path / "own/tokenizer.json").rename(tmp_path / "own/spiece.model")
        with pytest.raises(MissingDependency, match=r"pip install .* sentencepiece"):
            encoder(tmp_path / "own")


def test_a_preprocessor_of_another_size_is_refused(tmp_path: Path) -> None:
    make_clip(tmp_path / "clip", image_size=64)
    with pytest.raises(UsageError, match="another size than the model was made for; expected 64 pixels"):
        encoder(tmp_path / "clip")


@pytest.mark.gpu
@pytest.mark.parametrize("family", MAKERS)
def test_a_gpu_agrees_with_the_cpu(folders: Path, family: str) -> None:
    torch, _, _ = packages()
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for dtype, least in (("float32", 1 - 1e-5), ("bfloat16", 0.99), ("float16", 0.999)):
        there = ENCODERS.make(f"transformers:{folders / family}?device=cuda&dtype={dtype}")
        here = ENCODERS.make(f"transformers:{folders / family}?device=cpu&dtype=float32")
        assert isinstance(there, ImageEncoder)
        assert isinstance(here, ImageEncoder)
        vectors = there.encode_images(PICTURES)
        assert vectors.tobytes() == there.encode_images(PICTURES).tobytes()
        assert (vectors * here.encode_images(PICTURES)).sum(axis=1).min() > least


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("models") / "clip"
    make_clip(location)
    return location


@pytest.fixture
def clip_folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "clip"))


def encoder_of(clip_folder: Path) -> Any:
    packages()
    return ENCODERS.make(f"transformers:{clip_folder}?device=cpu&batch=2")


def edited(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut(clip_folder: Path) -> None:
    weights = clip_folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def without_a_weight(clip_folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(clip_folder / "model.safetensors")
    del weights["visual_projection.weight"]
    save_file(weights, clip_folder / "model.safetensors", metadata={"format": "pt"})


def with_a_wrong_shape(clip_folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(clip_folder / "model.safetensors")
    weights["visual_projection.weight"] = weights["visual_projection.weight"][:, :5].contiguous()
    save_file(weights, clip_folder / "model.safetensors", metadata={"format": "pt"})


def padded(clip_folder: Path) -> None:
    path = clip_folder / "processor_config.json"
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
def test_a_broken_folder_is_refused(clip_folder: Path, name: str) -> None:
    breaks, kind, message = BROKEN[name]
    breaks(clip_folder)
    with pytest.raises(kind, match=message):
        encoder_of(clip_folder)


def test_a_pickle_beside_safetensors_is_never_opened(clip_folder: Path) -> None:
    before = encoder_of(clip_folder).identity
    (clip_folder / "pytorch_model.bin").write_bytes(b"\x80\x02c__builtin__\nexit\n(tR.")
    assert encoder_of(clip_folder).identity == before


def test_code_in_a_folder_is_never_run(clip_folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    (clip_folder / "mine.py").write_text(f"open({str(trace)!r}, 'w')\nclass M: pass\n")
    auto = {"AutoConfig": "mine.M", "AutoModel": "mine.M", "AutoTokenizer": ["mine.M", "mine.M"]}
    edited(clip_folder / "config.json", auto_map=auto)
    edited(clip_folder / "tokenizer_config.json", auto_map=auto)
    with suppress(CultureKitError):
        encoder_of(clip_folder)
    assert not trace.exists()


def test_old_files_of_a_preprocessor_mean_the_same(clip_folder: Path) -> None:
    now = encoder_of(clip_folder)
    settings = json.loads((clip_folder / "processor_config.json").read_text())["image_processor"]
    (clip_folder / "processor_config.json").unlink()
    old = {
        "feature_extractor_type": "CLIPFeatureExtractor", "size": settings["size"]["shortest_edge"],
        "crop_size": settings["crop_size"]["height"], "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "image_mean": settings["image_mean"], "image_std": settings["image_std"], "resample": 3,
    }  # fmt: skip
    (clip_folder / "preprocessor_config.json").write_text(json.dumps(old))
    assert encoder_of(clip_folder).identity.preprocessing == now.identity.preprocessing
    assert encoder_of(clip_folder).identity.weights != now.identity.weights


def test_loading_says_nothing_on_its_own(clip_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, transformers, _ = packages()
    level = transformers.utils.logging.get_verbosity()
    encoder_of(clip_folder).encode_texts(["x" * 500])
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == ""
    assert transformers.utils.logging.get_verbosity() == level


LABELS = ["drum", "red envelope", "tea"]


def make_owl(owl: Path, kind: str) -> None:
    _, transformers, _ = packages()
    tokenizer = bytes_of_clip()
    end = tokenizer.eos_token_id
    words = {"vocab_size": len(tokenizer), "eos_token_id": end, "bos_token_id": end - 1, "pad_token_id": 0}
    name = {"owlvit": "OwlViT", "owlv2": "Owlv2"}[kind]
    config = getattr(transformers, f"{name}Config")(
        text_config=LAYERS | words | {"max_position_embeddings": 32},
        vision_config=LAYERS | {"image_size": SIDE, "patch_size": 8},
        projection_dim=32,
    )
    processor = getattr(transformers, f"{name}ImageProcessorPil")(size={"height": SIDE, "width": SIDE})
    save(owl, getattr(transformers, f"{name}ForObjectDetection")(config), processor, tokenizer)


@pytest.fixture(scope="module", params=["owlvit", "owlv2"])
def owl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("models") / str(request.param)
    make_owl(location, request.param)
    return location


def busy(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (40, 50, 3), np.uint8)


def reference(owl: Path, picture: NDArray[np.uint8]) -> list[float]:
    """Let transformers prepare, look and name boxes: how sure the surest place of each label is."""
    torch, transformers, _ = packages()
    name = "Owlv2" if owl.name == "owlv2" else "OwlViT"
    processor = getattr(transformers, f"{name}ImageProcessorPil").from_pretrained(owl)
    tokenizer = transformers.CLIPTokenizer.from_pretrained(owl)
    model = getattr(transformers, f"{name}ForObjectDetection").from_pretrained(owl).eval()
    whole = getattr(transformers, f"{name}Processor")(image_processor=processor, tokenizer=tokenizer)
    asked = [[f"a photo of {label}" for label in LABELS]]
    with torch.inference_mode():
        outputs = model(**whole(text=asked, images=picture, return_tensors="pt", padding="max_length", max_length=32))
    boxes = whole.post_process_grounded_object_detection(outputs, threshold=0.0, text_labels=asked)[0]
    surest: list[float] = outputs.logits[0].sigmoid().max(dim=0).values.tolist()
    assert max(boxes["scores"].tolist()) == pytest.approx(max(surest))
    return surest


def detector(owl: Path) -> Any:
    packages()
    return DETECTORS.make(f"owl:{owl}?device=cpu")


def test_the_surest_place_of_each_label_is_what_transformers_finds(owl: Path) -> None:
    found = detector(owl).probabilities(busy(1), LABELS)
    assert found == pytest.approx(reference(owl, busy(1)), abs=1e-5)
    assert found.tolist() == detector(owl).probabilities(busy(1), LABELS).tolist()


def test_objects_above_the_threshold_are_written_and_no_picture_named(owl: Path, work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": encoded(busy(1)), "b": encoded(busy(2)), "c": b"no picture"})
    (tmp_path / "labels.txt").write_text("drum\n\nred envelope\ntea\ndrum\n", encoding="utf-8")
    known = {one: detector(owl).probabilities(busy(seed), LABELS) for one, seed in (("a", 1), ("b", 2))}
    threshold = min(
        float(np.sort(np.concatenate(list(known.values())))[2]) + 1e-6, 1 - 1e-5
    )  # random weights may be sure
    given = {"images": images, "labels": tmp_path / "labels.txt", "detector": f"owl:{owl}?device=cpu"}
    do(objects, work, **given, threshold=threshold)
    found = read_table(work.out / "objects.parquet", OBJECTS)
    expected = [
        (one, label) for one in "ab" for label,
        p in zip(LABELS, known[one], strict=True) if round(float(p), 6) > threshold
    ]  # fmt: skip
    assert found.select("item", "text").rows() == expected
    assert found.filter(pl.col("probability") <= threshold).is_empty()
    drops = dict(read_table(work.out / "drops.parquet", DROPS).select("key", "reason").iter_rows())
    assert set(drops) == {"c", *({"a", "b"} - set(found["item"]))}


def test_a_label_that_is_too_long_and_a_model_that_is_no_detector_are_refused(owl: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        detector(owl).probabilities(busy(1), ["a very long name of a thing that nobody says"])
    (tmp_path / "config.json").write_text('{"model_type": "clip"}', encoding="utf-8")
    with pytest.raises(UsageError, match="no detector"):
        detector(tmp_path)
