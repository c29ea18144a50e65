import gzip
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from culturekit.release import audit_file as token_counts
from culturekit.release.audit_file import clip_tokens, estimated_tokens, read_ranks, vocabulary_file

MERGES = ["#version", "c a", "ca t</w>", "s </w>", "d o", "do g</w>"]


@pytest.fixture
def vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bpe.txt.gz"
    path.write_bytes(gzip.compress("\n".join(MERGES).encode()))
    monkeypatch.setattr(token_counts, "vocabulary_file", lambda: path)
    return path


def test_words_are_joined_by_the_vocabulary(vocabulary: Path) -> None:
    count, exact = clip_tokens()
    assert exact
    assert count("cat dog") == 2
    assert count("Cat, CATS") == 1 + 1 + 3
    assert count("&amp;") == 1
    assert count("12½") == 4
    assert count("é") == 2
    assert len(read_ranks(vocabulary)) == len(MERGES) - 1


def test_without_a_vocabulary_words_are_estimated() -> None:
    assert estimated_tokens("a panoramic view of Sapporo in Japan, realistic") == 11
    assert estimated_tokens("") == 0
    assert estimated_tokens("会席") == 2


def test_the_count_agrees_with_the_package() -> None:
    path = vocabulary_file()
    if path is None:
        pytest.skip("needs open_clip, whose tokenizer is the reference: pip install 'culturekit[openclip]'")
    pytest.importorskip("torch")
    spec = spec_from_file_location("open_clip_tokenizer", path.with_name("tokenizer.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    tokenizer = module.SimpleTokenizer()
    count, exact = clip_tokens()
    assert exact
    for text in ("A panoramic view of Château de Vaux-le-Vicomte in France, realistic", "naïve 寿司 नमस्ते 🍣 don't 2°"):
        assert count(text) == len(tokenizer.encode(text))
