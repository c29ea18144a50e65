"""Models of random weights in this process: what they reply, and how probable a reply begins with a text."""

import asyncio
import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from culturekit.builders.judging.image_judge import vqa_request, vqascore
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.schemas import JUDGMENTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table
from culturekit.core.torch_places import mend_torchvision
from culturekit.llm.client import Client, Failure, Image
from culturekit.llm.clients.local_client import LocalClient, LocalModel, Turn, distinct
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts
from tests.builders.put import put
from tests.llm.fake_client import client, picture, question, send

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}:{% for c in m.content %}{% if c.type == 'image' %}<image>"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}</s>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)


def tiny_vlm(place: Path, *, words: tuple[str, ...] = (), sees: bool = True) -> Path:
    """Save a LLaVA of a few thousand weights in a folder, or the Llama in it; `words` are tokens, all else is bytes."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    mend_torchvision()
    tokenizers: Any = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["</s>", "<image>", *alphabet])}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_tokens(list(words))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>")
    fast.add_special_tokens({"additional_special_tokens": ["<image>"]})
    text = transformers.LlamaConfig(
        vocab_size=len(fast), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=0, bos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    if not sees:
        fast.chat_template = (
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}"
        )
        fast.save_pretrained(place)
        transformers.LlamaForCausalLM(text).save_pretrained(place)
        return place
    vision = transformers.CLIPVisionConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=16,
        projection_dim=16,
    )  # fmt: skip
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=1, image_seq_length=4,
        vision_feature_select_strategy="default",
    )  # fmt: skip
    transformers.LlavaForConditionalGeneration(config).save_pretrained(place)
    pictures = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    )  # fmt: skip
    transformers.LlavaProcessor(
        pictures, fast, patch_size=16, vision_feature_select_strategy="default", image_token="<image>",
        chat_template=TEMPLATE, num_additional_image_tokens=1,
    ).save_pretrained(place)  # fmt: skip
    return place


HAS_MODELS = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_models = pytest.mark.skipif(not HAS_MODELS, reason="torch and transformers are not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vlm(tmp_path_factory.mktemp("models") / "tiny", sees=False)


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vlm(tmp_path_factory.mktemp("models") / "sees", words=("Yes", "No"))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    for spec in ("local", f"local:{tmp_path}", f"local:{tmp_path / 'absent'}"):
        with pytest.raises(UsageError, match=r"config\.json"):
            client(spec)


def test_packages_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def seen(colour: str = "red") -> Image:
    content = png(colour, (32, 32))
    return Image(content, "image/png", digest_bytes(content), 32, 32)


def test_texts_that_begin_as_another_are_weighed_once() -> None:
    found = distinct({"Yes": (1, 2), "yes": (3,), "Yes!": (1, 2, 4), "YES": (1, 2), "": ()})
    assert found == {"yes": (3,), "YES": (1, 2)}


@needs_models
def test_a_text_is_as_probable_as_all_of_its_tokens(seeing: Path) -> None:
    torch: Any = importlib.import_module("torch")
    asked = client(f"local:{seeing}")
    request = vqa_request(seen(), "A red square", instructions="Answer.")
    reply = asked.read(send(asked, request))
    found = dict(reply.tokens)
    assert {"Yes", "No", "yes", " no"} <= set(found)
    model = LocalModel(seeing, device="cpu", dtype="auto")
    turn = msgspec.json.decode(asked.compose(request).body, type=Turn)
    inputs = model.tokens(turn, request.images)
    whole = model.tokenizer("yes", add_special_tokens=False)["input_ids"]
    assert len(whole) == 3, "this tokenizer writes yes in three tokens, Yes in one"
    ids = torch.cat([inputs["input_ids"], torch.tensor([whole])], dim=1)
    with torch.inference_mode():
        logits = model.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), pixel_values=inputs["pixel_values"]
        ).logits[0]
    shares = torch.log_softmax(logits.double(), dim=-1)
    length = inputs["input_ids"].shape[1]
    by_hand = sum(float(shares[length - 1 + place, token]) for place, token in enumerate(whole))
    assert found["yes"] == pytest.approx(by_hand, abs=1e-4)
    one = model.tokenizer("Yes", add_special_tokens=False)["input_ids"]
    assert found["Yes"] == pytest.approx(float(shares[length - 1, one[0]]), abs=1e-4)
    assert sum(math.exp(value) for value in found.values()) <= 1 + 1e-9


@needs_models
def test_a_local_model_weighs_images_the_same_way_each_time(seeing: Path, work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png("red", (32, 32)), "b": png("blue", (32, 32)), "c": b"broken"})
    own = prompts(tmp_path / "p", {"p1": "A red square"})
    put(vqascore, work, client(f"local:{seeing}"), images, own)
    first = read_table(work.out / "judgments.parquet", JUDGMENTS)
    assert first["outcome"].to_list() == ["ok", "ok"]
    assert first["value"].is_between(0, 1, closed="none").all()
    assert first["value"].n_unique() == 2, "the pictures differ"
    request = vqa_request(seen(), "A red square", instructions="Answer.")
    assert send(client(f"local:{seeing}"), request) == send(client(f"local:{seeing}"), request)
