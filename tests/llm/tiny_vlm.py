"""A tiny vision model of random weights that knows bytes, saved as such models are saved."""

from pathlib import Path
from typing import Any

import pytest

from culturekit.core.torch_places import mend_torchvision

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
