import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.torch_places import mend_torchvision
from culturekit.llm.client import Client, Failure
from culturekit.llm.clients.local_client import LocalClient
from tests.llm.questions import client, picture, question, send

HAS_MODELS = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_models = pytest.mark.skipif(not HAS_MODELS, reason="torch and transformers are not installed")

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tiny model of random weights that knows bytes, and save it as models are saved."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    mend_torchvision()
    tokenizers: Any = pytest.importorskip("tokenizers")
    place = tmp_path_factory.mktemp("models") / "tiny"
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = {token: number for number, token in enumerate(["</s>", *alphabet])}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=words, merges=[]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=0, bos_token_id=0,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(place)
    return place


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    for spec in ("local", f"local:{tmp_path}", f"local:{tmp_path / 'absent'}"):
        with pytest.raises(UsageError, match=r"config\.json"):
            client(spec)


def test_packages_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"culturekit\[embed\]"):
        send(client(f"local:{tmp_path}"), question())


def test_a_model_is_known_by_what_its_folder_holds(tmp_path: Path) -> None:
    for name, weights in (("one", b"a"), ("two", b"b")):
        (tmp_path / name / "tiny").mkdir(parents=True)
        (tmp_path / name / "tiny/config.json").write_text("{}")
        (tmp_path / name / "tiny/model.safetensors").write_bytes(weights)
    one, two = (client(f"local:{tmp_path / name / 'tiny'}") for name in ("one", "two"))
    assert one.model.startswith("tiny@")
    assert one.model != two.model
    (tmp_path / "two/tiny/model.safetensors").write_bytes(b"a")
    assert client(f"local:{tmp_path / 'two/tiny'}").identity == one.identity


def test_what_decides_a_reply_is_in_what_is_composed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    spec = f"local:{tmp_path}"
    bodies = {
        client(text).compose(question(sample=sample, images=images)).body
        for text in (spec, f"{spec}?seed=5", f"{spec}?temperature=0.5", f"{spec}?max_tokens=9", f"{spec}?dtype=float32")
        for sample in (0, 1)
        for images in ((), (picture(),))
    }
    assert len(bodies) == 20


@needs_models
def test_the_same_question_gets_the_same_reply(folder: Path) -> None:
    greedy = send(client(f"local:{folder}"), question())
    assert greedy == send(client(f"local:{folder}"), question())
    drawn = {send(client(f"local:{folder}?temperature=2&seed={seed}"), question()) for seed in (1, 1, 2)}
    assert len(drawn) == 2


@needs_models
def test_a_reply_counts_and_ends_at_its_limit(folder: Path) -> None:
    asked = client(f"local:{folder}?max_tokens=7")
    reply = asked.read(send(asked, question()))
    assert reply.usage.output_tokens <= 7
    assert reply.stop == ("length" if reply.usage.output_tokens == 7 else "end")
    assert reply.usage.input_tokens > len("Judge the candidate.")
    assert asked.read(b"{}").stop == asked.read(b"<html>").stop == "unreadable"


@needs_models
def test_many_at_once_take_turns(folder: Path) -> None:
    asked = client(f"local:{folder}?max_tokens=5")
    alone = [send(client(f"local:{folder}?max_tokens=5"), question(f"dish {n}")) for n in range(4)]

    async def together() -> list[bytes]:
        return await asyncio.gather(*(asked.send(asked.compose(question(f"dish {n}"))) for n in range(4)))

    assert asyncio.run(together()) == alone


@needs_models
def test_no_reply_takes_for_ever(folder: Path) -> None:
    asked: Client = client(f"local:{folder}?timeout=0.2&max_tokens=3000")
    assert isinstance(asked, LocalClient)
    asked.ready()
    with pytest.raises(Failure) as caught:
        asyncio.run(asked.send(asked.compose(question())))
    assert caught.value.kind == "timeout"


@needs_models
def test_a_model_that_sees_nothing_is_shown_nothing(folder: Path) -> None:
    with pytest.raises(UsageError, match="sees no images"):
        send(client(f"local:{folder}"), question(images=(picture(),)))
