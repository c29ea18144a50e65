"""ImageReward from a file of its published names, built small: held against BLIP as transformers has it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from culturekit.core.errors import UsageError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

from culturekit.core.digests import digest_file  # noqa: E402
from culturekit.index.raters.image_reward import DEVIATION, LONGEST, MEAN  # noqa: E402
from culturekit.index.raters.quality import SCORERS  # noqa: E402
from tests.command_line import culturekit  # noqa: E402

WIDTH, TEXT, PATCH, SIDE, LAYERS, INNER = 128, 64, 16, 32, 2, 96
PROMPT = ["a", "photo", "of", "tea", "in", "iran", "market", "people", "dancing"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PROMPT]
TRANSFORMERS = (
    ("visual_encoder.blocks.", "vision_model.encoder.layers."), ("attn.qkv", "self_attn.qkv"),
    ("attn.proj", "self_attn.projection"), ("norm1", "layer_norm1"), ("norm2", "layer_norm2"),
    ("visual_encoder.norm", "vision_model.post_layernorm"),
    ("visual_encoder.patch_embed.proj", "vision_model.embeddings.patch_embedding"),
    ("visual_encoder.cls_token", "vision_model.embeddings.class_embedding"),
    ("visual_encoder.pos_embed", "vision_model.embeddings.position_embedding"), ("text_encoder.", "text_encoder."),
)  # fmt: skip


def shapes() -> Mapping[str, tuple[int, ...]]:
    seen, words = "blip.visual_encoder", "blip.text_encoder"
    found: dict[str, tuple[int, ...]] = {
        f"{seen}.cls_token": (1, 1, WIDTH), f"{seen}.pos_embed": (1, 1 + (SIDE // PATCH) ** 2, WIDTH),
        f"{seen}.patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH), f"{seen}.patch_embed.proj.bias": (WIDTH,),
        f"{words}.embeddings.word_embeddings.weight": (len(WORDS) + 2, TEXT),
        f"{words}.embeddings.position_embeddings.weight": (64, TEXT),
    }  # fmt: skip

    def linear(name: str, out: int, into: int) -> None:
        found.update({f"{name}.weight": (out, into), f"{name}.bias": (out,)})

    def norm(name: str, width: int) -> None:
        found.update({f"{name}.weight": (width,), f"{name}.bias": (width,)})

    norm(f"{seen}.norm", WIDTH)
    norm(f"{words}.embeddings.LayerNorm", TEXT)
    for layer in range(LAYERS):
        block, row = f"{seen}.blocks.{layer}", f"{words}.encoder.layer.{layer}"
        linear(f"{block}.attn.qkv", 3 * WIDTH, WIDTH)
        linear(f"{block}.attn.proj", WIDTH, WIDTH)
        linear(f"{block}.mlp.fc1", INNER, WIDTH)
        linear(f"{block}.mlp.fc2", WIDTH, INNER)
        norm(f"{block}.norm1", WIDTH)
        norm(f"{block}.norm2", WIDTH)
        for part, width in (("attention", TEXT), ("crossattention", WIDTH)):
            for name, into in (("query", TEXT), ("key", width), ("value", width)):
                linear(f"{row}.{part}.self.{name}", TEXT, into)
            linear(f"{row}.{part}.output.dense", TEXT, TEXT)
            norm(f"{row}.{part}.output.LayerNorm", TEXT)
        linear(f"{row}.intermediate.dense", INNER, TEXT)
        linear(f"{row}.output.dense", TEXT, INNER)
        norm(f"{row}.output.LayerNorm", TEXT)
    for number, (out, into) in {0: (32, TEXT), 2: (16, 32), 4: (1, 16)}.items():
        linear(f"mlp.layers.{number}", out, into)
    return found


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Any]]:
    """Write the checkpoint as it is published, a pickle, and have it converted; and a tokenizer beside it."""
    folder = tmp_path_factory.mktemp("imagereward")
    random = torch.Generator().manual_seed(1)
    tensors = {name: torch.randn(shape, generator=random) * 0.2 for name, shape in shapes().items()}
    torch.save(tensors, folder / "ImageReward.pt")
    words = ("--sha256", digest_file(folder / "ImageReward.pt"), "--kind", "imagereward", "--out", "reward.safetensors")
    done: subprocess.CompletedProcess[str] = culturekit("weights", "convert", "ImageReward.pt", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    tokenizer = transformers.BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)})
    tokenizer.save_pretrained(folder / "tokenizer")
    return folder, tensors


def rewards_by_transformers(tensors: Mapping[str, Any], pixels: Any, ids: Any, mask: Any) -> Any:
    """Score with the BLIP of transformers, whose names differ."""
    seen = transformers.BlipVisionConfig(
        hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=WIDTH // 64,
        image_size=SIDE, patch_size=PATCH, layer_norm_eps=1e-6, hidden_act="gelu",
    )  # fmt: skip
    words = transformers.BlipTextConfig(vocab_size=len(WORDS) + 2, hidden_size=TEXT, encoder_hidden_size=WIDTH,
        intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=1, max_position_embeddings=64,
        layer_norm_eps=1e-12, hidden_act="gelu", is_decoder=True, attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0)  # fmt: skip
    renamed = {}
    for name, tensor in tensors.items():
        for old, new in TRANSFORMERS:
            name = name.replace(old, new)
        renamed[name.removeprefix("blip.")] = tensor
    from transformers.models.blip.modeling_blip_text import BlipTextModel

    vision, text = transformers.BlipVisionModel(seen).eval(), BlipTextModel(words, add_pooling_layer=False).eval()
    for model, prefix in ((vision, "vision_model."), (text, "text_encoder.")):
        missing, strange = model.load_state_dict(
            {name.removeprefix(prefix): tensor for name, tensor in renamed.items() if name.startswith(prefix)},
            strict=False,
        )
        assert not strange
        assert not [name for name in missing if "position_ids" not in name]
    with torch.no_grad():
        looked = vision(pixel_values=pixels).last_hidden_state
        value = text(
            input_ids=ids, attention_mask=mask, encoder_hidden_states=looked,
            encoder_attention_mask=torch.ones(looked.shape[:2]), is_decoder=False,
        ).last_hidden_state[:, 0]  # fmt: skip
        for number in (0, 2, 4):
            value = torch.nn.functional.linear(
                value, tensors[f"mlp.layers.{number}.weight"], tensors[f"mlp.layers.{number}.bias"]
            )
    return ((value - MEAN) / DEVIATION)[:, 0].double().numpy()


def test_rewards_are_those_of_the_published_network(tiny: tuple[Path, Mapping[str, Any]]) -> None:
    folder, tensors = tiny
    scorer: Any = SCORERS.make(f"imagereward:{folder}/reward.safetensors?tokenizer={folder}/tokenizer")
    rng = np.random.default_rng(3)
    pictures = [rng.integers(0, 256, (*size, 3), np.uint8) for size in ((40, 60), (32, 32), (90, 50))]
    prompts = ["a photo of tea in iran", "people dancing", "market"]
    found = scorer.score(pictures, prompts)
    seen = np.stack([scorer.prepare(picture) for picture in pictures]).astype(np.float32) / 255
    mean, deviation = (np.array(part, np.float32) for part in (
        (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)))  # fmt: skip
    pixels = torch.from_numpy((seen - mean) / deviation).permute(0, 3, 1, 2)
    rows = [[2, *(WORDS.index(word) for word in prompt.split()), 3] for prompt in prompts]
    ids = torch.tensor([row + [0] * (LONGEST - len(row)) for row in rows])
    expected = rewards_by_transformers(tensors, pixels, ids, (ids != 0).long())
    assert found == pytest.approx(expected, abs=2e-4)
    assert len({round(value, 3) for value in found}) == len(found)
    assert scorer.score(pictures[:1], prompts[:1]) == pytest.approx(found[:1], abs=1e-6), "no value depends on others"
    assert [one.tokens for one in scorer.too_long(["tea " * 50, "tea"])] == [52]


def test_other_weights_and_tokenizers_are_refused(tiny: tuple[Path, Mapping[str, Any]]) -> None:
    folder, _ = tiny
    many = {word: number for number, word in enumerate([*WORDS, *(f"word{n}" for n in range(9))])}
    transformers.BertTokenizer(vocab=many).save_pretrained(folder / "many")
    with pytest.raises(UsageError, match="more words than the weights"):
        SCORERS.make(f"imagereward:{folder}/reward.safetensors?tokenizer={folder}/many")
    with pytest.raises(UsageError, match="culturekit weights convert"):
        SCORERS.make(f"imagereward:{folder}/ImageReward.pt?tokenizer={folder}/tokenizer")
