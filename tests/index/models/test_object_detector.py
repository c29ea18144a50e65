"""OWL-ViT and OWLv2 from folders of random weights: against transformers' own reading of the same model."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from culturekit.builders.captions.caption_files import objects
from culturekit.core.errors import UsageError
from culturekit.core.pictures.picture_files import encoded
from culturekit.core.schemas import DROPS, OBJECTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.index.models.transformers_encoder import DETECTORS
from tests.builders.judging.test_image_judge import table
from tests.builders.put import do

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.index.models.tiny_transformers import LAYERS, SIDE, bytes_of_clip, packages, save

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

LABELS = ["drum", "red envelope", "tea"]


def make_owl(folder: Path, kind: str) -> None:
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
    save(folder, getattr(transformers, f"{name}ForObjectDetection")(config), processor, tokenizer)


@pytest.fixture(scope="module", params=["owlvit", "owlv2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("models") / str(request.param)
    make_owl(location, request.param)
    return location


def noise(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (40, 50, 3), np.uint8)


def reference(folder: Path, picture: NDArray[np.uint8]) -> list[float]:
    """Let transformers prepare, look and name boxes: how sure the surest place of each label is."""
    torch, transformers, _ = packages()
    name = "Owlv2" if folder.name == "owlv2" else "OwlViT"
    processor = getattr(transformers, f"{name}ImageProcessorPil").from_pretrained(folder)
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder)
    model = getattr(transformers, f"{name}ForObjectDetection").from_pretrained(folder).eval()
    whole = getattr(transformers, f"{name}Processor")(image_processor=processor, tokenizer=tokenizer)
    asked = [[f"a photo of {label}" for label in LABELS]]
    with torch.inference_mode():
        outputs = model(**whole(text=asked, images=picture, return_tensors="pt", padding="max_length", max_length=32))
    boxes = whole.post_process_grounded_object_detection(outputs, threshold=0.0, text_labels=asked)[0]
    surest: list[float] = outputs.logits[0].sigmoid().max(dim=0).values.tolist()
    assert max(boxes["scores"].tolist()) == pytest.approx(max(surest))
    return surest


def detector(folder: Path) -> Any:
    packages()
    return DETECTORS.make(f"owl:{folder}?device=cpu")


def test_the_surest_place_of_each_label_is_what_transformers_finds(folder: Path) -> None:
    found = detector(folder).probabilities(noise(1), LABELS)
    assert found == pytest.approx(reference(folder, noise(1)), abs=1e-5)
    assert found.tolist() == detector(folder).probabilities(noise(1), LABELS).tolist()


def test_objects_above_the_threshold_are_written_and_no_picture_named(folder: Path, work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": encoded(noise(1)), "b": encoded(noise(2)), "c": b"no picture"})
    (tmp_path / "labels.txt").write_text("drum\n\nred envelope\ntea\ndrum\n", encoding="utf-8")
    known = {one: detector(folder).probabilities(noise(seed), LABELS) for one, seed in (("a", 1), ("b", 2))}
    threshold = min(
        float(np.sort(np.concatenate(list(known.values())))[2]) + 1e-6, 1 - 1e-5
    )  # random weights may be sure
    given = {"images": images, "labels": tmp_path / "labels.txt", "detector": f"owl:{folder}?device=cpu"}
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


def test_a_label_that_is_too_long_and_a_model_that_is_no_detector_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        detector(folder).probabilities(noise(1), ["a very long name of a thing that nobody says"])
    (tmp_path / "config.json").write_text('{"model_type": "clip"}', encoding="utf-8")
    with pytest.raises(UsageError, match="no detector"):
        detector(tmp_path)
