"""Sentence-transformers from a folder of random weights, against the package's own encoding."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.torch_places import mend_torchvision
from culturekit.index.encoder import ENCODERS, ImageEncoder, TextEncoder

pytest.importorskip("torch")
mend_torchvision()
pytest.importorskip("sentence_transformers")

from tests.index.models.tiny_transformers import make_sentence, packages  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

PHRASES = ["jollof", "Jollof rice!", "", "a" * 30, "two words", "x y z " * 10]


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("sentence")
    make_sentence(location)
    return location / "whole"


def sentence_encoder(sentences: Path, options: str = "batch=4") -> Any:
    packages()
    return ENCODERS.make(f"sentence:{sentences}?device=cpu&{options}")


def test_texts_are_encoded_as_the_package_does(sentences: Path) -> None:
    import sentence_transformers

    found = sentence_encoder(sentences)
    mine = sentence_transformers.SentenceTransformer(str(sentences), device="cpu")
    expected = mine.encode(PHRASES, normalize_embeddings=True, show_progress_bar=False)
    vectors = found.encode_texts(PHRASES)
    assert np.abs(vectors - expected).max() < 1e-5
    assert vectors.shape == (len(PHRASES), 24)
    assert found.identity.dim == 24
    assert np.linalg.norm(vectors.astype(float), axis=1) == pytest.approx(1, abs=1e-6)
    assert isinstance(found, TextEncoder)
    assert not isinstance(found, ImageEncoder)


def test_tokens_are_those_of_the_package_without_beginning_and_end(sentences: Path) -> None:
    import sentence_transformers

    mine = sentence_transformers.SentenceTransformer(str(sentences), device="cpu")
    texts = [text for text in PHRASES if text]
    found = sentence_encoder(sentences).encode_tokens(texts)
    for text, vectors in zip(texts, found, strict=True):
        (expected,) = mine.encode([text], output_value="token_embeddings", show_progress_bar=False)
        ids = mine.tokenizer([text], truncation=True, max_length=mine.max_seq_length)["input_ids"][0]
        lines = [number for number, each in enumerate(ids) if each not in mine.tokenizer.all_special_ids]
        rows = np.asarray(expected.cpu().numpy(), float)[lines or range(len(ids))]
        assert np.abs(vectors - rows / np.linalg.norm(rows, axis=1, keepdims=True)).max() < 1e-5


def test_a_text_is_the_same_bits_whatever_else_is_encoded(sentences: Path) -> None:
    found = sentence_encoder(sentences)
    alone = np.concatenate([found.encode_texts([text]) for text in PHRASES])
    assert found.encode_texts(PHRASES).tobytes() == alone.tobytes()
    assert found.encode_texts([]).shape == (0, 24)


def test_texts_that_are_too_long_are_told(sentences: Path) -> None:
    found = sentence_encoder(sentences).too_long(PHRASES)
    assert [(problem.place, problem.most) for problem in found] == [(3, 20), (5, 20)]
    assert [problem.tokens for problem in found] == [32, 32]


def test_the_identity_knows_every_part(sentences: Path, tmp_path: Path) -> None:
    import shutil

    before = sentence_encoder(sentences).identity
    copy = tmp_path / "copy"
    shutil.copytree(sentences, copy)
    assert sentence_encoder(copy).identity == before
    (copy / "README.md").write_text("words that change nothing")
    assert sentence_encoder(copy).identity == before
    dense = next(copy.glob("2_*")) / "model.safetensors"
    content = bytearray(dense.read_bytes())
    content[-1] ^= 1
    dense.write_bytes(content)
    assert sentence_encoder(copy).identity.weights != before.weights


def test_code_of_a_model_and_pickles_in_its_parts_are_refused(sentences: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(sentences, copy)
    listed = json.loads((copy / "modules.json").read_text())
    foreign = [*listed[:-1], {**listed[-1], "type": "custom.Normalize"}]
    (copy / "modules.json").write_text(json.dumps(foreign))
    with pytest.raises(UsageError, match="code of its own, which is never run"):
        sentence_encoder(copy)
    (copy / "modules.json").write_text(json.dumps([listed[0], {**listed[1], "path": "../../elsewhere"}]))
    with pytest.raises(IntegrityError, match="outside its folder"):
        sentence_encoder(copy)
    (copy / "modules.json").write_text(json.dumps(listed))
    dense = next(copy.glob("2_*"))
    (dense / "model.safetensors").rename(dense / "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"pickle.*culturekit weights convert .*pytorch_model\.bin --sha256"):
        sentence_encoder(copy)


def test_a_folder_that_lists_no_parts_is_no_sentence_encoder(sentences: Path) -> None:
    with pytest.raises(UsageError, match=r"modules\.json"):
        sentence_encoder(sentences.parent / "bert")
